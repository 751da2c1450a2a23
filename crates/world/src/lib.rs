//! Who takes part and how they stay in step: MPI start and end, rank and host, gathering and
//! agreeing, the clock, signals, and the watchdog over a run that no longer moves.

mod agree;
pub mod clock;
mod host;
mod launcher;
mod progress;
mod signals;
mod watchdog;
mod world;

pub use agree::Failure;
pub use clock::{Anchor, Clock, Source};
pub use host::HostFacts;
pub use launcher::Launcher;
pub use progress::{Phase, Progress};
pub use signals::{Interrupt, on_interrupt};
pub use watchdog::{Alarm, Limits, exit_now, watch};
pub use world::{Member, World};
