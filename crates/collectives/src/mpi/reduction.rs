//! MPI's types for ours, and reductions for the two that MPI does not know.

use std::os::raw::{c_int, c_void};

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use hpcbench_model::{DType, RedOp};
use mpi::ffi;

use super::returned;
use crate::CallError;

/// An MPI type and the bytes of one element.
#[derive(Clone, Copy)]
pub(super) struct MpiType(pub ffi::MPI_Datatype, pub usize);

/// The predefined type of the element's width; half and bfloat16 travel as 16-bit integers.
pub(super) fn datatype(dtype: DType) -> MpiType {
    // SAFETY: RSMPI constants are set when the library is loaded.
    let handle = unsafe {
        match dtype {
            DType::Int8 => ffi::RSMPI_INT8_T,
            DType::Uint8 => ffi::RSMPI_UINT8_T,
            DType::Int32 => ffi::RSMPI_INT32_T,
            DType::Uint32 => ffi::RSMPI_UINT32_T,
            DType::Int64 => ffi::RSMPI_INT64_T,
            DType::Uint64 => ffi::RSMPI_UINT64_T,
            DType::Half | DType::Bfloat16 => ffi::RSMPI_UINT16_T,
            DType::Float => ffi::RSMPI_FLOAT,
            DType::Double => ffi::RSMPI_DOUBLE,
        }
    };
    MpiType(handle, dtype.size())
}

/// Operations on half and bfloat16, made once.
pub(super) struct Reductions {
    half: [ffi::MPI_Op; 4],
    bfloat16: [ffi::MPI_Op; 4],
}

type Function = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut ffi::MPI_Datatype);

impl Reductions {
    pub fn new() -> Result<Reductions, CallError> {
        Ok(Reductions {
            half: [
                operation(reduce_half::<Sum>)?,
                operation(reduce_half::<Prod>)?,
                operation(reduce_half::<Max>)?,
                operation(reduce_half::<Min>)?,
            ],
            bfloat16: [
                operation(reduce_bfloat16::<Sum>)?,
                operation(reduce_bfloat16::<Prod>)?,
                operation(reduce_bfloat16::<Max>)?,
                operation(reduce_bfloat16::<Min>)?,
            ],
        })
    }

    /// The operation; avg's is sum's.
    pub fn handle(&self, dtype: DType, op: RedOp) -> ffi::MPI_Op {
        let index = match op {
            RedOp::Sum | RedOp::Avg => 0,
            RedOp::Prod => 1,
            RedOp::Max => 2,
            RedOp::Min => 3,
        };
        // SAFETY: RSMPI constants are set when the library is loaded.
        let predefined =
            unsafe { [ffi::RSMPI_SUM, ffi::RSMPI_PROD, ffi::RSMPI_MAX, ffi::RSMPI_MIN] };
        match dtype {
            DType::Half => self.half[index],
            DType::Bfloat16 => self.bfloat16[index],
            _ => predefined[index],
        }
    }
}

impl Drop for Reductions {
    fn drop(&mut self) {
        for op in self.half.iter_mut().chain(&mut self.bfloat16) {
            // SAFETY: made in `new`, freed once.
            unsafe { ffi::MPI_Op_free(op) };
        }
    }
}

fn operation(function: Function) -> Result<ffi::MPI_Op, CallError> {
    // SAFETY: overwritten by MPI_Op_create.
    let mut op = unsafe { ffi::RSMPI_SUM };
    // SAFETY: the function has MPI_User_function's signature and is there for ever; it commutes.
    returned("MPI_Op_create", unsafe { ffi::MPI_Op_create(Some(function), 1, &mut op) })?;
    Ok(op)
}

/// One of the four operations on single-precision numbers.
trait Combine {
    fn combine(a: f32, b: f32) -> f32;
}
struct Sum;
struct Prod;
struct Max;
struct Min;
impl Combine for Sum {
    fn combine(a: f32, b: f32) -> f32 {
        a + b
    }
}
impl Combine for Prod {
    fn combine(a: f32, b: f32) -> f32 {
        a * b
    }
}
impl Combine for Max {
    fn combine(a: f32, b: f32) -> f32 {
        a.max(b)
    }
}
impl Combine for Min {
    fn combine(a: f32, b: f32) -> f32 {
        a.min(b)
    }
}

/// Elements that are widened to single precision at a time: two such blocks stay in the first cache.
const WIDE: usize = 1024;

unsafe extern "C" fn reduce_half<C: Combine>(
    from: *mut c_void,
    into: *mut c_void,
    count: *mut c_int,
    _: *mut ffi::MPI_Datatype,
) {
    // SAFETY: MPI passes two arrays of `count` elements of the type the call was made with.
    let (from, into) = unsafe { operands::<f16>(from, into, count) };
    let (mut a, mut b) = ([0.0_f32; WIDE], [0.0_f32; WIDE]);
    for (from, into) in from.chunks(WIDE).zip(into.chunks_mut(WIDE)) {
        let (a, b) = (&mut a[..from.len()], &mut b[..from.len()]);
        from.convert_to_f32_slice(a);
        into.convert_to_f32_slice(b);
        b.iter_mut().zip(&*a).for_each(|(b, a)| *b = C::combine(*a, *b));
        into.convert_from_f32_slice(b);
    }
}

unsafe extern "C" fn reduce_bfloat16<C: Combine>(
    from: *mut c_void,
    into: *mut c_void,
    count: *mut c_int,
    _: *mut ffi::MPI_Datatype,
) {
    // SAFETY: MPI passes two arrays of `count` elements of the type the call was made with.
    let (from, into) = unsafe { operands::<bf16>(from, into, count) };
    // No library calls inside, so that the compiler vectorises it.
    for (from, into) in from.iter().zip(into) {
        *into = bf16::from_f32(C::combine(from.to_f32(), into.to_f32()));
    }
}

/// # Safety
/// `from` and `into` must be distinct arrays of `*count` elements.
unsafe fn operands<'a, T>(
    from: *mut c_void,
    into: *mut c_void,
    count: *mut c_int,
) -> (&'a [T], &'a mut [T]) {
    // SAFETY: the caller's promise.
    unsafe {
        let count = usize::try_from(*count).unwrap_or(0);
        (
            std::slice::from_raw_parts(from.cast(), count),
            std::slice::from_raw_parts_mut(into.cast(), count),
        )
    }
}
