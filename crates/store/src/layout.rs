//! What the files of a run directory are called.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// The run itself.
pub(crate) const RUN_JSON: &str = "run.json";
/// The histograms.
pub(crate) const HLOG: &str = "samples.hlog";
/// The jitter events.
pub(crate) const EVENTS: &str = "events.jsonl";
/// The directory of raw entries and exits.
pub(crate) const RANKS: &str = "ranks";

/// Where a run goes without `--out`: `results/20261130T174500Z-allreduce-1f0c29ab`, of the start
/// in UTC, the collective and the run's id.
pub fn default_dir(op: &str, started: Timestamp, id: &str) -> PathBuf {
    Path::new("results").join(format!("{}-{op}-{id}", started.strftime("%Y%m%dT%H%M%SZ")))
}

/// A new run's id: eight random hexadecimal digits.
pub fn new_id() -> String {
    // The first eight digits of a version 4 UUID are all random (RFC 9562, section 5.4).
    uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
}

/// Name of a rank's raw file within the run directory: `ranks/0007.bin`.
pub(crate) fn raw_name(rank: u32) -> String {
    format!("{RANKS}/{rank:04}.bin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_directory_sorts_by_start_and_says_what_ran() {
        let started: Timestamp = "2026-11-30T17:45:00.9Z".parse().unwrap();
        let dir = default_dir("allreduce", started, "1f0c29ab");
        assert_eq!(dir, Path::new("results/20261130T174500Z-allreduce-1f0c29ab"));
    }

    #[test]
    fn ids_are_short_hexadecimal_and_differ() {
        let (a, b) = (new_id(), new_id());
        assert!(a.len() == 8 && a.bytes().all(|c| c.is_ascii_hexdigit()), "{a}");
        assert_ne!(a, b);
    }

    #[test]
    fn ranks_beyond_four_digits_keep_all_of_them() {
        assert_eq!(raw_name(7), "ranks/0007.bin");
        assert_eq!(raw_name(12345), "ranks/12345.bin");
    }
}
