//! The run directory as rank 0 writes it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hpcbench_model::{Event, Loss, Row, Run};
use jiff::Timestamp;

use crate::CreateError;
use crate::append::AppendFile;
use crate::hlog::{self, HistogramKey, Interval};
use crate::layout::{EVENTS, HLOG, RUN_JSON};
use crate::losses::add_loss;
use crate::replace::{replace_file, replace_file_at_once};

/// Writes a run directory while the run goes on; on rank 0 only.
///
/// Every record goes to the system at once, so that a `kill -9` at any moment leaves all finished
/// rows. Once created, it never fails: what cannot be written is counted in [`RunWriter::losses`],
/// and writing goes on as soon as there is space again.
#[derive(Debug)]
pub struct RunWriter {
    dir: PathBuf,
    run: Run,
    hlog: AppendFile,
    events: AppendFile,
    /// Changes of the run that `run.json` on disk does not have yet.
    late: u64,
}

/// How a file of the directory is replaced.
type ReplaceFile = fn(&Path, &str, &[u8]) -> io::Result<()>;

impl RunWriter {
    /// Makes the directory, with its parents, and in it a `run.json` that says `complete: false`.
    ///
    /// # Errors
    /// When the directory already holds a run or cannot be written, or `run.started` is no time.
    pub fn create(dir: &Path, mut run: Run) -> Result<Self, CreateError> {
        let started: Timestamp =
            run.started.parse().map_err(|_| CreateError::Started(run.started.clone()))?;
        run.complete = false;
        run.ended = None;
        fs::create_dir_all(dir).map_err(|e| CreateError::unwritable(dir, e))?;
        for name in [RUN_JSON, EVENTS] {
            if dir.join(name).try_exists().map_err(|e| CreateError::unwritable(dir, e))? {
                return Err(CreateError::holds_run(dir, name));
            }
        }
        // Of two runs that begin in one directory at the same time only one makes this file.
        let hlog = create_file(dir, HLOG, hlog::header(started).as_bytes()).inspect_err(|_| {
            // Only where nothing is in it.
            let _ = fs::remove_dir(dir);
        })?;
        let begun = create_file(dir, EVENTS, b"").and_then(|events| {
            let mut writer = RunWriter { dir: dir.to_owned(), run, hlog, events, late: 0 };
            writer.replace(replace_file).map_err(|e| CreateError::unwritable(dir, e))?;
            Ok(writer)
        });
        if begun.is_err() {
            remove_run(dir);
        }
        begun
    }

    /// Removes the run again, as if it had never begun: so that the same command works once what
    /// stood in the way is gone. What others put into the directory stays.
    pub fn discard(self) {
        remove_run(&self.dir);
    }

    /// Appends a histogram.
    ///
    /// `encoded` is what [`hpcbench_model::Histogram::encode`] gave; `max_ns` its largest time.
    pub fn histogram(
        &mut self,
        key: HistogramKey,
        encoded: &[u8],
        interval: Interval,
        max_ns: u64,
    ) {
        let line = hlog::line(key, encoded, interval, max_ns);
        if let Err(error) = self.hlog.append(line.as_bytes(), 1) {
            self.lose(HLOG, 1, &error);
        }
    }

    /// Appends a jitter event.
    pub fn event(&mut self, event: &Event) {
        let appended = serde_json::to_vec(event).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.events.append(&line, 1)
        });
        if let Err(error) = appended {
            self.lose(EVENTS, 1, &error);
        }
    }

    /// Makes the row's histograms and events durable, and only then names the row in `run.json`.
    pub fn finish_row(&mut self, row: Row) {
        self.sync();
        self.update(|run| run.rows.push(row));
    }

    /// Changes anything else of the run, and `run.json` with it.
    pub fn update(&mut self, change: impl FnOnce(&mut Run)) {
        self.change(change, replace_file);
    }

    /// The same without waiting for the disk, for a program that may be killed within milliseconds;
    /// an [`RunWriter::update`] must follow to make it durable.
    pub fn update_at_once(&mut self, change: impl FnOnce(&mut Run)) {
        self.change(change, replace_file_at_once);
    }

    /// Ends the run: `ended` in RFC 3339, UTC; `complete` when every row asked for is here.
    pub fn finish(&mut self, ended: String, complete: bool) {
        self.sync();
        self.update(|run| {
            run.ended = Some(ended);
            run.complete = complete;
        });
    }

    /// What could not be kept so far, one entry a file and reason. That of `run.json` counts the
    /// changes that are not on disk yet, and goes when they are.
    pub fn losses(&self) -> &[Loss] {
        &self.run.losses
    }

    /// The run so far.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn sync(&mut self) {
        for (name, synced) in [(HLOG, self.hlog.sync()), (EVENTS, self.events.sync())] {
            if let Err(error) = synced {
                self.lose(name, error.lost, &error.source);
            }
        }
    }

    fn lose(&mut self, what: &str, count: u64, error: &io::Error) {
        add_loss(&mut self.run.losses, what, 0, count, error);
    }

    fn change(&mut self, change: impl FnOnce(&mut Run), by: ReplaceFile) {
        change(&mut self.run);
        if let Err(error) = self.replace(by) {
            self.late += 1;
            add_loss(&mut self.run.losses, RUN_JSON, 0, self.late, &error);
        }
    }

    fn replace(&mut self, by: ReplaceFile) -> io::Result<()> {
        // What was late comes with this one.
        self.run.losses.retain(|loss| loss.what != RUN_JSON);
        let mut json = serde_json::to_vec(&self.run)?;
        json.push(b'\n');
        by(&self.dir, RUN_JSON, &json)?;
        self.late = 0;
        Ok(())
    }
}

fn remove_run(dir: &Path) {
    for name in [RUN_JSON, HLOG, EVENTS] {
        let _ = fs::remove_file(dir.join(name));
    }
    // Only where nothing else is in it.
    let _ = fs::remove_dir(dir);
}

fn create_file(dir: &Path, name: &str, header: &[u8]) -> Result<AppendFile, CreateError> {
    AppendFile::create(&dir.join(name), header).map_err(|e| CreateError::of_file(dir, name, e))
}
