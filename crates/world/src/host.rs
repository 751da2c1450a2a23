//! Facts about the host that this process runs on.

use std::fs;

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
}

impl HostFacts {
    /// Reads them from the kernel; what cannot be read is 0 or `unknown`.
    pub fn read() -> HostFacts {
        let names = uname();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let (limit, used) = cgroup_memory();
        let total = meminfo_bytes(&meminfo, "MemTotal").unwrap_or(0);
        let available = meminfo_bytes(&meminfo, "MemAvailable").unwrap_or(total);
        HostFacts {
            name: names.nodename().to_str().unwrap_or("unknown").to_owned(),
            kernel: names.release().to_str().unwrap_or("unknown").to_owned(),
            cores: sched_getaffinity(None).map_or(1, |set| set.count()),
            memory_bytes: limit.map_or(total, |limit| total.min(limit)),
            available_bytes: limit
                .map_or(available, |limit| available.min(limit.saturating_sub(used))),
        }
    }
}

fn meminfo_bytes(meminfo: &str, key: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Limit and use of this process's control group (version 2, then 1), in bytes.
fn cgroup_memory() -> (Option<u64>, u64) {
    let number = |path: String| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (base, limit, used) = match controllers {
            "" => (format!("/sys/fs/cgroup{path}"), "memory.max", "memory.current"),
            "memory" => (
                format!("/sys/fs/cgroup/memory{path}"),
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => continue,
        };
        if let Some(limit) = number(format!("{base}/{limit}")) {
            return (Some(limit), number(format!("{base}/{used}")).unwrap_or(0));
        }
    }
    (None, 0)
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
    fn this_host_has_a_name_cores_and_memory() {
        let facts = HostFacts::read();
        assert!(!facts.name.is_empty() && facts.cores > 0);
        assert!(facts.available_bytes > 0 && facts.available_bytes <= facts.memory_bytes);
    }
}
