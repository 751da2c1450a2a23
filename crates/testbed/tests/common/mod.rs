//! What the tests of beds share: one bed at a time, and independent means of measuring.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hpcbench_testbed::{Bed, BedSpec, Counters, FaultSpec, Kind, Link, Prefix};

/// Path of the program under test.
pub const TOOL: &str = env!("CARGO_BIN_EXE_hpcbench-testbed");

/// Two tests that measure at once would measure each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Takes the test's turn. `None` where beds cannot be made, which has been reported then.
pub fn turn() -> Option<MutexGuard<'static, ()>> {
    hpcbench_testbed::tests_can_run()
        .then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A name that no other bed on this machine has.
pub fn prefix() -> Prefix {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("t{}-{number}", std::process::id()).parse().unwrap()
}

/// Hosts and NICs with the defaults.
pub fn spec(hosts: usize, nics: usize) -> BedSpec {
    BedSpec::new(prefix(), hosts, nics)
}

pub fn link(text: &str) -> Link {
    text.parse().unwrap()
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A fault that is always on.
pub fn fault(kind: Kind, target: &str) -> FaultSpec {
    FaultSpec::new(kind, target.parse().unwrap())
}

/// Runs the program under test on a bed.
pub fn tool(prefix: &Prefix, arguments: &[&str]) -> Output {
    Command::new(TOOL).arg("--prefix").arg(prefix.as_str()).args(arguments).output().unwrap()
}

/// Standard output of a run that has to succeed.
pub fn said(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Fails unless `measured` is within 10% of `asked`.
#[track_caller]
pub fn assert_within_a_tenth(measured: f64, asked: f64, what: &str) {
    let off = (measured / asked - 1.0).abs();
    println!("{what}: asked {asked}, measured {measured:.4}, {:.1}% off", off * 100.0);
    assert!(off <= 0.1, "{what}: asked {asked}, measured {measured}");
}

pub fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty());
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A path between two NICs for numbered UDP datagrams.
pub struct Datagrams {
    sender: UdpSocket,
    receiver: UdpSocket,
}

/// Payload of each datagram in bytes.
pub const PAYLOAD: usize = 1000;
/// The same with UDP, IPv4 and Ethernet headers.
pub const FRAME: u64 = PAYLOAD as u64 + 8 + 20 + 14;

impl Datagrams {
    pub fn between(bed: &Bed, from: Link, to: Link) -> Datagrams {
        let bind = |at: Link| {
            let address = SocketAddrV4::new(bed.address(at), 0);
            bed.in_network(&format!("h{}", at.host), || UdpSocket::bind(address)).unwrap().unwrap()
        };
        let (sender, receiver) = (bind(from), bind(to));
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        // The end of a count; longer than any delay or phase that the tests use.
        receiver.set_read_timeout(Some(ms(400))).unwrap();
        Datagrams { sender, receiver }
    }

    /// Sends `count` datagrams, `at_once` every millisecond, and returns which arrived.
    pub fn send(&self, count: u32, at_once: u32) -> Vec<u32> {
        std::thread::scope(|scope| {
            let receiver = scope.spawn(|| self.receive());
            let start = Instant::now();
            for number in 0..count {
                let due = ms(u64::from(number / at_once));
                std::thread::sleep(due.saturating_sub(start.elapsed()));
                let mut payload = [0; PAYLOAD];
                payload[..4].copy_from_slice(&number.to_le_bytes());
                // A link without carrier refuses some; they count as lost.
                let _ = self.sender.send(&payload);
            }
            receiver.join().unwrap()
        })
    }

    fn receive(&self) -> Vec<u32> {
        let mut payload = [0; PAYLOAD];
        let mut arrived = Vec::new();
        while let Ok(length) = self.receiver.recv(&mut payload) {
            assert_eq!(length, PAYLOAD);
            arrived.push(u32::from_le_bytes(*payload.first_chunk().unwrap()));
        }
        arrived
    }

    /// Share of `count` datagrams that do not arrive.
    pub fn loss(&self, count: u32) -> f64 {
        1.0 - self.send(count, 5).len() as f64 / f64::from(count)
    }
}

/// Payload bits per second that one TCP connection carries: the median of three transfers.
pub fn tcp_rate(bed: &Bed, from: Link, to: Link, bytes: usize) -> f64 {
    median((0..3).map(|_| tcp_transfer(bed, from, to, bytes)).collect())
}

fn tcp_transfer(bed: &Bed, from: Link, to: Link, bytes: usize) -> f64 {
    let address = SocketAddrV4::new(bed.address(to), 0);
    let listen = || TcpListener::bind(address);
    let listener = bed.in_network(&format!("h{}", to.host), listen).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    let connect = || TcpStream::connect(to);
    let mut sender = bed.in_network(&format!("h{}", from.host), connect).unwrap().unwrap();
    let mut receiver = listener.accept().unwrap().0;
    receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || sender.write_all(&vec![0; bytes]).unwrap());
        let mut buffer = vec![0; 1 << 16];
        let first = receiver.read(&mut buffer).unwrap();
        let (start, mut rest) = (Instant::now(), bytes - first);
        while rest > 0 {
            rest -= receiver.read(&mut buffer).unwrap();
        }
        (bytes - first) as f64 * 8.0 / start.elapsed().as_secs_f64()
    })
}

/// Round-trip times in milliseconds that `ping` from h0 sees; lost ones are left out.
pub fn ping(bed: &Bed, to: Link, count: u32, interval_ms: u32) -> Vec<f64> {
    let mut ping = bed.command("h0", "ping").unwrap();
    ping.args(["-n", "-c", &count.to_string(), "-W", "1"]);
    ping.args(["-i", &format!("{}", f64::from(interval_ms) / 1000.0)]);
    let output = ping.arg(bed.address(to).to_string()).output();
    let output = output.expect("`ping` is there (Debian's package iputils-ping)");
    let text = String::from_utf8_lossy(&output.stdout);
    let time = |line: &str| line.split("time=").nth(1)?.split(' ').next()?.parse().ok();
    text.lines().filter_map(time).collect()
}

/// Counters of all interfaces of all hosts, the head and the switch, as `h0 nic0`.
pub fn all_counters(bed: &Bed) -> BTreeMap<String, Counters> {
    let hosts = bed.hosts().into_iter().map(|host| host.name);
    let places = hosts.chain(["head".to_owned(), "switch".to_owned()]);
    places
        .flat_map(|place| {
            let counters = bed.counters(&place).unwrap();
            counters.into_iter().map(move |(name, c)| (format!("{place} {name}"), c))
        })
        .collect()
}
