//! Jitter events, and the two people in each: who waited and who was waited for.

use std::time::Duration;

use hpcbench_model::Event;
use hpcbench_store::RunDir;
use rustix::process::{Signal, kill_process};

use crate::run::{hpcbench, ranks, read, read_samples};

/// How long a rank is kept from running.
const PAUSE: Duration = Duration::from_millis(300);
/// Lateness that only a pause explains.
const LATE_US: f64 = 200_000.0;

fn events(dir: &std::path::Path) -> Vec<Event> {
    RunDir::open(dir).unwrap().events().unwrap().map(Result::unwrap).collect()
}

#[test]
fn no_threshold_has_no_events() {
    let finished = hpcbench(2, "allreduce -b 8 -e 8 -n 50").finish().expect_success();
    let dir = finished.dir().join("run");
    assert!(read(&dir).rows.iter().all(|row| row.events.is_none()));
    assert_eq!(events(&dir), []);
}

#[test]
fn every_iteration_past_the_threshold_is_one() {
    let arguments = "allreduce -b 8 -e 8 -n 50 --threshold 1ns";
    let finished = hpcbench(3, arguments).finish().expect_success();
    let dir = finished.dir().join("run");
    let run = read(&dir);
    read_samples(&dir);
    assert!(run.rows.iter().all(|row| row.events == Some(50)), "{:?}", run.rows);
    let events = events(&dir);
    let places: Vec<(u32, u64)> = events.iter().map(|e| (e.row, e.iteration)).collect();
    let expected: Vec<(u32, u64)> = (0..2).flat_map(|row| (0..50).map(move |i| (row, i))).collect();
    assert_eq!(places, expected);
    let known = |rank: u32, host: &str| run.world.ranks[rank as usize].host == host;
    for event in &events {
        let last_in = event.last_in.as_ref().expect("ranks of one host share its clock");
        assert!(known(event.slowest.rank, &event.slowest.host));
        assert!(known(last_in.rank, &last_in.host) && last_in.late_us >= 0.0);
        assert!(event.time_us > event.threshold_us && event.at_ns.is_some());
    }
    assert!(finished.stdout.contains("100 of 100 iterations past 1ns"), "{}", finished.stdout);
}

/// The second rank is stopped time and again. Where that happened between two of its entries, the
/// other rank entered and waited: the stopped one is last in, and the other one slowest.
#[test]
fn a_late_rank_is_last_in_and_never_slowest() {
    for sync in ["none", "barrier"] {
        let arguments = format!(
            "allreduce -b 8 -e 8 --time-budget 4s --placement out -c 0 --threshold 100ms --sync {sync}"
        );
        let mut job = hpcbench(2, &arguments).start();
        let late = ranks(&mut job)[1];
        while !job.has_ended() {
            let _ = kill_process(late, Signal::STOP);
            std::thread::sleep(PAUSE);
            let _ = kill_process(late, Signal::CONT);
            std::thread::sleep(PAUSE / 4);
        }
        let finished = job.finish().expect_success();
        let events = events(&finished.dir().join("run"));
        let late: Vec<_> =
            events.iter().filter(|e| e.last_in.as_ref().unwrap().late_us > LATE_US).collect();
        assert!(!late.is_empty(), "--sync {sync}: {events:?}");
        for event in late {
            let last_in = event.last_in.as_ref().unwrap();
            assert_eq!((last_in.rank, event.slowest.rank), (1, 0), "--sync {sync}: {event:?}");
        }
        assert!(finished.stdout.contains("# Jitter events"), "{}", finished.stdout);
    }
}
