use std::time::Duration;

use hpcbench_collectives::Exchange;
use hpcbench_model::{Bytes, Collective, DType, Layout, RedOp, Sweep};

use crate::Threshold;

/// What to measure and how: the command line, typed and checked.
#[derive(Clone, Debug)]
pub struct Options {
    /// The collective.
    pub collective: &'static Collective,
    /// How pairs exchange (`pingpong`).
    pub exchange: Exchange,
    /// Sizes.
    pub sweep: Sweep,
    /// Whether sizes too small to hold an element a rank are left out (in the built-in sweep)
    /// rather than shown as rows of 0 bytes, as nccl-tests does.
    pub skip_empty: bool,
    /// Element types, in order.
    pub dtypes: Vec<DType>,
    /// Reductions, in order; looked at for reducing collectives only.
    pub redops: Vec<RedOp>,
    /// Roots; looked at for rooted collectives only.
    pub roots: Roots,
    /// Which placements.
    pub placement: Placement,
    /// Cycles of the whole sweep (`-N`); 0 runs until stopped.
    pub cycles: u64,
    /// When a row has enough iterations.
    pub iterations: Iterations,
    /// Calls between two clock readings (`-m`).
    pub agg_iters: u64,
    /// Warm-up iterations before each row.
    pub warmup_iters: u64,
    /// Checked runs a row (`-c`).
    pub checks: u64,
    /// What separates iterations.
    pub sync: Sync,
    /// Which ranks' time the table shows.
    pub average: Average,
    /// From where on a time is a jitter event.
    pub threshold: Option<Threshold>,
    /// Elements by which buffers are misaligned (`-u`).
    pub misalign: usize,
    /// Seed of the test data.
    pub seed: u64,
    /// Rank and element to corrupt before each check.
    pub inject_wrong: Option<(usize, usize)>,
    /// Whether to keep every iteration's longest time in order (`-I 1`).
    pub per_iteration: bool,
}

/// Roots to run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Each rank in turn.
    All,
    /// This one.
    One(usize),
}

/// Whether input and output share a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// In two buffers, then in one.
    #[default]
    Both,
    /// In two buffers only.
    Out,
    /// In one buffer only.
    In,
}

/// When a row has enough iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Iterations {
    /// After so many.
    Fixed(u64),
    /// After so long, or earlier, once the 95% interval of the median is this narrow: half its
    /// width as a share of the median.
    Timed {
        /// Longest time.
        budget: Duration,
        /// Half-width at which to stop before.
        precision: Option<f64>,
    },
}

/// What separates iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Nothing: back to back, as nccl-tests does.
    #[default]
    None,
    /// A barrier before each, outside its time, as OSU does (`-z 3`).
    Barrier,
    /// A barrier after each, inside the elapsed time (`-z 1`).
    BarrierTimed,
}

impl Sync {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Sync::None => "none",
            Sync::Barrier => "barrier",
            Sync::BarrierTimed => "barrier-timed",
        }
    }
}

/// Which ranks' mean time the table shows (`-a`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Average {
    /// Rank 0's.
    Rank0,
    /// The mean over ranks.
    #[default]
    Mean,
    /// The fastest rank's.
    Min,
    /// The slowest rank's.
    Max,
}

impl Average {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Average::Rank0 => "rank0",
            Average::Mean => "avg",
            Average::Min => "min",
            Average::Max => "max",
        }
    }

    /// One number for all ranks'; those of idle ranks are NaN and do not count.
    pub(crate) fn of(self, ranks: &[f64]) -> f64 {
        let busy = || ranks.iter().copied().filter(|value| !value.is_nan());
        match self {
            Average::Rank0 => ranks[0],
            Average::Mean => busy().sum::<f64>() / busy().count() as f64,
            Average::Min => busy().fold(f64::INFINITY, f64::min),
            Average::Max => busy().fold(0.0, f64::max),
        }
    }
}

impl Options {
    /// The placements to run, out of place first.
    pub(crate) fn placements(&self) -> impl Iterator<Item = bool> {
        let (out, inside) = match self.placement {
            Placement::Both => (true, true),
            Placement::Out => (true, false),
            Placement::In => (false, true),
        };
        let meaningful = self.collective.in_place != hpcbench_model::InPlace::Absent;
        [(out, false), (inside && meaningful, true)]
            .into_iter()
            .filter_map(|(wanted, in_place)| wanted.then_some(in_place))
    }

    /// Reductions to run: `None` once for a collective that has none.
    pub(crate) fn redops(&self) -> Vec<Option<RedOp>> {
        if self.collective.reduces {
            self.redops.iter().copied().map(Some).collect()
        } else {
            vec![None]
        }
    }

    /// Roots to run with: rank 0 once for a collective that has none.
    pub(crate) fn roots(&self, ranks: usize) -> Vec<usize> {
        match self.roots {
            _ if !self.collective.rooted => vec![0],
            Roots::All => (0..ranks).collect(),
            Roots::One(root) => vec![root],
        }
    }

    /// What a size means in elements of a type.
    pub(crate) fn layout(&self, size: Bytes, dtype: DType, ranks: usize) -> Layout {
        (self.collective.layout)(size.0 as usize / dtype.size(), dtype.size(), ranks)
    }

    /// Rows of the whole run; `None` where it has no end.
    pub(crate) fn rows(&self, ranks: usize) -> Option<u64> {
        let kinds = self.dtypes.len() * self.redops().len() * self.roots(ranks).len();
        let rows = self.sweep.count().saturating_mul((kinds * self.placements().count()) as u64);
        (self.cycles > 0).then(|| rows.saturating_mul(self.cycles))
    }

    /// Bytes of the largest buffer that any row needs.
    pub(crate) fn largest_buffer(&self, ranks: usize) -> u64 {
        let last = self.sweep.last();
        let bytes = |dtype: &DType| (self.layout(last, *dtype, ranks).size() * dtype.size()) as u64;
        self.dtypes.iter().map(bytes).max().unwrap_or(0)
    }

    /// Bytes by which buffers of a type are misaligned.
    pub(crate) fn misalign_bytes(&self, dtype: DType) -> usize {
        self.misalign * dtype.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_leave_idle_ranks_out() {
        let ranks = [4.0, 2.0, f64::NAN, 3.0];
        let of = |average: Average| average.of(&ranks);
        assert_eq!(
            [Average::Rank0, Average::Mean, Average::Min, Average::Max].map(of),
            [4.0, 3.0, 2.0, 4.0]
        );
    }
}
