use hpcbench_world::Failure;
use mpi::ffi::MPI_Allgather;

use super::{Arguments, in_place, returned};
use crate::Run;

pub(super) fn prepare<'a>(a: Arguments) -> Result<Run<'a>, Failure> {
    let part = a.typed(a.layout.param)?;
    let from = if a.in_place { in_place() } else { a.send_at(0) };
    let into = a.recv_at(0);
    Ok(Box::new(move || {
        let (count, datatype) = part.arguments();
        // SAFETY: the send buffer holds one part, the receive buffer one of each rank; both are
        // borrowed by the run, which owns the type.
        let code = unsafe { MPI_Allgather(from, count, datatype, into, count, datatype, a.comm) };
        returned("MPI_Allgather", code)
    }))
}
