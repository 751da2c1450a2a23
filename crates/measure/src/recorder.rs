use std::sync::atomic::{AtomicU64, Ordering};

/// Largest number of iterations of one block: 16,384, so that a block's entries and exits (256 KiB)
/// stay in the second-level cache and draining one never takes long.
pub const BLOCK: usize = 1 << 14;

/// Slots for the entries and exits of one block, in clock readings.
///
/// They exist before the first iteration, and recording is two plain stores: no lock, no
/// allocation. They are atomics so that the thread that saves an interrupted run may read what the
/// timed loop has published.
#[derive(Debug)]
pub struct Recorder {
    entries: Box<[AtomicU64]>,
    exits: Box<[AtomicU64]>,
}

impl Default for Recorder {
    fn default() -> Self {
        let slots = || (0..BLOCK).map(|_| AtomicU64::new(0)).collect();
        Recorder { entries: slots(), exits: slots() }
    }
}

impl Recorder {
    /// Keeps one iteration's entry and exit.
    #[inline(always)]
    pub fn record(&self, iteration: usize, entry: u64, exit: u64) {
        self.entries[iteration].store(entry, Ordering::Relaxed);
        self.exits[iteration].store(exit, Ordering::Relaxed);
    }

    /// Entries and exits of the first `count` iterations, through `convert`, into `entries` and
    /// `exits`, whose memory is used again.
    pub fn read(
        &self,
        count: usize,
        convert: impl Fn(u64) -> u64,
        entries: &mut Vec<u64>,
        exits: &mut Vec<u64>,
    ) {
        for (slots, out) in [(&self.entries, entries), (&self.exits, exits)] {
            out.clear();
            out.extend(slots[..count].iter().map(|slot| convert(slot.load(Ordering::Relaxed))));
        }
    }
}
