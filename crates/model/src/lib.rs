//! The shared nouns of hpcbench and nothing else: sizes, element types, reductions, collectives,
//! histograms, and what a run leaves behind. No MPI, no CUDA, no libfabric, no files.

mod bytes;
pub mod collective;
mod dtype;
mod event;
mod finding;
mod histogram;
mod redop;
mod run;
mod sweep;

pub use bytes::{Bytes, ParseBytesError};
pub use collective::{Collective, InPlace, Layout, Segment, Source};
pub use dtype::{DType, ParseDTypeError};
pub use event::{Event, LateRank, SlowRank};
pub use finding::{Effect, Evidence, Finding, Locus, LocusKind};
pub use histogram::{Histogram, HistogramError, enough_samples};
pub use redop::{ParseRedOpError, RedOp};
pub use run::{
    BandwidthGbps, Clock, ClockScope, Host, Loss, MpiLibrary, RUN_SCHEMA, Rank, RawSamples, Row,
    Run, Settings, Share, TimesUs, Tool, World, Wrong,
};
pub use sweep::{Step, Sweep, SweepError};
