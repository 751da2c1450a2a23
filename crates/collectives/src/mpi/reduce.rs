use hpcbench_world::Failure;
use mpi::ffi::MPI_Reduce;

use super::{Arguments, in_place, returned};
use crate::Run;

pub(super) fn prepare<'a>(a: Arguments) -> Result<Run<'a>, Failure> {
    let (count, datatype, op) = a.reduction(a.layout.param)?;
    let from = if a.in_place && a.is_root() { in_place() } else { a.input() };
    let into = a.recv_at(0);
    Ok(Box::new(move || {
        // SAFETY: both buffers hold `count` elements; only the root's `into` is written. In place,
        // other ranks send from the buffer that MPI then does not touch as `into`.
        let code = unsafe { MPI_Reduce(from, into, count, datatype, op, a.root, a.comm) };
        returned("MPI_Reduce", code)
    }))
}
