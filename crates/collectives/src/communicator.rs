use hpcbench_model::collective::pingpong_peer;
use hpcbench_model::{Collective, DType, Layout, RedOp};
use hpcbench_world::Failure;

use crate::Buffers;

/// One collective with everything that decides what it does.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which.
    pub collective: &'static Collective,
    /// Element type.
    pub dtype: DType,
    /// Reduction, for those that reduce.
    pub redop: Option<RedOp>,
    /// Root, 0 for those without one.
    pub root: usize,
    /// Elements of each buffer.
    pub layout: Layout,
    /// Whether input and output share the receive buffer.
    pub in_place: bool,
    /// How pairs exchange (`pingpong`).
    pub exchange: Exchange,
}

/// How the pairs of `pingpong` exchange messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Messages in flight; `None` is one to and fro.
    pub window: Option<u32>,
    /// Whether both ends send at once.
    pub two_way: bool,
}

impl Call {
    /// By how much one run is divided to get the time of one message: a round trip holds two, a
    /// window as many as it has.
    pub fn messages(&self) -> u64 {
        match self.exchange.window {
            _ if !self.collective.paired => 1,
            None => 2,
            Some(window) => u64::from(window),
        }
    }

    /// Whether a rank receives nothing: the first of a pair whose window goes one way.
    pub fn only_sends(&self, rank: usize, ranks: usize) -> bool {
        self.exchange.window.is_some()
            && !self.exchange.two_way
            && pingpong_peer(rank, ranks).is_some_and(|peer| rank < peer)
    }

    /// Bytes that count for the algorithm bandwidth in the time of one message.
    pub fn algbw_bytes(&self, ranks: usize) -> f64 {
        let elements = (self.collective.algbw_elements)(&self.layout, ranks);
        let ways = if self.exchange.two_way { 2.0 } else { 1.0 };
        (elements * self.dtype.size()) as f64 * ways
    }
}

/// A call made ready: each run carries it out once, to completion.
pub type Run<'a> = Box<dyn FnMut() -> Result<(), CallError> + 'a>;

/// What carries collectives out.
pub trait Communicator {
    /// Its name in options and files.
    fn name(&self) -> &'static str;

    /// Why this backend cannot carry a call out, if so; known before anything is measured.
    fn refuses(&self, call: &Call) -> Option<String>;

    /// Makes a call ready, so that running it allocates nothing of ours.
    ///
    /// # Errors
    /// When the library fails, or the call is one that [`Communicator::refuses`] names.
    fn prepare<'a>(&'a self, call: &Call, buffers: &'a mut Buffers) -> Result<Run<'a>, Failure>;

    /// A barrier over the same network, for `--sync`.
    fn barrier(&self) -> Result<(), CallError>;

    /// Element of the receive buffer at which this rank's output starts.
    fn output_at(&self, call: &Call) -> usize;
}

/// A library call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed with code {code}: {text}")]
pub struct CallError {
    /// The function.
    pub call: &'static str,
    /// Its code.
    pub code: i32,
    /// The library's own words.
    pub text: String,
}
