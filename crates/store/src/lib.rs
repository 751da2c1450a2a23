//! The run directory of hpcbench: written row by row while measuring, read back whole.
//!
//! `README.md` beside this crate describes every file and format. Rank 0 owns a [`RunWriter`]; each
//! rank owns a [`RawWriter`]; [`RunDir`] reads what they left, finished or not.

mod append;
mod error;
mod hlog;
mod layout;
mod lines;
mod losses;
mod raw;
mod replace;
mod run_dir;
mod schema;
mod writer;

pub use error::{CreateError, OpenError, ReadError};
pub use hlog::{HistogramEntry, HistogramKey, HistogramKind, Histograms, Interval};
pub use layout::{default_dir, new_id};
pub use raw::{RawBlock, RawBlocks, RawHeader, RawWriter};
pub use run_dir::{Events, RunDir};
pub use schema::{event_schema, run_schema};
pub use writer::RunWriter;
