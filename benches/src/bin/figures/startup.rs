//! How long a newcomer waits for one row.

use std::error::Error;
use std::process::ExitCode;

use clap::Args;
use hpcbench_benches::claim::Claim;
use hpcbench_benches::extract::Metric;
use hpcbench_benches::session::Contender;
use hpcbench_model::Bytes;

use crate::bench::Bench;
use crate::peers::{Iterations, hpcbench_args, osu_args, size};

/// The ratio that is claimed.
const CLAIM: Claim = Claim::at_most(1.2);

/// Few: what is measured is everything else.
const ITERATIONS: Iterations = Iterations { timed: 100, warmup: 10 };

const WHAT: &str = "From starting mpirun to the arrival of the table's last row, one size, 100 \
    iterations and 10 of warm-up. A: osu_allreduce -T mpi_float. B: hpcbench allreduce -d float \
    --sync barrier, both placements, checked, its run directory written. Unit: s. Ratio: B / A.";

/// Which comparisons to make.
#[derive(Debug, Args)]
pub struct Options {
    /// Sizes, powers of two
    #[arg(long, value_delimiter = ',', default_value = "8", value_parser = size)]
    sizes: Vec<Bytes>,
    /// Numbers of ranks
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4])]
    ranks: Vec<u32>,
}

/// Compares the waits.
pub fn measure(bench: &Bench, options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let mut figure = bench.begin("startup", WHAT);
    match bench.osu("osu_allreduce") {
        Err(why) => figure.skip("startup", &why),
        Ok(osu) => {
            for &ranks in &options.ranks {
                for &size in &options.sizes {
                    let args = osu_args(size.0, ITERATIONS, ranks);
                    let a = contender(bench, "osu", &osu, args, ranks);
                    let args = hpcbench_args(size.0, ITERATIONS);
                    let b = contender(bench, "hpcbench", &bench.hpcbench, args, ranks);
                    let name = format!("{size}, {ranks} ranks");
                    figure.add(bench.session.pair(&name, &a, &b, Some(CLAIM))?);
                    bench.write(&figure)?;
                }
            }
        }
    }
    bench.finish(&figure)
}

fn contender(
    bench: &Bench,
    label: &str,
    program: &str,
    args: Vec<String>,
    ranks: u32,
) -> Contender {
    let words = [vec![program.to_owned()], args].concat();
    Contender {
        label: label.to_owned(),
        command: bench.launcher.command(ranks, &words),
        metric: Metric::LastRow,
        bytes: None,
    }
}
