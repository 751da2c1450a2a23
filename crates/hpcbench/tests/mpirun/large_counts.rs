//! Counts beyond 2³¹−1, the largest that a C int holds.

use hpcbench_world::HostFacts;

use crate::common::skip;
use crate::run::{hpcbench, run_of};

/// 2³¹ + 16 bytes.
const BEYOND: u64 = 2_147_483_664;
/// Two ranks have two buffers each, of which one is touched; and some room beside.
const NEEDED: u64 = 10 << 30;

#[test]
fn move_as_one_message() {
    let available = HostFacts::read().available_bytes;
    if available < NEEDED {
        return skip(&format!("{} MiB of memory free, {} needed", available >> 20, NEEDED >> 20));
    }
    let options = format!("-d int8 -b {BEYOND} -e {BEYOND} -n 1 -w 0 --placement in");
    let finished = hpcbench(2, &format!("broadcast {options}")).finish().expect_success();
    let run = run_of(&finished);
    let [row] = run.rows.as_slice() else { panic!("{}", finished.words()) };
    assert_eq!((row.count, row.bytes, row.wrong), (BEYOND, BEYOND, Some(0)));
}

#[test]
fn are_refused_where_elements_are_combined() {
    for op in ["allreduce", "reduce"] {
        let finished = hpcbench(2, &format!("{op} -d int8 -b {BEYOND} -e {BEYOND} -n 1")).finish();
        let words = finished.words();
        assert_eq!((finished.code(), finished.messages().len()), (2, 1), "{words}");
        assert!(finished.stderr.contains("takes at most 2147483647"), "{words}");
        assert!(!finished.dir().join("run").exists(), "{words}");
    }
}
