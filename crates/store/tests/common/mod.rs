//! Runs to write, shared by the tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::time::Duration;

use hpcbench_model::{Event, Histogram, LateRank, Row, Run, SlowRank};
use hpcbench_store::{HistogramEntry, HistogramKey, HistogramKind, Interval, RunWriter};

pub const INTERVAL: Interval =
    Interval { start: Duration::from_millis(1500), duration: Duration::from_micros(250) };

/// `tests/run.json` without its row.
pub fn run() -> Run {
    let run: Run = serde_json::from_str(include_str!("../run.json")).unwrap();
    Run { rows: Vec::new(), ..run }
}

pub fn row(id: u32) -> Row {
    let run: Run = serde_json::from_str(include_str!("../run.json")).unwrap();
    Row { id, ..run.rows[0].clone() }
}

pub fn event(row: u32, iteration: u64) -> Event {
    Event {
        kind: "jitter".to_owned(),
        row,
        iteration,
        at_ns: Some(1_000_000 + iteration),
        time_us: 82.5,
        threshold_us: 15.0,
        slowest: SlowRank { rank: 0, host: "node1".to_owned() },
        last_in: Some(LateRank { rank: 3, host: "node2".to_owned(), late_us: 80.25 }),
    }
}

pub fn key(row: u32, rank: u32) -> HistogramKey {
    HistogramKey { row, kind: HistogramKind::Inside, rank: Some(rank) }
}

pub fn histogram(times_ns: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    times_ns.into_iter().for_each(|ns| histogram.record_ns(ns));
    histogram
}

/// Different times, in hundreds of bytes when encoded.
pub fn times(seed: u64) -> impl Iterator<Item = u64> {
    (0..60).map(move |i| 1000 + (seed + i) * (seed + i) * 97 % 1_000_003)
}

pub fn write(writer: &mut RunWriter, key: HistogramKey, histogram: &Histogram) {
    writer.histogram(key, &histogram.encode(), INTERVAL, histogram.max_ns().unwrap_or(0));
}

/// A row of two ranks with one event, as rank 0 writes it.
pub fn write_row(writer: &mut RunWriter, id: u32) {
    for rank in 0..2 {
        write(writer, key(id, rank), &histogram(times(u64::from(id + rank))));
    }
    writer.event(&event(id, 7));
    writer.finish_row(row(id));
}

/// Panics unless the entry is what [`write_row`] wrote for its key.
pub fn assert_written(entry: &HistogramEntry) {
    let rank = entry.key.rank.unwrap();
    assert_eq!(entry.decode().unwrap(), histogram(times(u64::from(entry.key.row + rank))));
}

/// Says why a test does not run here, which on a CI machine is a failure.
pub fn skip(reason: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot be skipped in CI: {reason}");
    eprintln!("skipped: {reason}");
}
