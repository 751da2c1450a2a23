//! `samples.hlog`: HdrHistogram's log format, version 1.3, with a tag on every line.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hpcbench_model::{Histogram, HistogramError};
use jiff::Timestamp;

use crate::ReadError;
use crate::lines::WholeLines;

/// Nanoseconds in the unit of the log's `Interval_Max`, a millisecond: the default of
/// HdrHistogram's own `HistogramLogWriter`.
const MAX_DIVISOR: f64 = 1e6;

/// Which times a histogram holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistogramKind {
    /// Time inside: from a rank's entry to its exit, of every iteration.
    Inside,
    /// The longest time inside of each iteration, over ranks.
    Slowest,
}

/// What one histogram of a run is of. Its text is the tag in the log: `row0:inside:rank3`,
/// `row0:slowest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistogramKey {
    /// The row's id.
    pub row: u32,
    /// Which times.
    pub kind: HistogramKind,
    /// The rank whose times they are; `None` for all ranks.
    pub rank: Option<u32>,
}

impl fmt::Display for HistogramKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            HistogramKind::Inside => "inside",
            HistogramKind::Slowest => "slowest",
        };
        write!(f, "row{}:{kind}", self.row)?;
        self.rank.map_or(Ok(()), |rank| write!(f, ":rank{rank}"))
    }
}

impl HistogramKey {
    /// Reads a tag; `None` when it is not one of ours.
    fn from_tag(tag: &str) -> Option<Self> {
        let number = |text: &str, prefix: &str| text.strip_prefix(prefix)?.parse().ok();
        let mut parts = tag.split(':');
        let row = number(parts.next()?, "row")?;
        let kind = match parts.next()? {
            "inside" => HistogramKind::Inside,
            "slowest" => HistogramKind::Slowest,
            _ => return None,
        };
        let rank = match parts.next() {
            Some(part) => Some(number(part, "rank")?),
            None => None,
        };
        parts.next().is_none().then_some(HistogramKey { row, kind, rank })
    }
}

/// When the times of a histogram were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Since the run's start.
    pub start: Duration,
    /// From the first entry to the last exit.
    pub duration: Duration,
}

/// The lines before the first histogram. `StartTime` and `BaseTime` are both the run's start, so
/// that the intervals' start stamps are seconds since then.
pub(crate) fn header(started: Timestamp) -> String {
    let seconds = started.as_millisecond() as f64 / 1e3;
    format!(
        "#[Histogram log format version 1.3]\n\
         #[StartTime: {seconds:.3} (seconds since epoch), {started}]\n\
         #[BaseTime: {seconds:.3} (seconds since epoch)]\n\
         #[MaxValueDivisor: {MAX_DIVISOR:.3}]\n\
         #Values are nanoseconds; Interval_Max is in milliseconds.\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// One histogram's line, of the bytes that [`Histogram::encode`] gave.
pub(crate) fn line(key: HistogramKey, encoded: &[u8], interval: Interval, max_ns: u64) -> String {
    let mut line = format!(
        "Tag={key},{:.6},{:.6},{:.6},",
        interval.start.as_secs_f64(),
        interval.duration.as_secs_f64(),
        max_ns as f64 / MAX_DIVISOR
    );
    STANDARD.encode_string(encoded, &mut line);
    line.push('\n');
    line
}

/// A histogram as it lies in the log, not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramEntry {
    /// What it is of.
    pub key: HistogramKey,
    /// When its times were taken.
    pub interval: Interval,
    /// HdrHistogram's V2 form, for [`Histogram::merge_encoded`].
    pub encoded: Vec<u8>,
}

impl HistogramEntry {
    /// Decodes it.
    ///
    /// # Errors
    /// When the bytes are no HdrHistogram.
    pub fn decode(&self) -> Result<Histogram, HistogramError> {
        Histogram::decode(&self.encoded)
    }
}

/// The histograms of a run in the order in which they were written, one in memory at a time. A
/// line cut off by a kill is left out, and so are tags that later versions may add. After an
/// unreadable line the iterator goes on with the next.
#[derive(Debug)]
pub struct Histograms(WholeLines);

impl Histograms {
    pub(crate) fn open(path: PathBuf) -> Result<Self, ReadError> {
        WholeLines::open(path).map(Histograms)
    }

    /// An error about the line read last.
    pub(crate) fn error(&self, why: impl ToString) -> ReadError {
        self.0.error(why)
    }
}

impl Iterator for Histograms {
    type Item = Result<HistogramEntry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let parsed = match self.0.next_line()? {
                Ok(line) => parse_line(line),
                Err(error) => return Some(Err(error)),
            };
            match parsed {
                Ok(None) => {}
                Ok(Some(entry)) => return Some(Ok(entry)),
                Err(why) => return Some(Err(self.0.error(why))),
            }
        }
    }
}

/// The histogram of a line; `None` for comments and for tags that are not ours.
fn parse_line(line: &[u8]) -> Result<Option<HistogramEntry>, String> {
    let logged = match IntervalLogIterator::new(line).next() {
        Some(Ok(LogEntry::Interval(logged))) => logged,
        Some(Err(_)) => return Err("no line of an HdrHistogram log".to_owned()),
        _ => return Ok(None),
    };
    let Some(key) = logged.tag().and_then(|tag| HistogramKey::from_tag(tag.as_str())) else {
        return Ok(None);
    };
    let interval = Interval { start: logged.start_timestamp(), duration: logged.duration() };
    let encoded = STANDARD.decode(logged.encoded_histogram()).map_err(|e| e.to_string())?;
    Ok(Some(HistogramEntry { key, interval, encoded }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_are_what_the_readme_says() {
        let inside = HistogramKey { row: 0, kind: HistogramKind::Inside, rank: Some(3) };
        let slowest = HistogramKey { row: 12, kind: HistogramKind::Slowest, rank: None };
        assert_eq!(inside.to_string(), "row0:inside:rank3");
        assert_eq!(slowest.to_string(), "row12:slowest");
    }

    #[test]
    fn other_tags_are_not_ours() {
        for tag in ["", "row:inside", "row1", "row1:hop", "row1:inside:3", "row1:inside:rank3:x"] {
            assert_eq!(HistogramKey::from_tag(tag), None, "{tag}");
        }
    }

    #[test]
    fn header_says_when_and_in_which_unit() {
        let header = header("2026-11-30T17:45:00.25Z".parse().unwrap());
        let entries: Vec<_> =
            IntervalLogIterator::new(header.as_bytes()).map(Result::unwrap).collect();
        let start = Duration::from_millis(1_796_060_700_250);
        assert_eq!(entries, [LogEntry::StartTime(start), LogEntry::BaseTime(start)]);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            row: u32,
            slowest: bool,
            rank: Option<u32>,
            start_us in 0_u64..1 << 45,
            duration_us in 0_u64..1 << 40,
            times in prop::collection::vec(1_u64..1 << 40, 0..50),
        ) {
            let kind = if slowest { HistogramKind::Slowest } else { HistogramKind::Inside };
            let key = HistogramKey { row, kind, rank };
            let interval = Interval {
                start: Duration::from_micros(start_us),
                duration: Duration::from_micros(duration_us),
            };
            let mut histogram = Histogram::new();
            times.iter().for_each(|t| histogram.record_ns(*t));
            let line = line(key, &histogram.encode(), interval, histogram.max_ns().unwrap_or(0));
            let read = parse_line(line.as_bytes()).unwrap().unwrap();
            prop_assert_eq!(read.key, key);
            prop_assert_eq!(read.interval, interval);
            prop_assert_eq!(read.decode().unwrap(), histogram);
        }
    }
}
