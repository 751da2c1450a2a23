//! Carrying collectives out: the [`Communicator`] trait, its implementation over MPI, the buffers,
//! the test data and the check of what arrived. Hides where bytes live, so that measuring is the
//! same for all.

mod buffers;
mod check;
mod communicator;
mod element;
pub mod mpi;
mod pattern;

pub use buffers::{Buffers, buffer_bytes};
pub use check::{Checked, Checker};
pub use communicator::{Call, CallError, Communicator, Exchange, Run};
