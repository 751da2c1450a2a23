//! Programs of the system and processes of our own, started with lists of arguments.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::{Error, Result, Tried};

/// Runs a program, gives it `input`, and returns what it wrote.
pub(crate) fn run(command: &mut Command, input: &str) -> Result<String> {
    let program = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().tried(|| format!("run `{program}`"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends before it has read everything says why on its standard error.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().tried(|| format!("wait for `{program}`"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Program { program, words: with_line(words, input) })
}

/// Adds the line that a batch stumbled over: `ip` names only its number (`Command failed -:3`).
fn with_line(words: String, input: &str) -> String {
    let number = words.rsplit_once("-:").and_then(|(_, rest)| rest.trim().parse::<usize>().ok());
    match number.and_then(|number| input.lines().nth(number.checked_sub(1)?)) {
        Some(line) => format!("{words} (`{line}`)"),
        None => words,
    }
}

/// Waits until a detached process says that it is ready.
pub(crate) fn wait_ready(child: &mut Child, what: &str, log: &Path) -> Result<()> {
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).tried(|| format!("wait for {what}"))?;
    }
    if line.trim_end() == "ready" {
        return Ok(());
    }
    let words = std::fs::read_to_string(log).unwrap_or_default();
    Err(Error::Broken(format!("{what} did not start: {}", words.trim())))
}

/// The program `hpcbench-testbed`, which holders and relays run: this process itself, or for
/// tests the one that was built beside them.
///
/// # Errors
/// When it has not been built.
pub fn tool() -> Result<PathBuf> {
    let own = std::env::current_exe().tried(|| "find this program".to_owned())?;
    let name = "hpcbench-testbed";
    // Tests lie in `deps` below the directory of the programs.
    let candidates = own.ancestors().skip(1).take(2).map(|directory| directory.join(name));
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::Usage(format!(
            "{name} is not beside {}: build it first with `cargo build -p hpcbench-testbed`",
            own.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_batch_names_its_line() {
        let batch = "# a comment\nlink set nothing up\n";
        let error = run(Command::new("ip").args(["-batch", "-"]), batch).unwrap_err();
        assert!(error.to_string().contains("(`link set nothing up`)"), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut Command::new("/does/not/exist"), "").unwrap_err();
        assert!(error.to_string().contains("/does/not/exist"), "{error}");
    }
}
