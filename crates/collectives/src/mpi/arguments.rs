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
    words: String,
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
            words: format!("{} of {}", call.collective.name, call.dtype),
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

    /// Count, type and operation of a reduction.
    ///
    /// Refuses counts beyond a C int: a predefined MPI operation works on predefined types only, so
    /// a derived type cannot carry them (MPI 3.1, 5.9.2), and several calls would be another
    /// measurement.
    pub fn reduction(
        &self,
        elements: usize,
    ) -> Result<(c_int, ffi::MPI_Datatype, ffi::MPI_Op), Failure> {
        let count = c_int::try_from(elements).map_err(|_| {
            Failure::usage(format!(
                "{}: {elements} elements are more than the {} that one MPI reduction can take: use a smaller -e, or a \
                 wider type with -d",
                self.words,
                c_int::MAX,
            ))
        })?;
        let operation =
            self.reduction.ok_or_else(|| Failure::usage(format!("{} needs -o", self.words)))?;
        Ok((count, self.datatype.0, operation))
    }
}
