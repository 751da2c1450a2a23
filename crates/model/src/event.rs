use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A jitter event: an iteration whose longest time inside passed the threshold. One line of
/// `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// `jitter`.
    pub kind: String,
    /// The row's id.
    pub row: u32,
    /// Iteration of the row, from 0.
    pub iteration: u64,
    /// When the first rank entered, in nanoseconds since the run's start on rank 0's clock; `null`
    /// where the ranks' clocks are not on one line.
    pub at_ns: Option<u64>,
    /// Longest time inside, in microseconds, of the whole iteration: of all its messages (`-m`,
    /// `pingpong`), where a row's times are of one.
    pub time_us: f64,
    /// The threshold it passed, in microseconds.
    pub threshold_us: f64,
    /// The rank that was inside longest: it waited. Never the suspect.
    pub slowest: SlowRank,
    /// The rank that entered last; `null` where the clocks cannot tell. In a collective that
    /// synchronises its ranks it is the one the others waited for.
    pub last_in: Option<LateRank>,
}

/// Who was inside longest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowRank {
    /// Rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
}

/// Who entered last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LateRank {
    /// Rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// How long after the first rank it entered, in microseconds.
    pub late_us: f64,
}
