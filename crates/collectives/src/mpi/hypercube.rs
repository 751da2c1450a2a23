use std::os::raw::{c_int, c_void};

use hpcbench_world::Failure;
use mpi::ffi::{MPI_Sendrecv, RSMPI_STATUS_IGNORE};

use super::typed::Typed;
use super::{Arguments, returned};
use crate::Run;

/// One exchange along one dimension.
struct Step {
    peer: c_int,
    from: *mut c_void,
    into: *mut c_void,
    parts: Typed,
}

/// In step k, ranks that differ in bit k swap the 2^k parts that each has by then.
pub(super) fn prepare<'a>(a: Arguments) -> Result<Run<'a>, Failure> {
    let part = a.layout.param;
    let step = |bit: usize| -> Result<Step, Failure> {
        let first = a.rank & !(bit - 1);
        let (from, into) = (a.recv_at(first * part), a.recv_at((first ^ bit) * part));
        Ok(Step { peer: Arguments::peer(a.rank ^ bit), from, into, parts: a.typed(bit * part)? })
    };
    let bits = std::iter::successors(Some(1), |bit| Some(bit * 2)).take_while(|bit| *bit < a.ranks);
    let steps = bits.map(step).collect::<Result<Vec<Step>, Failure>>()?;
    let copies = !a.in_place;
    let (own, slot, bytes) = (a.send_at(0), a.recv_at(a.rank * part), part * a.element_bytes);
    Ok(Box::new(move || {
        if copies {
            // SAFETY: two different buffers, each with one part from there on.
            unsafe { std::ptr::copy_nonoverlapping(own.cast::<u8>(), slot.cast::<u8>(), bytes) };
        }
        steps.iter().try_for_each(|step| exchange(step, &a))
    }))
}

fn exchange(step: &Step, a: &Arguments) -> Result<(), crate::CallError> {
    let Step { peer, from, into, parts } = step;
    let (count, datatype) = parts.arguments();
    // SAFETY: two stretches of the receive buffer that do not overlap, as their first parts differ in
    // the step's bit; borrowed by the run, which owns the types.
    let code = unsafe {
        MPI_Sendrecv(
            *from,
            count,
            datatype,
            *peer,
            0,
            *into,
            count,
            datatype,
            *peer,
            0,
            a.comm,
            RSMPI_STATUS_IGNORE,
        )
    };
    returned("MPI_Sendrecv", code)
}
