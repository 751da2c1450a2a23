use std::os::raw::c_int;

use mpi::ffi;

use super::reduction::MpiType;
use super::returned;
use crate::CallError;

/// A number of elements as MPI takes it: count and type. Beyond a C int's range, one element of a
/// derived type that spans them all.
pub(super) struct Typed {
    count: c_int,
    datatype: ffi::MPI_Datatype,
    derived: bool,
}

/// Elements of one block of a derived type: 2^30, so that the number of blocks stays small and each
/// fits a C int.
const BLOCK: usize = 1 << 30;

impl Typed {
    pub fn new(elements: usize, base: MpiType) -> Result<Typed, CallError> {
        Typed::with_limit(elements, base, c_int::MAX as usize, BLOCK)
    }

    /// Count and type for a call. A method, and the fields private, so that a closure that makes the
    /// call keeps the whole of this alive: of a field it would copy just that, and the type be freed.
    pub fn arguments(&self) -> (c_int, ffi::MPI_Datatype) {
        (self.count, self.datatype)
    }

    fn with_limit(
        elements: usize,
        base: MpiType,
        limit: usize,
        block: usize,
    ) -> Result<Typed, CallError> {
        if elements <= limit {
            return Ok(Typed { count: elements as c_int, datatype: base.0, derived: false });
        }
        // SAFETY: RSMPI constants are set when the library is loaded.
        let null = unsafe { ffi::RSMPI_DATATYPE_NULL };
        let (mut piece, mut blocks, mut rest, mut whole) = (null, null, null, null);
        let (full, left) = (elements / block, elements % block);
        let extent = (block * base.1) as ffi::MPI_Aint;
        let lengths: [c_int; 2] = [1, 1];
        let displacements = [0, extent * full as ffi::MPI_Aint];
        // SAFETY: handles passed are valid (predefined, or made by the call before); arrays have the
        // two elements that the count says; intermediate types may be freed once used (MPI 3.1, 4.1.9).
        unsafe {
            returned(
                "MPI_Type_contiguous",
                ffi::MPI_Type_contiguous(block as c_int, base.0, &mut piece),
            )?;
            returned(
                "MPI_Type_contiguous",
                ffi::MPI_Type_contiguous(full as c_int, piece, &mut blocks),
            )?;
            returned(
                "MPI_Type_contiguous",
                ffi::MPI_Type_contiguous(left as c_int, base.0, &mut rest),
            )?;
            let types = [blocks, rest];
            let made = ffi::MPI_Type_create_struct(
                2,
                lengths.as_ptr(),
                displacements.as_ptr(),
                types.as_ptr(),
                &mut whole,
            );
            returned("MPI_Type_create_struct", made)?;
            returned("MPI_Type_commit", ffi::MPI_Type_commit(&mut whole))?;
            for mut part in [piece, blocks, rest] {
                returned("MPI_Type_free", ffi::MPI_Type_free(&mut part))?;
            }
        }
        Ok(Typed { count: 1, datatype: whole, derived: true })
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        if self.derived {
            // SAFETY: made in `with_limit`, freed once.
            unsafe { ffi::MPI_Type_free(&mut self.datatype) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::reduction::datatype;
    use hpcbench_model::DType;
    use hpcbench_world::World;

    #[test]
    fn a_derived_type_is_every_element_once() {
        let world = World::start().unwrap();
        // 17 elements in blocks of 5: three whole ones and 2 left; 15 leave none.
        for elements in [17, 15, 6] {
            let typed = Typed::with_limit(elements, datatype(DType::Int32), 4, 5).unwrap();
            let (count, datatype) = typed.arguments();
            assert_eq!(count, 1);
            let sent: Vec<i32> = (1..=elements as i32 + 1).collect();
            let mut received = vec![0; elements + 1];
            // SAFETY: both buffers hold one element more than the type spans.
            let code = unsafe {
                ffi::MPI_Sendrecv(
                    sent.as_ptr().cast(),
                    count,
                    datatype,
                    0,
                    0,
                    received.as_mut_ptr().cast(),
                    count,
                    datatype,
                    0,
                    0,
                    world.as_raw(),
                    ffi::RSMPI_STATUS_IGNORE,
                )
            };
            returned("MPI_Sendrecv", code).unwrap();
            assert_eq!(received[..elements], sent[..elements]);
            assert_eq!(received[elements], 0, "not one element more");
        }
    }
}
