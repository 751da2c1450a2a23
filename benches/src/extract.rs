//! One number out of a program's run.

use serde::Deserialize;

use crate::program::{Line, Output};

/// What is read from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Metric {
    /// Seconds from the start to the end of the program.
    Elapsed,
    /// Seconds from the start to the arrival of the last row of a table of numbers.
    LastRow,
    /// Microseconds of a size in the OSU micro-benchmarks' table: its second column, the mean over
    /// ranks of the mean over iterations.
    Osu,
    /// Microseconds of a size in the Intel MPI Benchmarks' collective tables: `t_avg`, likewise.
    Imb,
    /// Microseconds of a size in hpcbench's table, out of place (the sixth of its 13 fields).
    Table,
    /// Microseconds of a size in hpcbench's `--format json`, out of place (`time_us.mean`).
    Json,
}

/// Why a run holds no such number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// No such row.
    #[error("the output has no row {}", wanted(*.bytes))]
    NoRow {
        /// The size wanted.
        bytes: Option<u64>,
    },
    /// More than one row.
    #[error("the output has {rows} rows {}: name one size", wanted(*.bytes))]
    ManyRows {
        /// The size wanted.
        bytes: Option<u64>,
        /// How many rows fit.
        rows: usize,
    },
    /// Not JSON of a run.
    #[error("the output is not a run in JSON: {0}")]
    NotJson(String),
}

fn wanted(bytes: Option<u64>) -> String {
    bytes.map_or("of numbers".to_owned(), |bytes| format!("of {bytes} bytes"))
}

impl Metric {
    /// The unit of its values.
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::Elapsed | Metric::LastRow => "s",
            Metric::Osu | Metric::Imb | Metric::Table | Metric::Json => "us",
        }
    }

    /// Reads the number; of the row of that size, where one is named, else of the only row.
    ///
    /// # Errors
    /// When the output does not hold exactly one such row.
    pub fn read(self, output: &Output, bytes: Option<u64>) -> Result<f64, ExtractError> {
        let column = |columns, at| only(table_rows(&output.lines, columns, at, bytes), bytes);
        match self {
            Metric::Elapsed => Ok(output.elapsed.as_secs_f64()),
            Metric::LastRow => last_row(&output.lines).ok_or(ExtractError::NoRow { bytes: None }),
            Metric::Osu => column(None, 1),
            Metric::Imb => column(Some(5), 4),
            Metric::Table => column(Some(13), 5),
            Metric::Json => only(json_rows(&output.lines, bytes)?, bytes),
        }
    }
}

fn only(rows: Vec<f64>, bytes: Option<u64>) -> Result<f64, ExtractError> {
    match rows[..] {
        [] => Err(ExtractError::NoRow { bytes }),
        [value] => Ok(value),
        _ => Err(ExtractError::ManyRows { bytes, rows: rows.len() }),
    }
}

/// Column `at` of the lines that begin with a size and, where it is given, have that many columns.
fn table_rows(lines: &[Line], columns: Option<usize>, at: usize, bytes: Option<u64>) -> Vec<f64> {
    let row = |line: &Line| {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let size: u64 = words.first()?.parse().ok()?;
        let fits = columns.is_none_or(|n| n == words.len()) && bytes.is_none_or(|b| b == size);
        if fits { words.get(at)?.parse().ok() } else { None }
    };
    lines.iter().filter_map(row).collect()
}

/// When the last line that begins with two numbers arrived.
fn last_row(lines: &[Line]) -> Option<f64> {
    let is_row = |line: &&Line| {
        let mut words = line.text.split_whitespace().map(str::parse::<f64>);
        matches!((words.next(), words.next()), (Some(Ok(_)), Some(Ok(_))))
    };
    lines.iter().rev().find(is_row).map(|line| line.at.as_secs_f64())
}

/// The part of `run.json` that is read here.
#[derive(Deserialize)]
struct Run {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    bytes: u64,
    in_place: bool,
    time_us: TimeUs,
}

#[derive(Deserialize)]
struct TimeUs {
    mean: f64,
}

fn json_rows(lines: &[Line], bytes: Option<u64>) -> Result<Vec<f64>, ExtractError> {
    // A launcher may have said something first.
    let start = lines.iter().position(|line| line.text.starts_with('{')).unwrap_or(lines.len());
    let text: Vec<&str> = lines[start..].iter().map(|line| line.text.as_str()).collect();
    let run: Run = serde_json::from_str(&text.join("\n"))
        .map_err(|error| ExtractError::NotJson(error.to_string()))?;
    let wanted = |row: &Row| !row.in_place && bytes.is_none_or(|b| b == row.bytes);
    Ok(run.rows.into_iter().filter(wanted).map(|row| row.time_us.mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn output(text: &str) -> Output {
        let line = |(i, text): (usize, &str)| Line {
            at: Duration::from_millis(10 * i as u64),
            text: text.to_owned(),
        };
        Output {
            lines: text.lines().enumerate().map(line).collect(),
            elapsed: Duration::from_millis(1_500),
        }
    }

    const OSU: &str = "\n# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_FLOAT.\n\
        # Size       Avg Latency(us)\n8                       0.52\n65536                  20.41\n";
    const IMB: &str = "# Benchmarking Allreduce\n# #processes = 2\n\
        #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n\
        0 1000 0.01 0.02 0.02\n8 1000 0.50 0.56 0.53\n";
    const TABLE: &str = "#       size         count      type   redop    root     time   algbw\n\
        8 2 float sum -1 0.61 0.01 0.01 0 0.59 0.01 0.01 0\n# Avg bus bandwidth : 0.01\n";
    const JSON: &str = "a word from the launcher\n{\n\"schema\": \"hpcbench.run/1\", \"rows\": [\
        {\"bytes\": 8, \"in_place\": false, \"time_us\": {\"mean\": 0.6125}},\n\
        {\"bytes\": 8, \"in_place\": true, \"time_us\": {\"mean\": 0.5}}]}\n";

    #[test]
    fn each_table_gives_its_number() {
        for (metric, text, bytes, value) in [
            (Metric::Osu, OSU, Some(65536), 20.41),
            (Metric::Osu, OSU, Some(8), 0.52),
            (Metric::Imb, IMB, Some(8), 0.53),
            (Metric::Table, TABLE, Some(8), 0.61),
            (Metric::Table, TABLE, None, 0.61),
            (Metric::Json, JSON, Some(8), 0.6125),
            (Metric::Elapsed, "", None, 1.5),
            (Metric::LastRow, OSU, None, 0.05),
            (Metric::LastRow, IMB, None, 0.04),
        ] {
            assert_eq!(metric.read(&output(text), bytes), Ok(value), "{metric:?} {bytes:?}");
        }
        // A table's rows have words in their second half, but never in their first two columns.
        assert_eq!(Metric::LastRow.read(&output(TABLE), None), Ok(0.01));
    }

    #[test]
    fn a_row_that_is_not_there_is_no_number() {
        for (metric, text, bytes) in [
            (Metric::Osu, OSU, Some(16)),
            (Metric::Imb, OSU, Some(8)),
            (Metric::Table, IMB, Some(8)),
            (Metric::Json, JSON, Some(16)),
            (Metric::LastRow, "# nothing\n", None),
        ] {
            let result = metric.read(&output(text), bytes);
            assert!(matches!(result, Err(ExtractError::NoRow { .. })), "{metric:?} {result:?}");
        }
        let many = Metric::Osu.read(&output(OSU), None);
        assert_eq!(many, Err(ExtractError::ManyRows { bytes: None, rows: 2 }));
        let not_json = Metric::Json.read(&output(OSU), None);
        assert!(matches!(not_json, Err(ExtractError::NotJson(_))), "{not_json:?}");
    }
}
