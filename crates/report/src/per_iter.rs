use hpcbench_model::enough_samples;
use serde::Serialize;

/// Figures of single iterations, in microseconds, by nccl-tests' names and definitions (2.19,
/// `computeIterStats` in `src/util.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct IterStats {
    /// Leading iterations left out (`-K`).
    #[serde(rename = "skipped_iterations")]
    pub(crate) skipped: u64,
    #[serde(rename = "min_us")]
    pub(crate) min: f64,
    #[serde(rename = "max_us")]
    pub(crate) max: f64,
    #[serde(rename = "avg_us")]
    pub(crate) avg: f64,
    #[serde(rename = "p50_us")]
    pub(crate) p50: f64,
    #[serde(rename = "p95_us")]
    pub(crate) p95: f64,
    #[serde(rename = "p99_us")]
    pub(crate) p99: f64,
    /// Of the population: divided by n.
    #[serde(rename = "stdev_us")]
    pub(crate) stdev: f64,
    /// Standard deviation in percent of the mean.
    #[serde(rename = "cv_pct")]
    pub(crate) cv_percent: f64,
    #[serde(skip)]
    samples: u64,
}

impl IterStats {
    /// The figures of `times_us` without its first `skip` ones; `None` where none is left.
    pub(crate) fn of(times_us: &[f64], skip: u64) -> Option<IterStats> {
        let mut sorted = times_us.get(usize::try_from(skip).ok()?..)?.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        let percentile = |p: usize| sorted[(n * p).div_ceil(100).clamp(1, n) - 1];
        let avg = sorted.iter().sum::<f64>() / n as f64;
        let variance = sorted.iter().map(|t| (t - avg).powi(2)).sum::<f64>() / n as f64;
        let stdev = variance.sqrt();
        Some(IterStats {
            skipped: skip,
            min,
            max,
            avg,
            p50: sorted[n / 2],
            p95: percentile(95),
            p99: percentile(99),
            stdev,
            cv_percent: if avg > 0.0 { stdev / avg * 100.0 } else { 0.0 },
            samples: n as u64,
        })
    }

    /// The 99th percentile, only where ten iterations lie beyond it.
    pub(crate) fn p99_if_enough(&self) -> Option<f64> {
        enough_samples(self.samples, 0.99).then_some(self.p99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_nccl_tests() {
        let times: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let stats = IterStats::of(&times, 1).unwrap();
        assert_eq!((stats.min, stats.max, stats.avg), (0.0, 99.0, 49.5));
        assert_eq!((stats.p50, stats.p95, stats.p99), (50.0, 94.0, 98.0));
        assert!((stats.stdev - 28.866).abs() < 1e-3, "{}", stats.stdev);
        assert_eq!(stats.p99_if_enough(), None);
    }

    #[test]
    fn nothing_left_is_no_figure() {
        assert_eq!(IterStats::of(&[], 0), None);
        assert_eq!(IterStats::of(&[1.0], 1), None);
        assert_eq!(IterStats::of(&[1.0], 9), None);
    }
}
