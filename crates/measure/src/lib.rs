//! One sweep: warm-up, iterations in blocks, recording, validation, and a row for each size, type,
//! reduction, root and placement.

mod accumulate;
mod block;
mod collect;
mod observer;
mod options;
mod pace;
mod recorder;
mod row;
mod session;
mod shared;
mod sweep;
mod threshold;

pub use block::{Loop, time_block};
pub use observer::{Measured, Observer, Silent};
pub use options::{Average, Iterations, Options, Placement, Roots, Sync};
pub use recorder::{BLOCK, Recorder};
pub use session::{End, Session, Setup, check};
pub use shared::{Shared, exclusive};
pub use sweep::sweep;
pub use threshold::{ParseThresholdError, Threshold};
