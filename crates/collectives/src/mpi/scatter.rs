use hpcbench_world::Failure;
use mpi::ffi::MPI_Scatter;

use super::{Arguments, in_place, returned};
use crate::Run;

pub(super) fn prepare<'a>(a: Arguments) -> Result<Run<'a>, Failure> {
    let part = a.typed(a.layout.param)?;
    let from = if a.in_place { a.recv_at(0) } else { a.send_at(0) };
    let into = match (a.in_place, a.is_root()) {
        (true, true) => in_place(),
        (true, false) => a.recv_at(a.rank * a.layout.recv_in_place),
        (false, _) => a.recv_at(0),
    };
    Ok(Box::new(move || {
        let (count, datatype) = part.arguments();
        // SAFETY: the root's input holds one part for each rank, the output one; borrowed by the run.
        let code =
            unsafe { MPI_Scatter(from, count, datatype, into, count, datatype, a.root, a.comm) };
        returned("MPI_Scatter", code)
    }))
}
