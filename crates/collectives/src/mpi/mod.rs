//! Collectives over MPI, on host memory.
//!
//! Each file makes one collective ready as a closure that calls MPI with arguments fixed
//! beforehand. In place means `MPI_IN_PLACE` wherever MPI has it.

mod allgather;
mod allreduce;
mod alltoall;
mod arguments;
mod broadcast;
mod divide;
mod gather;
mod hypercube;
mod pingpong;
mod reduce;
mod reducescatter;
mod reduction;
mod scatter;
mod sendrecv;
mod typed;

use std::os::raw::c_int;
use std::ptr;

use hpcbench_model::RedOp;
use hpcbench_world::{Failure, World};
use mpi::ffi;

use crate::{Buffers, Call, CallError, Communicator, Run};
use arguments::Arguments;
use reduction::Reductions;

/// The world's ranks over a communicator of our own, on which MPI returns errors.
pub struct Mpi<'w> {
    world: &'w World,
    comm: ffi::MPI_Comm,
    reductions: Reductions,
}

impl std::fmt::Debug for Mpi<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mpi").field("world", self.world).finish_non_exhaustive()
    }
}

impl<'w> Mpi<'w> {
    /// Duplicates the world's communicator. Collective.
    ///
    /// # Errors
    /// When MPI refuses.
    pub fn new(world: &'w World) -> Result<Mpi<'w>, Failure> {
        let cannot = |error: CallError| Failure::cannot_run(error.to_string());
        let mut comm = world.as_raw();
        // SAFETY: the world's communicator is valid while `world` lives, and MPI is running.
        returned("MPI_Comm_dup", unsafe { ffi::MPI_Comm_dup(world.as_raw(), &mut comm) })
            .map_err(cannot)?;
        // SAFETY: `comm` was just made.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN) };
        returned("MPI_Comm_set_errhandler", code).map_err(cannot)?;
        Ok(Mpi { world, comm, reductions: Reductions::new().map_err(cannot)? })
    }
}

impl Drop for Mpi<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed once, before the world ends MPI (it is borrowed).
        unsafe { ffi::MPI_Comm_free(&mut self.comm) };
    }
}

impl Communicator for Mpi<'_> {
    fn name(&self) -> &'static str {
        "mpi"
    }

    /// Counts beyond a C int in reductions: a predefined MPI operation works on predefined types only,
    /// so a derived type cannot carry them (MPI 3.1, 5.9.2), and several calls would be another
    /// measurement.
    fn refuses(&self, call: &Call) -> Option<String> {
        // A reduce-scatter reduces every rank's part, and Open MPI counts all of them in one C int.
        let elements = call.layout.send;
        let too_many = call.collective.reduces && c_int::try_from(elements).is_err();
        too_many.then(|| {
            format!(
                "{} of {elements} {} elements: one MPI reduction takes at most {}. Use a smaller -e, or a wider type \
                 with -d",
                call.collective.name,
                call.dtype,
                c_int::MAX,
            )
        })
    }

    fn prepare<'a>(&'a self, call: &Call, buffers: &'a mut Buffers) -> Result<Run<'a>, Failure> {
        if let Some(reason) = self.refuses(call) {
            return Err(Failure::usage(reason));
        }
        let arguments = Arguments::new(self, call, buffers);
        let run = match call.collective.name {
            "allreduce" => allreduce::prepare(arguments),
            "allgather" => allgather::prepare(arguments),
            "reducescatter" => reducescatter::prepare(arguments),
            "alltoall" => alltoall::prepare(arguments),
            "broadcast" => broadcast::prepare(arguments),
            "reduce" => reduce::prepare(arguments),
            "gather" => gather::prepare(arguments),
            "scatter" => scatter::prepare(arguments),
            "sendrecv" => sendrecv::prepare(arguments),
            "hypercube" => hypercube::prepare(arguments),
            "pingpong" => pingpong::prepare(arguments, call.exchange),
            other => return Err(Failure::usage(format!("{other} does not run over MPI"))),
        }?;
        let (rank, ranks) = (self.world.rank(), self.world.size());
        let result = (call.collective.expected)(rank, ranks, call.root, &call.layout);
        if call.redop == Some(RedOp::Avg) && !result.is_empty() {
            return Ok(divide::after(run, call, self.output_at(call), ranks, buffers));
        }
        Ok(run)
    }

    fn barrier(&self) -> Result<(), CallError> {
        // SAFETY: `comm` lives as long as self.
        returned("MPI_Barrier", unsafe { ffi::MPI_Barrier(self.comm) })
    }

    fn output_at(&self, call: &Call) -> usize {
        // MPI_Reduce_scatter_block in place leaves the result at the buffer's start, not at the
        // rank's part of it as NCCL does (MPI 3.1, 5.10.1).
        let at_start = !call.in_place || call.collective.name == "reducescatter";
        if at_start { 0 } else { self.world.rank() * call.layout.recv_in_place }
    }
}

unsafe extern "C" {
    #[link_name = "hpcbench_mpi_in_place"]
    static IN_PLACE: *mut std::os::raw::c_void;
}

/// `MPI_IN_PLACE`.
fn in_place() -> *mut std::os::raw::c_void {
    // SAFETY: a constant that constants.c defines.
    unsafe { IN_PLACE }
}

/// An MPI return code as a result.
#[inline(always)]
fn returned(call: &'static str, code: c_int) -> Result<(), CallError> {
    if code == 0 { Ok(()) } else { Err(failed(call, code)) }
}

#[cold]
fn failed(call: &'static str, code: c_int) -> CallError {
    // Both Open MPI (256) and MPICH (512) have shorter limits, MPI_MAX_ERROR_STRING.
    let mut text = [0_u8; 1024];
    let mut length = 0;
    // SAFETY: the buffer is larger than either library's MPI_MAX_ERROR_STRING.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), ptr::from_mut(&mut length)) };
    let text =
        String::from_utf8_lossy(&text[..(length.max(0) as usize).min(text.len())]).into_owned();
    CallError { call, code, text }
}
