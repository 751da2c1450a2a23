use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use integer_encoding::VarInt;

use super::{BLOCK_HEADER_LEN, HEADER_LEN, MAGIC, VERSION, checksum};
use crate::ReadError;

/// Whose times a raw file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawHeader {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
}

/// Consecutive iterations of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawBlock {
    /// The row's id.
    pub row: u32,
    /// Number of the first iteration in its row, from 0.
    pub first_iteration: u64,
    /// When the rank entered each, in nanoseconds of its monotonic clock.
    pub entries: Vec<u64>,
    /// When it left each, likewise; as many.
    pub exits: Vec<u64>,
}

/// The blocks of a raw file in the order in which they were written, one in memory at a time. One
/// that was being written when the run was killed is left out.
#[derive(Debug)]
pub struct RawBlocks {
    path: PathBuf,
    reader: BufReader<File>,
    header: Option<RawHeader>,
    offset: u64,
    len: u64,
    payload: Vec<u8>,
}

impl RawBlocks {
    /// Opens `ranks/NNNN.bin`, also one that stayed on another host.
    ///
    /// # Errors
    /// When it cannot be read, is no such file, or is of a version that this one does not know.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (len, file) = opened.map_err(|source| unreadable(path, source))?;
        let mut blocks = RawBlocks {
            path: path.to_owned(),
            reader: BufReader::new(file),
            header: None,
            offset: 0,
            len,
            payload: Vec::new(),
        };
        blocks.header = blocks.read_header()?;
        Ok(blocks)
    }

    /// Whose times they are; `None` when the rank was killed before it had said so.
    pub fn header(&self) -> Option<&RawHeader> {
        self.header.as_ref()
    }

    fn read_header(&mut self) -> Result<Option<RawHeader>, ReadError> {
        let Some(fixed) = self.read_array::<HEADER_LEN>()? else { return Ok(None) };
        if fixed[..8] != *MAGIC {
            return Err(self.error(0, "not the raw times of a rank of hpcbench"));
        }
        let version = u32_at(&fixed, 8);
        if version != VERSION {
            let why = format!(
                "it is of version {version}, and this hpcbench reads {VERSION}: read it with the \
                 hpcbench that wrote it"
            );
            return Err(self.error(8, why));
        }
        if !self.read_payload(u32_at(&fixed, 16))? {
            return Ok(None);
        }
        let host = String::from_utf8_lossy(&self.payload).into_owned();
        Ok(Some(RawHeader { rank: u32_at(&fixed, 12), host }))
    }

    fn read_block(&mut self) -> Result<Option<RawBlock>, ReadError> {
        let start = self.offset;
        let Some(header) = self.read_array::<BLOCK_HEADER_LEN>()? else { return Ok(None) };
        if !self.read_payload(u32_at(&header, 16))? {
            return Ok(None);
        }
        if checksum(&header, &self.payload) != u32_at(&header, 28) {
            // A power cut may leave the last block's length without its bytes.
            return if self.offset == self.len {
                Ok(None)
            } else {
                Err(self.error(start, "a block is damaged (its checksum differs)"))
            };
        }
        decode_block(&header, &self.payload)
            .map(Some)
            .ok_or_else(|| self.error(start, "a block holds other times than it says"))
    }

    /// The next `N` bytes; `None` when the file ends before.
    fn read_array<const N: usize>(&mut self) -> Result<Option<[u8; N]>, ReadError> {
        if self.len - self.offset < N as u64 {
            return Ok(None);
        }
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(|source| unreadable(&self.path, source))?;
        self.offset += N as u64;
        Ok(Some(bytes))
    }

    /// Reads `len` bytes into the payload; `false` when the file ends before.
    fn read_payload(&mut self, len: u32) -> Result<bool, ReadError> {
        if self.len - self.offset < u64::from(len) {
            return Ok(false);
        }
        self.payload.resize(len as usize, 0);
        self.reader
            .read_exact(&mut self.payload)
            .map_err(|source| unreadable(&self.path, source))?;
        self.offset += u64::from(len);
        Ok(true)
    }

    fn error(&self, offset: u64, why: impl Into<String>) -> ReadError {
        ReadError::Binary { path: self.path.clone(), offset, why: why.into() }
    }
}

impl Iterator for RawBlocks {
    type Item = Result<RawBlock, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.header.as_ref()?;
        let read = self.read_block().transpose();
        if !matches!(read, Some(Ok(_))) {
            // Where the next block begins is then unknown.
            self.offset = self.len;
        }
        read
    }
}

/// The times of a block; `None` when the payload holds another number of them.
fn decode_block(header: &[u8; BLOCK_HEADER_LEN], payload: &[u8]) -> Option<RawBlock> {
    let n = u32_at(header, 12) as usize;
    let mut times = [Vec::with_capacity(n), Vec::with_capacity(n)];
    let mut last = u64_at(header, 20);
    let mut at = 0;
    for i in 0..2 * n {
        let (difference, read) = i64::decode_var(&payload[at..])?;
        at += read;
        last = last.wrapping_add(difference as u64);
        times[i % 2].push(last);
    }
    let [entries, exits] = times;
    (at == payload.len()).then_some(RawBlock {
        row: u32_at(header, 0),
        first_iteration: u64_at(header, 4),
        entries,
        exits,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn unreadable(path: &Path, source: io::Error) -> ReadError {
    ReadError::Unreadable { path: path.to_owned(), source }
}
