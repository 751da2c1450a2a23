use hpcbench_world::Failure;
use mpi::ffi::{MPI_Sendrecv, MPI_Sendrecv_replace, RSMPI_STATUS_IGNORE};

use super::{Arguments, returned};
use crate::Run;

pub(super) fn prepare<'a>(a: Arguments) -> Result<Run<'a>, Failure> {
    let all = a.typed(a.layout.param)?;
    let next = Arguments::peer((a.rank + 1) % a.ranks);
    let before = Arguments::peer((a.rank + a.ranks - 1) % a.ranks);
    let (from, into) = (a.send_at(0), a.recv_at(0));
    if a.in_place {
        return Ok(Box::new(move || {
            let (count, datatype) = all.arguments();
            // SAFETY: the buffer holds the count's elements; borrowed by the run, which owns the type.
            let code = unsafe {
                MPI_Sendrecv_replace(
                    into,
                    count,
                    datatype,
                    next,
                    0,
                    before,
                    0,
                    a.comm,
                    RSMPI_STATUS_IGNORE,
                )
            };
            returned("MPI_Sendrecv_replace", code)
        }));
    }
    Ok(Box::new(move || {
        let (count, datatype) = all.arguments();
        // SAFETY: two different buffers of `count` elements; borrowed by the run, which owns the type.
        let code = unsafe {
            MPI_Sendrecv(
                from,
                count,
                datatype,
                next,
                0,
                into,
                count,
                datatype,
                before,
                0,
                a.comm,
                RSMPI_STATUS_IGNORE,
            )
        };
        returned("MPI_Sendrecv", code)
    }))
}
