use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, Tried};
use crate::fault::Fault;
use crate::names::{Link, Prefix};
use crate::namespace::ClockOffset;
use crate::spec::BedSpec;

/// Where beds keep their files. `/run` is on memory and empty after a boot, as the beds are.
pub(crate) const ROOT: &str = "/run/hpcbench-testbed";

/// The directory of a bed.
pub(crate) fn directory(prefix: &Prefix) -> PathBuf {
    Path::new(ROOT).join(prefix.as_str())
}

/// What is known of a bed from one call of the tool to the next.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub spec: BedSpec,
    /// The hosts' holders, h0 first, then the head's and the switch's.
    pub holders: BTreeMap<String, Holder>,
    /// Links whose cable has a relay even without a fault.
    pub relayed: BTreeSet<Link>,
    /// Relays that run, by link.
    pub relays: BTreeMap<Link, i32>,
    pub faults: Vec<Fault>,
    pub next_fault: u32,
}

/// The process that holds a host's namespaces.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub pid: i32,
    pub clock: ClockOffset,
}

impl State {
    pub fn new(spec: BedSpec) -> Self {
        State {
            relayed: spec.relayed_links().into_iter().collect(),
            spec,
            holders: BTreeMap::new(),
            relays: BTreeMap::new(),
            faults: Vec::new(),
            next_fault: 1,
        }
    }

    pub fn load(prefix: &Prefix) -> Result<Self> {
        let path = directory(prefix).join("state.json");
        let text = fs::read(&path).map_err(|_| Error::NoBed(prefix.to_string()))?;
        serde_json::from_slice(&text).map_err(|e| {
            Error::Broken(format!(
                "{} does not read ({e}); remove the bed with `hpcbench-testbed down --prefix \
                 {prefix}`",
                path.display()
            ))
        })
    }

    /// Writes the state so that a reader sees the old or the new one, never a part.
    pub fn save(&self) -> Result<()> {
        let directory = directory(&self.spec.prefix);
        let (new, path) = (directory.join("state.json.new"), directory.join("state.json"));
        let text = serde_json::to_vec_pretty(self).tried(|| "write the state".to_owned())?;
        fs::write(&new, text).tried(|| format!("write {}", new.display()))?;
        fs::rename(&new, &path).tried(|| format!("write {}", path.display()))
    }
}

/// Keeps other calls of the tool away from a bed. The lock is on the bed's directory and is passed
/// on to a child until it runs its own program, by when it is in the bed's groups: whoever has the
/// lock sees all of the bed's processes there, even if the tool was killed.
pub(crate) struct Lock {
    _directory: File,
}

impl Lock {
    /// Waits for the lock. `None` when there is no such bed, or no more.
    pub fn take(prefix: &Prefix, operation: FlockOperation) -> Result<Option<Lock>> {
        let path = directory(prefix);
        loop {
            let Ok(file) = File::open(&path) else { return Ok(None) };
            flock(&file, operation).tried(|| format!("lock {}", path.display()))?;
            let locked = file.metadata().tried(|| format!("look at {}", path.display()))?;
            // Another call may have removed the bed, and a third made a new one, while we waited.
            match fs::metadata(&path) {
                Ok(now) if now.ino() == locked.ino() => return Ok(Some(Lock { _directory: file })),
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
    }
}
