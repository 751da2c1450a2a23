//! Measures the figures this project claims, each into a JSON file.

mod bench;
mod memory;
mod merge;
mod peers;
mod startup;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use hpcbench_benches::compare::CompareError;
use hpcbench_benches::options::ProgramOptions;
use hpcbench_benches::program::ProgramError;
use hpcbench_benches::session::MeasureError;

/// Measure a figure this project claims, and write it down
///
/// Exit code: 0 claim shown, 4 broken, 6 not shown, 7 a part was skipped, 1 could not run, 2 usage,
/// 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "figures")]
struct Options {
    #[command(subcommand)]
    figure: FigureName,
    #[command(flatten)]
    places: Places,
    #[command(flatten)]
    programs: ProgramOptions,
}

/// Where the programs are, and where results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Places")]
struct Places {
    /// Directory the figure's file goes to; `results/reference` holds the committed ones
    #[arg(long, global = true, default_value = "results/figures", value_name = "DIR")]
    out: PathBuf,
    /// The hpcbench to measure [default: the one built beside this program]
    #[arg(long, global = true, value_name = "PATH")]
    hpcbench: Option<PathBuf>,
    /// Directory of osu_allreduce [default: $HPCBENCH_OSU_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    osu: Option<PathBuf>,
    /// Directory of IMB-MPI1 [default: $HPCBENCH_IMB_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    imb: Option<PathBuf>,
    /// The launcher of the MPI that all of them are built for
    #[arg(long, global = true, default_value = "mpirun", value_name = "PATH")]
    mpirun: String,
    /// One more argument for the launcher; may be repeated
    #[arg(long, global = true, value_name = "ARG", allow_hyphen_values = true)]
    mpirun_arg: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum FigureName {
    /// The same allreduce as osu_allreduce: ratio of the times, 0.95 to 1.05 claimed
    Osu(peers::Options),
    /// The same allreduce as IMB-MPI1: ratio of the times, 0.95 to 1.05 claimed
    Imb(peers::Options),
    /// From mpirun to the last row of one size, against osu_allreduce: at most 1.2 claimed
    Startup(startup::Options),
    /// Peak memory of a rank beside the message buffers: at most 32 MiB claimed
    Memory(memory::Options),
    /// Merging and writing the times of 1,024 ranks x 30 rows: at most 5 s and 512 MiB claimed
    Merge(merge::Options),
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(code) => code,
        Err(error) if is_interrupt(error.as_ref()) => ExitCode::from(130),
        Err(error) => {
            eprintln!("figures: {error}");
            ExitCode::from(1)
        }
    }
}

fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let bench = bench::Bench::new(&options.places, &options.programs)?;
    match &options.figure {
        FigureName::Osu(options) => peers::measure(&bench, &peers::OSU, options),
        FigureName::Imb(options) => peers::measure(&bench, &peers::IMB, options),
        FigureName::Startup(options) => startup::measure(&bench, options),
        FigureName::Memory(options) => memory::measure(&bench, options),
        FigureName::Merge(options) => merge::measure(&bench, options),
    }
}

fn is_interrupt(error: &(dyn Error + 'static)) -> bool {
    let measure = match error.downcast_ref::<CompareError<MeasureError>>() {
        Some(CompareError::Measure(measure)) => Some(measure),
        _ => error.downcast_ref::<MeasureError>(),
    };
    matches!(measure, Some(MeasureError::Program(ProgramError::Interrupted)))
}
