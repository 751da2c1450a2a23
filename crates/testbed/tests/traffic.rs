//! Traffic goes where it should and nowhere else, counted at every interface of every bed.

mod common;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use common::*;
use hpcbench_testbed::{Bed, BedSpec, Counters, Relays, ScopedBed};

/// What every interface has carried between two looks: (frames in, bytes in, frames out, bytes
/// out), without those that carried nothing.
fn carried(
    before: &BTreeMap<String, Counters>,
    after: &BTreeMap<String, Counters>,
) -> BTreeMap<String, (u64, u64, u64, u64)> {
    let difference = |(name, after): (&String, &Counters)| {
        let before = before[name];
        let carried = (
            after.rx_packets - before.rx_packets,
            after.rx_bytes - before.rx_bytes,
            after.tx_packets - before.tx_packets,
            after.tx_bytes - before.tx_bytes,
        );
        (carried != (0, 0, 0, 0)).then(|| (name.clone(), carried))
    };
    after.iter().filter_map(difference).collect()
}

const COUNT: u64 = 1000;

/// The interfaces that datagrams from h0/nic1 to h2/nic1 pass, and what each has to count.
fn expected(relays: bool) -> BTreeMap<String, (u64, u64, u64, u64)> {
    let (inwards, outwards) = ((COUNT, COUNT * FRAME, 0, 0), (0, 0, COUNT, COUNT * FRAME));
    let mut way = vec![
        ("h0 nic1", outwards),
        ("switch h0-nic1", inwards),
        ("switch h2-nic1", outwards),
        ("h2 nic1", inwards),
    ];
    if relays {
        // A TAP device sends what its relay reads.
        way.extend([
            ("switch h0-nic1-h", outwards),
            ("switch h0-nic1-r", inwards),
            ("switch h2-nic1-r", outwards),
            ("switch h2-nic1-h", inwards),
        ]);
    }
    way.into_iter().map(|(name, counts)| (name.to_owned(), counts)).collect()
}

#[test]
fn every_interface_counts_what_it_should_and_no_other_counts_anything() {
    let Some(_turn) = turn() else { return };
    for relays in [Relays::None, Relays::All] {
        let bed = ScopedBed::up(&BedSpec { relays, ..spec(4, 2) }).unwrap();
        let path = Datagrams::between(&bed, link("h0/nic1"), link("h2/nic1"));
        let before = all_counters(&bed);
        assert_eq!(path.send(COUNT as u32, 2).len() as u64, COUNT);
        let after = all_counters(&bed);
        assert_eq!(carried(&before, &after), expected(relays == Relays::All), "{relays:?}");
    }
}

#[test]
fn a_bed_that_nobody_uses_is_silent() {
    let Some(_turn) = turn() else { return };
    let bed = ScopedBed::up(&BedSpec { relays: Relays::Random(2), ..spec(4, 2) }).unwrap();
    // Long enough for what kernels say by themselves when an interface comes up.
    std::thread::sleep(ms(1500));
    let silent = all_counters(&bed).into_values().all(|counters| {
        (counters.rx_packets, counters.tx_packets, counters.tx_dropped) == (0, 0, 0)
    });
    assert!(silent, "{:#?}", all_counters(&bed));
}

#[test]
fn two_beds_do_not_see_each_other() {
    let Some(_turn) = turn() else { return };
    let (a, b) = (ScopedBed::up(&spec(2, 1)).unwrap(), ScopedBed::up(&spec(2, 1)).unwrap());
    // The same address in both, and a listener in one of them only.
    let to = SocketAddrV4::new(a.address(link("h1/nic0")), 5000);
    let listener = b.in_network("h1", || TcpListener::bind(to)).unwrap().unwrap();
    let connect = |bed: &Bed| bed.in_network("h0", || TcpStream::connect(to)).unwrap();
    assert_eq!(connect(&a).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    drop(connect(&b).unwrap());
    drop(listener);
    let before = all_counters(&b);
    assert_eq!(ping(&a, link("h1/nic0"), 20, 5).len(), 20);
    assert_eq!(carried(&before, &all_counters(&b)), BTreeMap::new());
}

#[test]
fn every_host_has_its_own_name_clock_and_interfaces() {
    let Some(_turn) = turn() else { return };
    let bed = ScopedBed::up(&spec(4, 2)).unwrap();
    let hosts = bed.hosts();
    let inside = |host: &str, words: &[&str]| {
        let output = bed.command(host, words[0]).unwrap().args(&words[1..]).output().unwrap();
        said(&output)
    };
    let uptime = |text: &str| text.split(' ').next().unwrap().parse::<f64>().unwrap();
    for host in &hosts {
        assert_eq!(inside(&host.name, &["hostname"]).trim(), host.name);
        assert_eq!(
            inside(&host.name, &["ls", "/sys/class/net"]),
            "lo\nmgmt0\nnic0\nnic1\n",
            "the NICs in /sys are the host's own"
        );
        // What the kernel says of the clocks, and one of them read.
        let offsets = inside(&host.name, &["cat", "/proc/self/timens_offsets"]);
        assert_eq!(offset(&offsets, "monotonic"), host.clock.monotonic_ns);
        assert_eq!(offset(&offsets, "boottime"), host.clock.boottime_ns);
        let outside = uptime(&std::fs::read_to_string("/proc/uptime").unwrap());
        let ahead = uptime(&inside(&host.name, &["cat", "/proc/uptime"])) - outside;
        assert!((ahead - host.clock.boottime_ns as f64 / 1e9).abs() < 5.0, "{ahead}");
    }
    let mut offsets: Vec<u64> = hosts.iter().map(|host| host.clock.monotonic_ns).collect();
    offsets.push(0);
    offsets.sort_unstable();
    let nearest = offsets.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
    assert!(
        nearest > 1_000_000_000,
        "no two clocks are within a second, and none is the machine's"
    );
}

/// Nanoseconds of a clock in /proc/PID/timens_offsets: `monotonic  SECONDS  NANOSECONDS`.
fn offset(text: &str, clock: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(clock)).unwrap();
    let mut numbers = line.split_whitespace().skip(1).map(|word| word.parse::<u64>().unwrap());
    numbers.next().unwrap() * 1_000_000_000 + numbers.next().unwrap()
}

#[test]
fn mpirun_starts_its_ranks_inside_the_hosts_over_the_management_network() {
    let Some(_turn) = turn() else { return };
    let bed = ScopedBed::up(&spec(4, 2)).unwrap();
    let before = all_counters(&bed);
    let script = "echo $(hostname) $(cat /proc/self/timens_offsets)";
    let text = said(&mpirun(&bed).args(["-n", "8", "sh", "-c", script]).output().unwrap());
    for host in bed.hosts() {
        let on_host = |line: &&str| line.starts_with(&format!("{} ", host.name));
        let lines: Vec<&str> = text.lines().filter(on_host).collect();
        assert_eq!(lines.len(), 2, "two ranks on {}: {text}", host.name);
        let seconds = format!("monotonic {} ", host.clock.monotonic_ns / 1_000_000_000);
        assert!(lines.iter().all(|line| line.contains(&seconds)), "{text}");
    }
    let used = carried(&before, &all_counters(&bed));
    assert!(used.keys().all(|name| !name.contains("nic")), "{used:?}");
    assert!(used.keys().any(|name| name == "h3 mgmt0"), "{used:?}");
}

/// The launcher of the MPI that the tests are built for.
fn launcher() -> String {
    std::env::var("HPCBENCH_TEST_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned())
}

/// That launcher across the hosts of a bed; a program that hangs fails its test.
fn mpirun(bed: &Bed) -> Command {
    let mut command = bed.mpirun("timeout").unwrap();
    command.args(["60", &launcher()]);
    command
}

fn is_hydra() -> bool {
    let version = Command::new(launcher()).arg("--version").output().unwrap();
    String::from_utf8_lossy(&version.stdout).contains("HYDRA")
}

#[test]
fn mpi_data_goes_over_the_nics_and_control_over_the_management_network() {
    let Some(_turn) = turn() else { return };
    if is_hydra() {
        // On plain loopback, too: 4 of 10 runs with UCX_TLS=tcp do not end.
        let why = "skipped: MPICH 4.0 over UCX 1.13's tcp hangs in MPI_Finalize now and then\n";
        std::io::stderr().write_all(why.as_bytes()).unwrap();
        return;
    }
    // One rank on each host.
    let bed = ScopedBed::up(&BedSpec { slots: 1, ..spec(4, 2) }).unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("allreduce");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/allreduce.c");
    let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    said(&Command::new(mpicc).arg("-o").arg(&program).arg(source).output().unwrap());
    let before = all_counters(&bed);
    said(&mpirun(&bed).args(["-n", "4"]).arg(&program).output().unwrap());
    let used = carried(&before, &all_counters(&bed));
    let sent = |name: &str| used.get(name).map_or(0, |(_, _, _, bytes)| *bytes);
    // Ten times 1 MiB; any allreduce sends each rank's buffer at least once.
    let least = 10 * (1 << 20);
    for host in ["h0", "h1", "h2", "h3"] {
        let data = sent(&format!("{host} nic0")) + sent(&format!("{host} nic1"));
        assert!(data >= least, "{host}: {data} bytes on the NICs");
        let control = sent(&format!("{host} mgmt0"));
        assert!(control < least / 20, "{host}: {control} bytes on the management network");
    }
}
