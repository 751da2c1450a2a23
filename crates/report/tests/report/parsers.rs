//! The rules by which today's programs read nccl-tests' output, applied to our table.

use crate::fixtures::{Case, case};
use hpcbench_report::{Table, TableOptions};

/// Figures of one placement: time in µs, algbw and busbw in GB/s.
type Figures = (f64, f64, f64);

fn table(case: &Case) -> String {
    case.render(&mut Table::new(TableOptions::default()), false)
}

fn cases() -> Vec<Case> {
    let sweep: Vec<u64> = (3..=32).map(|power| 1 << power).collect();
    ["allreduce", "allgather", "broadcast", "reduce", "reducescatter", "alltoall"]
        .into_iter()
        .map(|op| case(op, &["h1", "h2"], 4).with_rows(&sweep, 20))
        .collect()
}

/// CloudAI (`performance_report_generation_strategy.py`): lines that begin with a digit and have 13
/// fields are rows; of those, size and the six figures must be numbers.
fn read_as_cloudai(text: &str) -> Vec<(u64, Figures, Figures)> {
    let rows =
        text.lines().map(str::trim).filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    rows.map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.len() == 13)
        .map(|fields| {
            let number = |at: usize| fields[at].parse::<f64>().unwrap();
            let figures = |at: usize| (number(at), number(at + 1), number(at + 2));
            (fields[0].parse().unwrap(), figures(5), figures(9))
        })
        .collect()
}

/// SuperBench (`cuda_nccl_bw_performance.py`): between the last line with `out-of-place` and the one
/// with `Out of bounds values`, the first line with `time` and `busbw` names the columns, which are
/// then counted from the right; lines that begin with a digit are rows.
fn read_as_superbench(text: &str, in_place: bool) -> Vec<(u64, Figures)> {
    let lines: Vec<&str> = text.lines().collect();
    let head = lines.iter().rposition(|line| line.contains("out-of-place")).unwrap();
    let foot = lines.iter().rposition(|line| line.contains("Out of bounds values")).unwrap();
    let body = &lines[head + 1..foot];
    let names = body.iter().find(|line| line.contains("time") && line.contains("busbw")).unwrap();
    let names: Vec<&str> = names[1..].split_whitespace().collect();
    let from_right = |name: &str| {
        let found = |candidate: &&str| *candidate == name;
        let at =
            if in_place { names.iter().rposition(found) } else { names.iter().position(found) };
        names.len() - at.unwrap()
    };
    let size = names.iter().position(|name| *name == "size").unwrap();
    let columns = ["time", "algbw", "busbw"].map(from_right);
    body.iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| {
            fields.first().is_some_and(|f| f.starts_with(|c: char| c.is_ascii_digit()))
        })
        .map(|fields| {
            let [time, algbw, busbw] = columns.map(|at| fields[fields.len() - at].parse().unwrap());
            (fields[size].parse().unwrap(), (time, algbw, busbw))
        })
        .collect()
}

fn close(read: Figures, case: &Case, row: usize) {
    let row = &case.run.rows[row];
    let meant = [row.time_us.mean, row.algbw_gbps, row.busbw_gbps];
    for (read, meant) in [read.0, read.1, read.2].into_iter().zip(meant) {
        assert!((read - meant).abs() <= 0.005 + meant * 1e-3, "{} B: {read} {meant}", row.bytes);
    }
}

#[test]
fn cloudai_reads_every_row() {
    for case in cases() {
        let rows = read_as_cloudai(&table(&case));
        assert_eq!(rows.len(), case.run.rows.len() / 2, "{}", case.run.op);
        for (i, (bytes, out_of_place, in_place)) in rows.into_iter().enumerate() {
            assert_eq!(bytes, case.run.rows[2 * i].bytes);
            close(out_of_place, &case, 2 * i);
            close(in_place, &case, 2 * i + 1);
        }
    }
}

#[test]
fn superbench_reads_every_row() {
    for case in cases() {
        for in_place in [false, true] {
            let rows = read_as_superbench(&table(&case), in_place);
            assert_eq!(rows.len(), case.run.rows.len() / 2, "{}", case.run.op);
            for (i, (bytes, figures)) in rows.into_iter().enumerate() {
                assert_eq!(bytes, case.run.rows[2 * i].bytes);
                close(figures, &case, 2 * i + usize::from(in_place));
            }
        }
    }
}
