//! Writes the JSON Schemas to `crates/store/schema/`, from the types in `hpcbench-model`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    for (name, schema) in [
        ("hpcbench.run.1.json", hpcbench_store::run_schema()),
        ("hpcbench.event.1.json", hpcbench_store::event_schema()),
    ] {
        std::fs::write(dir.join(name), format!("{schema:#}\n"))?;
    }
    Ok(())
}
