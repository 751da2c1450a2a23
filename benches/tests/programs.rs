//! The programs themselves, fed with programs that print fixed numbers: nothing here is timed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn pair(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pair")).args(args).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a_planted_ratio_of_two_programs_is_found() {
    let programs =
        ["--metric", "osu", "--bytes", "8", "--", "echo", "8 0.50", ":::", "echo", "8 0.55"];
    for (claim, code, verdict) in [
        (&["--within", "0.95", "1.05"][..], 4, Value::from("outside")),
        (&["--at-most", "1.2"], 0, Value::from("inside")),
        (&[], 0, Value::Null),
    ] {
        let output = pair(&[claim, &programs].concat());
        assert_eq!(output.status.code(), Some(code), "{claim:?}");
        let part = &json(&output)["parts"][0]["paired"];
        assert_eq!(part["verdict"], verdict);
        assert!((part["ratio"]["median"].as_f64().unwrap() - 1.1).abs() < 1e-9);
        assert_eq!(part["control"]["median"], 1.0);
        assert_eq!(part["pairs"], 20);
        assert_eq!(part["b"]["command"], serde_json::json!(["echo", "8 0.55"]));
    }
}

#[test]
fn what_cannot_be_compared_is_said() {
    for (args, code, words) in [
        (&["--", "echo", "8 1.0"][..], 2, ":::"),
        (&["--", "echo", ":::"], 2, "missing"),
        (&["--metric-b", "osu", "--", "echo", ":::", "echo"], 2, "units"),
        (&["--metric", "osu", "--", "echo", ":::", "echo"], 1, "no row"),
        (&["--", "false", ":::", "true"], 1, "false ended"),
        (&["--", "no-such-program", ":::", "true"], 1, "no-such-program"),
    ] {
        let output = pair(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

#[test]
fn a_figure_without_its_peer_is_skipped() {
    let dir = tempfile::tempdir().unwrap();
    for figure in ["osu", "imb", "startup"] {
        let output = Command::new(env!("CARGO_BIN_EXE_figures"))
            .args([figure, "--hpcbench", "/bin/true", "--mpirun", "true", "--out"])
            .arg(dir.path())
            .env_remove("HPCBENCH_OSU_DIR")
            .env_remove("HPCBENCH_IMB_DIR")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{said}");
        assert!(said.contains("benches/peers/README.md"), "{said}");
        let file = fs::read(dir.path().join(format!("{figure}.json"))).unwrap();
        let file: Value = serde_json::from_slice(&file).unwrap();
        assert_eq!(file["verdict"], Value::Null);
        assert_eq!(file["skipped"][0]["what"], figure);
    }
}

#[test]
fn sizes_a_peer_cannot_be_asked_for_are_refused() {
    for size in ["0", "2", "12", "8X"] {
        let output = Command::new(env!("CARGO_BIN_EXE_figures"))
            .args(["osu", "--sizes", size, "--mpirun", "true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{size}");
    }
}

fn peak_rss(dir: &Path, program: &[&str]) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peak-rss"));
    command.arg(dir).args(program).output().unwrap().status.code()
}

#[test]
fn peak_memory_is_that_of_the_program() {
    let peak = |program: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(peak_rss(dir.path(), program), Some(0));
        let files: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(files.len(), 1);
        fs::read_to_string(files[0].as_ref().unwrap().path()).unwrap().parse::<u64>().unwrap()
    };
    let small = peak(&["true"]);
    // dd holds one block in memory, and writes to all of it.
    let large = peak(&["dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1"]);
    let grown = large - small;
    // Linux counts resident pages per processor and adds up late, so a peak is right to a MiB or so.
    assert!((60 << 20..68 << 20).contains(&grown), "{small} {large}");
}

#[test]
fn peak_memory_passes_the_exit_code_on() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(peak_rss(dir.path(), &["sh", "-c", "exit 5"]), Some(5));
    assert_eq!(peak_rss(dir.path(), &["no-such-program"]), Some(1));
    assert_eq!(peak_rss(&dir.path().join("missing"), &["true"]), Some(1));
    assert_eq!(peak_rss(dir.path(), &[]), Some(2));
}
