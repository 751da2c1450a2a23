//! The relay of a link: a process between two TAP devices in the switch namespace that drops,
//! damages and holds frames as its rules say, and otherwise passes them on.

mod control;
mod lane;
mod process;
mod rule;
mod tap;

pub use control::{LaneReport, Quantiles, Report, RuleHits};
pub(crate) use control::{Request, ask, socket_path};
pub(crate) use process::run_first;
pub use process::{RelayOptions, run};
pub(crate) use rule::{Effect, Rule};
