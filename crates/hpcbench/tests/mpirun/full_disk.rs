//! A disk that fills up while measuring: a small tmpfs in a mount namespace of its own, which the
//! kernel takes down with the processes that live in it, however they end.

use std::process::Command;

use hpcbench_store::RunDir;

use crate::common::{Job, launcher, skip};
use crate::run::{HPCBENCH, read};

/// Mounts the disk at `$0`, runs the rest on it, and copies what is on it to `copy`.
const ON_SMALL_DISK: &str = r#"mount -t tmpfs -o size=96k,mode=700 small "$0" && { "$@"; code=$?; cp -r "$0" copy; exit $code; }"#;

fn unshare(user: &[&str]) -> Job {
    let job = user.iter().fold(Job::of("unshare"), |job, argument| job.arg(argument));
    job.args("--mount --propagation private sh -c").arg(ON_SMALL_DISK)
}

/// The options of `unshare` with which this user may mount, if any.
fn rights() -> Option<&'static [&'static str]> {
    let may = |user: &&[&str]| {
        let mut command = Command::new("unshare");
        command.args(*user).args(["--mount", "mount", "-t", "tmpfs", "small", "/mnt"]);
        command.output().is_ok_and(|output| output.status.success())
    };
    [&[][..], &["--map-root-user"][..]].into_iter().find(may)
}

#[test]
fn costs_records_and_nothing_else() {
    let Some(user) = rights() else {
        return skip("no right to mount a tmpfs (needs root or user namespaces)");
    };
    let job = unshare(user);
    let disk = job.dir().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let finished = job
        .arg(&disk)
        .arg(launcher())
        .args("-n 2")
        .arg(HPCBENCH)
        .args("allreduce -b 8 -e 4K -f 2 -d all -n 30 --format csv")
        .arg("--out")
        .arg(disk.join("run"))
        .finish();
    let words = finished.words();
    assert_eq!(finished.code(), 1, "{words}");
    // Ten sizes, ten types, two placements.
    assert_eq!(finished.stdout.lines().count(), 1 + 200, "{words}");
    assert!(finished.stderr.contains("could not be kept"), "{words}");
    assert!(finished.stderr.contains("No space left on device"), "{words}");
    assert!(!finished.stderr.contains("panicked"), "{words}");
    assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 0, "it did not run on the small disk");

    let left = finished.dir().join("copy/run");
    let run = read(&left);
    assert!(!run.rows.is_empty() && run.rows.len() < 200, "{} rows", run.rows.len());
    let read = RunDir::open(&left).unwrap();
    let histograms = read.histograms().unwrap().map(Result::unwrap).count();
    assert!(histograms >= 3 * run.rows.len(), "a row that is named has its histograms");
    for rank in read.raw_ranks().unwrap() {
        assert!(read.raw(rank).unwrap().map(Result::unwrap).count() > 0);
    }
}
