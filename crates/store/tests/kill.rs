//! What is left of a run that was killed.

mod common;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{assert_written, row, run, write_row};
use hpcbench_store::{RawWriter, RunDir, RunWriter};

/// Reads everything in a directory that [`write_row`] filled, and returns how many rows it names.
fn read_all(dir: &Path) -> usize {
    let read = RunDir::open(dir).unwrap();
    let rows = &read.run().rows;
    assert!(!read.run().complete && read.run().ended.is_none());
    assert!((0..).zip(rows).all(|(id, written)| *written == row(id)));
    let entries: Vec<_> = read.histograms().unwrap().map(Result::unwrap).collect();
    entries.iter().for_each(assert_written);
    assert!(entries.len() >= 2 * rows.len(), "a named row lacks histograms");
    let events = read.events().unwrap().map(Result::unwrap).count();
    assert!(events >= rows.len(), "a named row lacks its event");
    rows.len()
}

#[test]
fn a_cut_at_any_byte_of_the_last_line_leaves_the_lines_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), run()).unwrap();
    write_row(&mut writer, 0);
    let before = ["samples.hlog", "events.jsonl", "run.json"]
        .map(|name| (name, fs::read(dir.path().join(name)).unwrap()));
    write_row(&mut writer, 1);
    let [(hlog, hlog_before), (events, events_before), (run_json, run_before)] = before;

    // Killed while it wrote histograms or events of the second row: run.json does not name it yet.
    let run_after = fs::read(dir.path().join(run_json)).unwrap();
    fs::write(dir.path().join(run_json), run_before).unwrap();
    for (name, before) in [(hlog, hlog_before), (events, events_before)] {
        let path = dir.path().join(name);
        let after = fs::read(&path).unwrap();
        assert!(after.len() > before.len());
        for cut in before.len()..=after.len() {
            fs::write(&path, &after[..cut]).unwrap();
            assert_eq!(read_all(dir.path()), 1, "{name} cut at {cut}");
        }
    }
    // Killed while it wrote the next run.json: that is another file until it is whole.
    for cut in [0, run_after.len() / 2, run_after.len()] {
        fs::write(dir.path().join(".run.json.tmp"), &run_after[..cut]).unwrap();
        assert_eq!(read_all(dir.path()), 1);
    }
    fs::rename(dir.path().join(".run.json.tmp"), dir.path().join(run_json)).unwrap();
    assert_eq!(read_all(dir.path()), 2);
}

const CHILD_DIR: &str = "HPCBENCH_TEST_KILL_DIR";

/// Ends the process also when the test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn kill_minus_nine_at_any_moment_leaves_every_finished_row() {
    if let Some(dir) = std::env::var_os(CHILD_DIR) {
        write_until_killed(Path::new(&dir));
    }
    for round in 0..20 {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("run");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill_minus_nine_at_any_moment_leaves_every_finished_row"])
            .env(CHILD_DIR, &dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut child = Killed(child);
        let wanted = round % 4;
        while !dir.join("run.json").exists()
            || RunDir::open(&dir).unwrap().run().rows.len() < wanted
        {
            assert!(child.0.try_wait().unwrap().is_none(), "the writer ended too early");
            std::thread::sleep(Duration::from_micros(100));
        }
        // Moments all over what a row takes.
        std::thread::sleep(Duration::from_micros(round as u64 * 371));
        drop(child);

        let rows = read_all(&dir);
        assert!(rows >= wanted);
        if RunDir::open(&dir).unwrap().raw_ranks().unwrap() == [5] {
            let blocks = RunDir::open(&dir).unwrap().raw(5).unwrap();
            assert!(blocks.map(Result::unwrap).count() >= rows, "a named row lacks raw times");
        } else {
            assert_eq!(rows, 0);
        }
    }
}

fn write_until_killed(dir: &Path) -> ! {
    // Its standard input ends when the parent does, were that killed itself.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    let mut writer = RunWriter::create(dir, run()).unwrap();
    let mut raw = RawWriter::create(dir, 5, "node1", None).unwrap();
    for id in 0.. {
        raw.block(id, 0, &[10, 20], &[15, 25]);
        write_row(&mut writer, id);
    }
    unreachable!("the parent kills this process")
}
