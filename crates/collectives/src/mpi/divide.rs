use crate::element::{Element, with_element};
use crate::{Buffers, Call, Run};

/// `run`, then this rank's result divided by the number of ranks: what makes a sum an average. Part
/// of the call, so it is timed with it.
pub(super) fn after<'a>(
    mut run: Run<'a>,
    call: &Call,
    output_at: usize,
    ranks: usize,
    buffers: &'a mut Buffers,
) -> Run<'a> {
    let length = call.layout.recv;
    let start = buffers.recv_ptr();
    with_element!(call.dtype, T => {
        let start = start.cast::<T>().wrapping_add(output_at);
        Box::new(move || {
            run()?;
            // SAFETY: the result lies in the receive buffer, which is borrowed for 'a, and MPI no
            // longer writes to it.
            divide(unsafe { std::slice::from_raw_parts_mut(start, length) }, ranks as u64);
            Ok(())
        })
    })
}

fn divide<T: Element>(result: &mut [T], ranks: u64) {
    result.iter_mut().for_each(|value| *value = value.divided(ranks));
}
