use std::io::{self, Write};

use hpcbench_model::{Finding, Loss, RawSamples, Run};
use serde::Serialize;

use crate::{Exporter, RowPair};

/// One JSON object a line, each with a `kind`:
///
/// - `run`, the first line: the run as in `run.json`, without `rows`, as known before the first row;
/// - `row`, for each finished row: a row as in `run.json`;
/// - `end`, the last line: what only the end tells. A run that was killed has none.
#[derive(Debug, Default)]
pub struct JsonLines;

#[derive(Serialize)]
struct Line<T> {
    kind: &'static str,
    #[serde(flatten)]
    body: T,
}

#[derive(Serialize)]
struct End<'a> {
    ended: &'a Option<String>,
    complete: bool,
    interrupted: &'a Option<String>,
    raw_samples: &'a [RawSamples],
    losses: &'a [Loss],
    findings: &'a [Finding],
}

fn write_line(kind: &'static str, body: impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Line { kind, body })?;
    writeln!(out)
}

impl Exporter for JsonLines {
    fn begin(&mut self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        let mut header = serde_json::to_value(run)?;
        if let Some(fields) = header.as_object_mut() {
            fields.remove("rows");
        }
        write_line("run", header, out)
    }

    fn pair(&mut self, _run: &Run, pair: &RowPair<'_>, out: &mut dyn Write) -> io::Result<()> {
        pair.views().try_for_each(|view| write_line("row", view.row, out))
    }

    fn end(&mut self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        let end = End {
            ended: &run.ended,
            complete: run.complete,
            interrupted: &run.interrupted,
            raw_samples: &run.raw_samples,
            losses: &run.losses,
            findings: &run.findings,
        };
        write_line("end", end, out)
    }
}
