//! What a figure leaves behind: one JSON file, and a line a part for the person who waits.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hpcbench_verdict::stats::{self, Interval};
use serde::Serialize;
use serde::ser::{Error, Serializer};
use serde_json::value::RawValue;

use crate::claim::{Claim, Judgement, Verdict};
use crate::compare::{Comparison, Plan, Round};
use crate::machine::Machine;

/// The `schema` of a figure's file. The number rises when a reader of the old form would be wrong.
pub const FIGURE_SCHEMA: &str = "hpcbench.figure/1";

/// A figure: what was claimed, what was measured, what was shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// [`FIGURE_SCHEMA`].
    pub schema: &'static str,
    /// Its name, and that of its file.
    pub figure: String,
    /// What is measured on each side, in a sentence or two.
    pub what: String,
    /// When it was begun, RFC 3339, UTC.
    pub date: String,
    /// Version of this workspace.
    pub version: &'static str,
    /// Where.
    pub machine: Machine,
    /// First line of the launcher's version text, where ranks were started.
    pub launcher: Option<String>,
    /// The worst verdict of the parts; `null` where there is none.
    pub verdict: Option<Verdict>,
    /// The parts, in order of time.
    pub parts: Vec<Part>,
    /// What was not measured.
    pub skipped: Vec<Skipped>,
}

/// A part of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// A comparison.
    Paired(Box<Paired>),
    /// A value against a bound.
    Bounded(Bounded),
}

/// A comparison of two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// Its name within the figure.
    pub name: String,
    /// What is compared with.
    pub a: Subject,
    /// What is compared.
    pub b: Subject,
    /// Unit of the measured values.
    pub unit: &'static str,
    /// What is claimed of B ÷ A.
    pub claim: Option<Claim>,
    /// Whether it was shown; `null` without a claim.
    pub verdict: Option<Verdict>,
    /// Why.
    pub reason: Option<String>,
    /// Number of pairs.
    pub pairs: usize,
    /// Interval of the median of B ÷ A.
    pub ratio: Ends,
    /// The same of A against itself: holds 1 where the comparison is sound.
    pub control: Ends,
    /// Interval of the median of B − A, in the unit.
    pub difference: Ends,
    /// How A's values spread.
    pub a_values: Spread,
    /// How B's values spread.
    pub b_values: Spread,
    /// How it was measured.
    pub plan: Plan,
    /// Every round, in order of time.
    #[serde(serialize_with = "on_one_line")]
    pub rounds: Vec<Round>,
}

/// Commands and rounds spread over thousands of lines would bury the rest of a file.
fn on_one_line<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let text = serde_json::to_string(value).map_err(S::Error::custom)?;
    RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
}

/// One side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// Its name.
    pub label: String,
    /// The command, word by word, without directories; empty for a block of code.
    #[serde(serialize_with = "on_one_line")]
    pub command: Vec<String>,
}

impl Subject {
    /// A program. Directories are left out: they say where this machine keeps it, not what ran.
    pub fn program(label: &str, command: &[String]) -> Self {
        Subject { label: label.to_owned(), command: command.iter().map(|w| base_name(w)).collect() }
    }
}

fn base_name(word: &str) -> String {
    let name = Path::new(word).file_name().filter(|_| word.starts_with('/'));
    name.map_or_else(|| word.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// An interval in a file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ends {
    /// Lower end.
    pub low: f64,
    /// Median.
    pub median: f64,
    /// Upper end.
    pub high: f64,
    /// Nominal coverage.
    pub coverage: f64,
}

impl From<Interval> for Ends {
    fn from(Interval { low, median, high, coverage }: Interval) -> Self {
        Ends { low, median, high, coverage }
    }
}

/// How values spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Smallest.
    pub min: f64,
    /// Lower quartile.
    pub p25: f64,
    /// Median.
    pub median: f64,
    /// Upper quartile.
    pub p75: f64,
    /// Largest.
    pub max: f64,
    /// Upper less lower quartile, as a share of the median.
    pub relative_iqr: f64,
}

impl Spread {
    /// Of at least one value. A quartile is the median of its half.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        let median = stats::median(&mut values)?;
        let half = values.len().div_ceil(2);
        let p25 = stats::median(&mut values.clone()[..half])?;
        let p75 = stats::median(&mut values.clone()[values.len() - half..])?;
        Some(Spread {
            min: *values.first()?,
            p25,
            median,
            p75,
            max: *values.last()?,
            relative_iqr: (p75 - p25) / median,
        })
    }
}

/// A value against a bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounded {
    /// Its name within the figure.
    pub name: String,
    /// The command, word by word, without directories; empty for a block of code.
    #[serde(serialize_with = "on_one_line")]
    pub command: Vec<String>,
    /// Unit of the values.
    pub unit: &'static str,
    /// The largest value that keeps the claim; `null` where nothing is claimed.
    pub at_most: Option<f64>,
    /// Values of repeated measurements, in order of time. The largest counts.
    #[serde(serialize_with = "on_one_line")]
    pub values: Vec<f64>,
    /// Whether the claim was shown; `null` without a claim.
    pub verdict: Option<Verdict>,
}

impl Bounded {
    /// Judges by the largest value.
    pub fn new(
        name: &str,
        command: &[String],
        unit: &'static str,
        at_most: Option<f64>,
        values: Vec<f64>,
    ) -> Self {
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let verdict = at_most.map(|bound| match () {
            () if values.is_empty() => Verdict::NotShown,
            () if largest <= bound => Verdict::Inside,
            () => Verdict::Outside,
        });
        let command = command.iter().map(|word| base_name(word)).collect();
        Bounded { name: name.to_owned(), command, unit, at_most, values, verdict }
    }
}

/// What was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

impl Figure {
    /// A figure without parts, begun now, on this machine.
    pub fn begin(figure: &str, what: &str, launcher: Option<&str>) -> Self {
        Figure {
            schema: FIGURE_SCHEMA,
            figure: figure.to_owned(),
            what: what.to_owned(),
            date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            version: env!("CARGO_PKG_VERSION"),
            machine: Machine::here(),
            launcher: launcher.map(str::to_owned),
            verdict: None,
            parts: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Adds a part and says it.
    pub fn add(&mut self, part: Part) {
        eprintln!("{part}");
        self.verdict = self.verdict.max(part.verdict());
        self.parts.push(part);
    }

    /// Says and keeps that something was not measured.
    pub fn skip(&mut self, what: &str, why: &str) {
        eprintln!("skipped {what}: {why}");
        self.skipped.push(Skipped { what: what.to_owned(), why: why.to_owned() });
    }

    /// The file's text.
    ///
    /// # Errors
    /// When a number has no JSON form.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Writes `NAME.json` into a directory, which is made where it is missing, and returns its path.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, dir: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(dir)?;
        let path = dir.join(format!("{}.json", self.figure));
        // Whole or not at all: an interrupted write must not destroy an older result.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        io::Write::write_all(&mut file, self.to_json()?.as_bytes())?;
        file.persist(&path)?;
        Ok(path)
    }

    /// 0 when every part is inside, 4 when one is outside, 6 when one was not shown, 7 when one was
    /// skipped; the first of 4, 6, 7 that applies.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.verdict {
            Some(Verdict::Outside) => 4,
            Some(Verdict::NotShown) => 6,
            _ if !self.skipped.is_empty() => 7,
            _ => 0,
        })
    }
}

impl Paired {
    /// A finished comparison, judged.
    pub fn new(
        name: &str,
        [a, b]: [Subject; 2],
        unit: &'static str,
        claim: Option<Claim>,
        plan: &Plan,
        comparison: Comparison,
    ) -> Self {
        let Comparison { rounds, estimates } = comparison;
        let judged: Option<Judgement> = claim.map(|claim| claim.judge(&estimates));
        let spread = |value: fn(&Round) -> f64| {
            Spread::of(rounds.iter().map(value)).expect("an interval takes several rounds")
        };
        Paired {
            name: name.to_owned(),
            a,
            b,
            unit,
            claim,
            verdict: judged.as_ref().map(|j| j.verdict),
            reason: judged.map(|j| j.reason),
            pairs: rounds.len(),
            ratio: estimates.ratio.into(),
            control: estimates.control.into(),
            difference: estimates.difference.into(),
            a_values: spread(|r| r.a),
            b_values: spread(|r| r.b),
            plan: plan.clone(),
            rounds,
        }
    }
}

impl Part {
    /// Whether its claim was shown; `None` without a claim.
    pub fn verdict(&self) -> Option<Verdict> {
        match self {
            Part::Paired(paired) => paired.verdict,
            Part::Bounded(bounded) => bounded.verdict,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Inside => "inside",
            Verdict::NotShown => "not shown",
            Verdict::Outside => "outside",
        })
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} [{:.4}, {:.4}]", self.median, self.low, self.high)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = self.verdict().map_or("no claim".to_owned(), |v| v.to_string());
        match self {
            Part::Paired(p) => write!(
                f,
                "{}: {verdict}; {}/{} {}, {}/{} {}, {} pairs, {:.4} and {:.4} {}",
                p.name,
                p.b.label,
                p.a.label,
                p.ratio,
                p.a.label,
                p.a.label,
                p.control,
                p.pairs,
                p.b_values.median,
                p.a_values.median,
                p.unit,
            ),
            Part::Bounded(b) => {
                let largest = b.values.iter().copied().fold(0.0, f64::max);
                write!(f, "{}: {verdict}; {largest:.2} {}", b.name, b.unit)?;
                b.at_most.map_or(Ok(()), |bound| write!(f, ", at most {bound} claimed"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(at_most: Option<f64>, values: &[f64]) -> Part {
        let command = ["/opt/mpi/bin/mpirun", "-n", "2", "/opt/osu/osu_allreduce", "a/b"];
        let command = command.map(str::to_owned);
        Part::Bounded(Bounded::new("memory", &command, "MiB", at_most, values.to_vec()))
    }

    #[test]
    fn the_worst_part_decides() {
        let mut figure = Figure::begin("memory", "peak", None);
        assert_eq!(figure.verdict, None);
        for (part, verdict) in [
            (bounded(None, &[99.0]), None),
            (bounded(Some(5.0), &[3.0, 5.0]), Some(Verdict::Inside)),
            (bounded(Some(5.0), &[]), Some(Verdict::NotShown)),
            (bounded(Some(5.0), &[3.0, 5.1]), Some(Verdict::Outside)),
            (bounded(Some(5.0), &[3.0]), Some(Verdict::Outside)),
        ] {
            figure.add(part);
            assert_eq!(figure.verdict, verdict);
        }
    }

    #[test]
    fn the_exit_code_tells_skipped_from_fine() {
        let code = |figure: &Figure| format!("{:?}", figure.exit_code());
        let is = |n: u8| format!("{:?}", ExitCode::from(n));
        let mut figure = Figure::begin("osu", "ratio", None);
        assert_eq!(code(&figure), is(0));
        figure.skip("osu", "no binaries");
        assert_eq!(code(&figure), is(7));
        figure.add(bounded(Some(1.0), &[]));
        assert_eq!(code(&figure), is(6));
        figure.add(bounded(Some(1.0), &[2.0]));
        assert_eq!(code(&figure), is(4));
    }

    #[test]
    fn a_file_tells_what_ran_but_not_where_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let mut figure = Figure::begin("memory", "peak", Some("mpirun (Open MPI) 4.1.4"));
        figure.add(bounded(Some(5.0), &[3.0]));
        let path = figure.write(&dir.path().join("new")).unwrap();
        figure.write(&dir.path().join("new")).unwrap();
        let text = fs::read_to_string(path).unwrap();
        let file: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(file["schema"], FIGURE_SCHEMA);
        assert_eq!(file["verdict"], "inside");
        let command = &file["parts"][0]["bounded"]["command"];
        assert_eq!(*command, serde_json::json!(["mpirun", "-n", "2", "osu_allreduce", "a/b"]));
        assert_eq!(fs::read_dir(dir.path().join("new")).unwrap().count(), 1);
    }

    #[test]
    fn quartiles_are_medians_of_the_halves() {
        let spread = Spread::of([4.0, 1.0, 2.0, 3.0].into_iter()).unwrap();
        assert_eq!((spread.min, spread.p25, spread.median), (1.0, 1.5, 2.5));
        assert_eq!((spread.p75, spread.max, spread.relative_iqr), (3.5, 4.0, 0.8));
        let one = Spread::of([2.0].into_iter()).unwrap();
        assert_eq!((one.p25, one.p75), (2.0, 2.0));
        assert_eq!(Spread::of(std::iter::empty()), None);
    }
}
