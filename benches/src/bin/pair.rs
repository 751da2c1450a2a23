//! Compares two programs by interleaved pairs and prints the result as JSON.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use hpcbench_benches::claim::Claim;
use hpcbench_benches::compare::CompareError;
use hpcbench_benches::extract::Metric;
use hpcbench_benches::options::ProgramOptions;
use hpcbench_benches::program::ProgramError;
use hpcbench_benches::record::Figure;
use hpcbench_benches::session::{Contender, MeasureError, Place};

/// What stands between the two commands, as in GNU parallel.
const SEPARATOR: &str = ":::";

/// Compare two programs by interleaved pairs: the median of B ÷ A, its interval, and A against itself
///
/// Prints JSON. Exit code: 0 claim shown (or none made), 4 broken, 6 not shown, 1 could not run,
/// 2 usage, 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "pair", override_usage = "pair [OPTIONS] -- A [ARG]... ::: B [ARG]...")]
struct Options {
    /// What is read from each run
    #[arg(long, value_enum, default_value_t = Metric::Elapsed)]
    metric: Metric,
    /// What is read from B, where it speaks another format than A
    #[arg(long, value_enum)]
    metric_b: Option<Metric>,
    /// Size, in bytes, of the row that is read
    #[arg(long, value_name = "BYTES")]
    bytes: Option<u64>,
    /// Claim that B ÷ A lies between two bounds
    #[arg(long, num_args = 2, value_names = ["LOW", "HIGH"], conflicts_with = "at_most")]
    within: Option<Vec<f64>>,
    /// Claim that B ÷ A is at most this
    #[arg(long, value_name = "HIGH")]
    at_most: Option<f64>,
    #[command(flatten)]
    programs: ProgramOptions,
    /// The two commands, word by word; no shell reads them
    #[arg(last = true, required = true, value_name = "WORD")]
    commands: Vec<String>,
}

impl Options {
    fn contenders(&self) -> Result<[Contender; 2], clap::Error> {
        let mut commands = self.commands.split(|word| word == SEPARATOR);
        let (Some(a), Some(b), None) = (commands.next(), commands.next(), commands.next()) else {
            return Err(usage(&format!("write two commands with {SEPARATOR} between them")));
        };
        if a.is_empty() || b.is_empty() {
            return Err(usage(&format!("a command is missing beside {SEPARATOR}")));
        }
        let metric_b = self.metric_b.unwrap_or(self.metric);
        if metric_b.unit() != self.metric.unit() {
            return Err(usage("the two metrics have different units: their ratio means nothing"));
        }
        Ok([("A", a, self.metric), ("B", b, metric_b)].map(|(label, command, metric)| Contender {
            label: label.to_owned(),
            command: command.to_vec(),
            metric,
            bytes: self.bytes,
        }))
    }

    fn claim(&self) -> Option<Claim> {
        match self.within.as_deref() {
            Some([low, high]) => Some(Claim::within(*low, *high)),
            _ => self.at_most.map(Claim::at_most),
        }
    }
}

fn usage(message: &str) -> clap::Error {
    Options::command().error(ErrorKind::ValueValidation, message)
}

fn main() -> ExitCode {
    let options = Options::parse();
    let [a, b] = options.contenders().unwrap_or_else(|error| error.exit());
    let session = match options.programs.session(Place::Here) {
        Ok(session) => session,
        Err(error) => return could_not_run(&error),
    };
    let mut figure = Figure::begin("pair", "B against A, each run whole.", None);
    match session.pair("pair", &a, &b, options.claim()) {
        Ok(part) => figure.add(part),
        Err(CompareError::Measure(MeasureError::Program(ProgramError::Interrupted))) => {
            return ExitCode::from(130);
        }
        Err(error) => return could_not_run(&error),
    }
    let printed = figure
        .to_json()
        .map_err(io::Error::from)
        .and_then(|text| io::stdout().lock().write_all(text.as_bytes()));
    match printed {
        Ok(()) => figure.exit_code(),
        Err(error) => could_not_run(&error),
    }
}

fn could_not_run(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("pair: {error}");
    ExitCode::from(1)
}
