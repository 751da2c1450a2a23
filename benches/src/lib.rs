//! Interleaved comparisons, and the figures this project claims.
//!
//! On a shared machine one run against another shows nothing finer than their spread, which may be
//! a third of the value. So two programs, or two blocks of code, run in turn, in random order, many
//! times; what counts is the median of the paired ratios and its interval; and the first runs against
//! itself beside them, so that a comparison that cannot be trusted shows it.

pub mod claim;
pub mod compare;
pub mod extract;
pub mod launcher;
pub mod machine;
pub mod options;
pub mod program;
pub mod progress;
pub mod record;
pub mod session;
