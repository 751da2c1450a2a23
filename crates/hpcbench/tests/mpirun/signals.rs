//! Signals, hangs and limits end a run early; what was measured until then is kept.

use std::path::Path;
use std::time::{Duration, Instant};

use hpcbench_model::Run;
use hpcbench_store::RunDir;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Family, Finished, Job, Running, own_family};
use crate::run::{HPCBENCH, hpcbench, ranks, read, read_samples, table_lines};

/// Endless, with a few rows a second.
const ENDLESS: &str = "allreduce -b 8 -e 64 -f 2 -n 200 -N 0";
/// A second is promised; a machine that is busy with other tests gets more.
const PROMPTLY: Duration = Duration::from_secs(5);

fn opened(dir: &Path) -> Option<Run> {
    RunDir::open(&dir.join("run")).ok().map(|run| run.run().clone())
}

/// Waits for some rows, sends the signal, and insists on a prompt end with a full directory.
fn interrupt(
    mut job: Running,
    to: impl Fn(&mut Running) -> Pid,
    signal: Signal,
    saved: &str,
) -> Finished {
    job.until("rows", |job| (table_lines(&job.stdout()).len() >= 3).then_some(()));
    let pid = to(&mut job);
    kill_process(pid, signal).unwrap();
    let sent = Instant::now();
    // The launcher may be slow to end; the directory may not.
    let mut seen = None;
    while seen.is_none() && sent.elapsed() < PROMPTLY {
        seen = opened(job.dir()).and_then(|run| run.interrupted);
        std::thread::sleep(Duration::from_millis(10));
    }
    let finished = job.finish();
    let words = finished.words();
    assert_eq!(seen.as_deref(), Some(saved), "{words}");
    let run = read(&finished.dir().join("run"));
    assert!(!run.complete && run.ended.is_some(), "{words}");
    assert!(run.rows.len() >= 2 * table_lines(&finished.stdout).len(), "{words}");
    assert_eq!(finished.messages().len(), 1, "{words}");
    assert!(finished.messages()[0].starts_with(&format!("hpcbench: {saved}: stopped")), "{words}");
    read_samples(&finished.dir().join("run"));
    finished
}

/// Insists on the code of the one rank that ended the job. MPICH's mpirun now and then gives the 9 of
/// the ranks that it killed then.
fn assert_code(finished: &Finished, code: i32) {
    let killed_others = own_family() == Family::Mpich && finished.code() == 9;
    assert!(finished.code() == code || killed_others, "not {code}: {}", finished.words());
}

#[test]
fn alone_both_signals_give_130() {
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
        let job = Job::of(HPCBENCH).args(ENDLESS).args("--out run").start();
        let finished = interrupt(job, |job| job.pid(), signal, name);
        assert_eq!(finished.code(), 130, "{}", finished.words());
    }
}

#[test]
fn to_the_launcher_reach_every_rank() {
    for signal in [Signal::TERM, Signal::INT] {
        // Open MPI passes both on as SIGTERM, MPICH each as it is.
        let (name, code) = match own_family() {
            Family::OpenMpi => ("SIGTERM", 1),
            Family::Mpich if signal == Signal::INT => ("SIGINT", 130),
            Family::Mpich => ("SIGTERM", 130),
        };
        let finished = interrupt(hpcbench(3, ENDLESS).start(), |job| job.pid(), signal, name);
        assert_code(&finished, code);
    }
}

#[test]
fn to_rank_0_end_the_job() {
    let job = hpcbench(3, ENDLESS).start();
    let finished = interrupt(job, |job| ranks(job)[0], Signal::TERM, "SIGTERM");
    assert_code(&finished, 130);
}

#[test]
fn to_another_rank_end_the_job() {
    if own_family() == Family::Mpich {
        return crate::common::skip("MPICH kills the other ranks before rank 0 can write");
    }
    let job = hpcbench(3, ENDLESS).start();
    let finished = interrupt(job, |job| ranks(job)[2], Signal::TERM, "SIGTERM");
    assert_code(&finished, 130);
}

#[test]
fn a_rank_that_stands_still_is_a_hang() {
    let mut job = hpcbench(3, &format!("{ENDLESS} --stall-timeout 2s")).start();
    job.until("rows", |job| (table_lines(&job.stdout()).len() >= 3).then_some(()));
    let stopped = ranks(&mut job)[1];
    kill_process(stopped, Signal::STOP).unwrap();
    let finished = job.finish();
    let words = finished.words();
    assert_code(&finished, 5);
    assert_eq!(finished.messages().len(), 1, "{words}");
    assert!(finished.messages()[0].contains("nothing has moved for"), "{words}");
    let run = read(&finished.dir().join("run"));
    let [finding] = run.findings.as_slice() else { panic!("{words}") };
    assert_eq!(finding.effect.kind, "stall");
    assert!(finding.effect.duration_ns.unwrap() >= 2_000_000_000, "{finding:?}");
    assert!(!run.complete && !run.rows.is_empty(), "{words}");
    read_samples(&finished.dir().join("run"));
}

#[test]
fn rank_0_that_stands_still_is_told_by_another() {
    let mut job = hpcbench(2, &format!("{ENDLESS} --stall-timeout 2s")).start();
    job.until("rows", |job| (table_lines(&job.stdout()).len() >= 3).then_some(()));
    let stopped = ranks(&mut job)[0];
    kill_process(stopped, Signal::STOP).unwrap();
    let finished = job.finish();
    let words = finished.words();
    assert_code(&finished, 5);
    assert!(finished.messages()[0].contains("rank 1 on"), "{words}");
    assert!(!read(&finished.dir().join("run")).complete, "{words}");
    read_samples(&finished.dir().join("run"));
}

#[test]
fn a_limit_on_the_whole_run_ends_it() {
    let finished = hpcbench(3, &format!("{ENDLESS} -T 1")).finish();
    let words = finished.words();
    assert_code(&finished, 1);
    assert_eq!(finished.messages().len(), 1, "{words}");
    assert!(finished.messages()[0].contains("not finished within -T 1 s"), "{words}");
    let run = read(&finished.dir().join("run"));
    assert!(!run.complete && run.ended.is_some() && run.interrupted.is_none(), "{words}");
    assert!(run.rows.len() >= 2 * table_lines(&finished.stdout).len(), "{words}");
}
