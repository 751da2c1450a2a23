use hpcbench_model::{Event, Histogram, LateRank, SlowRank};
use hpcbench_world::World;

use crate::{BLOCK, Threshold};

/// Bits of a key that hold the rank; the rest hold a time in nanoseconds, up to 4.8 hours.
const RANK_BITS: u32 = 20;
const LONGEST: u64 = (1 << (64 - RANK_BITS)) - 1;

/// A time and whose it is as one number, so that an element-wise maximum finds both: MPI's MAXLOC
/// without pairs. Of equal times the higher rank's counts.
fn key(ns: u64, rank: usize) -> u64 {
    ns.min(LONGEST) << RANK_BITS | rank as u64
}

fn time_of(key: u64) -> u64 {
    key >> RANK_BITS
}

fn rank_of(key: u64) -> usize {
    (key & ((1 << RANK_BITS) - 1)) as usize
}

/// What one rank knows of a row while it is measured; rank 0 also knows who was slow and late.
#[derive(Debug)]
pub(crate) struct Accumulator {
    /// Time inside of this rank.
    pub(crate) inside: Histogram,
    /// Elapsed time that the table's time is made of, in nanoseconds.
    pub(crate) elapsed_ns: f64,
    pub(crate) iterations: u64,
    pub(crate) raw_dropped: u64,
    keys: Vec<u64>,
    reduced: Vec<u64>,
    scratch: Vec<u64>,
    /// Of all ranks; stays empty on ranks other than 0.
    pub(crate) all: Overall,
}

/// What rank 0 learns from the element-wise maxima.
#[derive(Debug, Default)]
pub(crate) struct Overall {
    /// Longest time inside of each iteration, per message.
    pub(crate) slowest: Histogram,
    /// How often each rank was inside longest.
    pub(crate) slow_counts: Vec<u64>,
    /// How often each rank entered last; empty where clocks cannot tell.
    pub(crate) late_counts: Vec<u64>,
    pub(crate) events: u64,
    pub(crate) per_iter_us: Option<Vec<f64>>,
}

/// What a block's times are read with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Calls and messages of one iteration: its time is divided by this.
    pub(crate) messages: u64,
    /// A moment before every entry of the block, on the common clock.
    pub(crate) reference_ns: u64,
    /// Whether entries of different ranks may be compared.
    pub(crate) common_clock: bool,
    /// Whether this rank only watches.
    pub(crate) idle: bool,
}

impl Accumulator {
    pub(crate) fn new() -> Accumulator {
        Accumulator {
            inside: Histogram::new(),
            elapsed_ns: 0.0,
            iterations: 0,
            raw_dropped: 0,
            keys: Vec::with_capacity(3 * BLOCK),
            reduced: vec![0; 3 * BLOCK],
            scratch: Vec::with_capacity(BLOCK),
            all: Overall::default(),
        }
    }

    /// Forgets the last row.
    pub(crate) fn begin_row(&mut self, ranks: usize, common_clock: bool, per_iteration: bool) {
        self.inside.clear();
        self.elapsed_ns = 0.0;
        self.iterations = 0;
        self.raw_dropped = 0;
        self.all.slowest.clear();
        self.all.slow_counts = vec![0; ranks];
        self.all.late_counts = if common_clock { vec![0; ranks] } else { Vec::new() };
        self.all.events = 0;
        self.all.per_iter_us = per_iteration.then(Vec::new);
    }

    /// Takes a block of this rank's entries and exits.
    pub(crate) fn take(
        &mut self,
        rank: usize,
        reading: Reading,
        entries_ns: &[u64],
        exits_ns: &[u64],
    ) {
        self.iterations += entries_ns.len() as u64;
        self.keys.clear();
        if reading.idle {
            self.keys.resize(3 * entries_ns.len(), 0);
            return;
        }
        let inside =
            || entries_ns.iter().zip(exits_ns).map(|(entry, exit)| exit.saturating_sub(*entry));
        inside().for_each(|ns| self.inside.record_ns(ns / reading.messages));
        self.keys.extend(inside().map(|ns| key(ns, rank)));
        if reading.common_clock {
            let since = |entry: &u64| entry.saturating_sub(reading.reference_ns);
            self.keys.extend(entries_ns.iter().map(|entry| key(since(entry), rank)));
            // The earliest, as a maximum.
            self.keys.extend(
                entries_ns.iter().map(|entry| key(LONGEST - since(entry).min(LONGEST), rank)),
            );
        }
    }

    /// Joins the block with all other ranks'. Collective. On rank 0 returns the block's median of
    /// the longest time inside, in nanoseconds.
    pub(crate) fn join(&mut self, world: &World, reading: Reading) -> Option<f64> {
        world.reduce_max(&self.keys, &mut self.reduced[..self.keys.len()]);
        if !world.is_first() || self.keys.is_empty() {
            return None;
        }
        let count = self.keys.len() / if reading.common_clock { 3 } else { 1 };
        let (slow, late) = (&self.reduced[..count], &self.reduced[count..]);
        for key in slow {
            self.all.slowest.record_ns(time_of(*key) / reading.messages);
            self.all.slow_counts[rank_of(*key)] += 1;
        }
        if reading.common_clock {
            late[..count].iter().for_each(|key| self.all.late_counts[rank_of(*key)] += 1);
        }
        if let Some(times) = &mut self.all.per_iter_us {
            times.extend(
                slow.iter().map(|key| time_of(*key) as f64 / reading.messages as f64 / 1e3),
            );
        }
        self.scratch.clear();
        self.scratch.extend(slow.iter().map(|key| time_of(*key)));
        let middle = count / 2;
        let median = *self.scratch.select_nth_unstable(middle).1;
        Some(median as f64 / reading.messages as f64)
    }

    /// The events of the block that [`Accumulator::join`] took last, on rank 0.
    pub(crate) fn events(
        &mut self,
        world: &World,
        reading: Reading,
        threshold: Threshold,
        row: u32,
        first_iteration: u64,
        run_start_ns: u64,
    ) -> Vec<Event> {
        let count = self.keys.len() / if reading.common_clock { 3 } else { 1 };
        let limit = threshold.ns(self.all.slowest.quantile_ns(0.5).unwrap_or(0));
        let us = |ns: u64| ns as f64 / 1e3;
        let host = |rank: usize| world.member(rank).host.clone();
        let event = |iteration: usize| {
            let slow = self.reduced[iteration];
            let times = reading.common_clock.then(|| {
                let (late, first) =
                    (self.reduced[count + iteration], self.reduced[2 * count + iteration]);
                (rank_of(late), time_of(late), LONGEST - time_of(first))
            });
            Event {
                kind: "jitter".to_owned(),
                row,
                iteration: first_iteration + iteration as u64,
                at_ns: times.map(|(_, _, first)| {
                    (reading.reference_ns + first).saturating_sub(run_start_ns)
                }),
                time_us: us(time_of(slow) / reading.messages),
                threshold_us: us(limit),
                slowest: SlowRank { rank: rank_of(slow) as u32, host: host(rank_of(slow)) },
                last_in: times.map(|(rank, late, first)| LateRank {
                    rank: rank as u32,
                    host: host(rank),
                    late_us: us(late.saturating_sub(first)),
                }),
            }
        };
        let beyond = (0..count).filter(|i| time_of(self.reduced[*i]) / reading.messages > limit);
        let events: Vec<Event> = beyond.map(event).collect();
        self.all.events += events.len() as u64;
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_largest_key_is_the_longest_times(times in prop::collection::vec(0_u64..LONGEST, 1..40)) {
            let largest = times.iter().enumerate().map(|(rank, ns)| key(*ns, rank)).max().unwrap();
            let longest = *times.iter().max().unwrap();
            prop_assert_eq!(time_of(largest), longest);
            prop_assert_eq!(times[rank_of(largest)], longest);
        }
    }

    #[test]
    fn times_beyond_the_key_stay_the_longest() {
        assert_eq!(time_of(key(u64::MAX, 3)), LONGEST);
        assert_eq!(rank_of(key(u64::MAX, 3)), 3);
    }

    #[test]
    fn an_idle_rank_is_neither_slow_nor_late() {
        let mut accumulator = Accumulator::new();
        accumulator.begin_row(3, true, false);
        let reading = Reading { messages: 1, reference_ns: 0, common_clock: true, idle: true };
        accumulator.take(2, reading, &[100, 200], &[100, 200]);
        assert_eq!(accumulator.keys, [0; 6]);
        assert_eq!((accumulator.iterations, accumulator.inside.count()), (2, 0));
    }
}
