use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hpcbench_model::Histogram;
use serde::{Deserialize, Serialize};

use super::rule::Rule;
use crate::error::{Error, Result, Tried};
use crate::names::Link;

/// What a relay is asked over its socket; it answers each with its report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Take these rules in place of those you have.
    Rules(Vec<Rule>),
    /// Only report.
    Report,
}

/// What a relay has seen and done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// What the host sends.
    pub send: LaneReport,
    /// What the host receives.
    pub receive: LaneReport,
    /// How the relay is scheduled: `fifo`, or `normal` where the system refused it.
    pub scheduling: String,
}

/// One direction of a relay. `frames` counts all that came in.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LaneReport {
    /// Frames that came in.
    pub frames: u64,
    /// Their bytes, with the Ethernet header.
    pub bytes: u64,
    /// Frames dropped by a loss.
    pub lost: u64,
    /// Frames with a bit flipped.
    pub corrupted: u64,
    /// Frames held back for a time.
    pub held: u64,
    /// Frames dropped because a queue was full.
    pub overflowed: u64,
    /// Frames that the device did not take.
    pub unsent: u64,
    /// Own delay of frames that were not held: from the relay's waking to the end of the write.
    pub passing: Option<Quantiles>,
    /// Own delay of frames that were held: how much later than due they left.
    pub lateness: Option<Quantiles>,
    /// What each rule has seen and hit.
    pub rules: Vec<RuleHits>,
}

/// Quantiles of a time, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Quantiles {
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl Quantiles {
    /// Of a histogram; none when it is empty.
    pub(crate) fn of(times: &Histogram) -> Option<Quantiles> {
        Some(Quantiles {
            p50_ns: times.quantile_ns(0.5)?,
            p99_ns: times.quantile_ns(0.99)?,
            max_ns: times.max_ns()?,
        })
    }
}

/// How often a rule was asked while it was on, and how often it acted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RuleHits {
    /// Number of the fault; 0 is the bed's own latency.
    pub fault: u32,
    /// Frames it looked at while it was on.
    pub seen: u64,
    /// Frames it acted on.
    pub hit: u64,
}

/// Where the relay of a link listens, in a bed's directory.
pub(crate) fn socket_path(bed: &Path, link: Link) -> PathBuf {
    bed.join(format!("relay-{}.sock", link.port()))
}

/// How long the two sides wait for each other. A relay answers within a frame's time; it must not
/// be held up by a client that stops in the middle either.
const PATIENCE: Duration = Duration::from_millis(500);

/// Asks the relay that listens on `socket`.
pub(crate) fn ask(socket: &Path, request: &Request) -> Result<Report> {
    let gone = |e: std::io::Error| {
        Error::Broken(format!("the relay at {} does not answer: {e}", socket.display()))
    };
    let mut stream = UnixStream::connect(socket).map_err(gone)?;
    stream.set_read_timeout(Some(10 * PATIENCE)).map_err(gone)?;
    let text = serde_json::to_vec(request).tried(|| "write a relay's rules".to_owned())?;
    stream.write_all(&text).map_err(gone)?;
    stream.shutdown(Shutdown::Write).map_err(gone)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(gone)?;
    serde_json::from_slice(&answer).map_err(|e| {
        Error::Broken(format!("the relay at {} talks nonsense: {e}", socket.display()))
    })
}

/// Reads one request from a client; none when it talks nonsense or stops in the middle.
pub(crate) fn read_request(stream: &mut UnixStream) -> Option<Request> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
