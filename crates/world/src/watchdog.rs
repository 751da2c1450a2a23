use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Phase, Progress};

/// When the watchdog acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Longest time without any progress; `None` waits for ever.
    pub stall: Option<Duration>,
    /// Longest time of the whole run; `None` sets no limit.
    pub total: Option<Duration>,
}

/// Why the watchdog acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// Nothing moved for this long.
    Stall {
        /// How long.
        waited: Duration,
        /// What the rank was doing.
        phase: Phase,
        /// Of which row.
        row: String,
        /// Iterations it had finished in the current block.
        iterations: u64,
    },
    /// The run took longer than it was allowed to.
    Total(Duration),
}

/// Watches `progress` from a thread of its own and calls `then` when a limit is passed. It looks
/// eight times within the shorter limit, at most ten times a second.
///
/// # Errors
/// When the thread cannot be started.
pub fn watch(
    limits: Limits,
    progress: Arc<Progress>,
    then: impl FnOnce(Alarm) + Send + 'static,
) -> io::Result<()> {
    let Some(shortest) = limits.stall.into_iter().chain(limits.total).min() else { return Ok(()) };
    let pause = (shortest / 8).max(Duration::from_millis(100));
    let started = Instant::now();
    std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
        let mut mark = progress.mark();
        let (mut looked, mut waited) = (Instant::now(), Duration::ZERO);
        loop {
            std::thread::sleep(pause);
            // Where this process was stopped or frozen meanwhile, so was what it watches.
            waited += looked.elapsed().min(pause * 2);
            looked = Instant::now();
            let now = progress.mark();
            if now != mark {
                (mark, waited) = (now, Duration::ZERO);
            }
            if let Some(total) = limits.total.filter(|total| started.elapsed() >= *total) {
                return then(Alarm::Total(total));
            }
            if limits.stall.is_some_and(|stall| waited >= stall) {
                let (phase, row) = progress.place();
                let iterations = progress.iterations();
                return then(Alarm::Stall { waited, phase, row, iterations });
            }
        }
    })?;
    Ok(())
}

/// Ends the process at once, without MPI and without destructors: what a stuck MPI call would
/// otherwise prevent. Standard output and error must have been flushed.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes any number and does not return; no Rust code runs afterwards.
    unsafe { libc::_exit(code) }
}
