use hpcbench_world::Failure;
use mpi::ffi::MPI_Allreduce;

use super::{Arguments, in_place, returned};
use crate::Run;

pub(super) fn prepare<'a>(a: Arguments) -> Result<Run<'a>, Failure> {
    let (count, datatype, op) = a.reduction(a.layout.param)?;
    let from = if a.in_place { in_place() } else { a.send_at(0) };
    let into = a.recv_at(0);
    Ok(Box::new(move || {
        // SAFETY: both buffers hold `count` elements; borrowed by the run.
        returned("MPI_Allreduce", unsafe { MPI_Allreduce(from, into, count, datatype, op, a.comm) })
    }))
}
