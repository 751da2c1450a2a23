use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What this rank is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Between MPI's start and the first row.
    Start,
    /// Filling buffers and checking what arrived.
    Check,
    /// Warming up.
    WarmUp,
    /// In the timed loop.
    Timed,
    /// Collecting times from all ranks.
    Gather,
    /// After the last row.
    End,
}

impl Phase {
    /// In words, as in "waits in …".
    pub const fn words(self) -> &'static str {
        match self {
            Phase::Start => "the start",
            Phase::Check => "the check of the data",
            Phase::WarmUp => "the warm-up",
            Phase::Timed => "the timed loop",
            Phase::Gather => "the collection of times",
            Phase::End => "the end of the run",
        }
    }
}

/// Where a rank is, written by the measuring thread and read by the others.
///
/// The timed loop only stores a number; everything else happens between blocks.
#[derive(Debug)]
pub struct Progress {
    /// Iterations finished in the current block, published by the timed loop.
    iteration: AtomicU64,
    /// Rises with every change of place.
    steps: AtomicU64,
    place: Mutex<(Phase, String)>,
}

impl Default for Progress {
    fn default() -> Self {
        Progress {
            iteration: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            place: Mutex::new((Phase::Start, String::new())),
        }
    }
}

impl Progress {
    /// Publishes that `iteration` iterations of this block are finished. Release: whoever reads the
    /// number also sees what was recorded for them.
    #[inline(always)]
    pub fn finished(&self, iterations: u64) {
        self.iteration.store(iterations, Ordering::Release);
    }

    /// Iterations finished in the current block.
    pub fn iterations(&self) -> u64 {
        self.iteration.load(Ordering::Acquire)
    }

    /// Says that something moved within the same place. Called by the measuring thread only, so a
    /// plain load and store are enough, also in the timed loop.
    #[inline(always)]
    pub fn step(&self) {
        self.steps.store(self.steps.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Says what comes now, and of which row.
    pub fn enter(&self, phase: Phase, row: &str) {
        let mut place = self.place.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        place.0 = phase;
        if place.1 != row {
            row.clone_into(&mut place.1);
        }
        drop(place);
        self.step();
    }

    /// Phase and row.
    pub fn place(&self) -> (Phase, String) {
        self.place.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// A number that differs from an earlier one where anything has moved since.
    pub fn mark(&self) -> (u64, u64) {
        (self.steps.load(Ordering::Relaxed), self.iterations())
    }
}
