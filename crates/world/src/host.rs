//! Facts about the host that this process runs on.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::system::uname;
use rustix::thread::sched_getaffinity;

/// What one process sees of its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// Host name, as the kernel has it.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// Cores this process may run on.
    pub cores: u32,
    /// Memory in bytes, the control group's limit where that is lower.
    pub memory_bytes: u64,
    /// Memory in bytes that can be had without swapping, likewise.
    pub available_bytes: u64,
    /// Tells hosts of one name apart, and processes of one host whose clocks differ: the kernel's
    /// boot and the time namespace.
    pub identity: String,
}

impl HostFacts {
    /// Reads them from the kernel; what cannot be read is 0 or `unknown`.
    pub fn read() -> HostFacts {
        let names = uname();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let group = cgroup_memory();
        let total = meminfo_bytes(&meminfo, "MemTotal").unwrap_or(0);
        let available = meminfo_bytes(&meminfo, "MemAvailable").unwrap_or(total);
        HostFacts {
            name: names.nodename().to_str().unwrap_or("unknown").to_owned(),
            kernel: names.release().to_str().unwrap_or("unknown").to_owned(),
            cores: sched_getaffinity(None).map_or(1, |set| set.count()),
            memory_bytes: group.map_or(total, |(limit, _)| total.min(limit)),
            available_bytes: group.map_or(available, |(_, rest)| available.min(rest)),
            identity: identity(),
        }
    }
}

fn identity() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let clock = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{}/{}", boot.trim(), clock.display())
}

fn meminfo_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// What this process's control groups leave of memory: the smallest limit of the group and its
/// ancestors, and the smallest rest, both in bytes; `None` without a limit.
fn cgroup_memory() -> Option<(u64, u64)> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let levels = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        match (fields.next(), fields.next()) {
            (Some(""), Some(path)) => {
                ancestors("/sys/fs/cgroup", path, "memory.max", "memory.current")
            }
            (Some("memory"), Some(path)) => ancestors(
                "/sys/fs/cgroup/memory",
                path,
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => Vec::new(),
        }
    });
    levels.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)))
}

/// Limit and rest of a group and its ancestors, where they have a limit. In a container the group's
/// own path may not be there, but the mount's root is.
fn ancestors(mount: &str, path: &str, limit: &str, used: &str) -> Vec<(u64, u64)> {
    let number = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let level = |group: &Path| {
        let dir = Path::new(mount).join(group);
        let limit = number(dir.join(limit))?;
        // The page cache counts as used, but gives way.
        let cache =
            fs::read_to_string(dir.join("memory.stat")).ok().and_then(|stat| inactive_file(&stat));
        let used = number(dir.join(used)).unwrap_or(0).saturating_sub(cache.unwrap_or(0));
        Some((limit, limit.saturating_sub(used)))
    };
    Path::new(path.trim_start_matches('/')).ancestors().filter_map(level).collect()
}

/// `inactive_file` of a `memory.stat`, in bytes; version 1 has the whole subtree's as `total_…`.
fn inactive_file(stat: &str) -> Option<u64> {
    let value =
        |key: &str| stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    value("total_inactive_file ").or_else(|| value("inactive_file "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:       24634552 kB\nMemFree: 1 kB\nMemAvailable:   24000000 kB\n";
        assert_eq!(meminfo_bytes(text, "MemAvailable"), Some(24_000_000 * 1024));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
    }

    #[test]
    fn the_page_cache_is_read_from_either_version() {
        assert_eq!(inactive_file("anon 5\ninactive_file 4096\n"), Some(4096));
        assert_eq!(inactive_file("inactive_file 1\ntotal_inactive_file 8192\n"), Some(8192));
        assert_eq!(inactive_file("anon 5\n"), None);
    }

    #[test]
    fn this_host_has_a_name_cores_and_memory() {
        let facts = HostFacts::read();
        assert!(!facts.name.is_empty() && facts.cores > 0);
        assert!(facts.available_bytes > 0 && facts.available_bytes <= facts.memory_bytes);
    }
}
