//! What ends a run early: signals and the watchdog.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use hpcbench_measure::Shared;
use hpcbench_world::{Failure, Limits, World, exit_now, on_interrupt, watch};

/// How much later than rank 0 other ranks act on the same alarm: by then it has spoken and the
/// launcher has ended them, unless rank 0 is the one that is stuck. Then the lowest of them speaks.
const AFTER_RANK_0: Duration = Duration::from_secs(2);
const BETWEEN_RANKS: Duration = Duration::from_millis(200);
/// So that the last of many ranks does not wait for minutes.
const LATEST: Duration = Duration::from_secs(10);
/// How long other ranks stay after an interrupt, once they have saved what they have: Open MPI 4.1
/// sends SIGKILL to all as soon as one rank has ended, MPICH 4.0 some 20 ms later, and rank 0 has the
/// most to write. Open MPI does not wait longer than a second.
const STAY_FOR_RANK_0: Duration = Duration::from_millis(600);

/// Watches for SIGINT, SIGTERM and for a run that no longer moves; each saves what was measured and
/// ends the process.
///
/// # Errors
/// When the system gives no thread or handler.
pub fn start(shared: &Arc<Shared>, limits: Limits, world: &World) -> Result<(), Failure> {
    let cannot =
        |error: std::io::Error| Failure::cannot_run(format!("cannot watch the run: {error}"));
    let rank = world.rank();
    let saved = Arc::clone(shared);
    on_interrupt(move |interrupt| {
        if let Some(text) = saved.interrupted(interrupt.name()) {
            say(&text);
        }
        if rank != 0 {
            std::thread::sleep(STAY_FOR_RANK_0);
        }
        exit_now(130);
    })
    .map_err(cannot)?;
    let host = world.host().to_owned();
    let later = match rank {
        0 => Duration::ZERO,
        _ => (AFTER_RANK_0 + BETWEEN_RANKS * (rank as u32 - 1)).min(LATEST),
    };
    let limits =
        Limits { stall: limits.stall.map(|t| t + later), total: limits.total.map(|t| t + later) };
    let saved = Arc::clone(shared);
    watch(limits, Arc::clone(&shared.progress), move |alarm| {
        let (text, code) = saved.alarmed(&alarm, rank, &host);
        say(&text);
        exit_now(code);
    })
    .map_err(cannot)
}

/// A line on standard error, and nothing if that is closed.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "hpcbench: {text}");
}
