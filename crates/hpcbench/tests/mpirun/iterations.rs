//! How many iterations, cycles, blocks and checks there are, and what is kept of them.

use std::collections::BTreeMap;

use hpcbench_store::RunDir;

use crate::run::{hpcbench, read_samples, run_of, table_lines};

#[test]
fn cycles_repeat_the_whole_sweep() {
    let finished = hpcbench(2, "allreduce -b 8 -e 32 -f 2 -n 3 -N 3").finish().expect_success();
    let run = run_of(&finished);
    let named: Vec<(u64, u64)> = run.rows.iter().map(|row| (row.cycle, row.bytes)).collect();
    let expected: Vec<(u64, u64)> =
        (0..3).flat_map(|cycle| [8, 8, 16, 16, 32, 32].map(|bytes| (cycle, bytes))).collect();
    assert_eq!(named, expected);
}

#[test]
fn a_time_budget_is_cut_into_blocks_with_an_interval() {
    let finished =
        hpcbench(2, "allreduce -b 64 -e 64 --time-budget 400ms").finish().expect_success();
    for row in run_of(&finished).rows {
        assert!(row.blocks > 5 && row.iters > row.blocks, "{row:?}");
        let [low, high] = row.median_interval_us.expect("enough blocks for an interval");
        assert!(0.0 < low && low <= high, "{row:?}");
    }
    read_samples(&finished.dir().join("run"));
}

#[test]
fn precision_ends_a_row_before_its_budget() {
    // Half the median is reached by any machine with the first blocks that can tell.
    let finished =
        hpcbench(2, "allreduce -b 64 -e 64 --precision 50% --time-budget 60s --placement out")
            .finish()
            .expect_success();
    let run = run_of(&finished);
    assert_eq!(run.settings.precision, Some(0.5));
    let [row] = run.rows.as_slice() else { panic!("{}", finished.words()) };
    let [low, high] = row.median_interval_us.unwrap();
    assert!((high - low) / 2.0 <= 0.5 * high, "{row:?}");
}

#[test]
fn a_cap_on_raw_times_counts_what_it_drops() {
    let finished = hpcbench(3, "allreduce -b 8 -e 8 -n 50 --raw-cap 10").finish().expect_success();
    let dir = finished.dir().join("run");
    let run = run_of(&finished);
    assert_eq!(run.settings.raw_cap, Some(10));
    assert!(run.rows.iter().all(|row| row.raw_dropped == 3 * 40), "{:?}", run.rows);
    for rank in 0..3 {
        let mut kept = BTreeMap::new();
        for block in RunDir::open(&dir).unwrap().raw(rank).unwrap().map(Result::unwrap) {
            *kept.entry(block.row).or_insert(0) += block.entries.len();
        }
        assert_eq!(kept, BTreeMap::from([(0, 10), (1, 10)]));
    }
    // The histograms have every iteration all the same.
    read_samples(&dir);
    assert!(finished.stdout.contains("# Not kept"), "{}", finished.stdout);
}

#[test]
fn raw_times_follow_each_other() {
    let finished = hpcbench(2, "allreduce -b 8 -e 8 -n 40000 -c 0").finish().expect_success();
    let run = RunDir::open(&finished.dir().join("run")).unwrap();
    assert!(run.run().rows.iter().all(|row| row.blocks > 1), "40,000 do not fit one block");
    for rank in 0..2 {
        let mut next = BTreeMap::new();
        for block in run.raw(rank).unwrap().map(Result::unwrap) {
            let first = next.entry(block.row).or_insert(0);
            assert_eq!(block.first_iteration, *first, "no gap between blocks");
            *first += block.entries.len() as u64;
            let in_order = |(entry, exit): (&u64, &u64)| entry <= exit;
            assert!(block.entries.iter().zip(&block.exits).all(in_order));
            // Back to back: one iteration's exit is the next one's entry.
            assert_eq!(block.entries[1..], block.exits[..block.exits.len() - 1]);
        }
        assert_eq!(next, BTreeMap::from([(0, 40_000), (1, 40_000)]));
    }
}

#[test]
fn no_check_claims_nothing() {
    let finished = hpcbench(2, "allreduce -b 8 -e 8 -n 3 -c 0").finish().expect_success();
    assert!(run_of(&finished).rows.iter().all(|row| row.wrong.is_none()));
    let lines = table_lines(&finished.stdout);
    assert_eq!((lines[0][8], lines[0][12]), ("N/A", "N/A"));
}
