//! What rank 0 does at the end of each row, with the times of very many ranks.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use hpcbench_benches::record::{Bounded, Part};
use hpcbench_model::{Histogram, Host, Rank, RawSamples, Row, Run};
use hpcbench_store::{HistogramKey, HistogramKind, Interval, RunWriter};
use nix::sys::resource::{UsageWho, getrusage};

use crate::bench::Bench;

/// Longest time claimed, in seconds.
const AT_MOST_S: f64 = 5.0;
/// Most memory claimed, in MiB.
const AT_MOST_MIB: f64 = 512.0;
/// Samples of one histogram.
const ITERATIONS: u64 = 10_000;
/// Ranks of one host.
const RANKS_A_HOST: u32 = 8;
/// A run that a test of the store keeps, for everything that does not grow with ranks or rows.
const RUN: &str = include_str!("../../../../crates/store/tests/run.json");

const WHAT: &str = "Rank 0's work on the times of all ranks: per row, decoding and merging one \
    HdrHistogram a rank, writing each with the merged ones into samples.hlog, syncing it, and \
    replacing run.json. Histograms of 10,000 samples are generated and encoded beforehand, outside \
    the time; their way through MPI is not part of it. Time in s; peak resident memory of the whole \
    process (getrusage, ru_maxrss), generating included, in MiB.";

/// How much to merge.
#[derive(Debug, Args)]
pub struct Options {
    /// Ranks, eight a host
    #[arg(long, default_value_t = 1024)]
    ranks: u32,
    /// Rows
    #[arg(long, default_value_t = 30)]
    rows: u32,
    /// Times to do all of it
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// Merges and writes a few times over.
pub fn measure(bench: &Bench, options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let mut figure = bench.begin("merge", WHAT);
    let mut seconds = Vec::new();
    for run in 1..=options.runs {
        eprintln!("merge: run {run} of {}", options.runs);
        // On the disk that results go to: a temporary directory may be in memory.
        let dir = bench.scratch()?;
        seconds.push(merge_run(&dir.path().join("run"), options)?.as_secs_f64());
    }
    let peak = getrusage(UsageWho::RUSAGE_SELF)?.max_rss() as f64 / 1024.0;
    let name = format!("{} ranks x {} rows", options.ranks, options.rows);
    let bounded = |what, unit, at_most, values| {
        let name = format!("{what}, {name}");
        Part::Bounded(Bounded::new(&name, &[], unit, Some(at_most), values))
    };
    figure.add(bounded("time", "s", AT_MOST_S, seconds));
    figure.add(bounded("memory", "MiB", AT_MOST_MIB, vec![peak]));
    bench.finish(&figure)
}

/// Writes a whole run into a directory; returns the time spent on merging and writing.
fn merge_run(dir: &Path, options: &Options) -> Result<Duration, Box<dyn Error>> {
    let mut run: Run = serde_json::from_str(RUN)?;
    let row = run.rows.pop().ok_or("the sample run has no row")?;
    run.rows.clear();
    grow(&mut run, options.ranks);
    let begin = Instant::now();
    let mut writer = RunWriter::create(dir, run)?;
    let mut spent = begin.elapsed();
    for id in 0..options.rows {
        let encoded: Vec<_> = (0..options.ranks).map(|rank| sample(id, rank).encode()).collect();
        let begin = Instant::now();
        merge_row(&mut writer, id, &encoded)?;
        writer.finish_row(Row { id, ..row.clone() });
        spent += begin.elapsed();
    }
    let begin = Instant::now();
    writer.finish("2026-11-30T18:00:00Z".to_owned(), true);
    spent += begin.elapsed();
    match writer.losses().first() {
        None => Ok(spent),
        Some(loss) => {
            Err(format!("{} records of {} were lost: {}", loss.count, loss.what, loss.why).into())
        }
    }
}

/// Gives a run that many ranks: `run.json`, which names each of them, is written with every row.
fn grow(run: &mut Run, ranks: u32) {
    let host = |rank: u32| format!("node{:04}", rank / RANKS_A_HOST);
    let first_ranks = || (0..ranks).step_by(RANKS_A_HOST as usize);
    run.world.size = ranks;
    run.world.hosts = first_ranks()
        .map(|rank| Host {
            name: host(rank),
            cores: 96,
            kernel: "6.1.0".to_owned(),
            memory_bytes: 1 << 40,
        })
        .collect();
    run.world.ranks = (0..ranks)
        .map(|rank| Rank {
            rank,
            local_rank: rank % RANKS_A_HOST,
            host: host(rank),
            pid: 10_000 + rank,
        })
        .collect();
    run.raw_samples = first_ranks()
        .map(|rank| RawSamples {
            host: host(rank),
            ranks: (rank..(rank + RANKS_A_HOST).min(ranks)).collect(),
            dir: "results/run".to_owned(),
            shared: true,
        })
        .collect();
}

/// As a sweep does it: one histogram a rank as it comes, then those of all.
fn merge_row(writer: &mut RunWriter, row: u32, encoded: &[Vec<u8>]) -> Result<(), Box<dyn Error>> {
    let interval = Interval { start: Duration::ZERO, duration: Duration::from_secs(1) };
    let mut all = Histogram::new();
    for (rank, bytes) in (0..).zip(encoded) {
        let max_ns = all.merge_encoded(bytes)?.unwrap_or(0);
        let key = HistogramKey { row, kind: HistogramKind::Inside, rank: Some(rank) };
        writer.histogram(key, bytes, interval, max_ns);
    }
    let key = HistogramKey { row, kind: HistogramKind::Slowest, rank: None };
    writer.histogram(key, &all.encode(), interval, all.max_ns().unwrap_or(0));
    Ok(())
}

/// Times of a size twice the last row's but one, spread by a third, one in 256 up to sixteen times
/// longer.
fn sample(row: u32, rank: u32) -> Histogram {
    let base = 5_000_u64 << (row / 2).min(24);
    let mut state = u64::from(row) << 32 | u64::from(rank) | 1 << 63;
    let mut histogram = Histogram::new();
    for _ in 0..ITERATIONS {
        // xorshift64 (Marsaglia 2003): enough to spread samples over buckets.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let spread = base + state % (base / 3);
        histogram.record_ns(if state >> 56 == 0 { spread * (1 + state % 16) } else { spread });
    }
    histogram
}
