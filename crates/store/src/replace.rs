//! Replacing a whole file in one step.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file so that a reader, also after a kill or a power cut, sees either all of the old
/// content or all of the new: a temporary file beside it, made durable, renamed over it.
pub(crate) fn replace_file(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    replace(dir, name, |temporary| write_durably(temporary, content)).and_then(|()| sync_dir(dir))
}

/// The same without waiting for the disk: whole after a kill, but after a power cut perhaps old or
/// lost.
pub(crate) fn replace_file_at_once(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    replace(dir, name, |temporary| fs::write(temporary, content))
}

fn replace(dir: &Path, name: &str, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temporary = dir.join(format!(".{name}.tmp"));
    let written = write(&temporary).and_then(|()| fs::rename(&temporary, dir.join(name)));
    if written.is_err() {
        // On a full disk it would take the space that the next try needs.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_durably(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    match File::open(dir)?.sync_all() {
        // Some network file systems know no sync of directories: the rename is then as durable as
        // they make it.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}
