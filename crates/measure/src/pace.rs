use std::time::{Duration, Instant};

use hpcbench_verdict::stats::median_interval;

use crate::{BLOCK, Iterations};

/// Blocks that a time budget is cut into: enough medians for an interval, few enough that a block
/// is long against what lies between two.
const BLOCKS_A_BUDGET: u32 = 20;
/// Confidence of the interval that `--precision` looks at.
const CONFIDENCE: f64 = 0.95;

/// Fewest iterations of a block, so that most of them really follow another one.
const FEWEST: u64 = 4;

/// Decides, on rank 0, how many iterations the next block has.
#[derive(Debug)]
pub(crate) struct Pace {
    iterations: Iterations,
    started: Instant,
    /// What an iteration took in the warm-up.
    warm: Option<Duration>,
    done: u64,
    medians_ns: Vec<f64>,
    /// Number of blocks at which the interval is looked at next.
    look_at: usize,
}

impl Pace {
    pub(crate) fn new(iterations: Iterations, warm: Option<Duration>) -> Pace {
        let started = Instant::now();
        Pace { iterations, started, warm, done: 0, medians_ns: Vec::new(), look_at: 0 }
    }

    /// Iterations of the next block; 0 when there are enough.
    pub(crate) fn next(&mut self) -> usize {
        match self.iterations {
            Iterations::Fixed(total) => total.saturating_sub(self.done).min(BLOCK as u64) as usize,
            Iterations::Timed { budget, precision } => {
                let elapsed = self.started.elapsed();
                let precise = precision.is_some_and(|precision| self.is_precise(precision));
                if self.done > 0 && (elapsed >= budget || precise) {
                    return 0;
                }
                self.block_of(budget / BLOCKS_A_BUDGET, elapsed)
            }
        }
    }

    /// A block that takes about `target`, as far as is known.
    fn block_of(&self, target: Duration, elapsed: Duration) -> usize {
        let each = match (self.done, self.warm) {
            (0, None) => return FEWEST as usize,
            (0, Some(warm)) => warm.as_secs_f64(),
            (done, _) => elapsed.as_secs_f64() / done as f64,
        };
        let wanted = target.as_secs_f64() / each.max(1e-9);
        // At most ten times what has been seen: the first iterations tell little.
        let seen = self.done.max(FEWEST * 4) as f64;
        wanted.min(seen * 10.0).clamp(FEWEST as f64, BLOCK as f64) as usize
    }

    /// Takes a finished block's iterations and their median.
    pub(crate) fn finished(&mut self, iterations: usize, median_ns: f64) {
        self.done += iterations as u64;
        self.medians_ns.push(median_ns);
    }

    /// 95% interval of the median over blocks, in nanoseconds; `None` with too few of them.
    pub(crate) fn interval_ns(&self) -> Option<[f64; 2]> {
        let interval = median_interval(&mut self.medians_ns.clone(), CONFIDENCE)?;
        Some([interval.low, interval.high])
    }

    /// Whether the interval is narrow enough. Looked at whenever there are 5% more blocks: each look
    /// is another chance to stop by luck, and costs a sort.
    fn is_precise(&mut self, precision: f64) -> bool {
        let blocks = self.medians_ns.len();
        if blocks < self.look_at {
            return false;
        }
        self.look_at = blocks + blocks / 20 + 1;
        median_interval(&mut self.medians_ns.clone(), CONFIDENCE)
            .is_some_and(|interval| interval.relative_half_width() <= precision)
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.medians_ns.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_number_is_cut_into_blocks() {
        let mut pace = Pace::new(Iterations::Fixed(BLOCK as u64 * 2 + 5), None);
        let mut blocks = Vec::new();
        loop {
            let next = pace.next();
            if next == 0 {
                break;
            }
            blocks.push(next);
            pace.finished(next, 1.0);
        }
        assert_eq!(blocks, [BLOCK, BLOCK, 5]);
    }

    #[test]
    fn a_block_is_never_a_single_iteration() {
        let budget = Duration::from_millis(500);
        let slow = Some(Duration::from_millis(90));
        let mut pace = Pace::new(Iterations::Timed { budget, precision: None }, slow);
        assert_eq!(pace.next() as u64, FEWEST);
        let mut fast = Pace::new(
            Iterations::Timed { budget, precision: None },
            Some(Duration::from_micros(1)),
        );
        assert_eq!(fast.next() as u64, FEWEST * 40);
    }

    #[test]
    fn precision_needs_blocks_that_agree() {
        let hour = Duration::from_secs(3600);
        let of = |medians: &[f64]| {
            let mut pace =
                Pace::new(Iterations::Timed { budget: hour, precision: Some(0.01) }, None);
            medians.iter().for_each(|median| pace.finished(10, *median));
            pace.next() == 0
        };
        assert!(!of(&[100.0; 5]), "five blocks cannot give 95%");
        assert!(of(&[100.0; 8]));
        assert!(!of(&[90.0, 110.0, 95.0, 105.0, 90.0, 110.0, 95.0, 105.0]));
    }
}
