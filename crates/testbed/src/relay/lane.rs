use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use hpcbench_model::Histogram;

use super::control::{LaneReport, Quantiles, RuleHits};
use super::rule::{ActiveRule, Rule, Ruling};
use crate::address::Mac;

/// Most bytes that a lane holds back; what comes beyond is dropped and counted.
const HELD_BYTES: usize = 256 << 20;

/// One direction of a relay: its rules and the frames they hold back. Knows no devices and no
/// clock, so that its decisions are tested without them.
pub(crate) struct Lane {
    rules: Vec<ActiveRule>,
    held: BinaryHeap<Reverse<Held>>,
    held_bytes: usize,
    /// Emptied buffers, used again.
    spare: Vec<Vec<u8>>,
    order: u64,
    /// A cable keeps order: nothing leaves before what a rule on the whole link held, nor before
    /// what a rule on a path held for the same receiver.
    link_due_ns: u64,
    peer_due_ns: HashMap<Mac, u64>,
    counts: LaneReport,
    passing: Histogram,
    lateness: Histogram,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    due_ns: u64,
    order: u64,
    frame: Vec<u8>,
}

/// What becomes of a frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Fate {
    /// Send it now.
    Pass,
    /// The lane has dropped it or keeps it.
    Taken,
}

impl Lane {
    pub fn new() -> Self {
        Lane {
            rules: Vec::new(),
            held: BinaryHeap::new(),
            held_bytes: 0,
            spare: Vec::new(),
            order: 0,
            link_due_ns: 0,
            peer_due_ns: HashMap::new(),
            counts: LaneReport::default(),
            passing: Histogram::new(),
            lateness: Histogram::new(),
        }
    }

    /// Takes these rules; one that was here already keeps its draws, its schedule and its counts.
    pub fn set_rules(&mut self, rules: Vec<Rule>, now_ns: u64) {
        let mut old = std::mem::take(&mut self.rules);
        for rule in rules {
            let known = old.iter().position(|active| active.rule == rule);
            self.rules.push(match known {
                Some(at) => old.swap_remove(at),
                None => ActiveRule::new(rule, now_ns),
            });
        }
        // What drops and damages comes first, then what holds the whole link, then the paths'.
        self.rules.sort_by_key(|a| (a.delays(), a.rule.peer.is_some()));
    }

    /// Decides on a frame and keeps it where it must wait.
    pub fn accept(&mut self, frame: &mut [u8], now_ns: u64) -> Fate {
        self.counts.frames += 1;
        self.counts.bytes += frame.len() as u64;
        let Some(due_ns) = self.due(frame, now_ns) else { return Fate::Taken };
        if due_ns <= now_ns {
            return Fate::Pass;
        }
        if self.held_bytes + frame.len() > HELD_BYTES {
            self.counts.overflowed += 1;
            return Fate::Taken;
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(frame);
        self.held_bytes += kept.len();
        self.order += 1;
        self.counts.held += 1;
        self.held.push(Reverse(Held { due_ns, order: self.order, frame: kept }));
        Fate::Taken
    }

    /// When the frame may leave; `None` when it never does.
    fn due(&mut self, frame: &mut [u8], now_ns: u64) -> Option<u64> {
        let Some(&to) = frame.first_chunk() else { return Some(now_ns) };
        let to = Mac(to);
        let mut due_ns = now_ns.max(self.link_due_ns);
        for active in &mut self.rules {
            match active.rule_on(to, frame.len(), now_ns, due_ns) {
                Ruling::Drop => {
                    self.counts.lost += 1;
                    return None;
                }
                Ruling::Overflow => {
                    self.counts.overflowed += 1;
                    return None;
                }
                Ruling::Damage { byte, bit } => {
                    frame[byte] ^= bit;
                    self.counts.corrupted += 1;
                }
                Ruling::Until(ns) => {
                    due_ns = ns;
                    if active.rule.peer.is_none() {
                        self.link_due_ns = ns;
                    }
                }
                Ruling::Pass => {}
            }
        }
        let peer_due_ns = self.peer_due_ns.entry(to).or_default();
        *peer_due_ns = due_ns.max(*peer_due_ns);
        Some(*peer_due_ns)
    }

    /// When the next held frame is due.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.held.peek().map(|held| held.0.due_ns)
    }

    /// The next frame that is due by `now_ns`.
    pub fn take_due(&mut self, now_ns: u64) -> Option<(u64, Vec<u8>)> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        let Reverse(held) = self.held.pop()?;
        self.held_bytes -= held.frame.len();
        Some((held.due_ns, held.frame))
    }

    /// Notes that a held frame has left, and takes its buffer back.
    pub fn left(&mut self, due_ns: u64, now_ns: u64, buffer: Vec<u8>) {
        self.lateness.record_ns(now_ns.saturating_sub(due_ns));
        self.spare.push(buffer);
    }

    /// Notes that a frame went straight through, `ns` after the relay woke for it.
    pub fn passed(&mut self, ns: u64) {
        self.passing.record_ns(ns);
    }

    /// Notes that the device did not take a frame.
    pub fn unsent(&mut self) {
        self.counts.unsent += 1;
    }

    pub fn report(&self) -> LaneReport {
        let hits = |a: &ActiveRule| RuleHits { fault: a.rule.fault, seen: a.seen, hit: a.hit };
        LaneReport {
            passing: Quantiles::of(&self.passing),
            lateness: Quantiles::of(&self.lateness),
            rules: self.rules.iter().map(hits).collect(),
            ..self.counts.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::relay::Effect;
    use crate::schedule::Schedule;

    const A: Mac = Mac([2, 0, 0, 0, 1, 0]);
    const B: Mac = Mac([2, 0, 0, 0, 2, 0]);
    const MS: u64 = 1_000_000;

    fn frame(to: Mac, number: u32) -> Vec<u8> {
        let mut frame = vec![0; 1000];
        frame[..6].copy_from_slice(&to.0);
        frame[996..].copy_from_slice(&number.to_be_bytes());
        frame
    }

    fn rule(effect: Effect, peer: Option<Mac>) -> Rule {
        Rule { fault: 1, sends: true, peer, effect, seed: 7, schedule_seed: 7, schedule: None }
    }

    fn lane(effect: Effect, peer: Option<Mac>) -> Lane {
        let mut lane = Lane::new();
        lane.set_rules(vec![rule(effect, peer)], 0);
        lane
    }

    fn fates(lane: &mut Lane, frames: u32) -> Vec<bool> {
        (0..frames).map(|n| lane.accept(&mut frame(A, n), 0) == Fate::Pass).collect()
    }

    #[test]
    fn loss_hits_its_share_and_follows_its_seed() {
        let loss = Effect::Loss("2%".parse().unwrap());
        let passed = fates(&mut lane(loss, None), 50_000);
        let lost = passed.iter().filter(|passed| !**passed).count();
        // 1000 expected, standard deviation 31.
        assert!((850..1150).contains(&lost), "{lost}");
        assert_eq!(passed, fates(&mut lane(loss, None), 50_000));
    }

    #[test]
    fn a_path_rule_leaves_other_receivers_alone() {
        let mut lane = lane(Effect::Loss("100%".parse().unwrap()), Some(B));
        assert_eq!(lane.accept(&mut frame(A, 0), 0), Fate::Pass);
        assert_eq!(lane.accept(&mut frame(B, 0), 0), Fate::Taken);
        assert_eq!(lane.report().lost, 1);
    }

    #[test]
    fn corruption_flips_one_bit_behind_the_headers() {
        let mut lane = lane(Effect::Corrupt("100%".parse().unwrap()), None);
        for number in 0..200 {
            let (before, mut after) = (frame(A, number), frame(A, number));
            assert_eq!(lane.accept(&mut after, 0), Fate::Pass);
            assert_eq!(before[..34], after[..34]);
            let flipped: u32 = before.iter().zip(&after).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(flipped, 1);
        }
    }

    #[test]
    fn delay_holds_every_frame_its_time() {
        let mut lane = lane(Effect::Delay(Duration::from_millis(5)), None);
        assert_eq!(lane.accept(&mut frame(A, 0), MS), Fate::Taken);
        assert!(lane.take_due(6 * MS - 1).is_none());
        assert_eq!(lane.take_due(6 * MS).unwrap().1, frame(A, 0));
    }

    #[test]
    fn jitter_keeps_the_order_of_the_link() {
        let effect = Effect::Jitter("10%".parse().unwrap(), Duration::from_millis(100));
        let mut lane = lane(effect, None);
        let mut out: Vec<u32> = Vec::new();
        let number = |f: &[u8]| u32::from_be_bytes(*f.last_chunk().unwrap());
        for n in 0..1000 {
            let now_ns = u64::from(n) * MS;
            while let Some((_, held)) = lane.take_due(now_ns) {
                out.push(number(&held));
            }
            let mut sent = frame(if n % 2 == 0 { A } else { B }, n);
            if lane.accept(&mut sent, now_ns) == Fate::Pass {
                out.push(n);
            }
        }
        while let Some((_, held)) = lane.take_due(u64::MAX) {
            out.push(number(&held));
        }
        assert_eq!(out, (0..1000).collect::<Vec<_>>());
        assert!(lane.report().held > 100);
    }

    #[test]
    fn a_delayed_path_does_not_hold_the_link() {
        let mut lane = lane(Effect::Delay(Duration::from_millis(100)), Some(B));
        assert_eq!(lane.accept(&mut frame(B, 0), 0), Fate::Taken);
        assert_eq!(lane.accept(&mut frame(A, 1), 0), Fate::Pass);
    }

    #[test]
    fn rate_spaces_frames_by_their_wire_time_and_drops_a_long_backlog() {
        // 1000 bytes at 8 Mbit/s take 1 ms.
        let mut lane = lane(Effect::Rate("8mbit".parse().unwrap()), None);
        for n in 0..100 {
            lane.accept(&mut frame(A, n), 0);
        }
        let mut due = Vec::new();
        while let Some((due_ns, _)) = lane.take_due(u64::MAX) {
            due.push(due_ns);
        }
        let expected: Vec<u64> = (1..=51).map(|n| n * MS).collect();
        assert_eq!(due, expected);
        assert_eq!(lane.report().overflowed, 49);
    }

    #[test]
    fn a_schedule_decides_when_a_rule_acts() {
        let ms = Duration::from_millis;
        let times = Schedule { after: ms(0), on: ms(10), off: ms(10), times: None, random: false };
        let rule =
            Rule { schedule: Some(times), ..rule(Effect::Loss("100%".parse().unwrap()), None) };
        let mut lane = Lane::new();
        lane.set_rules(vec![rule], 0);
        for n in 0..100 {
            let passed = lane.accept(&mut frame(A, n), u64::from(n) * MS) == Fate::Pass;
            assert_eq!(passed, n / 10 % 2 == 1, "{n} ms");
        }
    }

    #[test]
    fn a_rule_that_stays_keeps_its_draws_and_counts() {
        let half = Effect::Loss("50%".parse().unwrap());
        let (mut kept, mut left_alone) = (lane(half, None), lane(half, None));
        let mut seen = fates(&mut kept, 50);
        let delay = rule(Effect::Delay(Duration::ZERO), None);
        kept.set_rules(vec![delay, rule(half, None)], 0);
        seen.extend(fates(&mut kept, 50));
        assert_eq!(seen, fates(&mut left_alone, 100));
        let rules = kept.report().rules;
        assert_eq!(rules[0].seen, 100);
    }
}
