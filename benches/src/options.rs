//! The options the programs share.

use std::time::Duration;

use clap::Args;

use crate::compare::Plan;
use crate::program::Runner;
use crate::session::{Place, Session};

/// How a comparison is carried out.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct PlanOptions {
    /// Stop when the intervals of the ratio and of the control are this narrow: half-width as a
    /// share of the median
    #[arg(long, global = true, default_value_t = Plan::default().half_width, value_name = "SHARE")]
    half_width: f64,
    /// Pairs to measure in any case; an interval takes at least 6
    #[arg(long, global = true, default_value_t = Plan::default().min_pairs as u32, value_name = "N",
          value_parser = clap::value_parser!(u32).range(6..))]
    min_pairs: u32,
    /// Pairs to stop at in any case; stands above --min-pairs
    #[arg(long, global = true, default_value_t = Plan::default().max_pairs as u32, value_name = "N",
          value_parser = clap::value_parser!(u32).range(6..))]
    max_pairs: u32,
    /// Seed of the order within rounds and of the bootstrap
    #[arg(long, global = true, default_value_t = Plan::default().seed, value_name = "N")]
    seed: u64,
}

/// How whole programs are compared.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct ProgramOptions {
    #[command(flatten)]
    plan: PlanOptions,
    /// Seconds after which a program that has not ended is stopped
    #[arg(long, global = true, default_value_t = 600, value_name = "SECONDS")]
    limit: u64,
}

impl PlanOptions {
    /// The plan.
    pub fn plan(&self) -> Plan {
        Plan {
            half_width: self.half_width,
            min_pairs: self.min_pairs.min(self.max_pairs) as usize,
            max_pairs: self.max_pairs as usize,
            seed: self.seed,
            ..Plan::default()
        }
    }
}

impl ProgramOptions {
    /// A session that SIGINT and SIGTERM stop.
    ///
    /// # Errors
    /// When the signals cannot be caught.
    pub fn session(&self, place: Place) -> std::io::Result<Session> {
        let runner = Runner::stopped_by_signals(Duration::from_secs(self.limit))?;
        Ok(Session { runner, plan: self.plan.plan(), place })
    }
}
