//! nccl-tests' table on standard output, with what it cannot show in `#` lines around it.
//!
//! A data line has exactly the 13 fields of nccl-tests 2.19 (`src/util.cu`), under its column names
//! and in its widths, so that what reads its output reads this; lines end without the blanks that
//! nccl-tests leaves there. `#` lines are ours, save the column names, `Out of bounds values` and
//! `Avg bus bandwidth`. After the column names no line of ours says `out-of-place`: SuperBench takes
//! the last line that does for the head of the table.

mod figure;
mod footer;
mod header;
mod tails;
mod who;

use std::fmt::Display;
use std::io::{self, Write};

use hpcbench_model::{Row, Run};
use jiff::Timestamp;

use crate::per_iter::IterStats;
use crate::{Exporter, RowPair, RowView, redop_name, root_number};
use figure::Figure;
use tails::Tails;

/// nccl-tests' table.
#[derive(Debug)]
pub struct Table {
    options: TableOptions,
    figures: Vec<Figure>,
    tails: Tails,
}

/// What of the command line changes the table.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// `-C 1`: the time column is called `cputime`.
    pub cputime: bool,
    /// `-S 1`: each line ends with the time, in UTC, at which it was finished.
    pub timestamps: bool,
    /// `-I 1`: per-iteration columns, with the number of leading iterations that they leave out
    /// (`-K`).
    pub per_iter_skip: Option<u64>,
    /// Tails beside the rows, not below them: a line then has more than 13 fields.
    pub wide: bool,
    /// `NCCL_TESTS_MIN_BW`: the average bus bandwidth to judge by, in GB/s.
    pub min_busbw_gbps: Option<f64>,
    /// The run directory, as the user would type it.
    pub run_dir: Option<String>,
}

/// Columns left of the placements: name, unit, width.
const KEYS: [(&str, &str, usize); 5] = [
    ("size", "(B)", 12),
    ("count", "(elements)", 12),
    ("type", "", 8),
    ("redop", "", 6),
    ("root", "", 6),
];

const TIMESTAMP_FORMAT: &str = "%Y-%m-%d %H:%M:%S";
const TIMESTAMP_WIDTH: usize = 19;

/// A time as nccl-tests writes it, in UTC.
pub(crate) fn nccl_timestamp(at: Timestamp) -> String {
    at.strftime(TIMESTAMP_FORMAT).to_string()
}

impl Table {
    /// A table that has not begun.
    pub fn new(options: TableOptions) -> Self {
        Table { options, figures: Vec::new(), tails: Tails::default() }
    }

    fn write_column_names(&self, out: &mut dyn Write) -> io::Result<()> {
        let placement: usize = self.figures.iter().map(|figure| figure.width() + 2).sum();
        let note = if self.options.per_iter_skip.is_some() { " (+ per-iteration)" } else { "" };
        let blank_keys = key_cells(KEYS.map(|_| ""));
        let groups = ["out-of-place", "in-place"]
            .map(|name| format!("{:^placement$}", format!("{name}{note}")))
            .concat();
        write_head(out, &format!("{blank_keys}{groups}"))?;

        let stamp = |text: &str| {
            let text = if self.options.timestamps { text } else { "" };
            format!("  {text:>TIMESTAMP_WIDTH$}")
        };
        let names = self.placement_cells(|figure| figure.name(self.options.cputime)).repeat(2);
        let keys = key_cells(KEYS.map(|(name, _, _)| name));
        write_head(out, &format!("{keys}{names}{}", stamp("timestamp")))?;
        let units = self.placement_cells(|figure| figure.unit().to_owned()).repeat(2);
        let keys = key_cells(KEYS.map(|(_, unit, _)| unit));
        write_head(out, &format!("{keys}{units}{}", stamp(TIMESTAMP_FORMAT)))
    }

    /// The cells of one placement, each behind two blanks.
    fn placement_cells(&self, cell: impl Fn(&Figure) -> String) -> String {
        self.figures
            .iter()
            .map(|figure| format!("  {:>width$}", cell(figure), width = figure.width()))
            .collect()
    }

    fn view_cells(&self, view: Option<RowView<'_>>) -> String {
        let Some(view) = view else { return self.placement_cells(|_| "N/A".to_owned()) };
        let skip = self.options.per_iter_skip.unwrap_or(0);
        let stats = view.per_iter_us.and_then(|times| IterStats::of(times, skip));
        self.placement_cells(|figure| figure.cell(&view, stats.as_ref()))
    }
}

fn key_cells<T: Display>(cells: [T; KEYS.len()]) -> String {
    let padded = cells.iter().zip(KEYS).map(|(cell, (_, _, width))| format!("{cell:>width$}"));
    padded.collect::<Vec<_>>().join("  ")
}

fn row_keys(row: &Row) -> String {
    key_cells([
        row.bytes.to_string(),
        row.count.to_string(),
        row.dtype.to_string(),
        redop_name(row).to_owned(),
        root_number(row).to_string(),
    ])
}

/// A line of the table's head; its first column leaves room for the `#`.
fn write_head(out: &mut dyn Write, line: &str) -> io::Result<()> {
    write_line(out, &line.replacen(' ', "#", 1))
}

fn write_line(out: &mut dyn Write, line: &str) -> io::Result<()> {
    writeln!(out, "{}", line.trim_end())
}

impl Exporter for Table {
    fn begin(&mut self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        self.figures = figure::columns(&self.options, &run.settings.percentiles);
        self.tails = Tails::new(&run.settings.percentiles);
        header::write(run, &self.options, out)?;
        writeln!(out, "#")?;
        self.write_column_names(out)
    }

    fn pair(&mut self, _run: &Run, pair: &RowPair<'_>, out: &mut dyn Write) -> io::Result<()> {
        let Some(first) = pair.views().next() else { return Ok(()) };
        if !self.options.wide {
            pair.views().for_each(|view| self.tails.keep(&view));
        }
        let placements = [pair.out_of_place, pair.in_place].map(|view| self.view_cells(view));
        let mut line = row_keys(first.row) + &placements.concat();
        if self.options.timestamps {
            line += &format!("  {}", nccl_timestamp(pair.finished));
        }
        write_line(out, &line)
    }

    fn end(&mut self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        if !self.options.wide {
            self.tails.write(run, out)?;
        }
        footer::write(run, &self.options, out)
    }
}
