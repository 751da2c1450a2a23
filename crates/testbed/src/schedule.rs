//! When a fault is on.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// On and off times of a fault; without one it is on until it is cleared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Wait before it comes on for the first time.
    pub after: Duration,
    /// How long it is on.
    pub on: Duration,
    /// How long it is off between two times; the mean of an exponential draw where `random`.
    pub off: Duration,
    /// How many times it comes on; without end when absent.
    pub times: Option<u32>,
    /// Whether the off times are drawn at random from the fault's seed.
    pub random: bool,
}

/// The phases of a schedule in their order: the same for the same seed.
pub struct Phases {
    schedule: Schedule,
    rng: ChaCha8Rng,
    on: bool,
    until: Option<Duration>,
    times: u32,
}

impl Phases {
    /// Starts at elapsed time zero, in the wait before the first time.
    pub fn new(schedule: &Schedule, seed: u64) -> Self {
        Phases {
            until: Some(schedule.after),
            schedule: schedule.clone(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            on: false,
            times: 0,
        }
    }

    /// Whether the fault is on at `elapsed`; asked with times that never go back.
    pub fn is_on_at(&mut self, elapsed: Duration) -> bool {
        while self.until.is_some_and(|until| elapsed >= until) {
            self.advance();
        }
        self.on
    }

    /// When the present phase ends; `None` when it never does.
    pub fn until(&self) -> Option<Duration> {
        self.until
    }

    fn advance(&mut self) {
        let Some(until) = self.until else { return };
        self.on = !self.on;
        let spent = !self.on && self.schedule.times.is_some_and(|times| self.times >= times);
        self.times += u32::from(self.on);
        let length = if self.on { self.schedule.on } else { self.off_time() };
        self.until = (!spent).then(|| until + length);
    }

    fn off_time(&mut self) -> Duration {
        if self.schedule.random {
            // Inverse transform of the exponential distribution: −mean·ln(1−u), u in [0, 1).
            self.schedule.off.mul_f64(-(1.0 - self.rng.random::<f64>()).ln())
        } else {
            self.schedule.off
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn schedule() -> Schedule {
        Schedule { after: MS(5), on: MS(10), off: MS(30), times: None, random: false }
    }

    fn changes(schedule: &Schedule, seed: u64, end_ms: u64) -> Vec<bool> {
        let mut phases = Phases::new(schedule, seed);
        (0..end_ms).map(|ms| phases.is_on_at(MS(ms))).collect()
    }

    #[test]
    fn it_is_on_when_it_should_be() {
        let seen = changes(&schedule(), 0, 200);
        for (ms, on) in seen.iter().enumerate() {
            assert_eq!(*on, ms >= 5 && (ms - 5) % 40 < 10, "{ms} ms");
        }
    }

    #[test]
    fn it_ends_after_its_times() {
        let twice = Schedule { times: Some(2), ..schedule() };
        let seen = changes(&twice, 0, 500);
        assert_eq!(seen.iter().filter(|on| **on).count(), 20);
        assert!(!seen[499]);
    }

    #[test]
    fn random_gaps_follow_the_seed_and_their_mean() {
        let random = Schedule { random: true, ..schedule() };
        assert_eq!(changes(&random, 7, 1000), changes(&random, 7, 1000));
        assert_ne!(changes(&random, 7, 1000), changes(&random, 8, 1000));
        let on = changes(&random, 7, 400_000).iter().filter(|on| **on).count();
        // 10 of 40 ms in the mean; about 10,000 gaps put the share within a few percent.
        assert!((95_000..105_000).contains(&on), "{on}");
    }
}
