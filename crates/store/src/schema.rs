//! JSON Schemas of what a run directory holds, made from the types that write it.

use hpcbench_model::{Event, RUN_SCHEMA, Run};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The JSON Schema (draft 2020-12) of `run.json`; committed as `schema/hpcbench.run.1.json`.
pub fn run_schema() -> Value {
    let mut schema = schema_of::<Run>();
    schema["properties"]["schema"]["const"] = json!(RUN_SCHEMA);
    schema
}

/// The JSON Schema (draft 2020-12) of a line of `events.jsonl`; committed as
/// `schema/hpcbench.event.1.json`.
pub fn event_schema() -> Value {
    schema_of::<Event>()
}

/// For what is written rather than what is accepted: every field is there, `null` or not.
fn schema_of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}
