//! Reading time cheaply, and putting the readings on the monotonic clock.
//!
//! On x86-64 with an invariant time-stamp counter that the kernel itself keeps time by, a reading
//! is one `rdtsc` (about 10 ns against 23 ns for `clock_gettime` on the machine of
//! `results/reference`). Readings become nanoseconds of `CLOCK_MONOTONIC` afterwards, by anchors:
//! moments at which both were read. So a time namespace's offset, and the kernel's slewing, are in
//! the result, which the bare counter would not show.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// What a reading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The processor's time-stamp counter.
    Tsc,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    Monotonic,
}

impl Source {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Tsc => "tsc",
            Source::Monotonic => "clock_gettime",
        }
    }

    /// The cheapest that this machine can be trusted with.
    pub fn best() -> Source {
        if cfg!(target_arch = "x86_64") && kernel_trusts_tsc() {
            Source::Tsc
        } else {
            Source::Monotonic
        }
    }
}

fn kernel_trusts_tsc() -> bool {
    let clocksource = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let current = fs::read_to_string(clocksource).unwrap_or_default();
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = flags.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag| flags.split_whitespace().any(|word| word == flag);
    current.trim() == "tsc" && has("constant_tsc") && has("nonstop_tsc")
}

/// A way to read ticks that the compiler can inline into a timed loop.
pub trait Ticks {
    /// The current reading.
    fn now() -> u64;
}

/// [`Source::Tsc`].
#[derive(Debug)]
pub struct TscTicks;

/// [`Source::Monotonic`].
#[derive(Debug)]
pub struct MonotonicTicks;

impl Ticks for TscTicks {
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    fn now() -> u64 {
        // SAFETY: every x86-64 processor has the instruction; it only reads a counter.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn now() -> u64 {
        monotonic_ns()
    }
}

impl Ticks for MonotonicTicks {
    #[inline(always)]
    fn now() -> u64 {
        monotonic_ns()
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Reading of the source.
    pub ticks: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub ns: u64,
}

/// This process's clock.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
    start: Anchor,
    resolution_ns: f64,
    cost_ns: f64,
}

/// Readings that an anchor takes, of which the tightest is kept.
const ANCHOR_TRIES: usize = 5;
/// Readings that measure cost and resolution.
const PROBES: usize = 1000;
/// Shortest distance, in nanoseconds, between two anchors that give the tick's length: an anchor is
/// right to some 20 ns, so this one to a few parts in a million.
const BASELINE_NS: u64 = 5_000_000;

impl Clock {
    /// Starts the clock. Takes at least 5 ms, so that ticks have a length from the start.
    pub fn start() -> Clock {
        Clock::with_source(Source::best())
    }

    /// Starts it on a given source.
    pub fn with_source(source: Source) -> Clock {
        let mut clock = Clock { source, start: anchor(source), resolution_ns: 0.0, cost_ns: 0.0 };
        while monotonic_ns() < clock.start.ns + BASELINE_NS {
            std::thread::yield_now();
        }
        (clock.resolution_ns, clock.cost_ns) = clock.probe();
        clock
    }

    /// What a reading is.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Smallest step between two different readings, in nanoseconds.
    pub fn resolution_ns(&self) -> f64 {
        self.resolution_ns
    }

    /// Cost of one reading, in nanoseconds.
    pub fn cost_ns(&self) -> f64 {
        self.cost_ns
    }

    /// The current reading.
    pub fn ticks(&self) -> u64 {
        match self.source {
            Source::Tsc => TscTicks::now(),
            Source::Monotonic => MonotonicTicks::now(),
        }
    }

    /// Both clocks, now.
    pub fn anchor(&self) -> Anchor {
        anchor(self.source)
    }

    /// The moment from which the clock counts.
    pub fn start_anchor(&self) -> Anchor {
        self.start
    }

    /// Counts from another process's start, so that both convert the same reading to the same time:
    /// for ranks of one host, which read the same counter.
    pub fn count_from(&mut self, start: Anchor) {
        self.start = start;
    }

    /// Length of a stretch of readings, in nanoseconds.
    pub fn elapsed_ns(&self, ticks: u64) -> u64 {
        let anchor = self.anchor();
        let to_ns = self.converter(anchor);
        to_ns(anchor.ticks) - to_ns(anchor.ticks.saturating_sub(ticks))
    }

    /// Readings to nanoseconds of `CLOCK_MONOTONIC`, right near `anchor` (to some 20 ns, plus what
    /// the kernel's slewing of at most 500 parts in a million adds with distance).
    pub fn converter(&self, anchor: Anchor) -> impl Fn(u64) -> u64 + use<> {
        let ticks = anchor.ticks.saturating_sub(self.start.ticks).max(1) as f64;
        let ns_per_tick = anchor.ns.saturating_sub(self.start.ns) as f64 / ticks;
        let tsc = self.source == Source::Tsc;
        move |reading| {
            if !tsc {
                return reading;
            }
            let distance = reading.wrapping_sub(anchor.ticks) as i64;
            anchor.ns.saturating_add_signed((distance as f64 * ns_per_tick).round() as i64)
        }
    }

    /// Resolution and cost of a reading, each in nanoseconds.
    fn probe(&self) -> (f64, f64) {
        let before = self.anchor();
        let mut smallest = u64::MAX;
        let mut last = self.ticks();
        for _ in 0..PROBES {
            let now = self.ticks();
            if now > last {
                smallest = smallest.min(now - last);
            }
            last = now;
        }
        let to_ns = self.converter(self.anchor());
        let elapsed = to_ns(last).saturating_sub(before.ns) as f64;
        let smallest = if smallest == u64::MAX { 0 } else { smallest };
        // A single step is below the converter's nanoseconds: scale a thousand of them.
        let step = to_ns(before.ticks + smallest * 1000).saturating_sub(to_ns(before.ticks)) as f64
            / 1000.0;
        (step, elapsed / PROBES as f64)
    }
}

fn anchor(source: Source) -> Anchor {
    let ticks = || match source {
        Source::Tsc => TscTicks::now(),
        Source::Monotonic => monotonic_ns(),
    };
    let one = || {
        let before = ticks();
        let ns = monotonic_ns();
        let after = ticks();
        (after - before, Anchor { ticks: before + (after - before) / 2, ns })
    };
    let tightest = (0..ANCHOR_TRIES).map(|_| one()).min_by_key(|(gap, _)| *gap);
    match (source, tightest) {
        (Source::Tsc, Some((_, anchor))) => anchor,
        _ => {
            let ns = monotonic_ns();
            Anchor { ticks: ns, ns }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_land_between_the_monotonic_readings_around_them() {
        for source in [Source::best(), Source::Monotonic] {
            let clock = Clock::with_source(source);
            let before = monotonic_ns();
            let reading = clock.ticks();
            let after = monotonic_ns();
            let ns = clock.converter(clock.anchor())(reading);
            // An anchor that was interrupted may be off by the interruption; a millisecond is far
            // below what a wrong conversion would give.
            assert!(ns + 1_000_000 >= before && ns <= after + 1_000_000, "{before} {ns} {after}");
        }
    }

    #[test]
    fn cost_and_resolution_are_plausible() {
        let clock = Clock::start();
        assert!(clock.cost_ns() > 0.1 && clock.cost_ns() < 100_000.0, "{}", clock.cost_ns());
        assert!(
            clock.resolution_ns() > 0.0 && clock.resolution_ns() < 1e7,
            "{}",
            clock.resolution_ns()
        );
    }
}
