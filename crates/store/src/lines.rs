//! The whole lines of a file that may end in the middle of one.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::ReadError;

/// Reads line by line into one buffer. What follows the last line feed is a line that was being
/// written when the run was killed: it is left out.
#[derive(Debug)]
pub(crate) struct WholeLines {
    path: PathBuf,
    reader: BufReader<File>,
    buffer: Vec<u8>,
    number: u64,
    failed: bool,
}

impl WholeLines {
    pub(crate) fn open(path: PathBuf) -> Result<Self, ReadError> {
        match File::open(&path) {
            Ok(file) => Ok(WholeLines {
                path,
                reader: BufReader::new(file),
                buffer: Vec::new(),
                number: 0,
                failed: false,
            }),
            Err(source) => Err(ReadError::Unreadable { path, source }),
        }
    }

    /// The next line with its line feed.
    pub(crate) fn next_line(&mut self) -> Option<Result<&[u8], ReadError>> {
        if self.failed {
            return None;
        }
        self.buffer.clear();
        self.number += 1;
        match self.reader.read_until(b'\n', &mut self.buffer) {
            Ok(_) => self.buffer.ends_with(b"\n").then_some(Ok(&self.buffer)),
            Err(source) => {
                self.failed = true;
                Some(Err(ReadError::Unreadable { path: self.path.clone(), source }))
            }
        }
    }

    /// An error about the line read last.
    pub(crate) fn error(&self, why: impl ToString) -> ReadError {
        line_error(&self.path, self.number, why)
    }
}

fn line_error(path: &Path, line: u64, why: impl ToString) -> ReadError {
    ReadError::Line { path: path.to_owned(), line, why: why.to_string() }
}
