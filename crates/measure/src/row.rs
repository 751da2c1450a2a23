use hpcbench_model::{BandwidthGbps, Histogram, Share, TimesUs};
use hpcbench_world::World;

use crate::accumulate::Ends;

/// Ranks that a row names as slow or late.
const NAMED: usize = 64;

/// Times of a histogram in microseconds, with the mean and the exact ends given apart.
pub(crate) fn times_us(histogram: &Histogram, mean_us: f64, ends: Ends) -> TimesUs {
    let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
    TimesUs {
        mean: mean_us,
        min: us(histogram.min_ns().map(|_| ends.shortest)).unwrap_or(0.0),
        p50: us(histogram.tail_ns(0.5)),
        p90: us(histogram.tail_ns(0.9)),
        p99: us(histogram.tail_ns(0.99)),
        p999: us(histogram.tail_ns(0.999)),
        max: ends.longest as f64 / 1e3,
    }
}

/// GB/s (10⁹ bytes a second) of so many bytes in so many microseconds; 0 where nothing was moved.
pub(crate) fn gbps(bytes: f64, us: f64) -> f64 {
    if bytes == 0.0 || us == 0.0 { 0.0 } else { bytes / us / 1e3 }
}

/// Bus bandwidth at tails, from the mirrored percentiles of time.
pub(crate) fn tails_gbps(bus_bytes: f64, times: &TimesUs) -> BandwidthGbps {
    let at = |us: Option<f64>| us.map(|us| gbps(bus_bytes, us));
    BandwidthGbps { p1: at(times.p99), p50: at(times.p50) }
}

/// Ranks by their share of the counted iterations, largest first; those with none left out.
pub(crate) fn shares(counts: &[u64], world: &World) -> Vec<Share> {
    let total: u64 = counts.iter().sum();
    let mut ranks: Vec<usize> = (0..counts.len()).filter(|rank| counts[*rank] > 0).collect();
    ranks.sort_by_key(|rank| std::cmp::Reverse(counts[*rank]));
    let share = |rank: usize| Share {
        rank: rank as u32,
        host: world.member(rank).host.clone(),
        share: counts[rank] as f64 / total as f64,
    };
    ranks.into_iter().take(NAMED).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_row_of_no_bytes_has_no_bandwidth() {
        assert_eq!(gbps(0.0, 0.0), 0.0);
        assert_eq!(gbps(1e9, 1e6), 1.0);
    }

    proptest! {
        #[test]
        fn twice_the_time_is_half_the_bandwidth(bytes in 1.0_f64..1e12, us in 0.1_f64..1e9, k in 1.0_f64..100.0) {
            prop_assert!((gbps(bytes, us * k) * k / gbps(bytes, us) - 1.0).abs() < 1e-9);
        }

        #[test]
        fn the_slow_tail_of_bandwidth_is_the_long_tail_of_time(times in prop::collection::vec(1_u64..1 << 30, 1000..1200)) {
            let mut histogram = Histogram::new();
            times.iter().for_each(|ns| histogram.record_ns(*ns));
            let bandwidth = tails_gbps(1e6, &times_us(&histogram, 1.0, Ends::default()));
            prop_assert!(bandwidth.p1.unwrap() <= bandwidth.p50.unwrap());
        }
    }
}
