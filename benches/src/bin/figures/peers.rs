//! The same allreduce as a peer's: float, sum, out of place, a barrier between iterations.

use std::error::Error;
use std::process::ExitCode;

use clap::Args;
use hpcbench_benches::claim::Claim;
use hpcbench_benches::extract::Metric;
use hpcbench_benches::session::Contender;
use hpcbench_model::{Bytes, ParseBytesError};

use crate::bench::Bench;

/// The ratio that is claimed.
const CLAIM: Claim = Claim::within(0.95, 1.05);

/// Which comparisons to make.
#[derive(Debug, Args)]
pub struct Options {
    /// Sizes, powers of two
    #[arg(long, value_delimiter = ',', default_value = "8,64K,16M", value_parser = size)]
    sizes: Vec<Bytes>,
    /// Numbers of ranks
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4])]
    ranks: Vec<u32>,
}

/// A size that every peer can be asked for: at least one float, and of IMB-MPI1 a power of two.
pub fn size(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error: ParseBytesError| error.to_string())?;
    if bytes.0 >= 4 && bytes.0.is_power_of_two() {
        Ok(bytes)
    } else {
        Err("write a power of two of at least 4 bytes, such as 8, 64K or 16M".to_owned())
    }
}

/// A program that measures the same.
pub struct Peer {
    name: &'static str,
    metric: Metric,
    find: fn(&Bench) -> Result<String, String>,
    /// Its arguments for a size, iterations and warm-up.
    args: fn(u64, Iterations, u32) -> Vec<String>,
    what: &'static str,
}

/// The OSU micro-benchmarks.
pub const OSU: Peer = Peer {
    name: "osu",
    metric: Metric::Osu,
    find: |bench| bench.osu("osu_allreduce"),
    args: osu_args,
    what: "A: osu_allreduce -T mpi_float; its table's mean over ranks of the mean time around \
           MPI_Allreduce, with an MPI_Barrier after each iteration, outside the timed region. \
           B: hpcbench allreduce -d float --sync barrier --placement out; the mean over ranks of \
           the mean time inside, out of place, with the same barrier. Both sum, in host memory, \
           with the same iterations and warm-up. Unit: us. Ratio: B / A.",
};

/// The Intel MPI Benchmarks.
pub const IMB: Peer = Peer {
    name: "imb",
    metric: Metric::Imb,
    find: |bench| bench.imb("IMB-MPI1"),
    args: imb_args,
    what: "A: IMB-MPI1 Allreduce; its t_avg, the mean over ranks of the mean time around \
           MPI_Allreduce, with one barrier after each iteration (-sync on, its default), outside \
           the timed region; two decimals, so coarse at 8 B. B: hpcbench allreduce -d float \
           --sync barrier --placement out; the mean over ranks of the mean time inside. Both sum \
           floats, in host memory, with the same iterations. Unit: us. Ratio: B / A.",
};

/// Timed and untimed calls.
#[derive(Clone, Copy)]
pub struct Iterations {
    /// Timed.
    pub timed: u64,
    /// Untimed, before.
    pub warmup: u64,
}

impl Iterations {
    /// So many that a run measures for some tenths of a second: the state of a run (its pages, its
    /// cores) sways it more than its length, so many short runs show more than few long ones.
    fn for_size(bytes: u64) -> Self {
        match bytes {
            0..=4_096 => Iterations { timed: 20_000, warmup: 2_000 },
            4_097..=1_048_576 => Iterations { timed: 2_000, warmup: 200 },
            _ => Iterations { timed: 20, warmup: 4 },
        }
    }
}

/// Compares hpcbench with the peer at every size and number of ranks.
pub fn measure(bench: &Bench, peer: &Peer, options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let mut figure = bench.begin(peer.name, peer.what);
    match (peer.find)(bench) {
        Err(why) => figure.skip(peer.name, &why),
        Ok(program) => {
            for &ranks in &options.ranks {
                for &size in &options.sizes {
                    let name = format!("{size}, {ranks} ranks");
                    let a = theirs(bench, peer, &program, size.0, ranks);
                    let b = ours(bench, size.0, ranks);
                    figure.add(bench.session.pair(&name, &a, &b, Some(CLAIM))?);
                    bench.write(&figure)?;
                }
            }
        }
    }
    bench.finish(&figure)
}

fn theirs(bench: &Bench, peer: &Peer, program: &str, bytes: u64, ranks: u32) -> Contender {
    let args = (peer.args)(bytes, Iterations::for_size(bytes), ranks);
    let words = [vec![program.to_owned()], args].concat();
    Contender {
        label: peer.name.to_owned(),
        command: bench.launcher.command(ranks, &words),
        metric: peer.metric,
        bytes: Some(bytes),
    }
}

fn ours(bench: &Bench, bytes: u64, ranks: u32) -> Contender {
    let iterations = Iterations::for_size(bytes);
    let mut words = vec![bench.hpcbench.clone()];
    words.extend(hpcbench_args(bytes, iterations));
    // Without checks, as the peers do; and in JSON, for the decimals that the table rounds away.
    words.extend(["--placement", "out", "-c", "0", "--format", "json"].map(str::to_owned));
    Contender {
        label: "hpcbench".to_owned(),
        command: bench.launcher.command(ranks, &words),
        metric: Metric::Json,
        bytes: Some(bytes),
    }
}

/// hpcbench's arguments for one size of a float allreduce, timed as OSU times it.
pub fn hpcbench_args(bytes: u64, Iterations { timed, warmup }: Iterations) -> Vec<String> {
    let [size, timed, warmup] = [bytes, timed, warmup].map(|n| n.to_string());
    ["allreduce", "-b", &size, "-e", &size, "-d", "float", "-n", &timed, "-w", &warmup, "--sync"]
        .into_iter()
        .chain(["barrier"])
        .map(str::to_owned)
        .collect()
}

/// osu_allreduce's arguments for the same.
pub fn osu_args(bytes: u64, Iterations { timed, warmup }: Iterations, _ranks: u32) -> Vec<String> {
    let sizes = format!("{bytes}:{bytes}");
    let [timed, warmup] = [timed, warmup].map(|n| n.to_string());
    ["-T", "mpi_float", "-m", &sizes, "-i", &timed, "-x", &warmup].map(str::to_owned).to_vec()
}

/// IMB-MPI1's arguments for the same: one group of all ranks, one size by its logarithm.
fn imb_args(bytes: u64, Iterations { timed, .. }: Iterations, ranks: u32) -> Vec<String> {
    let log = bytes.ilog2();
    let (sizes, ranks, timed) = (format!("{log}:{log}"), ranks.to_string(), timed.to_string());
    ["Allreduce", "-npmin", &ranks, "-msglog", &sizes, "-zero_size", "off", "-iter", &timed]
        .into_iter()
        .chain(["-iter_policy", "off"])
        .map(str::to_owned)
        .collect()
}
