//! What is refused, and in which words.

mod common;

use std::fs;

use common::{run, write_row};
use hpcbench_model::Run;
use hpcbench_store::{CreateError, OpenError, RunDir, RunWriter};

#[test]
fn a_directory_with_a_run_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), run()).unwrap();
    write_row(&mut writer, 0);
    let before = fs::read(dir.path().join("run.json")).unwrap();
    let error = RunWriter::create(dir.path(), run()).unwrap_err();
    assert!(matches!(error, CreateError::HoldsRun { .. }));
    let words = error.to_string();
    assert!(words.contains(dir.path().to_str().unwrap()), "{words}");
    assert!(words.ends_with("give another directory with --out OTHER_DIR"), "{words}");
    assert_eq!(fs::read(dir.path().join("run.json")).unwrap(), before);
}

#[test]
fn leftovers_of_a_run_are_not_overwritten() {
    for name in ["run.json", "samples.hlog", "events.jsonl"] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(name), "mine").unwrap();
        let error = RunWriter::create(dir.path(), run()).unwrap_err();
        assert!(matches!(&error, CreateError::HoldsRun { file, .. } if file == name), "{error}");
        assert_eq!(fs::read(dir.path().join(name)).unwrap(), b"mine");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn other_files_in_the_directory_do_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("job.log"), "").unwrap();
    RunWriter::create(dir.path(), run()).unwrap();
    assert_eq!(RunDir::open(dir.path()).unwrap().run(), &run());
}

#[test]
fn a_place_that_cannot_be_written_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("run")] {
        let error = RunWriter::create(&place, run()).unwrap_err();
        assert!(matches!(error, CreateError::Unwritable { .. }));
        let words = error.to_string();
        assert!(words.contains(place.to_str().unwrap()) && words.contains("--out"), "{words}");
    }
}

#[test]
fn a_start_that_is_no_time_is_refused_before_anything_is_made() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let error = RunWriter::create(&dir, Run { started: "noon".to_owned(), ..run() }).unwrap_err();
    assert!(error.to_string().contains("`noon`"), "{error}");
    assert!(!dir.exists());
}

#[test]
fn opening_what_is_no_run_says_what_to_give() {
    let dir = tempfile::tempdir().unwrap();
    for place in [dir.path().to_owned(), dir.path().join("missing")] {
        let error = RunDir::open(&place).unwrap_err();
        assert!(matches!(error, OpenError::NoRun(_)));
        let words = error.to_string();
        assert!(words.contains(place.to_str().unwrap()) && words.contains("run.json"), "{words}");
    }
    let file = dir.path().join("run.json");
    for content in ["", "{}", "[1, 2", r#"{"schema": "hpcbench.run/1", "id": 3}"#] {
        fs::write(&file, content).unwrap();
        let error = RunDir::open(dir.path()).unwrap_err();
        assert!(matches!(error, OpenError::Malformed { .. }), "{error}");
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    }
}

#[test]
fn another_schema_is_named_with_ours() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("run.json"), r#"{"schema": "hpcbench.run/2", "new": 1}"#).unwrap();
    let words = RunDir::open(dir.path()).unwrap_err().to_string();
    assert!(words.contains("hpcbench.run/2") && words.contains("hpcbench.run/1"), "{words}");
}
