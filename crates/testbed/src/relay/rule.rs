use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::address::Mac;
use crate::schedule::{Phases, Schedule};
use crate::units::{Rate, Share};

/// What a rule does to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Effect {
    Loss(Share),
    Corrupt(Share),
    Rate(Rate),
    Delay(Duration),
    Jitter(Share, Duration),
}

/// One fault's part in one direction of one relay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rule {
    /// The fault it belongs to; 0 is the bed's own latency.
    pub fault: u32,
    /// Whether it acts on what the host sends, or else on what it receives.
    pub sends: bool,
    /// Only frames to this address; all frames when absent.
    pub peer: Option<Mac>,
    pub effect: Effect,
    /// Of the frames' draws.
    pub seed: u64,
    /// Of the schedule's draws.
    pub schedule_seed: u64,
    pub schedule: Option<Schedule>,
}

impl Rule {
    /// The bed's own latency: every frame that a host sends.
    pub fn latency(latency: Duration) -> Self {
        Rule {
            fault: 0,
            sends: true,
            peer: None,
            effect: Effect::Delay(latency),
            seed: 0,
            schedule_seed: 0,
            schedule: None,
        }
    }
}

/// Longest backlog of a rate rule, as `tbf … latency 50ms`; a slow rate still takes ten frames.
const BACKLOG: Duration = Duration::from_millis(50);
const BACKLOG_FRAMES: u32 = 10;

/// What a rule makes of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ruling {
    Drop,
    Overflow,
    Damage {
        byte: usize,
        bit: u8,
    },
    /// Not before this time, in nanoseconds on the relay's clock.
    Until(u64),
    Pass,
}

/// A rule at work: its draws, its schedule, its counts.
pub(crate) struct ActiveRule {
    pub rule: Rule,
    rng: ChaCha8Rng,
    phases: Option<Phases>,
    started_ns: u64,
    /// When the wire of a rate rule is free again.
    free_ns: u64,
    pub seen: u64,
    pub hit: u64,
}

/// Ethernet and IPv4 header without options: what a corrupted frame keeps whole, so that it still
/// reaches the checksum that throws it away.
const HEADERS: usize = 14 + 20;

impl ActiveRule {
    pub fn new(rule: Rule, now_ns: u64) -> Self {
        ActiveRule {
            rng: ChaCha8Rng::seed_from_u64(rule.seed),
            phases: rule.schedule.as_ref().map(|s| Phases::new(s, rule.schedule_seed)),
            started_ns: now_ns,
            free_ns: 0,
            seen: 0,
            hit: 0,
            rule,
        }
    }

    /// Rules on a frame of `length` bytes to `to` that would go out at `due_ns`.
    pub fn rule_on(&mut self, to: Mac, length: usize, now_ns: u64, due_ns: u64) -> Ruling {
        if self.rule.peer.is_some_and(|peer| peer != to) {
            return Ruling::Pass;
        }
        let elapsed = Duration::from_nanos(now_ns.saturating_sub(self.started_ns));
        if self.phases.as_mut().is_some_and(|phases| !phases.is_on_at(elapsed)) {
            return Ruling::Pass;
        }
        self.seen += 1;
        let ruling = self.apply(length, now_ns, due_ns);
        self.hit += u64::from(ruling != Ruling::Pass);
        ruling
    }

    fn apply(&mut self, length: usize, now_ns: u64, due_ns: u64) -> Ruling {
        let mut drawn = |share: Share| self.rng.random_bool(share.fraction());
        match self.rule.effect {
            Effect::Loss(share) if drawn(share) => Ruling::Drop,
            Effect::Corrupt(share) if length > HEADERS && drawn(share) => Ruling::Damage {
                byte: self.rng.random_range(HEADERS..length),
                bit: 1 << self.rng.random_range(0..8),
            },
            Effect::Jitter(share, time) if drawn(share) => {
                Ruling::Until(due_ns + time.as_nanos() as u64)
            }
            Effect::Delay(time) => Ruling::Until(due_ns + time.as_nanos() as u64),
            Effect::Rate(rate) => self.queue(rate.time_of(length), now_ns, due_ns),
            _ => Ruling::Pass,
        }
    }

    fn queue(&mut self, wire_time: Duration, now_ns: u64, due_ns: u64) -> Ruling {
        let wire_ns = wire_time.as_nanos() as u64;
        let start_ns = due_ns.max(self.free_ns);
        let limit_ns = (BACKLOG.as_nanos() as u64).max(wire_ns * u64::from(BACKLOG_FRAMES));
        if start_ns.saturating_sub(now_ns) > limit_ns {
            return Ruling::Overflow;
        }
        self.free_ns = start_ns + wire_ns;
        Ruling::Until(self.free_ns)
    }

    /// Whether it moves frames in time, and so comes after those that drop and damage.
    pub fn delays(&self) -> bool {
        !matches!(self.rule.effect, Effect::Loss(_) | Effect::Corrupt(_))
    }
}
