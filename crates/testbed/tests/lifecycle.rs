//! A bed leaves nothing behind: not after `down`, not after a hundred of them, and not after the
//! tool was killed half-way.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::*;
use hpcbench_testbed::{BedSpec, Kind, Prefix, Relays, Schedule, ScopedBed, down};

/// Everything on this machine that a bed could leave. Two that are equal mean nothing was left.
#[derive(Debug, PartialEq)]
struct Snapshot {
    /// Processes whose command line names the bed or the program under test.
    processes: BTreeSet<String>,
    /// Namespaces that some process is in, other than those of other beds.
    namespaces: BTreeSet<String>,
    mounts: BTreeSet<String>,
    interfaces: BTreeSet<String>,
    cgroups: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Snapshot {
    /// Of the beds whose name starts with `bed`, and of what belongs to no bed.
    fn take(bed: &Prefix) -> Snapshot {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        // The first field of a line is a number that the kernel gives anew.
        let mounts =
            mounts.lines().map(|line| line.split(' ').skip(3).collect::<Vec<_>>().join(" "));
        let mut groups = BTreeSet::new();
        list(Path::new("/sys/fs/cgroup"), &format!("hpcbench-testbed-{bed}"), &mut groups);
        let mut files = BTreeSet::new();
        list(Path::new("/run"), bed.as_str(), &mut files);
        let (processes, namespaces) = processes_and_namespaces(bed);
        Snapshot {
            processes,
            namespaces,
            mounts: mounts.collect(),
            interfaces: names(Path::new("/sys/class/net")).into_iter().collect(),
            cgroups: groups,
            files,
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Directories whose name starts with `start`, a few levels down.
fn list(directory: &Path, start: &str, found: &mut BTreeSet<String>) {
    for name in names(directory) {
        let path = directory.join(&name);
        if name.starts_with(start) {
            found.insert(path.display().to_string());
        } else if path.is_dir() && path.components().count() < 6 {
            list(&path, start, found);
        }
    }
}

fn processes_and_namespaces(bed: &Prefix) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut processes, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
    let own = format!("hpcbench-testbed-{bed}");
    for pid in names(Path::new("/proc")).iter().filter(|name| name.parse::<u32>().is_ok()) {
        let process = Path::new("/proc").join(pid);
        let groups = fs::read_to_string(process.join("cgroup")).unwrap_or_default();
        if groups.contains(&own) {
            processes.insert(pid.clone());
        } else if groups.contains("hpcbench-testbed-") {
            continue;
        }
        for kind in ["net", "uts", "mnt", "ipc", "time"] {
            let namespace = fs::read_link(process.join("ns").join(kind));
            namespaces.extend(namespace.map(|ns| ns.display().to_string()));
        }
    }
    (processes, namespaces)
}

#[test]
fn a_bed_is_there_and_then_it_is_not() {
    let Some(_turn) = turn() else { return };
    let spec = spec(4, 2);
    let before = Snapshot::take(&spec.prefix);
    let bed = ScopedBed::up(&BedSpec { relays: Relays::All, ..spec.clone() }).unwrap();
    let during = Snapshot::take(&spec.prefix);
    // 4 hosts, the head and the switch; 8 relays.
    assert_eq!(during.processes.len(), 6 + 8);
    assert_eq!(during.namespaces.len() - before.namespaces.len(), 6 * 5);
    assert!(during.cgroups.len() > before.cgroups.len());
    assert!(during.files.len() > before.files.len());
    assert_eq!(during.mounts, before.mounts, "mounts are in the hosts only");
    assert_eq!(during.interfaces, before.interfaces, "interfaces are in the hosts only");
    drop(bed);
    assert_as_before(&spec.prefix, &before, "down");
}

#[test]
fn a_hundred_beds_leak_nothing() {
    let Some(_turn) = turn() else { return };
    let spec = BedSpec { relays: Relays::Random(1), ..spec(4, 2) };
    let before = Snapshot::take(&spec.prefix);
    let open_files = || names(Path::new("/proc/self/fd")).len();
    let files = open_files();
    for _ in 0..100 {
        let mut bed = ScopedBed::up(&spec).unwrap();
        bed.add_fault(&fault(Kind::Down, "h1/nic0")).unwrap();
    }
    assert_as_before(&spec.prefix, &before, "a hundred beds");
    assert_eq!(open_files(), files);
}

#[test]
fn the_tool_killed_at_any_stage_leaves_what_down_removes() {
    let Some(_turn) = turn() else { return };
    let prefix = prefix();
    let before = Snapshot::take(&prefix);
    let up = ["up", "--hosts", "3", "--nics", "2", "--relays", "all"];
    let flap = ["fault", "flap", "h1/nic0", "--on", "5ms", "--off", "5ms"];
    // (what has to run before, what is killed)
    let stages: [(&[&[&str]], &[&str]); 6] = [
        (&[], &up),
        (&[&up], &["fault", "loss", "rail0", "10%"]),
        (&[&up], &flap),
        (&[&up, &flap], &["swap", "h1/nic0", "h2/nic0"]),
        (&[&up, &flap], &["clear"]),
        (&[&up, &flap], &["down"]),
    ];
    for (earlier, killed) in stages {
        let whole = run_through(&prefix, earlier, killed);
        // From at once to past the end, so that a kill falls into every part.
        let moments = 12;
        for moment in 0..=moments {
            for arguments in earlier {
                said(&tool(&prefix, arguments));
            }
            kill_after(&prefix, killed, whole * moment / (moments - 1));
            said(&tool(&prefix, &["down"]));
            assert_as_before(&prefix, &before, &format!("{killed:?} killed at {moment}/{moments}"));
        }
    }
    let again = tool(&prefix, &["down"]);
    assert!(said(&again).contains("nothing to remove"));
}

/// Insists that nothing has been left. Other programs of the machine come and go with namespaces of
/// their own, so only what stays for five seconds counts.
fn assert_as_before(prefix: &Prefix, before: &Snapshot, what: &str) {
    for _ in 0..50 {
        if Snapshot::take(prefix) == *before {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(Snapshot::take(prefix), *before, "{what}");
}

/// How long the last command takes when it is left alone.
fn run_through(prefix: &Prefix, earlier: &[&[&str]], last: &[&str]) -> Duration {
    for arguments in earlier {
        said(&tool(prefix, arguments));
    }
    let start = Instant::now();
    said(&tool(prefix, last));
    let whole = start.elapsed();
    said(&tool(prefix, &["down"]));
    whole
}

fn kill_after(prefix: &Prefix, arguments: &[&str], time: Duration) {
    let mut command = Command::new(TOOL);
    command.arg("--prefix").arg(prefix.as_str()).args(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn paused_hosts_and_busy_commands_are_removed_too() {
    let Some(_turn) = turn() else { return };
    let spec = spec(2, 1);
    let before = Snapshot::take(&spec.prefix);
    let mut bed = ScopedBed::up(&spec).unwrap();
    let script = "trap '' TERM INT HUP; while :; do sleep 100; done";
    let mut children: Vec<_> = ["h0", "h1", "head", "switch"]
        .map(|host| bed.command(host, "sh").unwrap().args(["-c", script]).spawn().unwrap())
        .into();
    bed.add_fault(&fault(Kind::Pause, "h0")).unwrap();
    drop(bed);
    for child in &mut children {
        assert!(!child.wait().unwrap().success());
    }
    assert_as_before(&spec.prefix, &before, "down");
}

#[test]
fn down_touches_only_its_own() {
    let Some(_turn) = turn() else { return };
    let spec = spec(2, 1);
    // A bed whose name the other's begins with, and a stranger with the name of our program.
    let longer: Prefix = format!("{}x", spec.prefix).parse().unwrap();
    let other = ScopedBed::up(&BedSpec { prefix: longer, ..spec.clone() }).unwrap();
    let mut stranger = Command::new("sleep").arg0("hpcbench-testbed").arg("60").spawn().unwrap();
    drop(ScopedBed::up(&spec).unwrap());
    assert!(stranger.try_wait().unwrap().is_none());
    assert_eq!(ping(&other, link("h1/nic0"), 2, 10).len(), 2);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_name_that_is_taken_is_refused_and_what_is_there_stays() {
    let Some(_turn) = turn() else { return };
    let spec = spec(2, 1);
    let bed = ScopedBed::up(&spec).unwrap();
    let error = ScopedBed::up(&spec).err().unwrap().to_string();
    assert!(error.contains("exists already"), "{error}");
    assert_eq!(ping(&bed, link("h1/nic0"), 2, 10).len(), 2);
}

#[test]
fn a_bed_that_cannot_be_built_leaves_nothing() {
    let Some(_turn) = turn() else { return };
    let spec = spec(2, 1);
    let before = Snapshot::take(&spec.prefix);
    // An inventory with something in the way of a NIC fails late, when the networks are up.
    let fixture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(spec.prefix.as_str());
    fs::create_dir_all(fixture.join("sys/class/net/nic0")).unwrap();
    let inventory = hpcbench_testbed::Inventory::Fixture(fixture.clone());
    let failed = ScopedBed::up(&BedSpec { inventory, ..spec.clone() });
    fs::remove_dir_all(&fixture).unwrap();
    assert!(failed.is_err());
    assert_as_before(&spec.prefix, &before, "down");
}

#[test]
fn a_host_that_died_is_named_and_the_rest_can_be_removed() {
    let Some(_turn) = turn() else { return };
    let spec = spec(2, 1);
    let before = Snapshot::take(&spec.prefix);
    let bed = ScopedBed::up(&spec).unwrap();
    let holder = rustix::process::Pid::from_raw(bed.hosts()[1].pid).unwrap();
    rustix::process::kill_process(holder, rustix::process::Signal::KILL).unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    let error = loop {
        match bed.command("h1", "true") {
            Err(e) => break e.to_string(),
            Ok(_) => assert!(Instant::now() < deadline, "h1 does not die"),
        }
    };
    assert!(error.contains("h1") && error.contains("down"), "{error}");
    drop(bed);
    assert_as_before(&spec.prefix, &before, "down");
}

#[test]
fn without_rights_it_says_what_is_missing_and_makes_nothing() {
    let Some(_turn) = turn() else { return };
    let prefix = prefix();
    let before = Snapshot::take(&prefix);
    // The program may lie where only root can go.
    let copy = std::env::temp_dir().join(format!("hpcbench-testbed-{prefix}"));
    fs::copy(TOOL, &copy).unwrap();
    let mut command = Command::new(&copy);
    command.args(["up", "--prefix", prefix.as_str()]).uid(65534).gid(65534).current_dir("/");
    let output = command.output();
    fs::remove_file(&copy).unwrap();
    let output = output.unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains("CAP_SYS_ADMIN") && words.contains("as root"), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");
    assert_as_before(&prefix, &before, "down");
}

#[test]
fn a_schedule_that_runs_is_removed_with_its_bed() {
    let Some(_turn) = turn() else { return };
    let spec = spec(2, 1);
    let before = Snapshot::take(&spec.prefix);
    let mut bed = ScopedBed::up(&spec).unwrap();
    let schedule = Schedule { after: ms(0), on: ms(2), off: ms(2), times: None, random: true };
    for (kind, target) in
        [(Kind::Pause, "h0"), (Kind::Down, "h1/nic0"), (Kind::SlowHost(0.5), "h1")]
    {
        let mut fault = fault(kind, target);
        fault.schedule = Some(schedule.clone());
        bed.add_fault(&fault).unwrap();
    }
    std::thread::sleep(ms(50));
    // Another process than the one that made it.
    down(&spec.prefix).unwrap();
    assert_eq!(Snapshot::take(&spec.prefix).cgroups, before.cgroups);
    drop(bed);
    assert_as_before(&spec.prefix, &before, "down");
}
