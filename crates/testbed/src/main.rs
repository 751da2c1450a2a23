//! `hpcbench-testbed`: see `--help`, or the README beside this crate.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match hpcbench_testbed::cli::run(hpcbench_testbed::cli::Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("hpcbench-testbed: {e}");
            ExitCode::FAILURE
        }
    }
}
