//! Running hpcbench and reading what it left.

use std::fs;
use std::path::Path;

use hpcbench_model::{DType, RedOp, Run};
use hpcbench_store::{HistogramKey, HistogramKind, RunDir, event_schema, run_schema};
use rustix::process::Pid;
use serde_json::Value;

use crate::common::{Family, Finished, Job, Running, mpirun, own_family};

/// The program under test.
pub const HPCBENCH: &str = env!("CARGO_BIN_EXE_hpcbench");

/// hpcbench on so many ranks, with arguments separated by blanks. It writes to `run` in the job's
/// own directory unless the arguments say otherwise.
pub fn hpcbench(ranks: usize, arguments: &str) -> Job {
    let job = mpirun(ranks, HPCBENCH).args(arguments);
    if arguments.contains("--out") { job } else { job.args("--out run") }
}

/// Whether this MPI itself is known to give wrong results: MPICH 4.0 takes unsigned integers
/// for signed ones in MPI_MAX and MPI_MIN.
pub fn known_wrong(dtype: DType, redop: Option<RedOp>, ranks: usize) -> bool {
    let unsigned = matches!(dtype, DType::Uint8 | DType::Uint32 | DType::Uint64);
    let affected = unsigned && matches!(redop, Some(RedOp::Max | RedOp::Min));
    affected && ranks > 1 && own_family() == Family::Mpich
}

/// The run that a job left.
pub fn run_of(finished: &Finished) -> Run {
    read(&finished.dir().join("run"))
}

/// A run's `run.json`, valid by its schema.
pub fn read(dir: &Path) -> Run {
    let document: Value = serde_json::from_slice(&fs::read(dir.join("run.json")).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&run_schema()).unwrap();
    if let Err(error) = validator.validate(&document) {
        panic!("run.json does not keep to its schema: {error}");
    }
    RunDir::open(dir).unwrap().run().clone()
}

/// Reads everything else that a run directory has for its rows: histograms of every row and rank
/// with as many samples as the row has iterations, events by their schema, and raw times.
pub fn read_samples(dir: &Path) {
    let opened = RunDir::open(dir).unwrap();
    let histograms: Vec<_> = opened.histograms().unwrap().map(Result::unwrap).collect();
    let size = opened.run().world.size;
    for row in &opened.run().rows {
        let ranks = (0..size).map(|rank| (HistogramKind::Inside, Some(rank)));
        for (kind, rank) in ranks.chain([(HistogramKind::Slowest, None)]) {
            let key = HistogramKey { row: row.id, kind, rank };
            let entry = histograms.iter().find(|entry| entry.key == key);
            let histogram = entry.unwrap_or_else(|| panic!("no histogram {key}")).decode().unwrap();
            // With an odd number of ranks the last one has nobody to play with.
            let idle = row.op == "pingpong" && size % 2 == 1 && rank == Some(size - 1);
            assert_eq!(histogram.count(), if idle { 0 } else { row.iters }, "{key}");
        }
    }
    let validator = jsonschema::validator_for(&event_schema()).unwrap();
    let events = fs::read_to_string(dir.join("events.jsonl")).unwrap();
    // A kill may have cut the last line off.
    let whole = &events[..events.rfind('\n').map_or(0, |end| end + 1)];
    for line in whole.lines() {
        assert!(validator.is_valid(&serde_json::from_str(line).unwrap()), "{line}");
    }
    for rank in opened.raw_ranks().unwrap() {
        let blocks: Vec<_> = opened.raw(rank).unwrap().map(Result::unwrap).collect();
        for row in &opened.run().rows {
            let of_row = blocks.iter().filter(|block| block.row == row.id);
            let kept: usize = of_row.map(|block| block.entries.len()).sum();
            assert!(kept as u64 + row.raw_dropped >= row.iters, "row {} rank {rank}", row.id);
        }
    }
}

/// The ranks' processes of a job, by rank, once the run directory names them.
pub fn ranks(job: &mut Running) -> Vec<Pid> {
    let run = job.until("run.json", |job| RunDir::open(&job.dir().join("run")).ok());
    run.run().world.ranks.iter().map(|rank| Pid::from_raw(rank.pid as i32).unwrap()).collect()
}

/// Data lines of the table, cut into fields. MPICH's mpirun prints words of its own there too.
pub fn table_lines(stdout: &str) -> Vec<Vec<&str>> {
    stdout
        .lines()
        .filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split_whitespace().collect())
        .collect()
}
