//! `ranks/NNNN.bin`: one rank's entries and exits of every iteration, as it took them.
//!
//! `README.md` beside this crate describes every byte.

mod reader;
mod writer;

pub use reader::{RawBlock, RawBlocks, RawHeader};
pub use writer::RawWriter;

const MAGIC: &[u8; 8] = b"hpcbraw\0";
const VERSION: u32 = 1;
/// Bytes of the file's header before the host's name.
const HEADER_LEN: usize = 20;
/// Bytes of a block before its payload.
const BLOCK_HEADER_LEN: usize = 32;
/// Bytes of a block's header that its checksum covers.
const CHECKED_LEN: usize = 28;

fn checksum(block_header: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&block_header[..CHECKED_LEN]);
    hasher.update(payload);
    hasher.finalize()
}
