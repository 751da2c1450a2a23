//! Inventory roots: directories laid out as `/` for programs that read a host's hardware from
//! files, made of a captured tree and the host's live NICs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::counters::interfaces;
use crate::error::{Result, Tried};
use crate::network::MANAGEMENT;
use crate::spec::{BedSpec, Inventory};

/// Where the inventory root of a host is.
pub(crate) fn root(bed: &Path, host: &str) -> PathBuf {
    bed.join("inventory").join(host)
}

/// Makes the inventory root of a host where the bed is to have them.
pub(crate) fn build(spec: &BedSpec, bed: &Path, host: &str, pid: i32) -> Result<()> {
    let root = root(bed, host);
    match &spec.inventory {
        Inventory::None => return Ok(()),
        Inventory::Live => {}
        Inventory::Fixture(tree) => {
            let own = tree.join(host);
            copy(if own.is_dir() { &own } else { tree }, &root)?;
        }
    }
    let class = root.join("sys/class/net");
    fs::create_dir_all(&class).tried(|| format!("make {}", class.display()))?;
    let nics = (0..spec.nics).map(|nic| format!("nic{nic}"));
    for name in nics.chain([MANAGEMENT.to_owned()]) {
        // In the real /sys these are links too; they lead to the kernel's own counters.
        let link = class.join(&name);
        symlink(interfaces(pid).join(&name), &link)
            .tried(|| format!("make the link {}", link.display()))?;
    }
    Ok(())
}

/// Copies a tree with its symbolic links as they are.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).tried(|| format!("make {}", to.display()))?;
    for entry in fs::read_dir(from).tried(|| format!("list {}", from.display()))? {
        let entry = entry.tried(|| format!("list {}", from.display()))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().tried(|| format!("look at {}", source.display()))?;
        let copied = || format!("copy {}", source.display());
        if kind.is_symlink() {
            fs::read_link(&source).and_then(|leads| symlink(leads, &target)).tried(copied)?;
        } else if kind.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).tried(copied)?;
        }
    }
    Ok(())
}
