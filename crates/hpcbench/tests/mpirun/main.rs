//! The program as users start it: under the real launcher, on real ranks.

#[path = "../common/mod.rs"]
mod common;

mod binaries;
mod correctness;
mod events;
mod full_disk;
mod iterations;
mod killed;
mod large_counts;
mod no_allocation;
mod options;
mod output;
mod reference;
mod run;
mod signals;
mod usage;
mod wrong_data;
