use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something wrong, with where, how much, how sure, why, and what to do. A run with nothing wrong
/// has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Where.
    pub locus: Locus,
    /// What it does, with its size.
    pub effect: Effect,
    /// Probability, 0 to 1, that the locus is right.
    pub confidence: f64,
    /// Other places that the data cannot tell apart from it.
    pub alternatives: Vec<Locus>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// The next thing to do.
    pub next_step: String,
}

/// A place in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Locus {
    /// What kind of place.
    pub kind: LocusKind,
    /// Host name, where known.
    pub host: Option<String>,
    /// Rank, where the finding is about a process.
    pub rank: Option<u32>,
    /// NIC, where the finding is about a link.
    pub nic: Option<String>,
    /// The other end, where the finding is about a path.
    pub peer: Option<String>,
    /// `send` or `receive`, where only one direction is affected.
    pub direction: Option<String>,
}

/// Kinds of places; a narrower one than the evidence shows is never named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LocusKind {
    /// Somewhere in the world: nothing narrower can be told.
    World,
    /// One process.
    Rank,
    /// A machine.
    Host,
    /// A GPU.
    Gpu,
    /// A NIC, its cable and its port, not told apart.
    Link,
    /// A network card.
    Nic,
    /// A cable.
    Cable,
    /// A switch port.
    Port,
    /// An ordered pair of links.
    Path,
    /// The links that share a switch plane.
    Rail,
}

/// What a finding does to the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// Short name, such as `stall`.
    pub kind: String,
    /// A sentence with the size.
    pub text: String,
    /// Time it cost, in nanoseconds, where that is its size.
    pub duration_ns: Option<u64>,
}

/// One thing a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Where it was seen: `watchdog`, `histogram`, a counter's name.
    pub source: String,
    /// What was seen.
    pub text: String,
}
