//! CSV, JSON, JSON lines and nccl-tests' JSON. A changed snapshot is a changed format.

use std::io::{self, Write};

use crate::fixtures::{Case, case, share};
use hpcbench_model::{Row, Run, Wrong};
use hpcbench_report::{
    Csv, Exporter, Json, JsonLines, NcclJson, NcclJsonOptions, Table, TableOptions,
};
use insta::assert_snapshot;
use serde_json::Value;

fn small() -> Case {
    let mut case = case("allreduce", &["h1", "h2"], 1).with_rows(&[8, 32], 20);
    let run = case.run.clone();
    let row = &mut case.run.rows[0];
    row.slowest = vec![share(&run, 1, 0.75), share(&run, 0, 0.25)];
    row.wrong = Some(2);
    row.first_wrong = Some(Wrong {
        rank: 1,
        host: "h2".to_owned(),
        offset: 0,
        got: "1,5".to_owned(),
        expected: "2".to_owned(),
    });
    row.median_interval_us = Some([1.5, 2.5]);
    case
}

fn nccl_json(options: NcclJsonOptions) -> NcclJson {
    let env = [("NCCL_DEBUG", "WARN"), ("NCCL_API_KEY", "x"), ("HOME", "/home/u")];
    NcclJson::new(options, env.map(|(name, value)| (name.to_owned(), value.to_owned())))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn csv_has_a_line_a_row_and_placement() {
    let case = small();
    let text = case.render(&mut Csv, false);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), case.run.rows.len());
    let cell = |row: usize, name: &str| {
        rows[row][names.iter().position(|n| n == name).unwrap()].to_owned()
    };
    assert_eq!(cell(0, "first_wrong_got"), "1,5");
    assert_eq!(cell(1, "first_wrong_got"), "");
    assert_eq!((cell(0, "in_place"), cell(1, "in_place")), ("false".into(), "true".into()));
    assert_eq!(cell(3, "time_us_mean").parse(), Ok(case.run.rows[3].time_us.mean));
    assert_snapshot!(text);
}

#[test]
fn json_is_the_run() {
    let case = small();
    let read: Run = serde_json::from_str(&case.render(&mut Json, false)).unwrap();
    assert_eq!(read, case.run);
}

#[test]
fn json_lines_have_a_kind_and_the_rows_read_back() {
    let case = small();
    let text = case.render(&mut JsonLines, false);
    let lines: Vec<Value> = text.lines().map(parsed).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run", "row", "row", "row", "row", "end"]);
    assert!(lines[0].get("rows").is_none() && lines[0]["world"]["size"] == 2);
    for (line, row) in lines[1..5].iter().zip(&case.run.rows) {
        assert_eq!(&serde_json::from_value::<Row>(line.clone()).unwrap(), row);
    }
    assert_eq!(
        (lines[0]["complete"].clone(), lines[5]["complete"].clone()),
        (false.into(), true.into())
    );
    assert_snapshot!(text);
}

#[test]
fn nccl_json_has_their_keys_and_kinds() {
    let text = small().render(&mut nccl_json(NcclJsonOptions::default()), false);
    let document = parsed(&text);
    assert_eq!(document["env"], serde_json::json!(["NCCL_DEBUG=WARN"]));
    assert_snapshot!(text);
}

#[test]
fn nccl_json_holds_single_iterations() {
    let options =
        NcclJsonOptions { cputime: true, per_iter_skip: Some(2), min_busbw_gbps: Some(1000.0) };
    let text = small().render(&mut nccl_json(options), true);
    let document = parsed(&text);
    let result = &document["results"][1];
    assert_eq!(result["in_place_per_iter"]["times_us"].as_array().unwrap().len(), 20);
    assert_eq!(result["out_of_place_per_iter"]["skipped_iterations"], 2);
    assert!(result["out_of_place"]["cpu_time"].is_number());
    assert!(result["out_of_place"].get("time").is_none());
    assert_eq!(document["average_bus_bandwidth"]["okay"], "false");
    assert_eq!(document["config"]["per_iter_timing"], "true");
}

#[test]
fn nccl_json_without_rows_or_placements_is_a_document() {
    let mut empty = case("allreduce", &["h1"], 2);
    empty.run.interrupted = Some("SIGINT".to_owned());
    empty.run.ended = None;
    let document = parsed(&empty.render(&mut nccl_json(NcclJsonOptions::default()), false));
    assert_eq!(document["average_bus_bandwidth"]["bandwidth"], "nan");
    assert_eq!(document["errors"][0], "interrupted by SIGINT");

    let pingpong = case("pingpong", &["h1"], 2).with_rows(&[8], 20);
    let document = parsed(&pingpong.render(&mut nccl_json(NcclJsonOptions::default()), false));
    assert!(document["results"][0]["in_place"].is_null());
    assert_eq!(document["results"][0]["root"], "    -1");
}

/// Takes so many bytes and then has no space.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let case = small();
    let exporters: [fn() -> Box<dyn Exporter>; 5] = [
        || Box::new(Csv),
        || Box::new(Json),
        || Box::new(JsonLines),
        || Box::new(nccl_json(NcclJsonOptions::default())),
        || Box::new(Table::new(TableOptions::default())),
    ];
    for exporter in exporters {
        let mut exporter = exporter();
        let mut out = Full(100);
        let begun = exporter.begin(&case.run, &mut out);
        let ended = begun.and_then(|()| exporter.end(&case.run, &mut out));
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
