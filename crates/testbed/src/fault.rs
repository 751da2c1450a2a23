//! What can be wrong with a host, a link, a path or a rail.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::address::Mac;
use crate::error::{Error, Result};
use crate::names::{Link, Target};
use crate::relay::{Effect, Rule};
use crate::schedule::Schedule;
use crate::spec::BedSpec;
use crate::units::{Rate, Share};

/// A kind of fault with its size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    /// Frames vanish.
    Loss(Share),
    /// One bit of a frame flips; the receiver's checksum throws it away.
    Corrupt(Share),
    /// Frames go out no faster than this.
    Rate(Rate),
    /// Every frame is held so long.
    Delay(Duration),
    /// A share of frames is held so long, and what follows them waits behind.
    Jitter(Share, Duration),
    /// No carrier; in one direction or on a path: nothing gets through.
    Down,
    /// The host's processes get so many cores in all.
    SlowHost(f64),
    /// The host's processes stand still.
    Pause,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Loss(share) => write!(f, "loss {share}"),
            Kind::Corrupt(share) => write!(f, "corrupt {share}"),
            Kind::Rate(rate) => write!(f, "rate {rate}"),
            Kind::Delay(time) => write!(f, "delay {}", humantime::format_duration(*time)),
            Kind::Jitter(share, time) => {
                write!(f, "jitter {share} {}", humantime::format_duration(*time))
            }
            Kind::Down => f.write_str("down"),
            Kind::SlowHost(cores) => write!(f, "slow-host {cores} cores"),
            Kind::Pause => f.write_str("pause"),
        }
    }
}

/// Which way a link is affected, seen from its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// What the host sends.
    Send,
    /// What the host receives.
    Receive,
    /// Both ways, each with its own draw.
    #[default]
    Both,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Send => "send",
            Direction::Receive => "receive",
            Direction::Both => "both",
        })
    }
}

impl FromStr for Direction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "send" => Ok(Direction::Send),
            "receive" => Ok(Direction::Receive),
            "both" => Ok(Direction::Both),
            _ => Err(Error::Usage(format!("`{text}`: write send, receive or both"))),
        }
    }
}

/// A fault as it is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultSpec {
    /// What.
    pub kind: Kind,
    /// Where.
    pub target: Target,
    /// Which way.
    pub direction: Direction,
    /// Decides which frames are hit and random schedules.
    pub seed: u64,
    /// When; without one it is on until it is cleared.
    pub schedule: Option<Schedule>,
}

impl FaultSpec {
    /// A fault in both directions, from now until it is cleared, with seed 1.
    pub fn new(kind: Kind, target: Target) -> Self {
        FaultSpec { kind, target, direction: Direction::Both, seed: 1, schedule: None }
    }

    /// Refuses what cannot be put into `bed`.
    pub(crate) fn check(&self, bed: &BedSpec) -> Result<()> {
        bed.check_target(self.target)?;
        let usage = |text: &str| Err(Error::Usage(text.to_owned()));
        let on_host = matches!(self.target, Target::Host(_));
        if matches!(self.kind, Kind::SlowHost(_) | Kind::Pause) && !on_host {
            return usage("slow-host and pause act on a host, such as h2");
        }
        if matches!(self.target, Target::Path { .. }) && self.direction != Direction::Both {
            return usage("a path has its direction already: h2/nic1:h3/nic1 is what h2 sends h3");
        }
        if let Kind::SlowHost(cores) = self.kind
            && !(0.01..=1024.0).contains(&cores)
        {
            return usage("slow-host takes a number of cores from 0.01 up");
        }
        let shortest = Duration::from_millis(1);
        match &self.schedule {
            Some(times) if times.on < shortest || times.off < shortest => {
                usage("on and off times are at least 1ms each")
            }
            _ => Ok(()),
        }
    }

    /// How the fault is made.
    pub(crate) fn mechanism(&self) -> Mechanism {
        let whole_link =
            self.direction == Direction::Both && !matches!(self.target, Target::Path { .. });
        match self.kind {
            Kind::SlowHost(cores) => Mechanism::Quota(cores),
            Kind::Pause => Mechanism::Freezer,
            Kind::Down if whole_link => Mechanism::Carrier,
            _ => Mechanism::Relay,
        }
    }

    fn effect(&self) -> Option<Effect> {
        match self.kind {
            Kind::Loss(share) => Some(Effect::Loss(share)),
            Kind::Down => Some(Effect::Loss(Share::ALL)),
            Kind::Corrupt(share) => Some(Effect::Corrupt(share)),
            Kind::Rate(rate) => Some(Effect::Rate(rate)),
            Kind::Delay(time) => Some(Effect::Delay(time)),
            Kind::Jitter(share, time) => Some(Effect::Jitter(share, time)),
            Kind::SlowHost(_) | Kind::Pause => None,
        }
    }
}

/// What makes a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mechanism {
    /// Rules in the relays of its links.
    Relay,
    /// The switch's ends of its links set down.
    Carrier,
    /// A CPU quota of so many cores on its host's cgroup.
    Quota(f64),
    /// The freezer of its host's cgroup.
    Freezer,
}

/// A fault that is in the bed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fault {
    /// Its number, never used twice in a bed.
    pub id: u32,
    /// What was asked for.
    #[serde(flatten)]
    pub spec: FaultSpec,
    /// When it was put in, by the machine's real-time clock.
    pub since: SystemTime,
    /// The process that follows its schedule, where the relays do not.
    pub(crate) driver: Option<i32>,
}

impl Fault {
    /// The rules that this fault puts into the relay of `link`.
    pub(crate) fn rules_on(&self, link: Link, bed: &BedSpec) -> Vec<Rule> {
        let spec = &self.spec;
        let here = bed.links_of(spec.target).contains(&link);
        let (true, Mechanism::Relay, Some(effect)) = (here, spec.mechanism(), spec.effect()) else {
            return Vec::new();
        };
        let (ways, peer): (&[Direction], _) = match (spec.target, spec.direction) {
            (Target::Path { to, .. }, _) => (&[Direction::Send], Some(Mac::of(to))),
            (_, Direction::Both) => (&[Direction::Send, Direction::Receive], None),
            (_, Direction::Send) => (&[Direction::Send], None),
            (_, Direction::Receive) => (&[Direction::Receive], None),
        };
        let rule = |way: &Direction| Rule {
            fault: self.id,
            sends: *way == Direction::Send,
            peer,
            effect,
            seed: own_seed(spec.seed, link, *way),
            // One draw for the whole fault, so that all its links are hit at the same times.
            schedule_seed: spec.seed,
            schedule: spec.schedule.clone(),
        };
        ways.iter().map(rule).collect()
    }
}

/// A seed of its own for each link and direction of a fault, so that their draws are independent:
/// one step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) over the seed and the place.
fn own_seed(seed: u64, link: Link, way: Direction) -> u64 {
    let place =
        (link.host as u64) << 16 | (link.nic as u64) << 1 | u64::from(way == Direction::Send);
    let mut z = seed.wrapping_add((place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bed() -> BedSpec {
        BedSpec::new("x".parse().unwrap(), 4, 2)
    }

    fn fault(kind: Kind, target: &str, direction: Direction) -> Fault {
        let spec = FaultSpec { direction, ..FaultSpec::new(kind, target.parse().unwrap()) };
        Fault { id: 1, spec, since: SystemTime::now(), driver: None }
    }

    fn loss() -> Kind {
        Kind::Loss("2%".parse().unwrap())
    }

    #[test]
    fn rules_go_to_the_links_of_the_target_only() {
        let placed = |target: &str| -> Vec<String> {
            let fault = fault(loss(), target, Direction::Send);
            let hit = bed().links().filter(|link| !fault.rules_on(*link, &bed()).is_empty());
            hit.map(|link| link.to_string()).collect()
        };
        assert_eq!(placed("h1"), ["h1/nic0", "h1/nic1"]);
        assert_eq!(placed("h1/nic1"), ["h1/nic1"]);
        assert_eq!(placed("rail1"), ["h0/nic1", "h1/nic1", "h2/nic1", "h3/nic1"]);
    }

    #[test]
    fn a_path_is_what_the_first_sends_the_second() {
        let rules = fault(loss(), "h1/nic0:h3/nic0", Direction::Both)
            .rules_on("h1/nic0".parse().unwrap(), &bed());
        assert_eq!(rules.len(), 1);
        assert!(rules[0].sends);
        assert_eq!(rules[0].peer, Some(Mac::of("h3/nic0".parse().unwrap())));
    }

    #[test]
    fn both_directions_draw_independently() {
        let rules =
            fault(loss(), "h1/nic0", Direction::Both).rules_on("h1/nic0".parse().unwrap(), &bed());
        assert_eq!(rules.len(), 2);
        assert_ne!(rules[0].seed, rules[1].seed);
    }

    #[test]
    fn a_whole_link_goes_down_by_its_carrier_and_a_part_in_the_relay() {
        let how = |target, direction| fault(Kind::Down, target, direction).spec.mechanism();
        assert_eq!(how("h1/nic0", Direction::Both), Mechanism::Carrier);
        assert_eq!(how("h1/nic0", Direction::Send), Mechanism::Relay);
        assert_eq!(how("h1/nic0:h2/nic0", Direction::Both), Mechanism::Relay);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let ms = Duration::from_millis;
        let never_off =
            Schedule { after: ms(0), on: ms(5), off: ms(0), times: None, random: false };
        let endless =
            FaultSpec { schedule: Some(never_off), ..fault(loss(), "h1", Direction::Both).spec };
        let bad = [
            fault(Kind::Pause, "h1/nic0", Direction::Both).spec,
            fault(Kind::SlowHost(0.5), "rail0", Direction::Both).spec,
            fault(Kind::SlowHost(0.0), "h1", Direction::Both).spec,
            fault(Kind::SlowHost(f64::NAN), "h1", Direction::Both).spec,
            fault(loss(), "h9", Direction::Both).spec,
            fault(loss(), "h1/nic0:h2/nic0", Direction::Receive).spec,
            endless,
        ];
        for spec in bad {
            assert!(spec.check(&bed()).is_err(), "{spec:?}");
        }
    }
}
