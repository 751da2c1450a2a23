//! Every fault is measured from outside and has the size that was asked for, within 10%, where it
//! was asked for and nowhere else.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::*;
use hpcbench_testbed::{
    Bed, BedSpec, Direction, FaultSpec, Kind, OnSwap, Phases, Relays, Schedule, ScopedBed, Share,
};

fn share(text: &str) -> Share {
    text.parse().unwrap()
}

fn always(on: u64, off: u64) -> Option<Schedule> {
    Some(Schedule { after: ms(0), on: ms(on), off: ms(off), times: None, random: false })
}

/// Loss from one NIC to another, as interface counters see it: frames in at the receiver against
/// frames out at the sender.
fn counted_loss(bed: &Bed, from: &str, to: &str, count: u32) -> f64 {
    let (from, to) = (link(from), link(to));
    let sent = || bed.counters(&format!("h{}", from.host)).unwrap()[&format!("nic{}", from.nic)];
    let got = || bed.counters(&format!("h{}", to.host)).unwrap()[&format!("nic{}", to.nic)];
    let (sent_before, got_before) = (sent().tx_packets, got().rx_packets);
    Datagrams::between(bed, from, to).send(count, 5);
    let (sent, got) = (sent().tx_packets - sent_before, got().rx_packets - got_before);
    assert_eq!(sent, u64::from(count));
    1.0 - got as f64 / sent as f64
}

#[test]
fn loss_in_one_direction_has_its_size_and_the_other_has_none() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(3, 2)).unwrap();
    let loss = fault(Kind::Loss(share("5%")), "h1/nic0");
    bed.add_fault(&FaultSpec { direction: Direction::Send, ..loss }).unwrap();
    // 20,000 draws: 1000 expected, standard deviation 31, and the same at every run.
    assert_within_a_tenth(counted_loss(&bed, "h1/nic0", "h0/nic0", 20_000), 0.05, "loss");
    assert_eq!(counted_loss(&bed, "h0/nic0", "h1/nic0", 2000), 0.0);
    assert_eq!(counted_loss(&bed, "h1/nic1", "h0/nic1", 2000), 0.0);
    assert_eq!(counted_loss(&bed, "h2/nic0", "h0/nic0", 2000), 0.0);
    bed.clear(None).unwrap();
    assert_eq!(counted_loss(&bed, "h1/nic0", "h0/nic0", 2000), 0.0);
}

#[test]
fn loss_on_a_path_a_host_or_a_rail_stays_there() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(3, 2)).unwrap();
    type Paths = &'static [(&'static str, &'static str)];
    // (where, paths with loss, paths without)
    let cases: [(&str, Paths, Paths); 3] = [
        (
            "h0/nic0:h1/nic0",
            &[("h0/nic0", "h1/nic0")],
            &[("h1/nic0", "h0/nic0"), ("h0/nic0", "h2/nic0"), ("h0/nic1", "h1/nic1")],
        ),
        (
            "h1",
            &[("h1/nic0", "h0/nic0"), ("h1/nic1", "h2/nic1")],
            &[("h0/nic0", "h2/nic0"), ("h2/nic1", "h0/nic1")],
        ),
        ("rail1", &[("h0/nic1", "h1/nic1"), ("h2/nic1", "h0/nic1")], &[("h0/nic0", "h1/nic0")]),
    ];
    for (place, lossy, clean) in cases {
        let id = bed
            .add_fault(&FaultSpec {
                // A rail's frames cross two of its links; one direction hits each of them once.
                direction: if place.contains(':') { Direction::Both } else { Direction::Send },
                ..fault(Kind::Loss(share("30%")), place)
            })
            .unwrap();
        for (from, to) in lossy {
            let loss = counted_loss(&bed, from, to, 3000);
            assert_within_a_tenth(loss, 0.3, &format!("loss on {place}, {from} to {to}"));
        }
        for (from, to) in clean {
            assert_eq!(counted_loss(&bed, from, to, 1000), 0.0, "{place}: {from} to {to}");
        }
        bed.clear(Some(&[id])).unwrap();
    }
}

#[test]
fn the_same_seed_hits_the_same_frames() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(2, 1)).unwrap();
    let mut arrived = |seed| {
        let loss = fault(Kind::Loss(share("10%")), "h0/nic0:h1/nic0");
        let id = bed.add_fault(&FaultSpec { seed, ..loss }).unwrap();
        let seen = Datagrams::between(&bed, link("h0/nic0"), link("h1/nic0")).send(1000, 5);
        bed.clear(Some(&[id])).unwrap();
        seen
    };
    let first = arrived(7);
    assert_eq!(first, arrived(7));
    assert_ne!(first, arrived(8));
}

#[test]
fn corrupt_frames_fail_the_receivers_checksum() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(2, 1)).unwrap();
    let path = Datagrams::between(&bed, link("h0/nic0"), link("h1/nic0"));
    bed.add_fault(&fault(Kind::Corrupt(share("10%")), "h0/nic0:h1/nic0")).unwrap();
    let (count, before) = (10_000, checksum_errors(&bed));
    path.send(count, 5);
    let errors = checksum_errors(&bed) - before;
    assert_within_a_tenth(errors as f64 / f64::from(count), 0.1, "corrupt");
}

/// `InCsumErrors` of UDP in h1's /proc/net/snmp.
fn checksum_errors(bed: &Bed) -> u64 {
    let output = bed.command("h1", "cat").unwrap().arg("/proc/net/snmp").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("Udp:"))
        .map(|line| line.split(' ').collect())
        .collect();
    let column = rows[0].iter().position(|name| *name == "InCsumErrors").unwrap();
    rows[1][column].parse().unwrap()
}

/// Share of an Ethernet frame of the bed's MTU that is TCP payload: 9000 − 20 (IPv4) − 32 (TCP
/// with time stamps) of 9000 + 14.
const TCP_SHARE: f64 = 8948.0 / 9014.0;

#[test]
fn every_nic_has_the_nominal_rate() {
    let Some(_turn) = turn() else { return };
    let rate = "100mbit".parse().unwrap();
    let bed = ScopedBed::up(&BedSpec { rate, relays: Relays::Random(5), ..spec(3, 2) }).unwrap();
    for (from, to) in [("h0/nic0", "h1/nic0"), ("h1/nic1", "h2/nic1"), ("h2/nic0", "h0/nic0")] {
        let measured = tcp_rate(&bed, link(from), link(to), 10_000_000) / TCP_SHARE;
        assert_within_a_tenth(measured, 100e6, &format!("nominal rate, {from} to {to}"));
    }
}

#[test]
fn a_rate_fault_limits_its_direction_to_its_rate() {
    let Some(_turn) = turn() else { return };
    let rate = "200mbit".parse().unwrap();
    let mut bed = ScopedBed::up(&BedSpec { rate, ..spec(2, 2) }).unwrap();
    let slow = fault(Kind::Rate("40mbit".parse().unwrap()), "h1/nic0");
    bed.add_fault(&FaultSpec { direction: Direction::Receive, ..slow }).unwrap();
    let rate = |from, to, bytes| tcp_rate(&bed, link(from), link(to), bytes) / TCP_SHARE;
    assert_within_a_tenth(rate("h0/nic0", "h1/nic0", 6_000_000), 40e6, "rate fault");
    assert_within_a_tenth(rate("h1/nic0", "h0/nic0", 15_000_000), 200e6, "the other direction");
    assert_within_a_tenth(rate("h0/nic1", "h1/nic1", 15_000_000), 200e6, "the other rail");
}

#[test]
fn latency_and_delay_show_in_ping() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&BedSpec { latency: ms(5), ..spec(3, 1) }).unwrap();
    let rtt = |bed: &Bed, to| median(ping(bed, link(to), 51, 25));
    let base = rtt(&bed, "h1/nic0");
    assert_within_a_tenth(base, 10.0, "latency, there and back, ms");
    let delay = fault(Kind::Delay(ms(20)), "h1/nic0");
    bed.add_fault(&FaultSpec { direction: Direction::Send, ..delay }).unwrap();
    assert_within_a_tenth(rtt(&bed, "h1/nic0") - base, 20.0, "delay, ms");
    assert_within_a_tenth(rtt(&bed, "h2/nic0"), 10.0, "latency of another host, ms");
}

#[test]
fn jitter_holds_its_share_of_frames_for_its_time() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&BedSpec { relays: Relays::All, ..spec(2, 1) }).unwrap();
    bed.add_fault(&FaultSpec {
        direction: Direction::Send,
        seed: 3,
        ..fault(Kind::Jitter(share("30%"), ms(20)), "h1/nic0")
    })
    .unwrap();
    // 400 pings further apart than the time, so that none waits behind another.
    let times = ping(&bed, link("h1/nic0"), 400, 25);
    assert_eq!(times.len(), 400);
    let (held, free): (Vec<f64>, Vec<f64>) = times.iter().partition(|ms| **ms > 10.0);
    assert_within_a_tenth(held.len() as f64 / 400.0, 0.3, "jitter, share");
    assert_within_a_tenth(median(held) - median(free), 20.0, "jitter, ms");
}

#[test]
fn a_schedule_turns_a_relayed_fault_on_and_off() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(2, 1)).unwrap();
    let loss = fault(Kind::Loss(Share::ALL), "h0/nic0:h1/nic0");
    bed.add_fault(&FaultSpec { schedule: always(100, 150), ..loss }).unwrap();
    // 20 periods of 250 ms, a datagram every millisecond.
    let arrived = Datagrams::between(&bed, link("h0/nic0"), link("h1/nic0")).send(5000, 1);
    assert_within_a_tenth(1.0 - arrived.len() as f64 / 5000.0, 0.4, "scheduled loss, share");
    let gaps =
        arrived.windows(2).map(|pair| f64::from(pair[1] - pair[0])).filter(|gap| *gap > 50.0);
    assert_within_a_tenth(median(gaps.collect()), 100.0, "scheduled loss, ms on");
}

#[test]
fn a_link_that_is_down_has_no_carrier_until_it_is_cleared() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(2, 2)).unwrap();
    let carrier = |bed: &Bed, nic: &str| {
        let file = format!("/sys/class/net/{nic}/carrier");
        let output = bed.command("h1", "cat").unwrap().arg(file).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    bed.add_fault(&fault(Kind::Down, "h1/nic0")).unwrap();
    assert_eq!((carrier(&bed, "nic0"), carrier(&bed, "nic1")), ("0".to_owned(), "1".to_owned()));
    assert!(ping(&bed, link("h1/nic0"), 3, 10).is_empty());
    assert_eq!(ping(&bed, link("h1/nic1"), 3, 10).len(), 3);
    bed.clear(None).unwrap();
    assert_eq!(carrier(&bed, "nic0"), "1");
    assert_eq!(ping(&bed, link("h1/nic0"), 3, 10).len(), 3);
}

#[test]
fn one_direction_that_is_down_drops_everything_that_way() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(2, 1)).unwrap();
    let down = fault(Kind::Down, "h1/nic0");
    bed.add_fault(&FaultSpec { direction: Direction::Send, ..down }).unwrap();
    assert_eq!(counted_loss(&bed, "h1/nic0", "h0/nic0", 500), 1.0);
    assert_eq!(counted_loss(&bed, "h0/nic0", "h1/nic0", 500), 0.0);
}

#[test]
fn a_flapping_link_loses_its_carrier_for_its_share_of_the_time() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(2, 1)).unwrap();
    let path = Datagrams::between(&bed, link("h0/nic0"), link("h1/nic0"));
    let changes = |bed: &Bed| bed.counters("h1").unwrap()["nic0"].carrier_changes;
    let before = changes(&bed);
    bed.add_fault(&FaultSpec { schedule: always(100, 300), ..fault(Kind::Down, "h1/nic0") })
        .unwrap();
    // 20 periods of 400 ms, a datagram every millisecond.
    let loss = 1.0 - path.send(8000, 1).len() as f64 / 8000.0;
    bed.clear(None).unwrap();
    assert_within_a_tenth(loss, 0.25, "flap, share of the time");
    // The receiver waits 400 ms for the last datagram: one more period, and half a one of slack.
    assert_within_a_tenth((changes(&bed) - before) as f64, 42.0, "flap, carrier changes");
}

#[test]
fn a_slow_host_gets_its_cores_and_no_more() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(2, 1)).unwrap();
    bed.add_fault(&fault(Kind::SlowHost(0.2), "h1")).unwrap();
    // Two processes at once: the quota is the host's, not a process's.
    let spin = |bed: &Bed, host| {
        let mut shell = bed.command(host, "sh").unwrap();
        shell.args(["-c", "while :; do :; done"]).spawn().unwrap()
    };
    let mut busy = [spin(&bed, "h1"), spin(&bed, "h1")];
    let used = || busy.iter().map(|child| cpu_seconds(child.id())).sum::<f64>();
    std::thread::sleep(ms(300));
    let (before, start) = (used(), Instant::now());
    std::thread::sleep(Duration::from_secs(4));
    let cores = (used() - before) / start.elapsed().as_secs_f64();
    for child in &mut busy {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_within_a_tenth(cores, 0.2, "slow-host, cores");
}

/// User and system time of a process: fields 14 and 15 of /proc/PID/stat, in ticks of 10 ms.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(12) + ticks(13)) / 100.0
}

/// Times at which a process inside h1 that wakes every 5 ms came to write a line.
fn heartbeat(bed: &Bed, duration: Duration) -> Vec<Duration> {
    let mut shell = bed.command("h1", "sh").unwrap();
    shell.args(["-c", "while :; do echo; sleep 0.005; done"]).stdout(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let start = Instant::now();
    let mut beats = Vec::new();
    while start.elapsed() < duration {
        lines.next().unwrap().unwrap();
        beats.push(start.elapsed());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    beats
}

fn gaps_over(beats: &[Duration], least: Duration) -> Vec<f64> {
    let gaps = beats.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.filter(|gap| *gap > least).map(|gap| gap.as_secs_f64()).collect()
}

#[test]
fn a_paused_host_stands_still_for_its_time() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(2, 1)).unwrap();
    bed.add_fault(&FaultSpec { schedule: always(200, 300), ..fault(Kind::Pause, "h1") }).unwrap();
    let gaps = gaps_over(&heartbeat(&bed, Duration::from_secs(5)), ms(120));
    assert_within_a_tenth(median(gaps.clone()), 0.2, "pause, seconds");
    assert_within_a_tenth(gaps.len() as f64, 10.0, "pauses in 5 s");
}

#[test]
fn random_pauses_come_when_their_seed_says() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(2, 1)).unwrap();
    let schedule =
        Schedule { after: ms(500), on: ms(150), off: ms(250), times: Some(12), random: true };
    let seed = 11;
    // What the seed says: on for 12 × 150 ms, and the whole over after `end`.
    let mut phases = Phases::new(&schedule, seed);
    let mut end = ms(0);
    while let Some(until) = phases.until() {
        end = until;
        phases.is_on_at(until);
    }
    let pause = fault(Kind::Pause, "h1");
    let start = Instant::now();
    bed.add_fault(&FaultSpec { seed, schedule: Some(schedule), ..pause }).unwrap();
    let beats = heartbeat(&bed, end + ms(500) - start.elapsed());
    let stood: f64 = gaps_over(&beats, ms(100)).iter().sum();
    assert_within_a_tenth(stood, 12.0 * 0.15, "random pauses, seconds in all");
}

#[test]
fn swapped_cables_take_the_fault_along_or_leave_it() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(4, 1)).unwrap();
    let loss = fault(Kind::Loss(share("30%")), "h1/nic0");
    bed.add_fault(&FaultSpec { direction: Direction::Send, ..loss }).unwrap();
    let carrier_changes = |bed: &Bed| bed.counters("h2").unwrap()["nic0"].carrier_changes;
    let before = carrier_changes(&bed);
    bed.swap(link("h1/nic0"), link("h2/nic0"), OnSwap::Moves).unwrap();
    assert!(carrier_changes(&bed) > before, "a cable that is exchanged takes the carrier along");
    assert_eq!(counted_loss(&bed, "h1/nic0", "h0/nic0", 1000), 0.0);
    assert_within_a_tenth(counted_loss(&bed, "h2/nic0", "h0/nic0", 3000), 0.3, "moved loss");
    bed.swap(link("h2/nic0"), link("h3/nic0"), OnSwap::Stays).unwrap();
    assert_eq!(counted_loss(&bed, "h3/nic0", "h0/nic0", 1000), 0.0);
    assert_within_a_tenth(counted_loss(&bed, "h2/nic0", "h0/nic0", 3000), 0.3, "loss that stays");
}

#[test]
fn a_link_that_is_down_stays_so_through_a_swap() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(3, 1)).unwrap();
    bed.add_fault(&fault(Kind::Down, "h1/nic0")).unwrap();
    let reached = |bed: &Bed, to| !ping(bed, link(to), 2, 10).is_empty();
    bed.swap(link("h1/nic0"), link("h2/nic0"), OnSwap::Stays).unwrap();
    assert_eq!((reached(&bed, "h1/nic0"), reached(&bed, "h2/nic0")), (false, true));
    bed.swap(link("h1/nic0"), link("h2/nic0"), OnSwap::Moves).unwrap();
    assert_eq!((reached(&bed, "h1/nic0"), reached(&bed, "h2/nic0")), (true, false));
}

#[test]
fn a_second_fault_on_the_same_switch_is_refused() {
    let Some(_turn) = turn() else { return };
    let mut bed = ScopedBed::up(&spec(2, 2)).unwrap();
    let first = bed.add_fault(&fault(Kind::Down, "h1/nic0")).unwrap();
    let error = bed.add_fault(&fault(Kind::Down, "h1")).unwrap_err().to_string();
    assert!(error.contains(&format!("`clear {first}` first")), "{error}");
    assert_eq!(bed.faults().unwrap().len(), 1);
}
