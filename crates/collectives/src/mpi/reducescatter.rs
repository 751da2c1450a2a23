use hpcbench_world::Failure;
use mpi::ffi::MPI_Reduce_scatter_block;

use super::{Arguments, in_place, returned};
use crate::Run;

pub(super) fn prepare<'a>(a: Arguments) -> Result<Run<'a>, Failure> {
    let (count, datatype, op) = a.reduction(a.layout.param)?;
    let from = if a.in_place { in_place() } else { a.send_at(0) };
    let into = a.recv_at(0);
    Ok(Box::new(move || {
        // SAFETY: the input holds one part for each rank, the output one; borrowed by the run.
        let code = unsafe { MPI_Reduce_scatter_block(from, into, count, datatype, op, a.comm) };
        returned("MPI_Reduce_scatter_block", code)
    }))
}
