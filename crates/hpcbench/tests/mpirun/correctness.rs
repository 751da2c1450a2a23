//! Every collective, type, reduction, root and placement: the rows that must be there, nothing
//! wrong in them, and bandwidths by formulas written out here once more.

use hpcbench_model::{DType, RedOp, Row};

use crate::common::crawls;
use crate::run::{hpcbench, known_wrong, read_samples, run_of, table_lines};

/// Sizes that are no multiple of anything, and none at all.
const SIZES: [u64; 3] = [0, 137, 274];

/// One job: what it is asked for, and so which rows it must have.
struct Case {
    op: &'static str,
    dtypes: Vec<DType>,
    redops: Vec<RedOp>,
    roots: Vec<u32>,
    extra: &'static str,
}

impl Case {
    fn new(op: &'static str) -> Case {
        Case { op, dtypes: DType::ALL.to_vec(), redops: vec![], roots: vec![], extra: "" }
    }

    fn reducing(self) -> Case {
        Case { redops: RedOp::ALL.to_vec(), ..self }
    }

    fn arguments(&self, ranks: usize) -> String {
        let [min, step, max] = SIZES;
        let list = |option: &str, values: Vec<String>, all: usize| match values.as_slice() {
            [] => String::new(),
            values if values.len() == all => format!("{option} all"),
            [one] => format!("{option} {one}"),
            _ => panic!("one or all"),
        };
        let dtypes = self.dtypes.iter().map(DType::to_string).collect();
        let redops = self.redops.iter().map(RedOp::to_string).collect();
        let roots = self.roots.iter().map(u32::to_string).collect();
        format!(
            "{} -b {min} -e {max} -i {step} -n 2 -w 0 {} {} {} {}",
            self.op,
            list("-d", dtypes, DType::ALL.len()),
            list("-o", redops, RedOp::ALL.len()),
            list("-r", roots, ranks),
            self.extra
        )
    }

    /// What names each row, in order: type, reduction, root, bytes, count, in place.
    fn rows(&self, ranks: usize) -> Vec<Name> {
        let each = |list: &[RedOp]| -> Vec<Option<RedOp>> {
            if list.is_empty() { vec![None] } else { list.iter().copied().map(Some).collect() }
        };
        let roots: Vec<Option<u32>> = match self.roots.as_slice() {
            [] => vec![None],
            roots => roots.iter().copied().map(Some).collect(),
        };
        let placements: &[bool] = if self.op == "pingpong" { &[false] } else { &[false, true] };
        let mut names = Vec::new();
        for &dtype in &self.dtypes {
            for redop in each(&self.redops) {
                for &root in &roots {
                    for size in SIZES {
                        let (bytes, count) = bytes_and_count(self.op, dtype, size, ranks);
                        let row = |in_place: &bool| (dtype, redop, root, bytes, count, *in_place);
                        names.extend(placements.iter().map(row));
                    }
                }
            }
        }
        names
    }
}

type Name = (DType, Option<RedOp>, Option<u32>, u64, u64, bool);

fn name(row: &Row) -> Name {
    (row.dtype, row.redop, row.root, row.bytes, row.count, row.in_place)
}

/// nccl-tests' `size` and `count` columns for a size asked for: collectives in which each rank has
/// a part cut it to a multiple of 16 bytes a rank.
fn bytes_and_count(op: &str, dtype: DType, size: u64, ranks: usize) -> (u64, u64) {
    let element = dtype.size() as u64;
    match op {
        "allgather" | "reducescatter" | "alltoall" | "gather" | "scatter" | "hypercube" => {
            let part = size / element / ranks as u64 * element / 16 * 16;
            (part * ranks as u64, part / element)
        }
        _ => (size / element * element, size / element),
    }
}

/// Bytes of the algorithm bandwidth and factor of the bus bandwidth, by nccl-tests' PERFORMANCE.md.
fn bandwidth(row: &Row, ranks: usize, two_way: bool) -> (f64, f64) {
    let (bytes, n) = (row.bytes as f64, ranks as f64);
    match row.op.as_str() {
        "allreduce" => (bytes, 2.0 * (n - 1.0) / n),
        "allgather" | "reducescatter" | "alltoall" | "gather" | "scatter" => (bytes, (n - 1.0) / n),
        "hypercube" => (bytes / n * (n - 1.0), 1.0),
        "pingpong" if two_way => (2.0 * bytes, 1.0),
        _ => (bytes, 1.0),
    }
}

fn assert_close(got: f64, expected: f64, what: &str) {
    assert!((got - expected).abs() <= 1e-9 * expected.abs(), "{what}: {got}, not {expected}");
}

fn assert_row(row: &Row, ranks: usize, two_way: bool) {
    let words = format!("{row:?}");
    // nccl-tests prints N/A for these: the input is gone when the result is there.
    let unchecked = row.in_place && matches!(row.op.as_str(), "alltoall" | "sendrecv");
    if !known_wrong(row.dtype, row.redop, ranks) {
        assert_eq!(row.wrong, if unchecked { None } else { Some(0) }, "{words}");
    }
    assert_eq!(row.first_wrong.is_some(), row.wrong > Some(0), "{words}");
    assert_eq!((row.iters, row.blocks), (2, 1), "{words}");
    let (bytes, factor) = bandwidth(row, ranks, two_way);
    let algbw = bytes / (row.time_us.mean * 1e-6) / 1e9;
    assert_close(row.algbw_gbps, algbw, &words);
    assert_close(row.busbw_gbps, algbw * factor, &words);
    assert!(row.time_us.mean > 0.0 && row.time_us.min <= row.time_us.max, "{words}");
    let inside = &row.inside_us;
    assert!(inside.min <= inside.mean && inside.mean <= inside.max, "{words}");
    assert!(inside.max <= row.time_us.max, "no rank is longer inside than the longest: {words}");
}

fn measure(case: &Case, ranks: usize) {
    let finished = hpcbench(ranks, &case.arguments(ranks)).finish();
    let run = run_of(&finished);
    let wrong = run.rows.iter().any(|row| row.wrong > Some(0));
    assert_eq!(finished.code(), if wrong { 3 } else { 0 }, "{}", finished.words());
    assert!(run.complete && run.world.size as usize == ranks);
    let expected = case.rows(ranks);
    assert_eq!(run.rows.iter().map(name).collect::<Vec<_>>(), expected, "{}", finished.words());
    assert!(run.rows.iter().map(|row| row.id).eq(0..expected.len() as u32));
    let two_way = case.extra.contains("--two-way");
    run.rows.iter().for_each(|row| assert_row(row, ranks, two_way));
    let placements = if case.op == "pingpong" { 1 } else { 2 };
    let lines = table_lines(&finished.stdout);
    assert_eq!(lines.len() * placements, run.rows.len());
    assert!(lines.iter().all(|line| line.len() == 13), "{}", finished.stdout);
    read_samples(&finished.dir().join("run"));
}

fn cases(ranks: usize) -> Vec<Case> {
    let all: Vec<u32> = (0..ranks as u32).collect();
    let last = vec![ranks as u32 - 1];
    let mut cases: Vec<Case> =
        ["allreduce", "reducescatter"].map(|op| Case::new(op).reducing()).into();
    cases.extend(["allgather", "alltoall", "sendrecv"].map(Case::new));
    cases.push(Case { roots: last.clone(), ..Case::new("reduce").reducing() });
    let one_type = |dtype| vec![dtype];
    cases.push(Case {
        dtypes: one_type(DType::Half),
        redops: vec![RedOp::Avg],
        roots: all.clone(),
        ..Case::new("reduce")
    });
    for op in ["broadcast", "gather", "scatter"] {
        cases.push(Case { roots: last.clone(), ..Case::new(op) });
        cases.push(Case { dtypes: one_type(DType::Int8), roots: all.clone(), ..Case::new(op) });
    }
    if ranks.is_power_of_two() {
        cases.push(Case::new("hypercube"));
    }
    if ranks > 1 {
        cases.push(Case::new("pingpong"));
        for extra in ["--window 5", "--window 5 --two-way"] {
            cases.push(Case { dtypes: one_type(DType::Float), extra, ..Case::new("pingpong") });
        }
    }
    cases
}

fn refused(op: &str, ranks: usize, instead: &str) {
    let finished = hpcbench(ranks, &format!("{op} -b 8 -e 8 -n 1")).finish();
    assert_eq!(finished.code(), 2, "{}", finished.words());
    assert_eq!(finished.messages().len(), 1, "{}", finished.words());
    assert!(finished.stderr.contains(instead), "{}", finished.words());
}

fn every_collective(ranks: usize) {
    let mut cases = cases(ranks);
    if crawls(ranks) {
        // The fewer ranks before have seen every type, and the plain reference does on these too.
        cases.retain(|case| case.roots.len() < 2);
        cases.iter_mut().for_each(|case| case.dtypes = vec![DType::Half]);
    }
    cases.iter().for_each(|case| measure(case, ranks));
}

#[test]
fn one_rank() {
    every_collective(1);
    refused("pingpong", 1, "mpirun -n 2 hpcbench pingpong");
}

#[test]
fn two_ranks() {
    every_collective(2);
}

#[test]
fn three_ranks() {
    every_collective(3);
    refused("hypercube", 3, "mpirun -n 2");
}

#[test]
fn four_ranks() {
    every_collective(4);
}

#[test]
fn seven_ranks() {
    every_collective(7);
    refused("hypercube", 7, "mpirun -n 4");
}

#[test]
fn eight_ranks() {
    every_collective(8);
}

#[test]
fn data_longer_than_any_pattern() {
    // 300,001 bytes of int8 hold many repetitions of the test data, on five ranks in uneven parts.
    for op in ["allreduce", "reducescatter", "allgather", "alltoall"] {
        let arguments = format!("{op} -d int8 -b 300001 -e 300001 -n 1 -c 3 -u 1");
        let finished = hpcbench(5, &arguments).finish().expect_success();
        let rows = run_of(&finished).rows;
        assert!(rows.len() == 2 && rows.iter().all(|row| row.wrong.unwrap_or(0) == 0));
    }
}
