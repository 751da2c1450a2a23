//! What can go wrong, in words for the person at the terminal.

use std::io;
use std::path::{Path, PathBuf};

use hpcbench_model::RUN_SCHEMA;

/// Why a run directory, or a rank's file in it, could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The directory has a run in it.
    #[error(
        "`{}` already holds a run ({file}), and runs are never overwritten: give another directory with --out OTHER_DIR",
        dir.display()
    )]
    HoldsRun {
        /// The directory.
        dir: PathBuf,
        /// The file found.
        file: String,
    },
    /// The directory cannot be made or written.
    #[error(
        "cannot write a run to `{}`: {source}: give a directory that can be written with --out OTHER_DIR",
        dir.display()
    )]
    Unwritable {
        /// The directory.
        dir: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The run says no time for its start.
    #[error("the run's start, `{0}`, is no time such as 2026-11-30T17:45:00Z")]
    Started(String),
}

impl CreateError {
    pub(crate) fn holds_run(dir: &Path, file: &str) -> Self {
        CreateError::HoldsRun { dir: dir.to_owned(), file: file.to_owned() }
    }

    pub(crate) fn unwritable(dir: &Path, source: io::Error) -> Self {
        CreateError::Unwritable { dir: dir.to_owned(), source }
    }

    /// Of a file that should have been made anew.
    pub(crate) fn of_file(dir: &Path, file: &str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AlreadyExists => Self::holds_run(dir, file),
            _ => Self::unwritable(dir, error),
        }
    }
}

/// Why a run does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No `run.json` there.
    #[error(
        "no run at `{}`: give a run's directory (there is a run.json in it) or its run.json",
        .0.display()
    )]
    NoRun(PathBuf),
    /// The file is there and cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// Written by a version that this one does not understand.
    #[error(
        "`{}` is of schema `{found}`, and this hpcbench reads `{RUN_SCHEMA}`: read it with the hpcbench that wrote it",
        path.display()
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: String,
    },
    /// Not what the schema says.
    #[error("`{}` is not a run of hpcbench: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
}

/// Why a file of a run does not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// A line is not what it should be; the following ones may be.
    #[error("line {line} of `{}` does not read: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Why.
        why: String,
    },
    /// A binary file is not what it should be.
    #[error("`{}` does not read at byte {offset}: {why}", path.display())]
    Binary {
        /// The file.
        path: PathBuf,
        /// Where, from 0.
        offset: u64,
        /// Why.
        why: String,
    },
}
