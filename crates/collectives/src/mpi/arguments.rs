use std::os::raw::{c_int, c_void};

use hpcbench_model::Layout;
use hpcbench_world::Failure;
use mpi::ffi;

use super::Mpi;
use super::reduction::{MpiType, datatype};
use super::typed::Typed;
use crate::{Buffers, Call};

/// What every collective's call is made of. The pointers are those of buffers that the run made
/// from this borrows.
pub(super) struct Arguments {
    pub comm: ffi::MPI_Comm,
    pub rank: usize,
    pub ranks: usize,
    pub root: c_int,
    pub layout: Layout,
    pub in_place: bool,
    pub element_bytes: usize,
    send: *mut u8,
    recv: *mut u8,
    datatype: MpiType,
    reduction: Option<ffi::MPI_Op>,
}

impl Arguments {
    pub fn new(mpi: &Mpi<'_>, call: &Call, buffers: &mut Buffers) -> Arguments {
        Arguments {
            comm: mpi.comm,
            rank: mpi.world.rank(),
            ranks: mpi.world.size(),
            root: call.root as c_int,
            layout: call.layout,
            in_place: call.in_place,
            element_bytes: call.dtype.size(),
            send: buffers.send_ptr(),
            recv: buffers.recv_ptr(),
            datatype: datatype(call.dtype),
            reduction: call.redop.map(|op| mpi.reductions.handle(call.dtype, op)),
        }
    }

    pub fn is_root(&self) -> bool {
        self.rank == self.root as usize
    }

    /// The rank as MPI wants it.
    pub fn peer(rank: usize) -> c_int {
        rank as c_int
    }

    /// Address of an element of the send buffer.
    pub fn send_at(&self, element: usize) -> *mut c_void {
        self.send.wrapping_add(element * self.element_bytes).cast()
    }

    /// Address of an element of the receive buffer.
    pub fn recv_at(&self, element: usize) -> *mut c_void {
        self.recv.wrapping_add(element * self.element_bytes).cast()
    }

    /// Where this rank's input starts, in place or not.
    pub fn input(&self) -> *mut c_void {
        if self.in_place {
            self.recv_at(self.rank * self.layout.send_in_place)
        } else {
            self.send_at(0)
        }
    }

    /// `elements` elements as a count and a type, whatever their number.
    pub fn typed(&self, elements: usize) -> Result<Typed, Failure> {
        Typed::new(elements, self.datatype).map_err(|error| Failure::cannot_run(error.to_string()))
    }

    /// Count, type and operation of a reduction of no more elements than [`super::Mpi`] accepts.
    pub fn reduction(
        &self,
        elements: usize,
    ) -> Result<(c_int, ffi::MPI_Datatype, ffi::MPI_Op), Failure> {
        match (c_int::try_from(elements), self.reduction) {
            (Ok(count), Some(operation)) => Ok((count, self.datatype.0, operation)),
            _ => Err(Failure::usage("a reduction needs -o and at most 2147483647 elements")),
        }
    }
}
