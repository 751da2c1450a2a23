//! How long rank 0 takes to merge and write the histograms of 1,024 ranks × 30 rows, how long they
//! take to read back, and the most memory the process ever had. Samples are generated and encoded outside the timed part.
//! `cargo run --release -p hpcbench-store --example merge_ranks [RANKS [ROWS]]`

use std::error::Error;
use std::time::{Duration, Instant};

use hpcbench_model::{Histogram, Run};
use hpcbench_store::{HistogramKey, HistogramKind, Interval, RunDir, RunWriter};

const ITERATIONS: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut sizes = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let ranks = sizes.next().transpose()?.unwrap_or(1024);
    let rows = sizes.next().transpose()?.unwrap_or(30);
    let dir = tempfile::tempdir()?;
    let run: Run = serde_json::from_str(include_str!("../tests/run.json"))?;
    let row = run.rows[0].clone();
    let mut writer = RunWriter::create(&dir.path().join("run"), Run { rows: Vec::new(), ..run })?;
    let mut spent = Duration::ZERO;
    for id in 0..rows {
        let encoded: Vec<_> = (0..ranks).map(|rank| sample(id, rank).encode()).collect();
        let begin = Instant::now();
        merge_row(&mut writer, id, &encoded)?;
        writer.finish_row(hpcbench_model::Row { id, ..row.clone() });
        spent += begin.elapsed();
    }
    if let Some(loss) = writer.losses().first() {
        return Err(
            format!("{} records of {} were lost: {}", loss.count, loss.what, loss.why).into()
        );
    }
    let begin = Instant::now();
    let mut all = Histogram::new();
    for entry in RunDir::open(writer.dir())?.histograms()? {
        all.merge_encoded(&entry?.encoded)?;
    }
    let (spent, read) = (spent.as_secs_f64(), begin.elapsed().as_secs_f64());
    println!(
        "{ranks} ranks x {rows} rows: merged and written in {spent:.2} s, read back in {read:.2} s"
    );
    println!("{}", peak_memory()?);
    Ok(())
}

/// What rank 0 does with a row's histograms: one a rank as it comes, then one of all.
fn merge_row(writer: &mut RunWriter, row: u32, encoded: &[Vec<u8>]) -> Result<(), Box<dyn Error>> {
    let interval = Interval { start: Duration::ZERO, duration: Duration::from_secs(1) };
    let mut all = Histogram::new();
    for (rank, bytes) in (0..).zip(encoded) {
        let max_ns = all.merge_encoded(bytes)?.unwrap_or(0);
        let key = HistogramKey { row, kind: HistogramKind::Inside, rank: Some(rank) };
        writer.histogram(key, bytes, interval, max_ns);
    }
    let key = HistogramKey { row, kind: HistogramKind::Inside, rank: None };
    writer.histogram(key, &all.encode(), interval, all.max_ns().unwrap_or(0));
    Ok(())
}

/// Times of a size twice the last row's, spread by a third, one in 256 up to sixteen times longer.
fn sample(row: u32, rank: u32) -> Histogram {
    let base = 5_000_u64 << (row / 2);
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

/// The most memory this process had: `VmHWM` of Linux's `/proc/self/status`.
fn peak_memory() -> Result<String, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    Ok(format!("peak memory {}", line["VmHWM:".len()..].trim()))
}
