//! `ranks/NNNN.bin`: one rank's entries and exits of every iteration, as it took them.
//!
//! All numbers are little-endian. The file is a header and then blocks:
//!
//! | header field | type |
//! | --- | --- |
//! | magic, `hpcbraw` and a zero byte | 8 bytes |
//! | version, 1 | u32 |
//! | rank | u32 |
//! | length of the host's name in bytes | u32 |
//! | host's name | UTF-8 |
//!
//! | block field | type |
//! | --- | --- |
//! | row's id | u32 |
//! | number of the first iteration in its row | u64 |
//! | number of iterations, n | u32 |
//! | length of the payload in bytes | u32 |
//! | `base_ns`, the first entry | u64 |
//! | CRC-32 (as zlib's) of the 28 bytes above and the payload | u32 |
//! | payload | bytes |
//!
//! The payload is 2·n differences, modulo 2⁶⁴: of each entry to the exit before it (of the first to
//! `base_ns`), and of each exit to its entry; each zigzag-coded and then written as LEB128.

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
