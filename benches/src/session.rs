//! Comparing two whole programs.

use std::path::Path;

use crate::claim::Claim;
use crate::compare::{CompareError, Plan, Side, compare};
use crate::extract::{ExtractError, Metric};
use crate::program::{Output, ProgramError, Runner};
use crate::progress::Progress;
use crate::record::{Paired, Part, Subject};

/// A program and the number read from each of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Its name.
    pub label: String,
    /// The command, word by word.
    pub command: Vec<String>,
    /// What is read.
    pub metric: Metric,
    /// Of which size, where the metric is a row's.
    pub bytes: Option<u64>,
}

/// Where programs run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The directory this process runs in.
    Here,
    /// An empty directory each run, removed after it.
    Fresh,
}

/// Why a program gave no number.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// It did not run to its end.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Its output held no such number.
    #[error("{}: {source}", command.join(" "))]
    Extract {
        /// The command.
        command: Vec<String>,
        /// Why.
        source: ExtractError,
    },
    /// No directory to run in.
    #[error("cannot make an empty directory to run in: {0}")]
    Directory(std::io::Error),
}

/// Runs programs and compares them.
#[derive(Debug)]
pub struct Session {
    /// Runs them.
    pub runner: Runner,
    /// How they are compared.
    pub plan: Plan,
    /// Where they run.
    pub place: Place,
}

impl Session {
    /// Runs a command once.
    ///
    /// # Errors
    /// When it does not run to its end.
    pub fn run(&self, command: &[String]) -> Result<Output, MeasureError> {
        match self.place {
            Place::Here => Ok(self.runner.run(command, Path::new("."))?),
            Place::Fresh => {
                let dir = tempfile::tempdir().map_err(MeasureError::Directory)?;
                Ok(self.runner.run(command, dir.path())?)
            }
        }
    }

    /// Compares two programs, showing progress.
    ///
    /// # Errors
    /// When one of them gives no number.
    pub fn pair(
        &self,
        name: &str,
        a: &Contender,
        b: &Contender,
        claim: Option<Claim>,
    ) -> Result<Part, CompareError<MeasureError>> {
        let mut progress = Progress::new(name, self.plan.max_pairs);
        let measure = |side| match side {
            Side::A => self.measure(a),
            Side::B => self.measure(b),
        };
        let comparison = compare(&self.plan, measure, |pairs, w| progress.show(pairs, w))?;
        let subjects = [a, b].map(|c| Subject::program(&c.label, &c.command));
        let unit = a.metric.unit();
        let paired = Paired::new(name, subjects, unit, claim, &self.plan, comparison);
        Ok(Part::Paired(Box::new(paired)))
    }

    fn measure(&self, contender: &Contender) -> Result<f64, MeasureError> {
        let output = self.run(&contender.command)?;
        contender
            .metric
            .read(&output, contender.bytes)
            .map_err(|source| MeasureError::Extract { command: contender.command.clone(), source })
    }
}
