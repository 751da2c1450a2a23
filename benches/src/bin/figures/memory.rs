//! What a rank takes beside its message buffers.

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use clap::Args;
use hpcbench_benches::record::{Bounded, Part};

use crate::bench::{Bench, beside_this_program};
use crate::peers::{Iterations, hpcbench_args, osu_args};

const MIB: f64 = (1_u64 << 20) as f64;
/// What is claimed of hpcbench, in MiB.
const AT_MOST_MIB: f64 = 32.0;
/// Runs a part: peaks hardly vary.
const RUNS: usize = 3;

const WHAT: &str = "Peak resident memory of the largest rank (getrusage, ru_maxrss: all of it, with \
    the MPI library and the memory shared by the ranks), less the message buffers: one to send \
    from and one to receive into, and for osu_allreduce a third that it warms up with. \
    hpcbench is claimed; osu_allreduce shows what MPI itself takes. Unit: MiB.";

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Ranks
    #[arg(long, default_value_t = 2)]
    ranks: u32,
}

/// Measures a long run of a tiny size, which records most, and a short one of a large size.
pub fn measure(bench: &Bench, options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let mut figure = bench.begin("memory", WHAT);
    let osu = bench.osu("osu_allreduce");
    if let Err(why) = &osu {
        figure.skip("osu_allreduce", why);
    }
    for (bytes, timed) in [(8, 1_000_000), (16 << 20, 50)] {
        let iterations = Iterations { timed, warmup: 10 };
        let mut args = hpcbench_args(bytes, iterations);
        args.extend(["--placement", "out"].map(str::to_owned));
        let name = format!("hpcbench, {bytes} B, {timed} iterations");
        let command = (bench.hpcbench.as_str(), args, 2 * bytes);
        figure.add(peak(bench, options.ranks, &name, command, Some(AT_MOST_MIB))?);
        if let Ok(osu) = &osu {
            let args = osu_args(bytes, iterations, options.ranks);
            let name = format!("osu_allreduce, {bytes} B, {timed} iterations");
            figure.add(peak(bench, options.ranks, &name, (osu, args, 3 * bytes), None)?);
        }
        bench.write(&figure)?;
    }
    bench.finish(&figure)
}

fn peak(
    bench: &Bench,
    ranks: u32,
    name: &str,
    (program, args, buffer_bytes): (&str, Vec<String>, u64),
    at_most: Option<f64>,
) -> Result<Part, Box<dyn Error>> {
    let peaks = tempfile::tempdir()?;
    let dir = peaks.path().to_str().ok_or("the temporary directory's name is not UTF-8")?;
    let mut words = vec![beside_this_program("peak-rss")?, dir.to_owned(), program.to_owned()];
    words.extend(args);
    let command = bench.launcher.command(ranks, &words);
    let mut values = Vec::new();
    for _ in 0..RUNS {
        bench.session.run(&command)?;
        let mut largest = 0;
        for entry in fs::read_dir(peaks.path())? {
            let path = entry?.path();
            largest = largest.max(fs::read_to_string(&path)?.parse::<u64>()?);
            fs::remove_file(path)?;
        }
        values.push(largest.saturating_sub(buffer_bytes) as f64 / MIB);
    }
    Ok(Part::Bounded(Bounded::new(name, &command, "MiB", at_most, values)))
}
