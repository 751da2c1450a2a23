//! The bed's control groups. Every process of a bed is in one of them from before its first
//! instruction, so they are also the list of what `down` has to kill.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result, Tried, write};
use crate::names::Prefix;

/// Period of the CPU quota: short, so that a slow host is slow and not stop-and-go. The kernel
/// takes 1 ms to 1 s (Documentation/scheduler/sched-bwc.rst).
const PERIOD_US: u64 = 10_000;

/// How long killed processes may take to go away.
const DEADLINE: Duration = Duration::from_secs(20);

/// The control groups of one bed.
#[derive(Clone, Debug)]
pub(crate) struct Cgroups {
    layout: Layout,
    /// Holds every process and can freeze them.
    freezer: PathBuf,
    /// Holds the hosts' processes; absent where there is no CPU controller to be had.
    cpu: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    V1,
    V2,
}

impl Cgroups {
    /// Finds where the groups of this bed are, or would be: version 1 hierarchies where the
    /// machine mounts them, version 2 otherwise.
    pub fn of(prefix: &Prefix) -> Result<Self> {
        let mounts = fs::read_to_string("/proc/mounts").tried(|| "read /proc/mounts".to_owned())?;
        Self::in_mounts(&mounts, prefix).ok_or_else(|| {
            Error::Rights("no cgroup hierarchy with a freezer is mounted".to_owned())
        })
    }

    fn in_mounts(mounts: &str, prefix: &Prefix) -> Option<Self> {
        let group = format!("hpcbench-testbed-{prefix}");
        let find = |kind: &str, controller: &str| {
            mounts.lines().find_map(|line| {
                let mut fields = line.split(' ').skip(1);
                let (at, fs, options) = (fields.next()?, fields.next()?, fields.next()?);
                let has = controller.is_empty() || options.split(',').any(|o| o == controller);
                (fs == kind && has).then(|| Path::new(at).join(&group))
            })
        };
        match (find("cgroup", "freezer"), find("cgroup2", "")) {
            (Some(freezer), _) => {
                Some(Cgroups { layout: Layout::V1, freezer, cpu: find("cgroup", "cpu") })
            }
            (None, Some(unified)) => {
                Some(Cgroups { layout: Layout::V2, freezer: unified.clone(), cpu: Some(unified) })
            }
            (None, None) => None,
        }
    }

    /// Makes the bed's groups: `tools` for its own processes, and one for each host.
    pub fn create(&mut self, hosts: &[String]) -> Result<()> {
        if self.layout == Layout::V2 {
            fs::create_dir(&self.freezer).tried(|| format!("make {}", self.freezer.display()))?;
            self.enable_cpu_controller();
        }
        for group in hosts.iter().map(String::as_str).chain(["tools"]) {
            for path in self.paths(group) {
                fs::create_dir_all(&path).tried(|| format!("make {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Asks version 2 for CPU quotas in the hosts' groups. Inside a container the root group has
    /// processes of its own and refuses; then there is no `slow-host`, and everything else works.
    fn enable_cpu_controller(&mut self) {
        let root = self.freezer.parent().unwrap_or(&self.freezer);
        let enable = |group: &Path| fs::write(group.join("cgroup.subtree_control"), "+cpu");
        if enable(root).and_then(|()| enable(&self.freezer)).is_err() {
            self.cpu = None;
        }
    }

    fn paths(&self, group: &str) -> Vec<PathBuf> {
        let cpu = self.cpu.as_ref().filter(|cpu| **cpu != self.freezer && group != "tools");
        cpu.into_iter().chain([&self.freezer]).map(|at| at.join(group)).collect()
    }

    /// The files through which a process joins a group.
    pub fn join_files(&self, group: &str) -> Vec<PathBuf> {
        self.paths(group).into_iter().map(|path| path.join("cgroup.procs")).collect()
    }

    /// Stops or resumes all processes of a group.
    pub fn set_frozen(&self, group: &str, frozen: bool) -> Result<()> {
        set_frozen(self.layout, &self.freezer.join(group), frozen)
    }

    /// Limits a group to so many cores in all, or lifts the limit.
    pub fn set_cores(&self, group: &str, cores: Option<f64>) -> Result<()> {
        let missing =
            || Error::Rights("this machine has no cgroup CPU controller to be had".to_owned());
        let at = self.cpu.as_ref().ok_or_else(missing)?.join(group);
        let quota_us = cores.map(|cores| (cores * PERIOD_US as f64).round().max(1000.0) as u64);
        // A quota has to be 1 ms at least, so a small share gets a longer period.
        let period_us = match (cores, quota_us) {
            (Some(cores), Some(quota)) => ((quota as f64 / cores).round() as u64).min(1_000_000),
            _ => PERIOD_US,
        };
        if self.layout == Layout::V2 {
            let quota = quota_us.map_or("max".to_owned(), |us| us.to_string());
            return write(&at.join("cpu.max"), &format!("{quota} {period_us}"));
        }
        write(&at.join("cpu.cfs_quota_us"), "-1")?;
        write(&at.join("cpu.cfs_period_us"), &period_us.to_string())?;
        let quota = quota_us.map_or("-1".to_owned(), |us| us.to_string());
        write(&at.join("cpu.cfs_quota_us"), &quota)
    }

    /// Whether the bed has any group.
    pub fn exist(&self) -> bool {
        self.roots().iter().any(|root| root.exists())
    }

    /// The topmost group in each hierarchy.
    pub fn roots(&self) -> Vec<&PathBuf> {
        let cpu = self.cpu.as_ref().filter(|cpu| **cpu != self.freezer);
        cpu.into_iter().chain([&self.freezer]).collect()
    }

    /// Whether a process belongs to the bed.
    pub fn contains(&self, pid: i32) -> bool {
        let group = self.freezer.file_name().unwrap_or_default().to_string_lossy().into_owned();
        fs::read_to_string(format!("/proc/{pid}/cgroup"))
            .is_ok_and(|text| text.split(['/', '\n']).any(|part| part == group))
    }

    /// Kills every process of the bed and waits until they are gone. Returns how many it killed.
    pub fn kill_all(&self) -> Result<usize> {
        let start = Instant::now();
        let mut killed = std::collections::BTreeSet::new();
        loop {
            let members = self.members()?;
            if members.is_empty() {
                return Ok(killed.len());
            }
            if start.elapsed() > DEADLINE {
                return Err(Error::Broken(format!("processes {members:?} do not die")));
            }
            for pid in &members {
                // One that has died by itself in the meantime is what we want.
                let _ = Pid::from_raw(*pid).map(|pid| kill_process(pid, Signal::KILL));
            }
            self.thaw_all();
            killed.extend(members);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A frozen process does not die, so all are resumed.
    fn thaw_all(&self) {
        for group in groups_under(&self.freezer).unwrap_or_default() {
            // One that cannot be resumed shows as a process that does not die.
            let _ = set_frozen(self.layout, &group, false);
        }
    }

    fn members(&self) -> Result<Vec<i32>> {
        let mut pids = Vec::new();
        for root in self.roots() {
            for group in groups_under(root).tried(|| format!("list {}", root.display()))? {
                let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
                pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
            }
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// Removes the bed's groups, which have no process any more. Returns how many there were.
    pub fn remove(&self) -> Result<usize> {
        let mut removed = 0;
        for root in self.roots() {
            for group in groups_under(root).tried(|| format!("list {}", root.display()))? {
                remove(&group)?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// Deletes a group; the kernel may take a moment to forget the last process.
fn remove(group: &Path) -> Result<()> {
    let start = Instant::now();
    loop {
        match fs::remove_dir(group) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) if e.kind() == ErrorKind::ResourceBusy && start.elapsed() < DEADLINE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            other => return other.tried(|| format!("remove {}", group.display())),
        }
    }
}

fn set_frozen(layout: Layout, group: &Path, frozen: bool) -> Result<()> {
    match (layout, frozen) {
        (Layout::V1, true) => write(&group.join("freezer.state"), "FROZEN"),
        (Layout::V1, false) => write(&group.join("freezer.state"), "THAWED"),
        (Layout::V2, _) => write(&group.join("cgroup.freeze"), if frozen { "1" } else { "0" }),
    }
}

/// A group and all below it, the deepest first; empty when it does not exist.
fn groups_under(root: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(root) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut groups = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            groups.extend(groups_under(&entry.path())?);
        }
    }
    groups.push(root.to_owned());
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mounts: &str) -> Option<Cgroups> {
        Cgroups::in_mounts(mounts, &"x".parse().unwrap())
    }

    #[test]
    fn version_one_is_taken_where_it_is_mounted() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/freezer cgroup rw,relatime,freezer 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let cgroups = found(mounts).unwrap();
        assert_eq!(cgroups.layout, Layout::V1);
        assert_eq!(
            cgroups.join_files("h0"),
            [
                PathBuf::from("/sys/fs/cgroup/cpu,cpuacct/hpcbench-testbed-x/h0/cgroup.procs"),
                PathBuf::from("/sys/fs/cgroup/freezer/hpcbench-testbed-x/h0/cgroup.procs"),
            ]
        );
        // Relays and holders of namespaces keep the CPU group of whoever starts them.
        assert_eq!(cgroups.join_files("tools").len(), 1);
    }

    #[test]
    fn version_two_is_one_hierarchy_for_both() {
        let cgroups = found("cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n").unwrap();
        assert_eq!(cgroups.layout, Layout::V2);
        let joined = cgroups.join_files("h0");
        assert_eq!(joined, [Path::new("/sys/fs/cgroup/hpcbench-testbed-x/h0/cgroup.procs")]);
    }

    #[test]
    fn a_machine_without_cgroups_has_none() {
        assert!(found("proc /proc proc rw 0 0\n").is_none());
    }

    #[test]
    fn version_two_freezes_kills_and_removes() {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let unified = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
        let Some(unified) = unified.filter(|_| crate::rights::tests_can_run()) else { return };
        let prefix = format!("v2-{}", std::process::id()).parse().unwrap();
        let mut cgroups = Cgroups::in_mounts(unified, &prefix).unwrap();
        cgroups.create(&["h0".to_owned()]).unwrap();
        let mut command = std::process::Command::new("sleep");
        command.arg("60");
        crate::namespace::enter(&mut command, &cgroups.join_files("h0"), None).unwrap();
        let mut child = command.spawn().unwrap();
        let events = cgroups.freezer.join("h0/cgroup.events");
        let frozen = |flag: &str| {
            let deadline = Instant::now() + Duration::from_secs(5);
            while !fs::read_to_string(&events).unwrap().contains(flag) {
                assert!(Instant::now() < deadline, "no `{flag}`");
            }
        };
        cgroups.set_frozen("h0", true).unwrap();
        frozen("frozen 1");
        assert!(cgroups.contains(child.id() as i32));
        assert_eq!(cgroups.kill_all().unwrap(), 1);
        assert!(!child.wait().unwrap().success());
        assert_eq!(cgroups.remove().unwrap(), 3);
        assert!(!cgroups.exist());
    }
}
