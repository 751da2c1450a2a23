use std::fs;
use std::path::Path;

use hpcbench_model::Loss;
use integer_encoding::VarIntWriter;

use super::{BLOCK_HEADER_LEN, HEADER_LEN, MAGIC, VERSION, checksum};
use crate::CreateError;
use crate::append::AppendFile;
use crate::layout::{RANKS, raw_name};
use crate::losses::add_loss;

/// Most iterations of one block in the file: bounds the scratch memory, to 1.3 MiB at worst.
const BLOCK_ITERATIONS: usize = 1 << 16;

/// Writes one rank's entries and exits.
///
/// Once created, it never fails: iterations that cannot be written are dropped, counted, and
/// written again as soon as there is space.
#[derive(Debug)]
pub struct RawWriter {
    file: AppendFile,
    rank: u32,
    /// Most iterations to keep of a row.
    cap: Option<u64>,
    /// The row of the last block, and how many of its iterations were kept or tried.
    row: Option<(u32, u64)>,
    losses: Vec<Loss>,
    scratch: Vec<u8>,
}

impl RawWriter {
    /// Makes `ranks/NNNN.bin` in the run directory, with the directories on the way. `cap` is the
    /// most iterations to keep of each row.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(
        dir: &Path,
        rank: u32,
        host: &str,
        cap: Option<u64>,
    ) -> Result<Self, CreateError> {
        fs::create_dir_all(dir.join(RANKS)).map_err(|e| CreateError::unwritable(dir, e))?;
        let name = raw_name(rank);
        let file = AppendFile::create(&dir.join(&name), &header(rank, host))
            .map_err(|e| CreateError::of_file(dir, &name, e))?;
        Ok(RawWriter { file, rank, cap, row: None, losses: Vec::new(), scratch: Vec::new() })
    }

    /// Appends the iterations of a row from `first_iteration` on, in nanoseconds of the rank's
    /// monotonic clock, and returns how many were dropped: beyond the cap, or on a full disk.
    ///
    /// # Panics
    /// When there are not as many exits as entries.
    pub fn block(&mut self, row: u32, first_iteration: u64, entries: &[u64], exits: &[u64]) -> u64 {
        assert_eq!(entries.len(), exits.len(), "every iteration has an entry and an exit");
        let room = self.take_room(row, entries.len());
        let mut dropped = (entries.len() - room) as u64;
        let mut first = first_iteration;
        let chunks = |times| <[u64]>::chunks(times, BLOCK_ITERATIONS);
        for (entries, exits) in chunks(&entries[..room]).zip(chunks(&exits[..room])) {
            let n = entries.len() as u64;
            encode_block(&mut self.scratch, row, first, entries, exits);
            if let Err(error) = self.file.append(&self.scratch, n) {
                add_loss(&mut self.losses, &raw_name(self.rank), self.rank, n, &error);
                dropped += n;
            }
            first += n;
        }
        dropped
    }

    /// Makes all blocks durable, and returns how many iterations were dropped because that failed.
    pub fn sync(&mut self) -> u64 {
        match self.file.sync() {
            Ok(()) => 0,
            Err(error) => {
                let (what, lost) = (raw_name(self.rank), error.lost);
                add_loss(&mut self.losses, &what, self.rank, lost, &error.source);
                lost
            }
        }
    }

    /// Removes the file again, and `ranks` where nothing else is in it; `dir` is the run directory
    /// that it was created in.
    pub fn discard(self, dir: &Path) {
        let _ = fs::remove_file(dir.join(raw_name(self.rank)));
        let _ = fs::remove_dir(dir.join(RANKS));
    }

    /// What could not be written so far, one entry a reason; without what the cap left out.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// How many of `wanted` iterations of the row the cap leaves, counting them as used.
    fn take_room(&mut self, row: u32, wanted: usize) -> usize {
        let used = self.row.filter(|(last, _)| *last == row).map_or(0, |(_, used)| used);
        let left = self.cap.map_or(u64::MAX, |cap| cap.saturating_sub(used));
        let room = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.row = Some((row, used + room as u64));
        room
    }
}

fn header(rank: u32, host: &str) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_LEN + host.len());
    header.extend(MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.extend(rank.to_le_bytes());
    // A host's name has at most 64 bytes on Linux (HOST_NAME_MAX).
    header.extend((host.len() as u32).to_le_bytes());
    header.extend(host.as_bytes());
    header
}

/// One whole block, in place of what `block` held.
fn encode_block(block: &mut Vec<u8>, row: u32, first: u64, entries: &[u64], exits: &[u64]) {
    block.clear();
    block.resize(BLOCK_HEADER_LEN, 0);
    let base = entries[0];
    let mut last = base;
    for time in entries.iter().zip(exits).flat_map(|(entry, exit)| [*entry, *exit]) {
        let difference = time.wrapping_sub(last) as i64;
        block.write_varint(difference).expect("memory takes every byte");
        last = time;
    }
    let (header, payload) = block.split_at_mut(BLOCK_HEADER_LEN);
    header[0..4].copy_from_slice(&row.to_le_bytes());
    header[4..12].copy_from_slice(&first.to_le_bytes());
    header[12..16].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    header[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[20..28].copy_from_slice(&base.to_le_bytes());
    let checksum = checksum(header, payload);
    header[28..32].copy_from_slice(&checksum.to_le_bytes());
}
