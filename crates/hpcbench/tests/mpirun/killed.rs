//! `kill -9` of any or all processes at any moment leaves a directory that reads, marked
//! incomplete, with every row that had been printed.

use std::time::{Duration, Instant};

use hpcbench_model::Row;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Job, Running};
use crate::run::{HPCBENCH, hpcbench, read, read_samples};

const ROUNDS: usize = 50;
/// Longest life of a job, far into its rows.
const LIFE: Duration = Duration::from_millis(900);

/// Rows whose whole line arrived on standard output.
fn printed(stdout: &str) -> Vec<Row> {
    let whole = &stdout[..stdout.rfind('\n').map_or(0, |end| end + 1)];
    whole
        .lines()
        .filter(|line| line.contains(r#""kind":"row""#))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The ranks' processes, from what runs rather than from what was written.
fn ranks(job: &Running) -> Vec<Pid> {
    let is_rank = |pid: &Pid| {
        let exe = std::fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero()));
        exe.is_ok_and(|exe| exe == std::path::Path::new(HPCBENCH))
    };
    job.processes().into_iter().filter(is_rank).collect()
}

/// Kills one rank, all of them, or their launcher.
fn kill(job: &Running, random: &mut ChaCha8Rng) -> &'static str {
    let ranks = ranks(job);
    let (what, victims) = match (random.random_range(0..3), ranks.choose(random)) {
        (0, Some(one)) => ("a rank", vec![*one]),
        (1, Some(_)) => ("all ranks", ranks),
        // Also when no rank is there yet.
        _ => ("the launcher", vec![job.pid()]),
    };
    for pid in victims {
        // One of them may have just been ended by its launcher.
        let _ = kill_process(pid, Signal::KILL);
    }
    what
}

#[test]
fn at_any_moment() {
    let mut random = ChaCha8Rng::seed_from_u64(20_261_130);
    let mut with_rows = 0;
    for round in 0..ROUNDS {
        let size = random.random_range(1..=4);
        let moment = random.random_range(Duration::ZERO..LIFE);
        // Endless, with little in each row so that most moments lie in the writing of one.
        let arguments = "allreduce -b 8 -e 4K -f 2 -n 20 -N 0 --threshold 2x --format jsonl";
        let job = hpcbench(size, arguments).start();
        let started = Instant::now();
        std::thread::sleep(moment.saturating_sub(started.elapsed()));
        let what = kill(&job, &mut random);
        let finished = job.finish();
        let words =
            format!("round {round}: {what} of {size} after {moment:?}\n{}", finished.words());
        assert_ne!(finished.code(), 0, "{words}");

        let rows = printed(&finished.stdout);
        let dir = finished.dir().join("run");
        if !dir.join("run.json").exists() {
            assert!(rows.is_empty(), "{words}");
            continue;
        }
        let run = read(&dir);
        assert!(!run.complete, "{words}");
        assert!(run.rows.len() >= rows.len(), "{words}");
        assert_eq!(run.rows[..rows.len()], rows, "{words}");
        read_samples(&dir);
        with_rows += usize::from(!rows.is_empty());

        let shown = Job::of(HPCBENCH).arg("show").arg(&dir).finish().expect_success();
        assert!(shown.stdout.contains("# Incomplete") || shown.stdout.contains("# Interrupted"));
    }
    assert!(with_rows >= ROUNDS / 5, "only {with_rows} jobs lived to see a row");
}
