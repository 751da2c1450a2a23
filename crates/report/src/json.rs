use std::io::{self, Write};

use hpcbench_model::Run;

use crate::{Exporter, RowPair};

/// One document when the run is over: exactly what `run.json` holds.
#[derive(Debug, Default)]
pub struct Json;

impl Exporter for Json {
    fn begin(&mut self, _run: &Run, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn pair(&mut self, _run: &Run, _pair: &RowPair<'_>, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, run)?;
        writeln!(out)
    }
}
