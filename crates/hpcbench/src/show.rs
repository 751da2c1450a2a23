//! `hpcbench show`: a recorded run, printed again.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use hpcbench_model::{Histogram, Row, Run};
use hpcbench_report::{RowPair, RowView, TableOptions};
use hpcbench_store::{HistogramKind, RunDir};
use jiff::Timestamp;

use crate::cli::Show;
use crate::formats::exporter;

/// Prints the run and returns the exit code: 1 where it cannot be read.
pub fn main(arguments: &Show) -> ExitCode {
    match show(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "hpcbench: {error}");
            ExitCode::from(1)
        }
    }
}

fn show(arguments: &Show) -> Result<(), Box<dyn Error>> {
    let dir = RunDir::open(&arguments.run)?;
    let run = dir.run();
    let slowest = slowest(&dir);
    let unknown = Histogram::new();
    let options = TableOptions {
        wide: arguments.wide,
        run_dir: Some(dir.dir().display().to_string()),
        ..TableOptions::default()
    };
    let mut exporter = exporter(arguments.format, options);
    let mut out = io::stdout().lock();
    exporter.begin(&Run { rows: Vec::new(), ..run.clone() }, &mut out)?;
    let finished: Timestamp = run.ended.as_ref().unwrap_or(&run.started).parse()?;
    for (out_of_place, in_place) in pairs(&run.rows) {
        let view = |at: Option<usize>| {
            at.map(|at| {
                let row = &run.rows[at];
                let slowest = slowest.get(&row.id).unwrap_or(&unknown);
                RowView { row, slowest, per_iter_us: None }
            })
        };
        let pair = RowPair { out_of_place: view(out_of_place), in_place: view(in_place), finished };
        exporter.pair(run, &pair, &mut out)?;
    }
    exporter.end(run, &mut out)?;
    Ok(out.flush()?)
}

/// Each row's longest times inside, as far as they were kept and can be read: without them tails that
/// `run.json` does not have are shown as `-`.
fn slowest(dir: &RunDir) -> BTreeMap<u32, Histogram> {
    let entries = dir.histograms().into_iter().flatten().filter_map(Result::ok);
    let slowest = entries.filter(|entry| entry.key.kind == HistogramKind::Slowest);
    slowest.filter_map(|entry| Some((entry.key.row, entry.decode().ok()?))).collect()
}

/// Indices of rows that make one line of the table: out of place and, right after it, in place.
fn pairs(rows: &[Row]) -> Vec<(Option<usize>, Option<usize>)> {
    let mut pairs = Vec::new();
    let mut at = 0;
    while let Some(row) = rows.get(at) {
        let partner =
            rows.get(at + 1).filter(|next| !row.in_place && next.in_place && same_line(row, next));
        match (row.in_place, partner) {
            (true, _) => pairs.push((None, Some(at))),
            (false, Some(_)) => pairs.push((Some(at), Some(at + 1))),
            (false, None) => pairs.push((Some(at), None)),
        }
        at += if partner.is_some() { 2 } else { 1 };
    }
    pairs
}

fn same_line(a: &Row, b: &Row) -> bool {
    (a.bytes, a.dtype, a.redop, a.root, a.cycle) == (b.bytes, b.dtype, b.redop, b.root, b.cycle)
}
