use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use hpcbench_model::{Effect, Evidence, Finding, Locus, LocusKind, Loss};
use hpcbench_store::{RawWriter, RunWriter};
use hpcbench_world::{Alarm, Anchor, Clock, Progress};
use jiff::Timestamp;

use crate::Recorder;

/// What the measuring thread shares with the threads that end a run early.
#[derive(Debug)]
pub struct Shared {
    /// Where the measuring thread is.
    pub progress: Arc<Progress>,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) raw: Mutex<Raw>,
    pub(crate) writer: Mutex<Option<RunWriter>>,
    /// Set by the first thread that ends the run early.
    ending: AtomicBool,
}

/// This rank's raw times: the file, where the current block belongs, and the block in nanoseconds.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) file: RawWriter,
    pub(crate) row: u32,
    pub(crate) first_iteration: u64,
    /// What the block's readings are converted with: rank 0's, where ranks share a clock.
    pub(crate) anchor: Anchor,
    pub(crate) entries_ns: Vec<u64>,
    pub(crate) exits_ns: Vec<u64>,
}

/// The lock, also after a thread that held it has panicked: what it guards is whole at every step.
pub fn exclusive<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Shared {
    pub(crate) fn new(clock: Clock, file: RawWriter, writer: Option<RunWriter>) -> Shared {
        let slots = || Vec::with_capacity(crate::BLOCK);
        let raw = Raw {
            file,
            row: 0,
            first_iteration: 0,
            anchor: clock.anchor(),
            entries_ns: slots(),
            exits_ns: slots(),
        };
        Shared {
            progress: Arc::default(),
            recorder: Recorder::default(),
            clock,
            raw: Mutex::new(raw),
            writer: Mutex::new(writer),
            ending: AtomicBool::new(false),
        }
    }

    /// Writes the finished iterations of the current block to this rank's raw file, and forgets
    /// them; returns how many were dropped. `then` sees the block's entries and exits.
    pub(crate) fn drain_block<T>(&self, then: impl FnOnce(&[u64], &[u64]) -> T) -> (u64, T) {
        self.drain(&mut exclusive(&self.raw), then)
    }

    fn drain<T>(&self, raw: &mut Raw, then: impl FnOnce(&[u64], &[u64]) -> T) -> (u64, T) {
        let count = self.progress.iterations() as usize;
        let Raw { file, row, first_iteration, anchor, entries_ns, exits_ns } = raw;
        self.recorder.read(count, self.clock.converter(*anchor), entries_ns, exits_ns);
        let dropped = file.block(*row, *first_iteration, entries_ns, exits_ns);
        let seen = then(entries_ns, exits_ns);
        *first_iteration += count as u64;
        self.progress.finished(0);
        (dropped, seen)
    }

    /// Saves everything because of a signal; returns what to tell the user on rank 0.
    pub fn interrupted(&self, signal: &str) -> Option<String> {
        self.end_early(|run| run.interrupted = Some(signal.to_owned()))
            .map(|saved| format!("{signal}: stopped. {saved}"))
    }

    /// Saves everything because a library call failed; returns what to tell the user on rank 0.
    pub fn failed(&self) -> Option<String> {
        self.end_early(|_| ())
    }

    /// Saves everything because of an alarm; returns what to tell the user, and the exit code.
    pub fn alarmed(&self, alarm: &Alarm, rank: usize, host: &str) -> (String, i32) {
        let (text, code) = match alarm {
            Alarm::Total(limit) => (format!("not finished within -T {} s", limit.as_secs()), 1),
            Alarm::Stall { waited, phase, row, iterations } => {
                let place = if row.is_empty() {
                    String::new()
                } else {
                    format!(", {row}, iteration {iterations} of its block")
                };
                let text = format!(
                    "nothing has moved for {:.1} s (--stall-timeout): rank {rank} on {host} waits in {}{place}",
                    waited.as_secs_f64(),
                    phase.words(),
                );
                (text, 5)
            }
        };
        let finding = match alarm {
            Alarm::Stall { waited, .. } => Some(stall(&text, *waited)),
            Alarm::Total(_) => None,
        };
        let saved = self.end_early(|run| run.findings.extend(finding));
        (format!("{text}. {}", saved.unwrap_or_default()), code)
    }

    /// The caller ends the process next. From here on the measuring thread and any other one that
    /// would end the run find the locks taken, for ever: nothing is written twice or afterwards.
    fn end_early(&self, change: impl FnOnce(&mut hpcbench_model::Run)) -> Option<String> {
        if self.ending.swap(true, Ordering::AcqRel) {
            loop {
                std::thread::park();
            }
        }
        // Interrupted, Open MPI 4.1's mpirun sends SIGKILL as soon as one rank has ended: a sync may
        // take longer, so what ended the run is written first and made durable last.
        let mut writer = exclusive(&self.writer);
        if let Some(writer) = writer.as_mut()
            // A run that was finished already stays finished.
            && writer.run().ended.is_none()
        {
            writer.update_at_once(|run| {
                run.ended = Some(now());
                change(run);
            });
        }
        let mut raw = exclusive(&self.raw);
        self.drain(&mut raw, |_, _| ());
        raw.file.sync();
        let saved = writer.as_mut().map(|writer| {
            writer.update(|_| ());
            let rows = match writer.run().rows.len() {
                1 => "1 finished row is".to_owned(),
                rows => format!("{rows} finished rows are"),
            };
            let dir = writer.dir().display();
            format!("{rows} in {dir}, with the raw times of the row in progress")
        });
        std::mem::forget((writer, raw));
        saved
    }

    /// Makes this rank's raw samples durable.
    pub(crate) fn sync_raw(&self) -> u64 {
        exclusive(&self.raw).file.sync()
    }

    /// This rank's losses of raw samples.
    pub(crate) fn raw_losses(&self) -> Vec<Loss> {
        exclusive(&self.raw).file.losses().to_vec()
    }
}

/// Now, RFC 3339, UTC.
pub(crate) fn now() -> String {
    Timestamp::now().to_string()
}

/// A stall of which one rank alone cannot tell the cause.
fn stall(text: &str, waited: Duration) -> Finding {
    Finding {
        locus: Locus {
            kind: LocusKind::World,
            host: None,
            rank: None,
            nic: None,
            peer: None,
            direction: None,
        },
        effect: Effect {
            kind: "stall".to_owned(),
            text: text.to_owned(),
            duration_ns: Some(waited.as_nanos() as u64),
        },
        confidence: 1.0,
        alternatives: Vec::new(),
        evidence: vec![Evidence { source: "watchdog".to_owned(), text: text.to_owned() }],
        next_step:
            "see which of the ranks' processes still run, and on which hosts; then run again with \
                    half of the hosts at a time"
                .to_owned(),
    }
}
