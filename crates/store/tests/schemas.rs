//! The committed JSON Schemas: they are those of the types, and what is written keeps to them.

mod common;

use std::fs;

use common::{run, write_row};
use hpcbench_store::{RunWriter, event_schema, run_schema};
use serde_json::{Value, json};

const REGENERATE: &str = "regenerate with: cargo run -p hpcbench-store --example write_schemas";

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn committed_schemas_are_those_of_the_types() {
    let committed_run = parse(include_str!("../schema/hpcbench.run.1.json"));
    let committed_event = parse(include_str!("../schema/hpcbench.event.1.json"));
    assert!(committed_run == run_schema(), "hpcbench.run.1.json is out of date; {REGENERATE}");
    assert!(
        committed_event == event_schema(),
        "hpcbench.event.1.json is out of date; {REGENERATE}"
    );
}

#[test]
fn what_is_written_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), run()).unwrap();
    write_row(&mut writer, 0);
    let run_validator = jsonschema::validator_for(&run_schema()).unwrap();
    let event_validator = jsonschema::validator_for(&event_schema()).unwrap();

    let mut written = parse(&fs::read_to_string(dir.path().join("run.json")).unwrap());
    run_validator.validate(&written).unwrap();
    let events = fs::read_to_string(dir.path().join("events.jsonl")).unwrap();
    event_validator.validate(&parse(&events)).unwrap();

    written["rows"][0]["dtype"] = json!("float128");
    assert!(!run_validator.is_valid(&written));
    written["rows"][0]["dtype"] = json!("float");
    written["schema"] = json!("hpcbench.run/2");
    assert!(!run_validator.is_valid(&written));
    written["schema"] = json!("hpcbench.run/1");
    written.as_object_mut().unwrap().remove("ended");
    assert!(!run_validator.is_valid(&written), "a field that is null is still there");
}
