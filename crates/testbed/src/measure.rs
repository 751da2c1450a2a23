//! Measures what a relay without a fault adds to a frame's way.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::names::Prefix;

/// How `measure-relay` measures.
#[derive(Clone, Debug, clap::Args)]
pub struct MeasureOptions {
    /// Write the result to this file, as JSON
    #[arg(long)]
    output: Option<PathBuf>,
}

pub(crate) fn run(_prefix: &Prefix, _options: &MeasureOptions) -> Result<()> {
    Err(Error::Usage("soon".into()))
}
