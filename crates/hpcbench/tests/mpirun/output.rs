//! What is printed and written, in every format.

use std::fs;

use hpcbench_model::Run;
use serde_json::Value;

use crate::common::Job;
use crate::run::{HPCBENCH, hpcbench, run_of, table_lines};

const SMALL: &str = "allreduce -b 8 -e 32 -f 2 -n 20";

#[test]
fn a_row_has_nccl_tests_thirteen_fields() {
    let finished = hpcbench(3, SMALL).finish().expect_success();
    let run = run_of(&finished);
    let names = "size count type redop root time algbw busbw #wrong time algbw busbw #wrong";
    let names: Vec<&str> = names.split(' ').collect();
    let heads = finished.stdout.lines().filter(|line| line.starts_with('#'));
    let mut heads = heads.map(|line| line[1..].split_whitespace().collect::<Vec<_>>());
    assert!(heads.any(|head| head == names), "{}", finished.stdout);
    let lines = table_lines(&finished.stdout);
    assert_eq!(lines.len(), 3);
    for (line, rows) in lines.iter().zip(run.rows.chunks(2)) {
        let [bytes, count] = [rows[0].bytes, rows[0].count].map(|number| number.to_string());
        assert_eq!(line[..5], [&bytes, &count, "float", "sum", "-1"]);
        assert_eq!((line.len(), line[8], line[12]), (13, "0", "0"));
        for (at, row) in [(5, &rows[0]), (9, &rows[1])] {
            let time: f64 = line[at].parse().unwrap();
            // Two decimals, or as many digits as the column holds.
            assert!((time - row.time_us.mean).abs() <= 0.005 + 1e-3 * time, "{line:?} {row:?}");
        }
    }
    assert!(!finished.stdout.contains("nccl-tests"), "it is not nccl-tests");
}

#[test]
fn more_columns_only_where_asked_for() {
    for (option, fields) in [("-I 1", 13 + 2 * 4), ("-S 1", 13 + 2), ("--wide", 13 + 2 * 6)] {
        let finished = hpcbench(2, &format!("{SMALL} {option}")).finish().expect_success();
        let lines = table_lines(&finished.stdout);
        assert!(lines.iter().all(|line| line.len() == fields), "{option}\n{}", finished.stdout);
    }
    let finished = hpcbench(2, &format!("{SMALL} -C 1")).finish().expect_success();
    assert!(finished.stdout.contains("cputime"), "{}", finished.stdout);
}

#[test]
fn percentiles_need_ten_iterations_beyond_them() {
    for (iters, known) in [(19, 0), (20, 1), (99, 1), (100, 2), (1000, 3)] {
        let arguments = format!("allreduce -b 8 -e 8 -n {iters} --placement out");
        let finished = hpcbench(2, &arguments).finish().expect_success();
        let time = run_of(&finished).rows[0].time_us.clone();
        let figures = [time.p50, time.p90, time.p99, time.p999];
        assert!(figures.iter().enumerate().all(|(i, p)| p.is_some() == (i < known)), "{time:?}");
        let lines = finished.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let tails = lines.into_iter().find(|line| line.get(2) == Some(&"out")).unwrap();
        let shown = tails[4..8].iter().filter(|text| **text != "-").count();
        assert_eq!(shown, known, "{}", finished.stdout);
    }
}

#[test]
fn percentiles_asked_for_are_those_shown() {
    let arguments = "allreduce -b 8 -e 8 -n 40 --percentiles 25,75";
    let finished = hpcbench(2, arguments).finish().expect_success();
    assert!(finished.stdout.contains("p25      p75"), "{}", finished.stdout);
    assert!(!finished.stdout.contains("p99 "), "{}", finished.stdout);
}

#[test]
fn csv_has_a_line_a_row() {
    let finished = hpcbench(2, &format!("{SMALL} --format csv")).finish().expect_success();
    let run = run_of(&finished);
    let mut reader = csv::Reader::from_reader(finished.stdout.as_bytes());
    let names = reader.headers().unwrap().clone();
    let column = |name: &str| names.iter().position(|other| other == name).unwrap();
    let records: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), run.rows.len());
    for (record, row) in records.iter().zip(&run.rows) {
        assert_eq!(record[column("bytes")], row.bytes.to_string());
        assert_eq!(record[column("time_us_mean")].parse(), Ok(row.time_us.mean));
        assert_eq!(record[column("time_us_p99")], *"");
        assert_eq!(record[column("in_place")], row.in_place.to_string());
    }
}

#[test]
fn json_is_the_run_itself() {
    let finished = hpcbench(2, &format!("{SMALL} --format json")).finish().expect_success();
    let printed: Run = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(printed, run_of(&finished));
}

#[test]
fn json_lines_come_as_rows_finish() {
    let finished = hpcbench(2, &format!("{SMALL} --format jsonl")).finish().expect_success();
    let lines: Vec<Value> =
        finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run", "row", "row", "row", "row", "row", "row", "end"]);
    assert_eq!(lines[7]["complete"], true);
}

#[test]
fn a_file_in_nccl_tests_json_has_their_keys() {
    let finished = hpcbench(2, &format!("{SMALL} -J out.json -I 1")).finish().expect_success();
    let run = run_of(&finished);
    let text = fs::read_to_string(finished.dir().join("out.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    for key in ["version", "start_time", "end_time", "args", "env", "nccl_version", "config"] {
        assert!(!document[key].is_null(), "{key}\n{text}");
    }
    assert_eq!(document["config"]["devices"].as_array().unwrap().len(), 2);
    assert_eq!(document["out_of_bounds"]["okay"], "true");
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    for (result, rows) in results.iter().zip(run.rows.chunks(2)) {
        assert_eq!(result["size"], rows[0].bytes);
        assert_eq!((&result["type"], &result["redop"]), (&"float".into(), &"sum".into()));
        for (place, row) in [("out_of_place", &rows[0]), ("in_place", &rows[1])] {
            assert_eq!(result[place]["time"], row.time_us.mean);
            assert_eq!(result[place]["bus_bw"], row.busbw_gbps);
            assert_eq!(result[place]["nwrong"], 0.0);
            let times = result[format!("{place}_per_iter")]["times_us"].as_array().unwrap();
            assert_eq!(times.len(), 20);
        }
    }
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let job = hpcbench(2, &format!("{SMALL} -J out.json"));
    fs::write(job.dir().join("out.json"), "mine").unwrap();
    let finished = job.finish().expect_success();
    assert_eq!(fs::read_to_string(finished.dir().join("out.json")).unwrap(), "mine");
    let numbered = fs::read_to_string(finished.dir().join("out.json.0")).unwrap();
    assert!(serde_json::from_str::<Value>(&numbered).is_ok());
}

#[test]
fn too_little_bandwidth_is_a_verdict() {
    let job = |min: &str| hpcbench(2, SMALL).env("NCCL_TESTS_MIN_BW", min).finish();
    let slow = job("1e9");
    assert_eq!(slow.code(), 4, "{}", slow.words());
    assert!(slow.stdout.contains("FAILED"), "{}", slow.words());
    job("1e-9").expect_success();
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let job = hpcbench(2, "allreduce -b 8 -e 64K -f 2 -n 50").start();
    drop(job.stdout());
    job.finish().expect_success();
}

#[test]
fn show_prints_the_table_again() {
    let finished = hpcbench(2, SMALL).finish().expect_success();
    let dir = finished.dir().join("run");
    let shown = Job::of(HPCBENCH).arg("show").arg(&dir).finish().expect_success();
    assert_eq!(table_lines(&shown.stdout), table_lines(&finished.stdout));
    let json = Job::of(HPCBENCH).args("show --format json").arg(&dir).finish().expect_success();
    let printed: Run = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(printed, run_of(&finished));
}

#[test]
fn show_says_where_there_is_no_run() {
    let finished = Job::of(HPCBENCH).args("show nowhere").finish();
    assert_eq!(finished.code(), 1, "{}", finished.words());
    assert_eq!(finished.messages().len(), 1, "{}", finished.words());
    assert!(finished.messages()[0].contains("no run at `nowhere`"), "{}", finished.words());
}

#[test]
fn without_out_a_run_has_a_directory_of_its_own() {
    let job = crate::common::mpirun(2, HPCBENCH).args(SMALL);
    let finished = job.finish().expect_success();
    let results = fs::read_dir(finished.dir().join("results")).unwrap();
    let names: Vec<_> = results.map(|entry| entry.unwrap().file_name()).collect();
    let [name] = names.as_slice() else { panic!("{names:?}") };
    assert!(name.to_str().unwrap().contains("Z-allreduce-"), "{name:?}");
}
