//! `ranks/NNNN.bin`.

use std::fs;
use std::path::Path;

use hpcbench_store::{RawBlock, RawBlocks, RawHeader, RawWriter, ReadError};
use proptest::prelude::*;

fn create(dir: &Path, cap: Option<u64>) -> RawWriter {
    RawWriter::create(dir, 3, "node2", cap).unwrap()
}

fn read(dir: &Path) -> Vec<RawBlock> {
    RawBlocks::open(&dir.join("ranks/0003.bin")).unwrap().map(Result::unwrap).collect()
}

fn block(row: u32, first_iteration: u64, entries: &[u64], exits: &[u64]) -> RawBlock {
    RawBlock { row, first_iteration, entries: entries.to_vec(), exits: exits.to_vec() }
}

#[test]
fn the_cap_counts_per_row() {
    let dir = tempfile::tempdir().unwrap();
    let mut raw = create(dir.path(), Some(3));
    assert_eq!(raw.block(0, 0, &[10, 20], &[15, 25]), 0);
    assert_eq!(raw.block(0, 2, &[30, 40], &[35, 45]), 1);
    assert_eq!(raw.block(0, 4, &[50], &[55]), 1);
    assert_eq!(raw.block(1, 0, &[60], &[65]), 0);
    assert_eq!(raw.losses(), []);
    let expected =
        [block(0, 0, &[10, 20], &[15, 25]), block(0, 2, &[30], &[35]), block(1, 0, &[60], &[65])];
    assert_eq!(read(dir.path()), expected);
}

#[test]
fn long_blocks_are_split_and_stay_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let entries: Vec<u64> = (0..150_000).map(|i| 7_000_000_000 + i * 1000).collect();
    let exits: Vec<u64> = entries.iter().map(|entry| entry + 480).collect();
    assert_eq!(create(dir.path(), None).block(2, 10, &entries, &exits), 0);
    let blocks = read(dir.path());
    let firsts: Vec<_> = blocks.iter().map(|b| (b.row, b.first_iteration)).collect();
    assert_eq!(firsts, [(2, 10), (2, 65_546), (2, 131_082)]);
    assert_eq!(blocks.iter().flat_map(|b| b.entries.clone()).collect::<Vec<_>>(), entries);
    assert_eq!(blocks.iter().flat_map(|b| b.exits.clone()).collect::<Vec<_>>(), exits);
}

#[test]
fn a_cut_at_any_byte_leaves_all_whole_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let mut raw = create(dir.path(), None);
    raw.block(0, 0, &[10, 20], &[15, 25]);
    let path = dir.path().join("ranks/0003.bin");
    let whole = fs::read(&path).unwrap().len();
    raw.block(0, 2, &[30, 1_000_000], &[35, 2_000_000]);
    let all = fs::read(&path).unwrap();
    for cut in 0..all.len() {
        fs::write(&path, &all[..cut]).unwrap();
        let blocks = RawBlocks::open(&path).unwrap();
        assert_eq!(blocks.header().is_some(), cut >= 25, "{cut}");
        let blocks: Vec<_> = blocks.map(Result::unwrap).collect();
        let expected: &[_] = if cut >= whole { &[block(0, 0, &[10, 20], &[15, 25])] } else { &[] };
        assert_eq!(blocks, expected, "{cut}");
    }
}

#[test]
fn damage_is_named_and_a_tail_without_its_bytes_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut raw = create(dir.path(), None);
    raw.block(0, 0, &[10, 20], &[15, 25]);
    raw.block(0, 2, &[30], &[35]);
    let path = dir.path().join("ranks/0003.bin");
    let good = fs::read(&path).unwrap();

    let mut first_damaged = good.clone();
    first_damaged[60] ^= 1;
    fs::write(&path, first_damaged).unwrap();
    let read_all: Vec<_> = RawBlocks::open(&path).unwrap().collect();
    assert!(matches!(&read_all[..], [Err(ReadError::Binary { offset: 25, .. })]), "{read_all:?}");

    let mut last_damaged = good;
    *last_damaged.last_mut().unwrap() ^= 1;
    fs::write(&path, last_damaged).unwrap();
    assert_eq!(read(dir.path()), [block(0, 0, &[10, 20], &[15, 25])]);
}

#[test]
fn other_files_and_versions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(create(dir.path(), None));
    let path = dir.path().join("ranks/0003.bin");
    let good = fs::read(&path).unwrap();
    for (at, words) in [(0, "not the raw times"), (8, "version 0")] {
        let mut bad = good.clone();
        bad[at] = 0;
        fs::write(&path, bad).unwrap();
        let error = RawBlocks::open(&path).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("0003.bin"), "{error}");
    }
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path(), None).block(0, 0, &[1], &[2]);
    let error = RawWriter::create(dir.path(), 3, "node2", None).unwrap_err().to_string();
    assert!(error.contains("ranks/0003.bin") && error.contains("--out"), "{error}");
    assert_eq!(read(dir.path()), [block(0, 0, &[1], &[2])]);
}

proptest! {
    #[test]
    fn any_times_read_back(
        rank: u32,
        host in "[a-z0-9.-]{0,64}",
        blocks in prop::collection::vec(
            (any::<u32>(), any::<u64>(), prop::collection::vec(any::<(u64, u64)>(), 1..50)), 0..8),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut raw = RawWriter::create(dir.path(), rank, &host, None).unwrap();
        let written: Vec<_> = blocks.iter().map(|(row, first, times)| {
            let (entries, exits): (Vec<_>, Vec<_>) = times.iter().copied().unzip();
            raw.block(*row, *first, &entries, &exits);
            block(*row, *first, &entries, &exits)
        }).collect();
        prop_assert_eq!(raw.sync(), 0);
        let read = RawBlocks::open(&dir.path().join(format!("ranks/{rank:04}.bin"))).unwrap();
        prop_assert_eq!(read.header(), Some(&RawHeader { rank, host }));
        prop_assert_eq!(read.map(Result::unwrap).collect::<Vec<_>>(), written);
    }
}
