use hpcbench_collectives::{CallError, Communicator, Run};
use hpcbench_world::clock::{MonotonicTicks, Ticks, TscTicks};
use hpcbench_world::{Progress, Source};

use crate::{Recorder, Sync};

/// How a block's iterations follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// What separates them.
    pub sync: Sync,
    /// Calls an iteration.
    pub agg_iters: u64,
    /// What the clock reads.
    pub source: Source,
}

/// Runs `count` iterations of at most [`crate::BLOCK`], recording each; returns the elapsed clock
/// readings that the table's time is made of. Nothing here allocates, prints or locks.
///
/// # Errors
/// The first call that fails.
pub fn time_block(
    how: Loop,
    count: usize,
    run: &mut Run<'_>,
    communicator: &dyn Communicator,
    recorder: &Recorder,
    progress: &Progress,
) -> Result<u64, CallError> {
    // Chosen here, outside, so that the loop itself has no branch on it.
    match (how.source, how.agg_iters) {
        (Source::Tsc, 1) => {
            timed::<TscTicks>(how.sync, count, &mut **run, communicator, recorder, progress)
        }
        (Source::Monotonic, 1) => {
            timed::<MonotonicTicks>(how.sync, count, &mut **run, communicator, recorder, progress)
        }
        (source, calls) => {
            let timed_barrier = how.sync == Sync::BarrierTimed;
            let mut several = || {
                (0..calls).try_for_each(|call| {
                    run()?;
                    progress.step();
                    // nccl-tests' `-z 1` waits after each call; after the last the loop does.
                    if timed_barrier && call + 1 < calls { communicator.barrier() } else { Ok(()) }
                })
            };
            let run = &mut several;
            match source {
                Source::Tsc => {
                    timed::<TscTicks>(how.sync, count, run, communicator, recorder, progress)
                }
                Source::Monotonic => {
                    timed::<MonotonicTicks>(how.sync, count, run, communicator, recorder, progress)
                }
            }
        }
    }
}

/// What runs in an iteration: a [`Run`], or several of one.
type Iteration<'a> = dyn FnMut() -> Result<(), CallError> + 'a;

fn timed<T: Ticks>(
    sync: Sync,
    count: usize,
    run: &mut Iteration<'_>,
    communicator: &dyn Communicator,
    recorder: &Recorder,
    progress: &Progress,
) -> Result<u64, CallError> {
    match sync {
        Sync::None => back_to_back::<T>(count, run, recorder, progress),
        Sync::Barrier => between_barriers::<T>(count, run, communicator, recorder, progress),
        Sync::BarrierTimed => barriers_timed::<T>(count, run, communicator, recorder, progress),
    }
}

/// One iteration's exit is the next one's entry: one reading each.
fn back_to_back<T: Ticks>(
    count: usize,
    run: &mut Iteration<'_>,
    recorder: &Recorder,
    progress: &Progress,
) -> Result<u64, CallError> {
    let start = T::now();
    let mut entry = start;
    for iteration in 0..count {
        run()?;
        let exit = T::now();
        recorder.record(iteration, entry, exit);
        progress.finished(iteration as u64 + 1);
        entry = exit;
    }
    Ok(entry - start)
}

/// OSU's measurement: a barrier between iterations, outside their time (`osu_allreduce`, 7.4, has it
/// after each, which is before each but the first).
fn between_barriers<T: Ticks>(
    count: usize,
    run: &mut Iteration<'_>,
    communicator: &dyn Communicator,
    recorder: &Recorder,
    progress: &Progress,
) -> Result<u64, CallError> {
    let mut elapsed = 0;
    for iteration in 0..count {
        communicator.barrier()?;
        let entry = T::now();
        run()?;
        let exit = T::now();
        recorder.record(iteration, entry, exit);
        progress.finished(iteration as u64 + 1);
        elapsed += exit - entry;
    }
    Ok(elapsed)
}

/// nccl-tests' `-z 1`: the barrier after each iteration counts towards the elapsed time.
fn barriers_timed<T: Ticks>(
    count: usize,
    run: &mut Iteration<'_>,
    communicator: &dyn Communicator,
    recorder: &Recorder,
    progress: &Progress,
) -> Result<u64, CallError> {
    let start = T::now();
    for iteration in 0..count {
        let entry = T::now();
        run()?;
        let exit = T::now();
        recorder.record(iteration, entry, exit);
        progress.finished(iteration as u64 + 1);
        communicator.barrier()?;
    }
    Ok(T::now() - start)
}
