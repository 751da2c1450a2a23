use hpcbench_world::Failure;
use mpi::ffi::MPI_Bcast;

use super::{Arguments, returned};
use crate::Run;

/// MPI's broadcast is in place by nature. Out of place, the root sends from its send buffer and
/// copies that into its receive buffer, as NCCL does.
pub(super) fn prepare<'a>(a: Arguments) -> Result<Run<'a>, Failure> {
    let all = a.typed(a.layout.param)?;
    let copies = a.is_root() && !a.in_place;
    let buffer = if copies { a.send_at(0) } else { a.recv_at(0) };
    let (copy, bytes) = (a.recv_at(0), a.layout.param * a.element_bytes);
    Ok(Box::new(move || {
        let (count, datatype) = all.arguments();
        // SAFETY: the buffer holds the count's elements; borrowed by the run, which owns the type.
        returned("MPI_Bcast", unsafe { MPI_Bcast(buffer, count, datatype, a.root, a.comm) })?;
        if copies {
            // SAFETY: two different buffers of at least `bytes` bytes.
            unsafe { std::ptr::copy_nonoverlapping(buffer.cast::<u8>(), copy.cast::<u8>(), bytes) };
        }
        Ok(())
    }))
}
