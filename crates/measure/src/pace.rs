use std::time::{Duration, Instant};

use hpcbench_verdict::stats::median_interval;

use crate::{BLOCK, Iterations};

/// Blocks that a time budget is cut into: enough medians for an interval, few enough that a block
/// is long against what lies between two.
const BLOCKS_A_BUDGET: u32 = 20;
/// Confidence of the interval that `--precision` looks at.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Decides, on rank 0, how many iterations the next block has.
#[derive(Debug)]
pub(crate) struct Pace {
    iterations: Iterations,
    started: Instant,
    done: u64,
    medians_ns: Vec<f64>,
}

impl Pace {
    pub(crate) fn new(iterations: Iterations) -> Pace {
        Pace { iterations, started: Instant::now(), done: 0, medians_ns: Vec::new() }
    }

    /// Iterations of the next block; 0 when there are enough.
    pub(crate) fn next(&mut self) -> usize {
        match self.iterations {
            Iterations::Fixed(total) => total.saturating_sub(self.done).min(BLOCK as u64) as usize,
            Iterations::Timed { budget, precision } => {
                let elapsed = self.started.elapsed();
                if self.done > 0
                    && (elapsed >= budget || precision.is_some_and(|p| self.is_precise(p)))
                {
                    return 0;
                }
                self.block_of(budget / BLOCKS_A_BUDGET, elapsed)
            }
        }
    }

    /// A block that takes about `target`; the first ones are small, as nothing is known yet.
    fn block_of(&self, target: Duration, elapsed: Duration) -> usize {
        if self.done == 0 {
            return 1;
        }
        let each = elapsed.as_secs_f64() / self.done as f64;
        let wanted = target.as_secs_f64() / each.max(1e-9);
        // At most ten times what has been seen: the first iterations tell little.
        wanted.min(self.done as f64 * 10.0).clamp(1.0, BLOCK as f64) as usize
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

    fn is_precise(&self, precision: f64) -> bool {
        let Some(interval) = median_interval(&mut self.medians_ns.clone(), CONFIDENCE) else {
            return false;
        };
        (interval.high - interval.low) / 2.0 <= precision * interval.median
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
        let mut pace = Pace::new(Iterations::Fixed(BLOCK as u64 * 2 + 5));
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
    fn precision_needs_blocks_that_agree() {
        let hour = Duration::from_secs(3600);
        let of = |medians: &[f64]| {
            let mut pace = Pace::new(Iterations::Timed { budget: hour, precision: Some(0.01) });
            medians.iter().for_each(|median| pace.finished(10, *median));
            pace.next() == 0
        };
        assert!(!of(&[100.0; 5]), "five blocks cannot give 95%");
        assert!(of(&[100.0; 8]));
        assert!(!of(&[90.0, 110.0, 95.0, 105.0, 90.0, 110.0, 95.0, 105.0]));
    }
}
