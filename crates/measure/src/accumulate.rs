use hpcbench_model::{Event, Histogram, LateRank, SlowRank};
use hpcbench_world::World;

use crate::{BLOCK, Threshold};

/// Largest number that [`World::reduce_max`] takes.
const LARGEST: u64 = i64::MAX as u64;
/// Bits of a key that hold the rank; the rest hold a time in nanoseconds, up to 2.4 hours.
const RANK_BITS: u32 = 20;
const LONGEST: u64 = LARGEST >> RANK_BITS;

/// Ranks that a key can tell apart.
pub(crate) const MOST_RANKS: usize = 1 << RANK_BITS;

/// Times and whose they are as one number each, so that an element-wise maximum finds both: MPI's
/// MAXLOC without pairs.
#[derive(Clone, Copy, Debug)]
struct Keys {
    ranks: usize,
}

impl Keys {
    /// Of equal times one rank's counts, another one's with each iteration: none is favoured.
    fn of(self, ns: u64, rank: usize, iteration: u64) -> u64 {
        let turn = (rank + self.turn(iteration)) % self.ranks;
        ns.min(LONGEST) << RANK_BITS | turn as u64
    }

    fn time(self, key: u64) -> u64 {
        key >> RANK_BITS
    }

    fn rank(self, key: u64, iteration: u64) -> usize {
        let turn = (key & (MOST_RANKS as u64 - 1)) as usize;
        (turn + self.ranks - self.turn(iteration)) % self.ranks
    }

    fn turn(self, iteration: u64) -> usize {
        (iteration % self.ranks as u64) as usize
    }
}

/// Iterations whose times `-I` keeps in order: 10⁷, 80 MB, so that a long run does not fill memory.
const MOST_PER_ITERATION: usize = 10_000_000;

/// What one rank knows of a row while it is measured; rank 0 also knows who was slow and late.
#[derive(Debug)]
pub(crate) struct Accumulator {
    /// Time inside of this rank.
    pub(crate) inside: Histogram,
    /// Shortest and longest time inside of this rank, which the histogram knows to three digits.
    pub(crate) inside_ends: Ends,
    /// Elapsed time that the table's time is made of, in nanoseconds.
    pub(crate) elapsed_ns: f64,
    pub(crate) iterations: u64,
    pub(crate) raw_dropped: u64,
    rule: Keys,
    keys: Vec<u64>,
    reduced: Vec<u64>,
    scratch: Vec<u64>,
    /// Of all ranks; stays empty on ranks other than 0.
    pub(crate) all: Overall,
}

/// The shortest and the longest of some times, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) shortest: u64,
    pub(crate) longest: u64,
}

impl Default for Ends {
    fn default() -> Self {
        Ends { shortest: LARGEST, longest: 0 }
    }
}

impl Ends {
    fn take(&mut self, ns: u64) {
        self.shortest = self.shortest.min(ns);
        self.longest = self.longest.max(ns);
    }

    /// Those of all ranks, on rank 0. Collective.
    pub(crate) fn of_all(self, world: &World) -> Ends {
        let mut all = [0; 2];
        world.reduce_max(&[self.longest, LARGEST - self.shortest], &mut all);
        Ends { longest: all[0], shortest: LARGEST - all[1] }
    }
}

/// What rank 0 learns from the element-wise maxima.
#[derive(Debug, Default)]
pub(crate) struct Overall {
    /// Longest time inside of each iteration, per message.
    pub(crate) slowest: Histogram,
    /// Shortest and longest of them.
    pub(crate) slowest_ends: Ends,
    /// Time from the first entry to the last of each iteration; empty where clocks cannot tell.
    pub(crate) skew: Histogram,
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
    /// Number of the block's first iteration in its row.
    pub(crate) first_iteration: u64,
}

impl Reading {
    /// The time of one message, rounded to the nanosecond.
    fn per_message(&self, ns: u64) -> u64 {
        (ns + self.messages / 2) / self.messages
    }

    /// Keys of one iteration: the longest, and where clocks can tell, the last and the first.
    fn keys_per_iteration(&self) -> usize {
        if self.common_clock { 3 } else { 1 }
    }
}

impl Accumulator {
    pub(crate) fn new(ranks: usize) -> Accumulator {
        Accumulator {
            rule: Keys { ranks },
            inside: Histogram::new(),
            inside_ends: Ends::default(),
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
    pub(crate) fn begin_row(&mut self, common_clock: bool, per_iteration: bool) {
        let ranks = self.rule.ranks;
        self.inside.clear();
        self.inside_ends = Ends::default();
        self.elapsed_ns = 0.0;
        self.iterations = 0;
        self.raw_dropped = 0;
        self.all.slowest.clear();
        self.all.slowest_ends = Ends::default();
        self.all.skew.clear();
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
            self.keys.resize(reading.keys_per_iteration() * entries_ns.len(), 0);
            return;
        }
        let inside =
            || entries_ns.iter().zip(exits_ns).map(|(entry, exit)| exit.saturating_sub(*entry));
        for ns in inside().map(|ns| reading.per_message(ns)) {
            self.inside.record_ns(ns);
            self.inside_ends.take(ns);
        }
        let rule = self.rule;
        let iterations = || reading.first_iteration..;
        self.keys.extend(inside().zip(iterations()).map(|(ns, i)| rule.of(ns, rank, i)));
        if reading.common_clock {
            let since = |entry: &u64| entry.saturating_sub(reading.reference_ns).min(LONGEST);
            let entries = || entries_ns.iter().map(since).zip(iterations());
            self.keys.extend(entries().map(|(ns, i)| rule.of(ns, rank, i)));
            // The earliest, as a maximum.
            self.keys.extend(entries().map(|(ns, i)| rule.of(LONGEST - ns, rank, i)));
        }
    }

    /// Joins the block with all other ranks'. Collective. On rank 0 returns the block's median of
    /// the longest time inside, per message, in nanoseconds.
    pub(crate) fn join(&mut self, world: &World, reading: Reading) -> Option<f64> {
        world.reduce_max(&self.keys, &mut self.reduced[..self.keys.len()]);
        if !world.is_first() || self.keys.is_empty() {
            return None;
        }
        let rule = self.rule;
        let count = self.keys.len() / reading.keys_per_iteration();
        let (slow, late) = (&self.reduced[..count], &self.reduced[count..]);
        for (key, iteration) in slow.iter().zip(reading.first_iteration..) {
            let ns = reading.per_message(rule.time(*key));
            self.all.slowest.record_ns(ns);
            self.all.slowest_ends.take(ns);
            self.all.slow_counts[rule.rank(*key, iteration)] += 1;
        }
        if reading.common_clock {
            let (late, first) = late.split_at(count);
            for ((late, first), iteration) in late.iter().zip(first).zip(reading.first_iteration..)
            {
                self.all.late_counts[rule.rank(*late, iteration)] += 1;
                let skew = rule.time(*late).saturating_sub(LONGEST - rule.time(*first));
                self.all.skew.record_ns(skew);
            }
        }
        let us = |key: &u64| rule.time(*key) as f64 / reading.messages as f64 / 1e3;
        if let Some(times) = &mut self.all.per_iter_us {
            let room = MOST_PER_ITERATION.saturating_sub(times.len());
            times.extend(slow.iter().take(room).map(us));
        }
        self.scratch.clear();
        self.scratch.extend(slow.iter().map(|key| rule.time(*key)));
        let median = *self.scratch.select_nth_unstable(count / 2).1;
        Some(median as f64 / reading.messages as f64)
    }

    /// The events of the block that [`Accumulator::join`] took last, on rank 0. An event is an
    /// iteration, so its time is that of all its messages.
    pub(crate) fn events(
        &mut self,
        world: &World,
        reading: Reading,
        threshold: Threshold,
        row: u32,
        run_start_ns: u64,
    ) -> Vec<Event> {
        let rule = self.rule;
        let count = self.keys.len() / reading.keys_per_iteration();
        let median_ns = self.all.slowest.quantile_ns(0.5).unwrap_or(0) * reading.messages;
        let limit = threshold.ns(median_ns);
        let us = |ns: u64| ns as f64 / 1e3;
        let host = |rank: usize| world.member(rank).host.clone();
        let event = |at: usize| {
            let iteration = reading.first_iteration + at as u64;
            let slow = self.reduced[at];
            let slow_rank = rule.rank(slow, iteration);
            let times = reading.common_clock.then(|| {
                let (late, first) = (self.reduced[count + at], self.reduced[2 * count + at]);
                (rule.rank(late, iteration), rule.time(late), LONGEST - rule.time(first))
            });
            let at_ns = times.map(|(_, _, first)| reading.reference_ns + first);
            Event {
                kind: "jitter".to_owned(),
                row,
                iteration,
                at_ns: at_ns.map(|ns| ns.saturating_sub(run_start_ns)),
                time_us: us(rule.time(slow)),
                threshold_us: us(limit),
                slowest: SlowRank { rank: slow_rank as u32, host: host(slow_rank) },
                last_in: times.map(|(rank, late, first)| LateRank {
                    rank: rank as u32,
                    host: host(rank),
                    late_us: us(late.saturating_sub(first)),
                }),
            }
        };
        let beyond = (0..count).filter(|at| rule.time(self.reduced[*at]) > limit);
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
        fn the_largest_key_is_the_longest_times(
            times in prop::collection::vec(0_u64..LONGEST, 1..40), iteration: u64,
        ) {
            let rule = Keys { ranks: times.len() };
            let keys = times.iter().enumerate().map(|(rank, ns)| rule.of(*ns, rank, iteration));
            let largest = keys.max().unwrap();
            let longest = *times.iter().max().unwrap();
            prop_assert_eq!(rule.time(largest), longest);
            prop_assert_eq!(times[rule.rank(largest, iteration)], longest);
        }
    }

    #[test]
    fn of_equal_times_each_rank_gets_its_share() {
        let rule = Keys { ranks: 3 };
        let winner = |iteration: u64| {
            let key = (0..3).map(|rank| rule.of(7, rank, iteration)).max().unwrap();
            rule.rank(key, iteration)
        };
        let mut winners: Vec<usize> = (0..3).map(winner).collect();
        winners.sort_unstable();
        assert_eq!(winners, [0, 1, 2]);
    }

    #[test]
    fn times_beyond_the_key_stay_the_longest() {
        let rule = Keys { ranks: 5 };
        assert_eq!(rule.time(rule.of(u64::MAX, 3, 0)), LONGEST);
        assert_eq!(rule.rank(rule.of(u64::MAX, 3, 9), 9), 3);
    }

    #[test]
    fn an_idle_rank_is_neither_slow_nor_late() {
        for (common_clock, keys) in [(true, 6), (false, 2)] {
            let mut accumulator = Accumulator::new(3);
            accumulator.begin_row(common_clock, false);
            let reading = Reading {
                messages: 1,
                reference_ns: 0,
                common_clock,
                idle: true,
                first_iteration: 0,
            };
            accumulator.take(2, reading, &[100, 200], &[100, 200]);
            assert_eq!(accumulator.keys, vec![0; keys]);
            let busy = Reading { idle: false, ..reading };
            accumulator.take(2, busy, &[100, 200], &[100, 200]);
            assert_eq!(accumulator.keys.len(), keys);
        }
    }
}
