//! What each collective is, without saying how it is carried out: how many elements go in and come
//! out, who must end up with what, and how a time becomes a bandwidth.
//!
//! One file each. Sizes and factors are nccl-tests' (2.19, `src/*.cu` and `doc/PERFORMANCE.md`), so
//! that the same size means the same work; `pingpong` is ours.

mod allgather;
mod allreduce;
mod alltoall;
mod broadcast;
mod gather;
mod hypercube;
mod pingpong;
mod reduce;
mod reducescatter;
mod scatter;
mod sendrecv;

pub use pingpong::peer as pingpong_peer;

/// A collective as a value.
#[derive(Debug)]
pub struct Collective {
    /// The subcommand, and `op` in files.
    pub name: &'static str,
    /// Whether elements are combined (`-o` means something).
    pub reduces: bool,
    /// Whether one rank is special (`-r` means something).
    pub rooted: bool,
    /// Whether no rank can leave before every rank has entered, so that whoever enters last is waited
    /// for by all.
    pub synchronises: bool,
    /// Whether pairs of ranks play to and fro: a run is then a round trip of two messages, or a window.
    pub paired: bool,
    /// What running it in place means.
    pub in_place: InPlace,
    /// Elements asked for, bytes an element, ranks → who needs how much.
    pub layout: fn(count: usize, element_bytes: usize, ranks: usize) -> Layout,
    /// Elements that count for the algorithm bandwidth.
    pub algbw_elements: fn(&Layout, ranks: usize) -> usize,
    /// Bus bandwidth over algorithm bandwidth: what makes busbw comparable with the link's speed
    /// whatever the number of ranks (nccl-tests, `doc/PERFORMANCE.md`).
    pub busbw_factor: fn(ranks: usize) -> f64,
    /// Why this number of ranks cannot run it, if so.
    pub refuses: fn(ranks: usize) -> Option<String>,
    /// Whether this rank only watches.
    pub idle: fn(rank: usize, ranks: usize) -> bool,
    /// What must be in this rank's receive buffer afterwards.
    pub expected: fn(rank: usize, ranks: usize, root: usize, &Layout) -> Vec<Segment>,
}

/// What running a collective in place means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// Runs, and the result is checked.
    Checked,
    /// Runs and is timed; nccl-tests prints N/A for its check, and so do we.
    Unchecked,
    /// Has no meaning; its columns are N/A.
    Absent,
}

/// Elements of each buffer, and where the halves lie when both are one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Elements a rank sends (the root, where only it sends).
    pub send: usize,
    /// Elements a rank receives (the root, where only it receives).
    pub recv: usize,
    /// The `count` argument of the call, and of the table.
    pub param: usize,
    /// In place, rank r's input starts at r × this in the receive buffer.
    pub send_in_place: usize,
    /// In place, rank r's output starts at r × this in the send buffer.
    pub recv_in_place: usize,
}

impl Layout {
    /// The `size` column: the larger of the two buffers, in elements.
    pub fn size(&self) -> usize {
        self.send.max(self.recv)
    }
}

/// A stretch of a receive buffer and what must be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First element in the receive buffer.
    pub at: usize,
    /// Number of elements.
    pub len: usize,
    /// Where they come from.
    pub source: Source,
}

/// Where expected elements come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Elements of one rank's input, from this index on.
    Rank {
        /// Whose input.
        rank: usize,
        /// First element of it.
        from: usize,
    },
    /// The reduction of all ranks' inputs, from this index on.
    Reduced {
        /// First element of it.
        from: usize,
    },
}

/// Every collective, in the order in which they are listed.
pub const ALL: [&Collective; 11] = [
    &allreduce::ALLREDUCE,
    &allgather::ALLGATHER,
    &reducescatter::REDUCESCATTER,
    &alltoall::ALLTOALL,
    &broadcast::BROADCAST,
    &reduce::REDUCE,
    &gather::GATHER,
    &scatter::SCATTER,
    &sendrecv::SENDRECV,
    &hypercube::HYPERCUBE,
    &pingpong::PINGPONG,
];

/// The collective of that name.
pub fn by_name(name: &str) -> Option<&'static Collective> {
    ALL.into_iter().find(|c| c.name == name)
}

/// A rank's share of `count` elements, rounded down to 16 bytes as nccl-tests does (an element
/// wider than 16 bytes does not exist here).
fn share(count: usize, element_bytes: usize, ranks: usize) -> usize {
    (count / ranks) & !(16 / element_bytes - 1)
}

/// Every rank ends with every rank's whole input, in rank order.
fn everyone_from_everyone(
    _rank: usize,
    ranks: usize,
    _root: usize,
    layout: &Layout,
) -> Vec<Segment> {
    let len = layout.param;
    (0..ranks)
        .map(|rank| Segment { at: rank * len, len, source: Source::Rank { rank, from: 0 } })
        .collect()
}

fn any_ranks(_ranks: usize) -> Option<String> {
    None
}

fn nobody(_rank: usize, _ranks: usize) -> bool {
    false
}

fn one(_ranks: usize) -> f64 {
    1.0
}

/// (n−1)/n: the share of the data that has to leave a rank.
fn others_share(ranks: usize) -> f64 {
    (ranks - 1) as f64 / ranks as f64
}

fn size_elements(layout: &Layout, _ranks: usize) -> usize {
    layout.size()
}

#[cfg(test)]
mod tests;
