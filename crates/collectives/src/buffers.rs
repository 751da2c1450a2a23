use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use hpcbench_world::Failure;

use crate::element::Element;

/// Buffers start on a page, as OSU's do, plus the misalignment asked for with `-u`.
const ALIGN: usize = 4096;

/// One rank's send and receive buffers, each of the same size, so that either can hold both halves
/// of a call in place.
#[derive(Debug)]
pub struct Buffers {
    send: Buffer,
    recv: Buffer,
}

/// Bytes that [`Buffers::new`] takes for messages of up to `bytes`.
pub const fn buffer_bytes(bytes: u64) -> u64 {
    bytes.saturating_mul(2)
}

impl Buffers {
    /// Two buffers of `bytes` bytes, starting `misalign` bytes after a page's start.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub fn new(bytes: u64, misalign: usize) -> Result<Buffers, Failure> {
        Ok(Buffers { send: Buffer::new(bytes, misalign)?, recv: Buffer::new(bytes, misalign)? })
    }

    /// Every byte of the send buffer.
    pub fn send_bytes(&mut self) -> &mut [u8] {
        self.send.elements()
    }

    /// Every byte of the receive buffer.
    pub fn recv_bytes(&mut self) -> &mut [u8] {
        self.recv.elements()
    }

    pub(crate) fn send_ptr(&mut self) -> *mut u8 {
        self.send.start()
    }

    pub(crate) fn recv_ptr(&mut self) -> *mut u8 {
        self.recv.start()
    }

    pub(crate) fn send<T: Element>(&mut self) -> &mut [T] {
        self.send.elements()
    }

    pub(crate) fn recv<T: Element>(&mut self) -> &mut [T] {
        self.recv.elements()
    }
}

#[derive(Debug)]
struct Buffer {
    base: NonNull<u8>,
    layout: Layout,
    misalign: usize,
    bytes: usize,
}

impl Buffer {
    fn new(bytes: u64, misalign: usize) -> Result<Buffer, Failure> {
        let no_memory = || {
            Failure::cannot_run(format!(
                "no memory for a buffer of {bytes} bytes: use a smaller -e"
            ))
        };
        let bytes = usize::try_from(bytes).map_err(|_| no_memory())?;
        let total = bytes.checked_add(misalign + 1).ok_or_else(no_memory)?;
        let layout = Layout::from_size_align(total, ALIGN).map_err(|_| no_memory())?;
        // SAFETY: the layout's size is at least 1.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(no_memory)?;
        Ok(Buffer { base, layout, misalign, bytes })
    }

    fn start(&mut self) -> *mut u8 {
        // SAFETY: the allocation has misalign + bytes + 1 bytes.
        unsafe { self.base.as_ptr().add(self.misalign) }
    }

    fn elements<T: Element>(&mut self) -> &mut [T] {
        assert!(self.misalign.is_multiple_of(align_of::<T>()), "-u counts whole elements");
        let length = self.bytes / size_of::<T>();
        // SAFETY: in bounds by the line above, aligned since the base is page-aligned and the
        // offset a multiple of T's alignment, initialised by alloc_zeroed, and every bit pattern is
        // a valid T (`Element` is only implemented for plain numbers). Borrowed mutably from self.
        unsafe { std::slice::from_raw_parts_mut(self.start().cast::<T>(), length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}
