//! Emulated hosts: a cluster of real network stacks on one Linux machine, with clocks, rails,
//! relays and faults of its own. For tests and demos; `README.md` beside this crate is its manual.
//!
//! ```no_run
//! use hpcbench_testbed::{BedSpec, FaultSpec, Kind, ScopedBed};
//!
//! let mut bed = ScopedBed::up(&BedSpec::new("docs".parse()?, 4, 2))?;
//! bed.add_fault(&FaultSpec::new(Kind::Loss("2%".parse()?), "h2/nic1".parse()?))?;
//! let status = bed.mpirun("mpirun")?.args(["-n", "8", "hostname"]).status()?;
//! assert!(status.success());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!("hpcbench-testbed emulates hosts with Linux namespaces: build it on Linux");

mod address;
mod bed;
mod cgroup;
pub mod cli;
mod counters;
mod error;
mod fault;
mod injection;
mod inventory;
mod measure;
mod mpi;
mod names;
mod namespace;
mod network;
mod relay;
mod rights;
mod schedule;
mod spec;
mod state;
mod system;
mod units;

pub use bed::{Bed, HostInfo, Removed, ScopedBed, down};
pub use counters::Counters;
pub use error::{Error, Result};
pub use fault::{Direction, Fault, FaultSpec, Kind};
pub use injection::{FaultStatus, OnSwap};
pub use names::{Link, Prefix, Target};
pub use namespace::ClockOffset;
pub use relay::{LaneReport, Quantiles, Report, RuleHits};
pub use rights::{check as check_rights, tests_can_run};
pub use schedule::{Phases, Schedule};
pub use spec::{BedSpec, Inventory, Relays};
pub use system::tool;
pub use units::{Rate, Share, duration};
