//! hpcbench: `mpirun hpcbench allreduce`.

mod cli;
mod formats;
mod show;

#[cfg(feature = "run")]
mod measure;
#[cfg(feature = "run")]
mod screen;
#[cfg(feature = "run")]
mod settings;
#[cfg(feature = "run")]
mod watch;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let parsed = Cli::try_parse();
    #[cfg(feature = "run")]
    {
        // A command line that does not parse may be meant to run on many ranks, of which one speaks.
        if !matches!(&parsed, Ok(Cli { command: Command::Show(_), .. })) {
            return measure::main(parsed);
        }
    }
    match parsed {
        Ok(Cli { command: Command::Show(arguments), .. }) => show::main(&arguments),
        #[cfg(feature = "run")]
        Ok(_) => unreachable!("handled above"),
        Err(error) => {
            // Help and version are no errors: clap's code is 0 for them, 2 for the rest.
            let _ = error.print();
            ExitCode::from(error.exit_code() as u8)
        }
    }
}
