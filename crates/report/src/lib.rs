//! A run in; nccl-tests' table, CSV, JSON, JSON lines or nccl-tests' JSON out.
//!
//! An exporter is one file that implements [`Exporter`]. All of them stream: the header is written
//! when the run begins, each pair of rows when it is measured, and the rest when the run is over, so
//! that what was written before a crash is of use. None of them touches a terminal or a clock.

mod csv;
mod json;
mod jsonl;
mod nccl_json;
mod number;
mod per_iter;
mod table;

use std::io::{self, Write};

use hpcbench_model::{Histogram, Row, Run};
use jiff::Timestamp;

pub use csv::Csv;
pub use json::Json;
pub use jsonl::JsonLines;
pub use nccl_json::{NcclJson, NcclJsonOptions, SAFE_ENV_PREFIXES};
pub use table::{Table, TableOptions};

/// A finished row with what [`Row`] only summarises.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    /// The row.
    pub row: &'a Row,
    /// Of each iteration the longest time inside over all ranks, in nanoseconds; empty where it was
    /// not kept.
    pub slowest: &'a Histogram,
    /// The same times in order of iteration, in microseconds; `None` unless `-I 1` asked for them.
    pub per_iter_us: Option<&'a [f64]>,
}

/// The two placements of one size, type, reduction and root: one line of the table.
#[derive(Clone, Copy, Debug)]
pub struct RowPair<'a> {
    /// Input and output in two buffers; `None` where it was not measured.
    pub out_of_place: Option<RowView<'a>>,
    /// Input and output in one buffer; `None` where it was not measured or has no meaning.
    pub in_place: Option<RowView<'a>>,
    /// When the later of the two was finished.
    pub finished: Timestamp,
}

impl<'a> RowPair<'a> {
    /// The placements that were measured, out of place first.
    pub fn views(&self) -> impl Iterator<Item = RowView<'a>> + use<'a> {
        [self.out_of_place, self.in_place].into_iter().flatten()
    }
}

/// Writes a run in one format, piece by piece, always to the same `out`.
///
/// Every method fails only where `out` does. Flushing is the caller's.
pub trait Exporter {
    /// Writes what is known before the first row; `run.rows` is empty.
    ///
    /// # Errors
    /// Those of `out`.
    fn begin(&mut self, run: &Run, out: &mut dyn Write) -> io::Result<()>;

    /// Writes the rows that have just been measured.
    ///
    /// # Errors
    /// Those of `out`.
    fn pair(&mut self, run: &Run, pair: &RowPair<'_>, out: &mut dyn Write) -> io::Result<()>;

    /// Writes what is known after the last row, complete or not; `run.rows` has all of them.
    ///
    /// # Errors
    /// Those of `out`.
    fn end(&mut self, run: &Run, out: &mut dyn Write) -> io::Result<()>;
}

/// nccl-tests' name of a row's reduction: `none` for a collective without one.
///
/// nccl-tests leaves the name of `hypercube` blank, which leaves its lines a field short; ours say
/// `none` there too.
fn redop_name(row: &Row) -> &'static str {
    row.redop.map_or("none", hpcbench_model::RedOp::name)
}

/// nccl-tests' number of a row's root: -1 for a collective without one.
fn root_number(row: &Row) -> i64 {
    row.root.map_or(-1, i64::from)
}

/// Mean bus bandwidth over all rows, in GB/s; `None` without rows.
pub fn average_busbw_gbps(run: &Run) -> Option<f64> {
    let sum: f64 = run.rows.iter().map(|row| row.busbw_gbps).sum();
    (!run.rows.is_empty()).then(|| sum / run.rows.len() as f64)
}

/// Wrong elements over all rows. nccl-tests counts the failed checks here; this is what the name
/// says.
fn wrong_elements(run: &Run) -> u64 {
    run.rows.iter().filter_map(|row| row.wrong).sum()
}

/// nccl-tests lets the average fall this far below `NCCL_TESTS_MIN_BW` (2.19, `src/util.cu`).
const MIN_BUSBW_SLACK: f64 = 0.9;

/// Whether an average bus bandwidth is enough; `None` where there is nothing to judge by.
pub fn enough_busbw(average: Option<f64>, min: Option<f64>) -> Option<bool> {
    Some(average.unwrap_or(0.0) >= min? * MIN_BUSBW_SLACK)
}
