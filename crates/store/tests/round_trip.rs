//! What a finished run's directory gives back.

mod common;

use std::fs;

use common::{assert_written, event, histogram, key, row, run, times, write, write_row};
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hpcbench_model::Loss;
use hpcbench_store::{HistogramKey, HistogramKind, RawWriter, RunDir, RunWriter};
use proptest::prelude::*;

#[test]
fn a_new_directory_is_a_run_without_rows() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("results/first");
    let finished =
        hpcbench_model::Run { complete: true, ended: Some("earlier".to_owned()), ..run() };
    let _writer = RunWriter::create(&dir, finished).unwrap();
    let read = RunDir::open(&dir).unwrap();
    assert_eq!(read.run(), &run());
    assert_eq!(read.histograms().unwrap().count(), 0);
    assert_eq!(read.events().unwrap().count(), 0);
    assert!(read.raw_ranks().unwrap().is_empty());
}

#[test]
fn an_update_at_once_is_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), run()).unwrap();
    write_row(&mut writer, 0);
    writer.update_at_once(|run| run.interrupted = Some("SIGTERM".to_owned()));
    let read = RunDir::open(dir.path()).unwrap();
    assert_eq!(read.run().interrupted.as_deref(), Some("SIGTERM"));
    assert_eq!(read.run().rows, [row(0)]);
}

#[test]
fn everything_of_a_finished_run_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), run()).unwrap();
    for id in 0..3 {
        write_row(&mut writer, id);
    }
    writer.update(|run| run.interrupted = Some("SIGTERM".to_owned()));
    writer.finish("2026-11-30T17:46:00Z".to_owned(), true);
    assert_eq!(writer.losses(), []);

    // The path of run.json is as good as its directory's.
    let read = RunDir::open(&dir.path().join("run.json")).unwrap();
    assert_eq!(read.dir(), dir.path());
    assert_eq!(read.run(), writer.run());
    assert_eq!(read.run().rows, (0..3).map(row).collect::<Vec<_>>());
    assert_eq!(read.run().interrupted.as_deref(), Some("SIGTERM"));
    assert_eq!(read.run().ended.as_deref(), Some("2026-11-30T17:46:00Z"));
    assert!(read.run().complete);

    let entries: Vec<_> = read.histograms().unwrap().map(Result::unwrap).collect();
    let keys: Vec<_> = entries.iter().map(|e| e.key).collect();
    let expected: Vec<_> = (0..3).flat_map(|id| [key(id, 0), key(id, 1)]).collect();
    assert_eq!(keys, expected);
    assert!(entries.iter().all(|e| e.interval == common::INTERVAL));
    entries.iter().for_each(assert_written);
    assert_eq!(read.histogram(key(2, 1)).unwrap(), Some(histogram(times(3))));
    assert_eq!(read.histogram(key(3, 0)).unwrap(), None);

    let events: Vec<_> = read.events().unwrap().map(Result::unwrap).collect();
    assert_eq!(events, (0..3).map(|id| event(id, 7)).collect::<Vec<_>>());
}

#[test]
fn hdrhistogram_s_own_reader_reads_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), run()).unwrap();
    let slowest = HistogramKey { row: 0, kind: HistogramKind::Slowest, rank: None };
    write(&mut writer, key(0, 3), &histogram([1_234_567, 8]));
    write(&mut writer, slowest, &histogram([2_000_000]));

    let log = fs::read(dir.path().join("samples.hlog")).unwrap();
    assert!(log.starts_with(b"#[Histogram log format version 1.3]\n"));
    let read: Vec<_> = IntervalLogIterator::new(&log)
        .map(Result::unwrap)
        .filter_map(|entry| match entry {
            LogEntry::Interval(logged) => Some((logged.tag().unwrap().as_str(), logged.max())),
            _ => None,
        })
        .collect();
    // The largest time is that of its bucket, of three digits.
    assert_eq!(read, [("row0:inside:rank3", 1.234943), ("row0:slowest", 2.000895)]);
}

#[test]
fn thousands_of_rows_are_all_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), run()).unwrap();
    writer.update(|run| run.rows.extend((0..4995).map(row)));
    for id in 4995..5000 {
        write_row(&mut writer, id);
    }
    let read = RunDir::open(dir.path()).unwrap();
    assert!(read.run().rows.iter().map(|r| r.id).eq(0..5000));
    assert_eq!(read.histogram(key(4999, 1)).unwrap(), Some(histogram(times(5000))));
}

#[test]
fn raw_files_are_found_by_rank() {
    let dir = tempfile::tempdir().unwrap();
    let _writer = RunWriter::create(dir.path(), run()).unwrap();
    for rank in [12_345, 3] {
        let mut raw = RawWriter::create(dir.path(), rank, "node2", None).unwrap();
        assert_eq!(raw.block(0, 0, &[10], &[15]), 0);
    }
    let read = RunDir::open(dir.path()).unwrap();
    assert_eq!(read.raw_ranks().unwrap(), [3, 12_345]);
    let blocks = read.raw(3).unwrap();
    assert_eq!(blocks.header().unwrap().host, "node2");
    assert_eq!(blocks.map(|b| b.unwrap().exits).collect::<Vec<_>>(), [[15]]);
    let missing = read.raw(4).unwrap_err().to_string();
    assert!(missing.contains("ranks/0004.bin"), "{missing}");
}

#[test]
fn a_damaged_line_is_an_error_and_the_next_one_reads() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), run()).unwrap();
    write_row(&mut writer, 0);
    for (name, damaged) in [("samples.hlog", "Tag=row0:slowest,0,0,x\n"), ("events.jsonl", "{\n")] {
        let path = dir.path().join(name);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{damaged}{whole}")).unwrap();
    }
    let read = RunDir::open(dir.path()).unwrap();
    let mut histograms = read.histograms().unwrap();
    let error = histograms.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("line 1") && error.contains("samples.hlog"), "{error}");
    assert_eq!(histograms.map(Result::unwrap).count(), 2);
    let mut events = read.events().unwrap();
    let error = events.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("line 1") && error.contains("events.jsonl"), "{error}");
    assert_eq!(events.map(Result::unwrap).count(), 1);
}

#[test]
fn losses_of_other_ranks_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(dir.path(), run()).unwrap();
    let loss =
        Loss { what: "ranks/0003.bin".to_owned(), rank: 3, count: 9, why: "full".to_owned() };
    writer.update(|run| run.losses.push(loss.clone()));
    write_row(&mut writer, 0);
    assert_eq!(RunDir::open(dir.path()).unwrap().run().losses, [loss]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_histograms_read_back(
        all in prop::collection::vec((any::<u32>(), any::<u32>(), prop::collection::vec(any::<u64>(), 0..40)), 0..20)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(dir.path(), run()).unwrap();
        for (row, rank, times) in &all {
            write(&mut writer, key(*row, *rank), &histogram(times.iter().copied()));
        }
        let read: Vec<_> = RunDir::open(dir.path()).unwrap().histograms().unwrap()
            .map(|entry| { let entry = entry.unwrap(); (entry.key, entry.decode().unwrap()) })
            .collect();
        let written: Vec<_> = all.into_iter()
            .map(|(row, rank, times)| (key(row, rank), histogram(times)))
            .collect();
        prop_assert_eq!(read, written);
    }
}
