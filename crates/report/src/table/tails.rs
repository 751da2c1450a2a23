//! The tails below the rows.

use std::collections::HashMap;
use std::io::{self, Write};

use hpcbench_model::{Row, Run};

use super::figure::{self, Figure};
use super::write_line;
use crate::{RowView, redop_name, root_number};

/// What the figures say.
pub(super) const MEANING: &str = "p*, max: longest time inside each iteration, us; bw_p1: busbw at p99; \
     -: fewer than 10 iterations beyond";

/// Tails of the rows seen so far, by the row's id.
#[derive(Debug, Default)]
pub(super) struct Tails {
    figures: Vec<Figure>,
    cells: HashMap<u32, Vec<String>>,
}

/// A column that tells rows apart: name, width, cell.
type Key = (&'static str, usize, fn(&Row) -> String);

const SIZE: Key = ("size", 10, |row| row.bytes.to_string());
/// Shown where they differ between rows.
const VARYING: [Key; 4] = [
    ("cycle", 5, |row| row.cycle.to_string()),
    ("type", 8, |row| row.dtype.to_string()),
    ("redop", 5, |row| redop_name(row).to_owned()),
    ("root", 5, |row| root_number(row).to_string()),
];
const PLACE: Key = ("place", 5, |row| if row.in_place { "in" } else { "out" }.to_owned());
const ITERS: Key = ("iters", 9, |row| row.iters.to_string());
const EVENTS: Key = ("events", 6, |row| row.events.unwrap_or(0).to_string());

impl Tails {
    pub(super) fn new(percentiles: &[f64]) -> Self {
        Tails { figures: figure::tails(percentiles).collect(), cells: HashMap::new() }
    }

    pub(super) fn keep(&mut self, view: &RowView<'_>) {
        let cells = self.figures.iter().map(|figure| figure.cell(view, None)).collect();
        self.cells.insert(view.row.id, cells);
    }

    pub(super) fn write(&self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        if run.rows.is_empty() {
            return Ok(());
        }
        writeln!(out, "#")?;
        writeln!(out, "# Tails       {MEANING}")?;
        let varies =
            |(_, _, cell): &Key| run.rows.iter().any(|row| cell(row) != cell(&run.rows[0]));
        let mut keys = vec![SIZE];
        keys.extend(VARYING.into_iter().filter(varies));
        keys.extend([PLACE, ITERS]);
        let events = run.settings.threshold.is_some().then_some(EVENTS);

        let names = self.line(&keys, &events, |(name, _, _)| (*name).to_owned(), None);
        write_line(out, &names)?;
        for row in &run.rows {
            let cells = self.cells.get(&row.id).map(Vec::as_slice).unwrap_or_default();
            write_line(out, &self.line(&keys, &events, |(_, _, cell)| cell(row), Some(cells)))?;
        }
        Ok(())
    }

    /// One line: the keys, the figures (their names where no cells are given), the events.
    fn line(
        &self,
        keys: &[Key],
        events: &Option<Key>,
        cell: impl Fn(&Key) -> String,
        cells: Option<&[String]>,
    ) -> String {
        let padded = |key: &Key| format!("{:>width$}  ", cell(key), width = key.1);
        let figures = self.figures.iter().enumerate().map(|(index, figure)| {
            let text = match cells {
                None => figure.name(false),
                Some(cells) => cells.get(index).map_or("-", String::as_str).trim().to_owned(),
            };
            format!("{text:>width$}  ", width = figure.width())
        });
        let keys: String = keys.iter().map(padded).collect();
        format!(
            "# {keys}{}{}",
            figures.collect::<String>(),
            events.iter().map(padded).collect::<String>()
        )
    }
}
