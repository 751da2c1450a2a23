//! A disk that is full for a while: a small tmpfs in a mount namespace of its own, which the kernel
//! takes down with the process that lives in it, however that ends.

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use common::{assert_written, event, row, run, skip, write_row};
use hpcbench_store::{CreateError, RawWriter, RunDir, RunWriter};

const DISK: &str = "HPCBENCH_TEST_SMALL_DISK";
const MOUNT: &str = r#"mount -t tmpfs -o size=1m,mode=700 small "$0" && exec "$@""#;

/// A command that sees a small empty disk at `dir`; `None` where that may not be mounted.
fn on_small_disk(dir: &Path, program: &Path, args: &[&str]) -> Option<Command> {
    let command = |user: &[&str], program: &Path, args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(user).args(["--mount", "--propagation", "private", "sh", "-c", MOUNT]);
        command.arg(dir).arg(program).args(args);
        command
    };
    let works = |user: &[&str]| {
        command(user, Path::new("true"), &[]).output().is_ok_and(|o| o.status.success())
    };
    let user = [&[][..], &["--map-root-user"][..]].into_iter().find(|user| works(user))?;
    Some(command(user, program, args))
}

#[test]
fn a_full_disk_costs_records_and_nothing_else() {
    if let Some(disk) = std::env::var_os(DISK) {
        begin_on_a_full_disk(Path::new(&disk));
        run_into_a_full_disk(Path::new(&disk));
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    let args = ["--exact", "a_full_disk_costs_records_and_nothing_else", "--nocapture"];
    let Some(mut inside) = on_small_disk(dir.path(), &this, &args) else {
        return skip("no right to mount a tmpfs (needs root or user namespaces)");
    };
    let output = inside.env(DISK, dir.path()).output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "it did not run on the small disk");
}

/// Takes every byte left, and returns the file that holds them.
fn fill(disk: &Path) -> std::path::PathBuf {
    let path = disk.join("filler");
    let mut file = File::create(&path).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    path
}

fn begin_on_a_full_disk(disk: &Path) {
    let filler = fill(disk);
    let dir = disk.join("late");
    fs::create_dir(&dir).unwrap();
    let error = RunWriter::create(&dir, run()).unwrap_err();
    assert!(matches!(error, CreateError::Unwritable { .. }), "{error}");
    assert!(error.to_string().contains("--out"), "{error}");
    assert!(RawWriter::create(&dir, 0, "node1", None).is_err());
    fs::remove_file(filler).unwrap();
    RunWriter::create(&dir, run()).unwrap();
    RawWriter::create(&dir, 0, "node1", None).unwrap();
}

fn run_into_a_full_disk(disk: &Path) {
    let dir = disk.join("run");
    let mut writer = RunWriter::create(&dir, run()).unwrap();
    let mut raw = RawWriter::create(&dir, 0, "node1", None).unwrap();
    let entries: Vec<u64> = (0..500).map(|i| i * 1000).collect();
    let exits: Vec<u64> = entries.iter().map(|entry| entry + 300).collect();
    let mut dropped = 0;
    let mut write = |writer: &mut RunWriter, ids: std::ops::Range<u32>| {
        for id in ids {
            dropped += raw.block(id, 0, &entries, &exits);
            (0..20).for_each(|i| writer.event(&event(id, 100 + i)));
            write_row(writer, id);
        }
    };
    write(&mut writer, 0..2);
    assert_eq!(writer.losses(), []);
    let filler = fill(disk);
    write(&mut writer, 2..12);
    let full: Vec<_> = writer.losses().iter().map(|l| l.what.as_str()).collect();
    for name in ["samples.hlog", "events.jsonl", "run.json"] {
        assert_eq!(full.iter().filter(|what| **what == name).count(), 1, "{full:?}");
    }
    assert!(writer.losses().iter().all(|loss| loss.why.contains("No space left")));
    // What is on disk is the last run.json that fitted.
    assert!((2..12).contains(&RunDir::open(&dir).unwrap().run().rows.len()));

    fs::remove_file(filler).unwrap();
    write(&mut writer, 12..14);
    writer.finish("2026-11-30T17:46:00Z".to_owned(), true);

    let read = RunDir::open(&dir).unwrap();
    assert_eq!(read.run(), writer.run());
    assert_eq!(read.run().rows, (0..14).map(row).collect::<Vec<_>>());
    let lost = |what: &str| {
        read.run().losses.iter().filter(|l| l.what == what).map(|l| l.count).sum::<u64>()
    };
    assert_eq!(lost("run.json"), 0);
    let histograms: Vec<_> = read.histograms().unwrap().map(Result::unwrap).collect();
    histograms.iter().for_each(assert_written);
    assert_eq!(histograms.len() as u64 + lost("samples.hlog"), 14 * 2);
    assert_eq!(histograms.last().unwrap().key, common::key(13, 1));
    let events = read.events().unwrap().map(Result::unwrap).count();
    assert_eq!(events as u64 + lost("events.jsonl"), 14 * 21);

    let kept: usize = read.raw(0).unwrap().map(|b| b.unwrap().entries.len()).sum();
    assert!(dropped > 0);
    assert_eq!(kept as u64 + dropped, 14 * 500);
    let [loss] = raw.losses() else { panic!("one reason, one loss: {:?}", raw.losses()) };
    assert_eq!((loss.what.as_str(), loss.count), ("ranks/0000.bin", dropped));
}
