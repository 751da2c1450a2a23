//! Runs a program and writes its peak resident memory, in bytes, into a file of its own.
//!
//! `mpirun` starts it in the place of each rank: `mpirun -n 2 peak-rss DIR PROGRAM [ARG]...`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::sys::resource::{UsageWho, getrusage};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(dir), Some(program)) = (words.next(), words.next()) else {
        eprintln!("usage: peak-rss DIR PROGRAM [ARG]...");
        return ExitCode::from(2);
    };
    match Command::new(&program).args(words).status() {
        Ok(status) => match write_peak(Path::new(&dir)) {
            // A program ended by a signal has no code.
            Ok(()) => ExitCode::from(status.code().map_or(1, |code| code as u8)),
            Err(error) => {
                eprintln!("peak-rss: cannot write into {}: {error}", Path::new(&dir).display());
                ExitCode::from(1)
            }
        },
        Err(error) => {
            eprintln!("peak-rss: cannot start {}: {error}", Path::new(&program).display());
            ExitCode::from(1)
        }
    }
}

/// `ru_maxrss` of the ended child, which Linux gives in KiB (getrusage(2)).
fn write_peak(dir: &Path) -> io::Result<()> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let bytes = usage.max_rss() * 1024;
    fs::write(dir.join(std::process::id().to_string()), bytes.to_string())
}
