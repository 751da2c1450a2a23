//! A file that only grows by whole records, also on a disk that fills up.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// An append-only file that always ends, on disk, after a whole record.
#[derive(Debug)]
pub(crate) struct AppendFile {
    file: File,
    /// Length up to the last whole record.
    good: u64,
    /// Length that a failed sync leaves: the header and all records synced before.
    durable: u64,
    /// Records between `durable` and `good`.
    pending: u64,
    /// Whether bytes beyond `good` may be on disk.
    torn: bool,
}

/// Why records did not become durable.
#[derive(Debug)]
pub(crate) struct SyncError {
    /// How many records are gone: all since the last good sync.
    pub(crate) lost: u64,
    /// The system's words.
    pub(crate) source: io::Error,
}

impl AppendFile {
    /// Makes the file, which must not exist, and writes its header.
    pub(crate) fn create(path: &Path, header: &[u8]) -> io::Result<Self> {
        let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
        let good = header.len() as u64;
        // A file without its whole header is no file of ours: the next try must not trip over it.
        if let Err(error) = file.write_all(header) {
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        Ok(AppendFile { file, good, durable: good, pending: 0, torn: false })
    }

    /// Appends bytes that are `records` whole records, or nothing.
    pub(crate) fn append(&mut self, bytes: &[u8], records: u64) -> io::Result<()> {
        self.cut_torn()?;
        if let Err(error) = self.file.write_all(bytes) {
            self.torn = true;
            // Whether this works is asked again before the next append.
            let _ = self.cut_torn();
            return Err(error);
        }
        self.good += bytes.len() as u64;
        self.pending += records;
        Ok(())
    }

    /// Makes all records durable. After a failure those since the last good sync are cut off: what
    /// the system failed to write it has forgotten, so that they may be holes (network file
    /// systems report a full disk only here).
    pub(crate) fn sync(&mut self) -> Result<(), SyncError> {
        if self.good == self.durable {
            return Ok(());
        }
        if let Err(source) = self.file.sync_data() {
            let lost = std::mem::take(&mut self.pending);
            self.good = self.durable;
            self.torn = true;
            let _ = self.cut_torn();
            return Err(SyncError { lost, source });
        }
        self.durable = self.good;
        self.pending = 0;
        Ok(())
    }

    fn cut_torn(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.good)?;
            self.torn = false;
        }
        Ok(())
    }
}
