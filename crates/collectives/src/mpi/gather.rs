use hpcbench_world::Failure;
use mpi::ffi::MPI_Gather;

use super::{Arguments, in_place, returned};
use crate::Run;

pub(super) fn prepare<'a>(a: Arguments) -> Result<Run<'a>, Failure> {
    let part = a.typed(a.layout.param)?;
    let from = if a.in_place && a.is_root() { in_place() } else { a.input() };
    let into = a.recv_at(0);
    Ok(Box::new(move || {
        let (count, datatype) = part.arguments();
        // SAFETY: the input holds one part, the root's output one of each rank; borrowed by the run.
        let code =
            unsafe { MPI_Gather(from, count, datatype, into, count, datatype, a.root, a.comm) };
        returned("MPI_Gather", code)
    }))
}
