//! Figures of the testbed itself, printed as JSON that says how they were measured.

mod relay;
mod up;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Result, Tried};
use crate::names::Prefix;

/// What to measure.
#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Measurement {
    /// What a relay without a fault adds to a frame's way
    Relay(relay::RelayMeasurement),
    /// How long beds take to be made and removed
    Up(up::UpMeasurement),
}

/// Where the figures go.
#[derive(Clone, Debug, clap::Args)]
struct Output {
    /// Write the result to this file as well
    #[arg(long)]
    output: Option<PathBuf>,
}

/// The machine that the figures are of.
#[derive(Debug, Serialize)]
struct Machine {
    kernel: String,
    cores: usize,
    /// Tasks that ran or waited in the last minute, when the measurement began
    /// (/proc/loadavg): what else the machine was doing.
    load_before: String,
    build: &'static str,
}

/// Measures on beds made for it.
pub(crate) fn run(prefix: &Prefix, measurement: &Measurement) -> Result<()> {
    match measurement {
        Measurement::Relay(options) => relay::run(prefix, options),
        Measurement::Up(options) => up::run(prefix, options),
    }
}

impl Machine {
    fn this() -> Machine {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Machine {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            load_before: load.split(' ').next().unwrap_or_default().to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }
}

impl Output {
    fn write(&self, figures: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(figures).tried(|| "write JSON".to_owned())? + "\n";
        if let Some(path) = &self.output {
            write_file(path, &text)?;
        }
        crate::cli::print(&text)
    }
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).tried(|| format!("write {}", path.display()))
}
