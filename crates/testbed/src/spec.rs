use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::names::{Link, Prefix, Target};
use crate::units::Rate;

/// What a bed is made of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BedSpec {
    /// Its name.
    pub prefix: Prefix,
    /// Number of hosts, called h0, h1, …: 2 to 250.
    pub hosts: usize,
    /// NICs of each host, called nic0, nic1, …, each on the rail of its number: 1 to 16.
    pub nics: usize,
    /// Nominal rate of every NIC, each way.
    pub rate: Rate,
    /// One-way latency added to every path, at the sender's link. Above zero every link has a
    /// relay.
    pub latency: Duration,
    /// Largest IP packet of a NIC in bytes.
    pub mtu: usize,
    /// MPI processes a host takes before mpirun goes on to the next.
    pub slots: usize,
    /// Which links have a relay without a fault.
    pub relays: Relays,
    /// Decides the hosts' clock offsets.
    pub seed: u64,
    /// Whether each host gets an inventory root, and the captured tree it starts from.
    pub inventory: Inventory,
}

/// Whether hosts get an inventory root: a directory laid out as `/`, in which
/// `sys/class/net/NIC/statistics` counts live.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Inventory {
    /// None.
    #[default]
    None,
    /// Only the live NICs.
    Live,
    /// The live NICs in a copy of this tree, or of its subdirectory named as the host.
    Fixture(PathBuf),
}

/// Which links have a relay from the start, so that its presence never gives a fault away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relays {
    /// Only links with a fault that needs one.
    None,
    /// Every link.
    All,
    /// About half of the links, drawn with this seed.
    Random(u64),
}

impl FromStr for Relays {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let seed = text.strip_prefix("random:").and_then(|seed| seed.parse().ok());
        match (text, seed) {
            ("none", _) => Ok(Relays::None),
            ("all", _) => Ok(Relays::All),
            (_, Some(seed)) => Ok(Relays::Random(seed)),
            _ => Err(Error::Usage(format!("`{text}`: write none, all or random:SEED"))),
        }
    }
}

impl BedSpec {
    /// A bed of `hosts` × `nics` with the defaults of the command line.
    pub fn new(prefix: Prefix, hosts: usize, nics: usize) -> Self {
        BedSpec {
            prefix,
            hosts,
            nics,
            rate: Rate::bits_per_second(400_000_000),
            latency: Duration::ZERO,
            mtu: 9000,
            slots: nics,
            relays: Relays::None,
            seed: 1,
            inventory: Inventory::None,
        }
    }

    /// Refuses what cannot be built.
    pub(crate) fn check(&self) -> Result<()> {
        let usage = |text: String| Err(Error::Usage(text));
        if !(2..=250).contains(&self.hosts) {
            return usage(format!("{} hosts: a bed has 2 to 250", self.hosts));
        }
        if !(1..=16).contains(&self.nics) {
            return usage(format!("{} NICs: a host has 1 to 16", self.nics));
        }
        if !(576..=9000).contains(&self.mtu) {
            return usage(format!("MTU {}: a NIC takes 576 to 9000 bytes", self.mtu));
        }
        if self.slots == 0 {
            return usage("0 slots: mpirun would have no place for a process".to_owned());
        }
        match &self.inventory {
            Inventory::Fixture(tree) if !tree.is_dir() => {
                usage(format!("{} is not a directory with an inventory", tree.display()))
            }
            _ => Ok(()),
        }
    }

    /// All links, host by host.
    pub fn links(&self) -> impl Iterator<Item = Link> + use<> {
        let nics = self.nics;
        (0..self.hosts).flat_map(move |host| (0..nics).map(move |nic| Link { host, nic }))
    }

    /// The links a target stands for; of a path, the sender's.
    pub(crate) fn links_of(&self, target: Target) -> Vec<Link> {
        let on = |link: &Link| match target {
            Target::Host(host) => link.host == host,
            Target::Link(own) | Target::Path { from: own, .. } => *link == own,
            Target::Rail(rail) => link.nic == rail,
        };
        self.links().filter(on).collect()
    }

    /// Refuses a target that this bed does not have.
    pub(crate) fn check_target(&self, target: Target) -> Result<()> {
        let has = |link: Link| link.host < self.hosts && link.nic < self.nics;
        let known = match target {
            Target::Host(host) => host < self.hosts,
            Target::Link(link) => has(link),
            Target::Path { from, to } => has(from) && has(to),
            Target::Rail(rail) => rail < self.nics,
        };
        if known {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "bed `{}` has no {target}: its hosts are h0 to h{}, its NICs nic0 to nic{}",
            self.prefix,
            self.hosts - 1,
            self.nics - 1
        )))
    }

    /// The links that have a relay from the start.
    pub(crate) fn relayed_links(&self) -> Vec<Link> {
        match self.relays {
            _ if !self.latency.is_zero() => self.links().collect(),
            Relays::None => Vec::new(),
            Relays::All => self.links().collect(),
            Relays::Random(seed) => {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                self.links().filter(|_| rng.random()).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> BedSpec {
        BedSpec::new("x".parse().unwrap(), 4, 2)
    }

    #[test]
    fn targets_stand_for_their_links() {
        let links = |text: &str| -> Vec<String> {
            let links = spec().links_of(text.parse().unwrap());
            links.into_iter().map(|l| l.to_string()).collect()
        };
        assert_eq!(links("h1"), ["h1/nic0", "h1/nic1"]);
        assert_eq!(links("h1/nic1"), ["h1/nic1"]);
        assert_eq!(links("h1/nic1:h2/nic1"), ["h1/nic1"]);
        assert_eq!(links("rail0"), ["h0/nic0", "h1/nic0", "h2/nic0", "h3/nic0"]);
    }

    #[test]
    fn what_the_bed_lacks_is_refused() {
        for text in ["h4", "h0/nic2", "rail2", "h0/nic0:h4/nic0"] {
            assert!(spec().check_target(text.parse().unwrap()).is_err(), "{text}");
        }
        assert!(spec().check_target("h3/nic1".parse().unwrap()).is_ok());
    }

    #[test]
    fn random_relays_follow_their_seed() {
        let drawn = |seed| BedSpec { relays: Relays::Random(seed), ..spec() }.relayed_links();
        assert_eq!(drawn(3), drawn(3));
        assert!((0..20).any(|seed| drawn(seed) != drawn(3)));
        assert!((0..20).all(|seed| drawn(seed).len() <= 8));
    }

    #[test]
    fn impossible_beds_are_refused() {
        let bad = [
            BedSpec { hosts: 1, ..spec() },
            BedSpec { nics: 0, ..spec() },
            BedSpec { mtu: 100, ..spec() },
            BedSpec { slots: 0, ..spec() },
            BedSpec { inventory: Inventory::Fixture("/does/not/exist".into()), ..spec() },
        ];
        assert!(bad.iter().all(|spec| spec.check().is_err()));
        assert!(spec().check().is_ok());
    }
}
