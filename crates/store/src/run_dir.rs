//! A run directory, read back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hpcbench_model::{Event, Histogram, RUN_SCHEMA, Run};
use serde::Deserialize;

use crate::hlog::{HistogramKey, Histograms};
use crate::layout::{EVENTS, HLOG, RANKS, RUN_JSON, raw_name};
use crate::lines::WholeLines;
use crate::raw::RawBlocks;
use crate::{OpenError, ReadError};

/// A run directory, of a run that is finished, still going on, or was killed.
#[derive(Debug)]
pub struct RunDir {
    dir: PathBuf,
    run: Run,
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: String,
}

impl RunDir {
    /// Reads the run of a directory, or of its `run.json`.
    ///
    /// # Errors
    /// When there is no run, or not one that this version reads.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let file = if path.is_dir() { path.join(RUN_JSON) } else { path.to_owned() };
        let json = fs::read(&file).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                OpenError::NoRun(path.to_owned())
            }
            _ => OpenError::Unreadable { path: file.clone(), source },
        })?;
        let malformed = |source| OpenError::Malformed { path: file.clone(), source };
        let found = serde_json::from_slice::<SchemaOnly>(&json).map_err(malformed)?.schema;
        if found != RUN_SCHEMA {
            return Err(OpenError::Schema { path: file, found });
        }
        let run = serde_json::from_slice(&json).map_err(malformed)?;
        let dir = file.parent().map(Path::to_owned).unwrap_or_default();
        Ok(RunDir { dir, run })
    }

    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All histograms. Those of a row that `run.json` does not name are of one that was cut off,
    /// and some of its ranks may be missing.
    ///
    /// # Errors
    /// When `samples.hlog` cannot be opened.
    pub fn histograms(&self) -> Result<Histograms, ReadError> {
        Histograms::open(self.dir.join(HLOG))
    }

    /// One histogram; `None` when the run has none of that key. It reads the log up to there: for
    /// many, go once through [`RunDir::histograms`].
    ///
    /// # Errors
    /// When `samples.hlog` does not read up to it.
    pub fn histogram(&self, key: HistogramKey) -> Result<Option<Histogram>, ReadError> {
        let mut histograms = self.histograms()?;
        while let Some(entry) = histograms.next().transpose()? {
            if entry.key == key {
                return entry.decode().map(Some).map_err(|e| histograms.error(e));
            }
        }
        Ok(None)
    }

    /// All jitter events.
    ///
    /// # Errors
    /// When `events.jsonl` cannot be opened.
    pub fn events(&self) -> Result<Events, ReadError> {
        WholeLines::open(self.dir.join(EVENTS)).map(Events)
    }

    /// The ranks whose raw times are in this directory, ascending; where hosts do not share it,
    /// those of other hosts are not (`raw_samples` in the run says where they are).
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn raw_ranks(&self) -> Result<Vec<u32>, ReadError> {
        let path = self.dir.join(RANKS);
        let unreadable = |source| ReadError::Unreadable { path: path.clone(), source };
        let listed = match fs::read_dir(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(unreadable)?,
        };
        let mut ranks = Vec::new();
        for file in listed {
            let name = file.map_err(unreadable)?.file_name();
            ranks.extend(name.to_str().and_then(|n| n.strip_suffix(".bin")?.parse::<u32>().ok()));
        }
        ranks.sort_unstable();
        Ok(ranks)
    }

    /// The raw entries and exits of a rank.
    ///
    /// # Errors
    /// When its file is not here or does not read.
    pub fn raw(&self, rank: u32) -> Result<RawBlocks, ReadError> {
        RawBlocks::open(&self.dir.join(raw_name(rank)))
    }
}

/// The jitter events of a run in the order in which they were written. One cut off by a kill is
/// left out. After an unreadable line the iterator goes on with the next.
#[derive(Debug)]
pub struct Events(WholeLines);

impl Iterator for Events {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let parsed = match self.0.next_line()? {
            Ok(line) => serde_json::from_slice(line),
            Err(error) => return Some(Err(error)),
        };
        Some(parsed.map_err(|why| self.0.error(why)))
    }
}
