//! The Python reader in `README.md` reads what is written.

mod common;

use std::process::{Command, Stdio};

use common::skip;
use hpcbench_store::RawWriter;

#[test]
fn the_python_reader_reads_raw_times() {
    let readme = include_str!("../README.md");
    let (_, after) = readme.split_once("```python\n").unwrap();
    let (script, _) = after.split_once("```").unwrap();
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip("there is no python3");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut raw = RawWriter::create(dir.path(), 3, "node2", None).unwrap();
    raw.block(0, 0, &[1_000_000, 1_700_000], &[1_500_000, 1_700_001]);
    // An exit before its entry does not happen; the format takes it all the same.
    raw.block(1, 40, &[u64::MAX], &[5]);
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(dir.path().join("ranks/0003.bin"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "rank 3 on node2\n0 0 1000000 1500000\n0 1 1700000 1700001\n1 40 18446744073709551615 5\n"
    );
}
