//! The command line, as clap reads it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Version and commit, as `--version` prints them.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("HPCBENCH_COMMIT"), ")");

const AFTER_HELP: &str = "\
Start it with MPI:      mpirun -n 4 hpcbench allreduce
Options of allreduce:   hpcbench allreduce --help";

#[derive(Debug, Parser)]
#[command(
    name = "hpcbench",
    version = VERSION,
    disable_version_flag = true,
    // The flag is global, and each subcommand needs something to answer it with.
    propagate_version = true,
    arg_required_else_help = false,
    max_term_width = 100,
    about = "Measures collectives on a cluster, every iteration of every rank, and tells who was slow and who was late.",
    after_help = AFTER_HELP
)]
pub struct Cli {
    /// Print the version
    // Long only: -V is nccl-tests' --device_cta_count.
    #[arg(long, action = clap::ArgAction::Version, global = true)]
    version: Option<bool>,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    #[cfg(feature = "run")]
    #[command(flatten)]
    Measure(Box<Measure>),
    /// Print a recorded run again, also one that was killed
    Show(Show),
}

#[derive(Debug, Args)]
pub struct Show {
    /// Run directory, or its run.json
    pub run: PathBuf,

    /// table (nccl-tests'), csv, json (as run.json), or jsonl, a line a row
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    pub format: Format,

    /// Tails beside the rows, not below them
    #[arg(long)]
    pub wide: bool,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// nccl-tests' table
    #[default]
    Table,
    /// One line for each row and placement
    Csv,
    /// One document, as in run.json
    Json,
    /// One JSON object a line, as rows finish
    Jsonl,
}

#[cfg(feature = "run")]
pub use run::{GpuOnly, Measure, Options, Pingpong, PlacementArgument, SyncArgument};

#[cfg(feature = "run")]
mod run {
    use std::path::PathBuf;

    use clap::{Args, Subcommand, ValueEnum};
    use hpcbench_measure::Threshold;
    use hpcbench_model::Bytes;

    use super::Format;

    #[derive(Clone, Debug, Subcommand)]
    pub enum Measure {
        /// Every rank gets the reduction of all ranks' data
        #[command(aliases = ["all_reduce", "all_reduce_perf"])]
        Allreduce(Options),
        /// Every rank gets every rank's data
        #[command(aliases = ["all_gather", "all_gather_perf"])]
        Allgather(Options),
        /// Every rank gets its part of the reduction of all ranks' data
        #[command(aliases = ["reduce_scatter", "reduce_scatter_perf"])]
        Reducescatter(Options),
        /// Every rank sends a part of its data to every rank
        #[command(alias = "alltoall_perf")]
        Alltoall(Options),
        /// Every rank gets the root's data
        #[command(alias = "broadcast_perf")]
        Broadcast(Options),
        /// The root gets the reduction of all ranks' data
        #[command(alias = "reduce_perf")]
        Reduce(Options),
        /// The root gets every rank's data
        #[command(alias = "gather_perf")]
        Gather(Options),
        /// Every rank gets its part of the root's data
        #[command(alias = "scatter_perf")]
        Scatter(Options),
        /// Every rank sends to the next and receives from the one before, around a ring
        #[command(alias = "sendrecv_perf")]
        Sendrecv(Options),
        /// An allgather by pairwise exchanges along a hypercube's dimensions (2^k ranks)
        #[command(alias = "hypercube_perf")]
        Hypercube(Options),
        /// Pairs of ranks (r and r + n/2) send a message to and fro: latency, or bandwidth with --window
        Pingpong(Pingpong),
    }

    impl Measure {
        /// The collective's name and the options given.
        pub fn parts(&self) -> (&'static str, &Options, Option<&Pingpong>) {
            match self {
                Measure::Allreduce(o) => ("allreduce", o, None),
                Measure::Allgather(o) => ("allgather", o, None),
                Measure::Reducescatter(o) => ("reducescatter", o, None),
                Measure::Alltoall(o) => ("alltoall", o, None),
                Measure::Broadcast(o) => ("broadcast", o, None),
                Measure::Reduce(o) => ("reduce", o, None),
                Measure::Gather(o) => ("gather", o, None),
                Measure::Scatter(o) => ("scatter", o, None),
                Measure::Sendrecv(o) => ("sendrecv", o, None),
                Measure::Hypercube(o) => ("hypercube", o, None),
                Measure::Pingpong(p) => ("pingpong", &p.options, Some(p)),
            }
        }
    }

    #[derive(Clone, Debug, Args)]
    pub struct Pingpong {
        /// Bandwidth with this many messages in flight; time is then that of one message
        #[arg(
            long,
            value_name = "MESSAGES",
            value_parser = clap::value_parser!(u32).range(1..=65536),
            help_heading = EXCHANGE
        )]
        pub window: Option<u32>,

        /// Both ends send at once; bandwidth counts both ways
        #[arg(long, requires = "window", help_heading = EXCHANGE)]
        pub two_way: bool,

        #[command(flatten)]
        pub options: Options,
    }

    /// What carries the data.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
    pub enum Backend {
        /// MPI, on host memory
        #[default]
        Mpi,
    }

    /// What separates iterations.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    pub enum SyncArgument {
        /// Nothing: back to back, as nccl-tests
        None,
        /// A barrier before each, outside its time, as OSU
        Barrier,
    }

    /// Which placements to measure.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
    pub enum PlacementArgument {
        /// Out of place, then in place
        #[default]
        Both,
        /// Out of place only
        Out,
        /// In place only
        In,
    }

    const EXCHANGE: &str = "How pairs exchange messages";
    const SIZES: &str = "Sizes, data and checks";
    const ITERATIONS: &str = "How often";
    const TIME: &str = "What is timed";
    const OUTPUT: &str = "Output";

    // Lines are broken here, at 78 columns: clap would break them without their indent.
    const AFTER_HELP: &str = "\
Options with a short name are nccl-tests', with its meaning. Those that need a
GPU (-t -g -p -y -G -R -x -D -V -M) are refused, unless at their defaults.
Without -b -e -i -f -n: a built-in sweep from 8 B, by 4, up to 64 MiB, about a
second a line.

What `time` means:
  --sync none     iterations run back to back; elapsed time / iterations, the
  (the default)   mean over ranks, or what -a says. This is nccl-tests' time.
  --sync barrier  a barrier before each iteration, outside its time; the mean
                  time inside. This is OSU's and IMB's latency.
  pingpong        half a round trip; with --window, a window's time / messages.
Percentiles are of the longest time any rank was inside an iteration, and shown
only where at least 10 iterations lie beyond.

Exit codes:
  0 fine                   1 could not run, or could not keep all it measured
  2 wrong command line     3 wrong data     4 bandwidth below NCCL_TESTS_MIN_BW
  5 nothing moved for --stall-timeout     130 interrupted";

    #[derive(Clone, Debug, Args)]
    #[command(after_help = AFTER_HELP, args_override_self = true, infer_long_args = true)]
    pub struct Options {
        /// First size of the sweep: 8, 64K, 1G
        #[arg(short = 'b', long = "minbytes", alias = "min-bytes", value_name = "SIZE", help_heading = SIZES)]
        pub min_bytes: Option<Bytes>,

        /// Last size of the sweep
        #[arg(short = 'e', long = "maxbytes", value_name = "SIZE", help_heading = SIZES)]
        pub max_bytes: Option<Bytes>,

        /// Step from size to size [default: 1M]
        #[arg(short = 'i', long = "stepbytes", value_name = "SIZE", help_heading = SIZES)]
        pub step_bytes: Option<Bytes>,

        /// Factor from size to size, in place of -i
        #[arg(short = 'f', long = "stepfactor", value_name = "N", help_heading = SIZES)]
        pub step_factor: Option<u64>,

        /// int8 uint8 int32 uint32 int64 uint64 half bfloat16 float double, or all
        #[arg(short = 'd', long = "datatype", value_name = "TYPE", default_value = "float", help_heading = SIZES)]
        pub dtype: String,

        /// Reduction: sum prod min max avg, or all
        #[arg(short = 'o', long = "op", value_name = "REDOP", default_value = "sum", help_heading = SIZES)]
        pub redop: String,

        /// Root rank, or all
        #[arg(
            short = 'r',
            long = "root",
            value_name = "RANK",
            default_value = "0",
            allow_hyphen_values = true,
            help_heading = SIZES
        )]
        pub root: String,

        /// Elements by which buffers are misaligned
        #[arg(short = 'u', long = "unalign", value_name = "N", default_value_t = 0, help_heading = SIZES)]
        pub unalign: u64,

        /// Checked runs a row, each with new data; 0 checks nothing
        #[arg(short = 'c', long = "check", value_name = "N", default_value_t = 1, help_heading = SIZES)]
        pub checks: u64,

        /// Where results go: out of place, in place, or both in turn
        #[arg(
            long,
            value_enum,
            default_value_t,
            value_name = "both|out|in",
            hide_possible_values = true,
            help_heading = SIZES
        )]
        pub placement: PlacementArgument,

        /// Seed of the test data
        #[arg(long, value_name = "N", default_value_t = 1, help_heading = SIZES)]
        pub seed: u64,

        /// Change one received element before each check, to prove that the check sees it
        #[arg(long, value_name = "RANK:ELEMENT", help_heading = SIZES)]
        pub inject_wrong: Option<String>,

        /// What carries the data: mpi, on host memory
        #[arg(
            long,
            value_enum,
            default_value_t,
            hide_possible_values = true,
            help_heading = SIZES
        )]
        pub backend: Backend,

        /// Iterations a row [default: 20]
        #[arg(short = 'n', long = "iters", value_name = "N", help_heading = ITERATIONS)]
        pub iters: Option<u64>,

        /// Calls between two clock readings; times are of one call
        #[arg(
            short = 'm',
            long = "agg_iters",
            value_name = "N",
            default_value_t = 1,
            help_heading = ITERATIONS
        )]
        pub agg_iters: u64,

        /// Warm-up iterations before each row [default: 1; built-in sweep: 5]
        #[arg(short = 'w', long = "warmup_iters", value_name = "N", help_heading = ITERATIONS)]
        pub warmup_iters: Option<u64>,

        /// Cycles of the whole sweep; 0 runs until stopped
        #[arg(
            short = 'N',
            long = "run_cycles",
            value_name = "N",
            default_value_t = 1,
            help_heading = ITERATIONS
        )]
        pub cycles: u64,

        /// In place of -n: measure each row for at most this long: 500ms, 30s, 2m
        #[arg(long, value_name = "TIME", help_heading = ITERATIONS)]
        pub time_budget: Option<String>,

        /// In place of -n: measure each row until the 95% interval of its median is this narrow
        /// (half its width), at most 30 s or --time-budget: 1%
        #[arg(long, value_name = "PERCENT", help_heading = ITERATIONS)]
        pub precision: Option<String>,

        /// Time limit of the whole run; 0 is none
        #[arg(
            short = 'T',
            long = "timeout",
            value_name = "SECONDS",
            default_value_t = 0,
            help_heading = ITERATIONS
        )]
        pub timeout: u64,

        /// End with code 5 when nothing has moved for this long; 0 waits for ever
        #[arg(long, value_name = "TIME", default_value = "60s", help_heading = ITERATIONS)]
        pub stall_timeout: String,

        /// What separates iterations: nothing, or a barrier outside their time [default: none]
        #[arg(
            long,
            value_enum,
            value_name = "none|barrier",
            hide_possible_values = true,
            help_heading = TIME
        )]
        pub sync: Option<SyncArgument>,

        /// Whose time is shown: 0 rank 0's, 1 the mean over ranks, 2 the smallest, 3 the largest
        #[arg(
            short = 'a',
            long = "average",
            value_name = "0-3",
            default_value_t = 1,
            help_heading = TIME
        )]
        pub average: u64,

        /// 1: a barrier after each iteration, in its time; 3: --sync barrier; 0, 2: neither, as
        /// MPI's calls block anyway
        #[arg(
            short = 'z',
            long = "blocking",
            value_name = "0-3",
            default_value_t = 0,
            help_heading = TIME
        )]
        pub blocking: u64,

        /// Count iterations beyond this as jitter events: a time (82ms), or a multiple of the row's
        /// median so far (3x)
        #[arg(long, value_name = "TIME|Nx", help_heading = TIME)]
        pub threshold: Option<Threshold>,

        /// table (nccl-tests'), csv, json (as run.json), or jsonl, a line a row as they finish
        #[arg(
            long,
            value_enum,
            default_value_t,
            hide_possible_values = true,
            help_heading = OUTPUT
        )]
        pub format: Format,

        /// Tails beside the rows, not below them
        #[arg(long, help_heading = OUTPUT)]
        pub wide: bool,

        /// Percentiles of time to show
        #[arg(
            long,
            value_name = "P,P,…",
            value_delimiter = ',',
            default_value = "50,90,99,99.9",
            help_heading = OUTPUT
        )]
        pub percentiles: Vec<f64>,

        /// Name the time column cputime (the calls block, so both are the same)
        #[arg(
            short = 'C',
            long = "report_cputime",
            value_name = "0|1",
            default_value_t = 0,
            help_heading = OUTPUT
        )]
        pub cputime: u64,

        /// End each line with the time it was finished, in UTC
        #[arg(
            short = 'S',
            long = "report_timestamps",
            value_name = "0|1",
            default_value_t = 0,
            help_heading = OUTPUT
        )]
        pub timestamps: u64,

        /// Add columns of single iterations: min, max, p99, variation
        #[arg(
            short = 'I',
            long = "per_iter_timing",
            value_name = "0|1",
            default_value_t = 0,
            help_heading = OUTPUT
        )]
        pub per_iter: u64,

        /// Leading iterations that -I's columns leave out
        #[arg(
            short = 'K',
            long = "per_iter_skip",
            value_name = "N",
            default_value_t = 0,
            help_heading = OUTPUT
        )]
        pub per_iter_skip: u64,

        /// Also write a file in nccl-tests' JSON format
        #[arg(short = 'J', long = "output_file", value_name = "FILE", help_heading = OUTPUT)]
        pub nccl_json: Option<PathBuf>,

        /// Directory of the run [default: results/UTC-OP-ID]
        #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
        pub out: Option<PathBuf>,

        /// Keep raw times of at most this many iterations a row and rank on disk
        #[arg(long, value_name = "N", help_heading = OUTPUT)]
        pub raw_cap: Option<u64>,

        #[command(flatten)]
        pub gpu_only: GpuOnly,
    }

    /// nccl-tests' options that mean something on GPUs only: taken at their harmless values, refused
    /// at others.
    #[derive(Clone, Debug, Args)]
    pub struct GpuOnly {
        #[arg(short = 't', long = "nthreads", hide = true, default_value_t = 1)]
        pub threads: u64,
        #[arg(short = 'g', long = "ngpus", hide = true, default_value_t = 1)]
        pub gpus: u64,
        #[arg(short = 'p', long = "parallel_init", hide = true, default_value_t = 0)]
        pub parallel_init: u64,
        #[arg(short = 'y', long = "stream_null", hide = true, default_value_t = 0)]
        pub stream_null: u64,
        #[arg(short = 'G', long = "cudagraph", hide = true, default_value_t = 0)]
        pub cuda_graph: u64,
        #[arg(short = 'R', long = "local_register", hide = true, default_value_t = 0)]
        pub local_register: u64,
        #[arg(short = 'x', long = "cta_policy", hide = true, allow_negative_numbers = true)]
        pub cta_policy: Option<i64>,
        #[arg(short = 'D', long = "device_implementation", hide = true, default_value_t = 0)]
        pub device_implementation: u64,
        #[arg(short = 'V', long = "device_cta_count", hide = true)]
        pub device_cta_count: Option<i64>,
        #[arg(short = 'M', long = "memory", hide = true, default_value_t = 0)]
        pub memory: u64,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn clap_accepts_every_definition() {
        super::Cli::command().debug_assert();
    }
}
