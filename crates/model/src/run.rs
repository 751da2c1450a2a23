use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DType, Finding, RedOp};

/// The `schema` of `run.json`. The number rises when a reader of the old form would be wrong.
pub const RUN_SCHEMA: &str = "hpcbench.run/1";

/// A run: what `run.json` holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// [`RUN_SCHEMA`].
    pub schema: String,
    /// Unique name of the run.
    pub id: String,
    /// What measured.
    pub tool: Tool,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// The collective.
    pub op: String,
    /// What carried the data: `mpi`.
    pub backend: String,
    /// Start, RFC 3339, UTC.
    pub started: String,
    /// End, RFC 3339, UTC; `null` while running, and for ever after a `kill -9`.
    pub ended: Option<String>,
    /// Whether every row that was asked for is here.
    pub complete: bool,
    /// The signal that ended it early, if one did.
    pub interrupted: Option<String>,
    /// Who took part.
    pub world: World,
    /// How time was told.
    pub clock: Clock,
    /// What was asked for.
    pub settings: Settings,
    /// Where each host's raw samples are.
    pub raw_samples: Vec<RawSamples>,
    /// What was measured but could not be kept.
    pub losses: Vec<Loss>,
    /// What is wrong; empty where nothing is.
    pub findings: Vec<Finding>,
    /// One for each size, type, reduction, root, placement and cycle.
    pub rows: Vec<Row>,
}

/// The program that measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `hpcbench`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit it was built from, `unknown` outside a checkout.
    pub commit: String,
}

/// Who took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct World {
    /// Number of ranks.
    pub size: u32,
    /// What started them: `Open MPI`, `MPICH`, `Slurm`, or `none`.
    pub launcher: String,
    /// The MPI library.
    pub mpi: MpiLibrary,
    /// Hosts, in order of their lowest rank.
    pub hosts: Vec<Host>,
    /// Ranks, in order.
    pub ranks: Vec<Rank>,
}

/// The MPI library in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MpiLibrary {
    /// First line of its own version text.
    pub library: String,
    /// The standard it says it follows, such as `3.1`.
    pub standard: String,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Cores that its ranks may run on.
    pub cores: u32,
    /// Kernel release.
    pub kernel: String,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

/// A rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Its number in the world.
    pub rank: u32,
    /// Its number on its host.
    pub local_rank: u32,
    /// Its host.
    pub host: String,
    /// Its process id.
    pub pid: u32,
}

/// How time was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// `tsc` (the processor's counter, tied to the monotonic clock at both ends of every block) or
    /// `clock_gettime` (the monotonic clock itself).
    pub source: String,
    /// Smallest step seen between two different readings, in nanoseconds; worst rank.
    pub resolution_ns: f64,
    /// Cost of one reading, in nanoseconds; worst rank.
    pub cost_ns: f64,
    /// Among whom times may be compared.
    pub scope: ClockScope,
}

/// Among whom times may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClockScope {
    /// All ranks: they share one host, or their clocks were put on one line.
    World,
    /// Only ranks of one host: who entered last is then not said.
    Host,
}

/// What was asked for, after defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// First size of the sweep, in bytes.
    pub min_bytes: u64,
    /// Last size of the sweep, in bytes.
    pub max_bytes: u64,
    /// Step in bytes; `null` where a factor is used.
    pub step_bytes: Option<u64>,
    /// Step factor; `null` where bytes are added.
    pub step_factor: Option<u64>,
    /// Iterations a row; `null` where a time budget or a precision decides.
    pub iters: Option<u64>,
    /// Calls between two clock readings (`-m`); times are per call.
    pub agg_iters: u64,
    /// Warm-up iterations of each size.
    pub warmup_iters: u64,
    /// Checked runs a row (`-c`).
    pub checks: u64,
    /// `none`, `barrier`, or `barrier-timed` (`-z 1`).
    pub sync: String,
    /// Which ranks' mean time the table shows: `rank0`, `avg`, `min` or `max` (`-a`).
    pub average: String,
    /// Time budget of a row, in seconds.
    pub time_budget_s: Option<f64>,
    /// Asked half-width of the median's interval, as a share of it.
    pub precision: Option<f64>,
    /// `--threshold` as given.
    pub threshold: Option<String>,
    /// Percentiles the table shows.
    pub percentiles: Vec<f64>,
    /// Seed of the test data.
    pub seed: u64,
    /// Messages in flight (`pingpong --window`); `null` for plain ping-pong and collectives.
    pub window: Option<u64>,
    /// Whether both ends send at once (`pingpong --two-way`).
    pub two_way: bool,
    /// Largest number of iterations a row whose raw times each rank keeps on disk.
    pub raw_cap: Option<u64>,
}

/// Where a host's raw samples are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RawSamples {
    /// The host.
    pub host: String,
    /// Its ranks.
    pub ranks: Vec<u32>,
    /// The directory, on that host.
    pub dir: String,
    /// Whether that is the run directory itself; if not, the files stayed on that host.
    pub shared: bool,
}

/// What was measured but could not be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// The file.
    pub what: String,
    /// The rank whose it was.
    pub rank: u32,
    /// How many records.
    pub count: u64,
    /// Why.
    pub why: String,
}

/// One row: one size, type, reduction, root and placement, in one cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Its number, from 0, in order of time.
    pub id: u32,
    /// Which of the `-N` cycles it belongs to, from 0.
    pub cycle: u64,
    /// The collective.
    pub op: String,
    /// What carried the data.
    pub backend: String,
    /// Element type.
    pub dtype: DType,
    /// Reduction; `null` for collectives without one.
    pub redop: Option<RedOp>,
    /// Root; `null` for collectives without one.
    pub root: Option<u32>,
    /// The `size` column: bytes of the larger buffer.
    pub bytes: u64,
    /// The `count` column: elements given to the call.
    pub count: u64,
    /// Whether input and output share a buffer.
    pub in_place: bool,
    /// Iterations measured.
    pub iters: u64,
    /// Timed blocks they were measured in.
    pub blocks: u64,
    /// Time of an iteration.
    pub time_us: TimesUs,
    /// Time inside, of every rank and iteration.
    pub inside_us: TimesUs,
    /// Algorithm bandwidth: bytes ÷ `time_us.mean`, GB/s = 10⁹ B/s.
    pub algbw_gbps: f64,
    /// Bus bandwidth: algorithm bandwidth × the collective's factor (nccl-tests' PERFORMANCE.md).
    pub busbw_gbps: f64,
    /// Bus bandwidth at tails, derived from times.
    pub bw_gbps: BandwidthGbps,
    /// 95% interval of the median of `time_us`, from the medians of blocks; `null` where there were
    /// too few blocks to say.
    pub median_interval_us: Option<[f64; 2]>,
    /// Elements that were wrong, over all checks and ranks; `null` where nothing was checked.
    pub wrong: Option<u64>,
    /// The first wrong element.
    pub first_wrong: Option<Wrong>,
    /// Who was inside longest, by share of iterations, largest first, at most 64: they waited.
    pub slowest: Vec<Share>,
    /// Who entered last, likewise. Empty where the clocks cannot tell. In a collective that
    /// synchronises its ranks, or with a barrier between iterations, they were waited for.
    pub last_in: Vec<Share>,
    /// Median, over iterations, of the time from the first rank's entry to the last one's: how much of
    /// `time_us` lateness can explain. `null` where the clocks cannot tell.
    pub skew_us: Option<f64>,
    /// Jitter events; `null` where no threshold was set.
    pub events: Option<u64>,
    /// Iterations whose raw times were not kept on disk, over all ranks (`--raw-cap`, a full disk).
    pub raw_dropped: u64,
}

/// Figures of a distribution of times, in microseconds. A percentile is `null` where fewer than 10
/// samples lie beyond it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimesUs {
    /// In `time_us`, the table's time: elapsed ÷ iterations, combined over ranks as `-a` says.
    /// In `inside_us`, the mean over ranks and iterations.
    pub mean: f64,
    /// Smallest. In `time_us` (here and below): over iterations, of the longest time inside.
    pub min: f64,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: f64,
}

/// Bus bandwidth at tails, in GB/s: bytes × factor ÷ the time at the mirrored percentile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BandwidthGbps {
    /// 1st percentile, from the 99th of time.
    pub p1: Option<f64>,
    /// Median, from the median of time.
    pub p50: Option<f64>,
}

/// A rank's share of iterations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Share of the iterations, 0 to 1.
    pub share: f64,
}

/// A wrong element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wrong {
    /// Rank that received it.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Index in its receive buffer, in elements.
    pub offset: u64,
    /// What was there.
    pub got: String,
    /// What should have been.
    pub expected: String,
}
