//! Runs every command of the README for real, as it is printed there.

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{ENVIRONMENT, Family, family, launcher};

/// The root of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/hpcbench has a root")
        .to_owned()
}

/// A fenced block: what follows the opening fence, and the lines inside.
struct Block {
    language: String,
    text: String,
}

fn blocks(markdown: &str) -> Vec<Block> {
    // Every second piece between fences is inside a block.
    let inside = markdown.split("```").skip(1).step_by(2);
    inside
        .filter_map(|block| block.split_once('\n'))
        .map(|(language, text)| Block { language: language.to_owned(), text: text.to_owned() })
        .collect()
}

/// A directory laid out as the README's reader has it: the program where a release build leaves it,
/// its launcher on PATH, and a file of hosts.
struct Desk {
    dir: tempfile::TempDir,
    launcher: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        let desk =
            Desk { dir: tempfile::tempdir().expect("a temporary directory"), launcher: launcher() };
        let release = desk.dir.path().join("target/release");
        fs::create_dir_all(&release).unwrap();
        symlink(env!("CARGO_BIN_EXE_hpcbench"), release.join("hpcbench")).unwrap();
        fs::create_dir(desk.dir.path().join("bin")).unwrap();
        // Not a link: MPICH's launcher looks for its helpers beside the name it was started by.
        let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", desk.launcher.display());
        let mpirun = desk.dir.path().join("bin/mpirun");
        fs::write(&mpirun, script).unwrap();
        fs::set_permissions(&mpirun, Permissions::from_mode(0o755)).unwrap();
        let slots = if family(&desk.launcher) == Family::Mpich {
            "localhost:4\n"
        } else {
            "localhost slots=4\n"
        };
        fs::write(desk.dir.path().join("hosts"), slots).unwrap();
        desk
    }

    /// Runs a block with bash, and gives its output back if it fails.
    fn run(&self, text: &str) -> Result<(), String> {
        let path = std::env::var("PATH").unwrap();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", text])
            .current_dir(self.dir.path())
            .env(
                "PATH",
                format!(
                    "{}:{}:{path}",
                    self.dir.path().join("bin").display(),
                    self.dir.path().join("target/release").display()
                ),
            )
            .envs(ENVIRONMENT)
            .stdin(Stdio::null())
            .output()
            .expect("bash runs");
        if output.status.success() {
            return Ok(());
        }
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "{}\n{text}\n--- standard output\n{out}--- standard error\n{err}",
            output.status
        ))
    }
}

#[test]
fn every_command_runs_as_typed() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let desk = Desk::new();
    let runnable: Vec<Block> =
        blocks(&readme).into_iter().filter(|block| block.language == "sh").collect();
    assert!(runnable.len() >= 5, "the README shows how to run hpcbench");
    let failures: Vec<String> =
        runnable.iter().filter_map(|block| desk.run(&block.text).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn no_command_stands_where_it_is_not_run() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    for block in blocks(&readme) {
        match block.language.as_str() {
            // Run by the test above.
            "sh" => {}
            // Run by .ci/run.
            "sh set-up" => {
                for line in block.text.lines() {
                    let script = line.split_whitespace().next().unwrap();
                    let run = fs::read_to_string(repository().join(".ci/run")).unwrap();
                    assert!(run.contains(script), "{script} is not run by .ci/run");
                }
            }
            "text" => {
                let command = ["mpirun ", "hpcbench ", "scripts/"];
                let typed = |line: &&str| {
                    let line = line.trim_start_matches("$ ");
                    command.iter().any(|command| line.starts_with(command))
                };
                let found = block.text.lines().find(typed);
                assert_eq!(found, None, "a command in a block of output");
            }
            other => panic!("a block of `{other}`: nothing runs it"),
        }
    }
}
