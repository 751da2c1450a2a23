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
    #[cfg(feature = "run")]
    end_on_panic();
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

/// A defect of ours must not leave the other ranks waiting: unwinding would end in MPI_Finalize, which
/// waits for them.
#[cfg(feature = "run")]
fn end_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        hpcbench_world::exit_now(1);
    }));
}
