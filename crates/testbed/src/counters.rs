use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Result, Tried};

/// What an interface has carried since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Frames received.
    pub rx_packets: u64,
    /// Their bytes, with the Ethernet header.
    pub rx_bytes: u64,
    /// Frames that came in and were dropped.
    pub rx_dropped: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Their bytes, with the Ethernet header.
    pub tx_bytes: u64,
    /// Frames that were to go out and were dropped.
    pub tx_dropped: u64,
    /// How often the carrier came or went.
    pub carrier_changes: u64,
}

/// Where the interfaces of a host show, seen from anywhere: its holder's own `/sys`.
pub(crate) fn interfaces(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/root/sys/class/net"))
}

/// Reads the counters of every interface of a host.
pub(crate) fn read(pid: i32) -> Result<BTreeMap<String, Counters>> {
    let directory = interfaces(pid);
    let mut counters = BTreeMap::new();
    let entries = fs::read_dir(&directory).tried(|| format!("list {}", directory.display()))?;
    for entry in entries {
        let entry = entry.tried(|| format!("list {}", directory.display()))?;
        counters.insert(entry.file_name().to_string_lossy().into_owned(), of(&entry.path())?);
    }
    Ok(counters)
}

fn of(interface: &Path) -> Result<Counters> {
    let statistics = interface.join("statistics");
    Ok(Counters {
        rx_packets: number(&statistics.join("rx_packets"))?,
        rx_bytes: number(&statistics.join("rx_bytes"))?,
        rx_dropped: number(&statistics.join("rx_dropped"))?,
        tx_packets: number(&statistics.join("tx_packets"))?,
        tx_bytes: number(&statistics.join("tx_bytes"))?,
        tx_dropped: number(&statistics.join("tx_dropped"))?,
        carrier_changes: number(&interface.join("carrier_changes"))?,
    })
}

fn number(file: &Path) -> Result<u64> {
    let text = fs::read_to_string(file).tried(|| format!("read {}", file.display()))?;
    text.trim().parse().map_err(std::io::Error::other).tried(|| format!("read {}", file.display()))
}
