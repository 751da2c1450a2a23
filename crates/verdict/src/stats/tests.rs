use super::*;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SETS: u32 = 2_000;

/// Standard normal by Box and Muller (1958); the distribution's median is 0.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// Lognormal with a long right tail, as times have; the distribution's median is 1.
fn lognormal(rng: &mut ChaCha8Rng) -> f64 {
    normal(rng).exp()
}

type Draw = fn(&mut ChaCha8Rng) -> f64;

/// In how many of `SETS` sets of `n` values the interval held the true median.
fn hits(n: usize, draw: Draw, truth: f64, interval: impl Fn(&mut [f64]) -> Interval) -> u32 {
    // Sets of their own for each distribution: a lognormal of the same draws would hit just when
    // the normal does.
    let mut rng = ChaCha8Rng::seed_from_u64(100 * n as u64 + truth as u64);
    (0..SETS)
        .filter(|_| {
            let mut values: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
            interval(&mut values).contains(truth)
        })
        .count() as u32
}

/// P(B ≤ k) for B binomial(n, p): the plain sum, in logarithms.
fn binomial_cdf(k: u32, n: u32, p: f64) -> f64 {
    let mut log_term = f64::from(n) * (1.0 - p).ln();
    let mut sum = 0.0;
    for i in 0..=k {
        sum += log_term.exp();
        log_term += (f64::from(n - i) / f64::from(i + 1)).ln() + (p / (1.0 - p)).ln();
    }
    sum
}

/// Whether `hits` of `SETS` is within the central 99.9% of what a coverage gives.
fn agrees(hits: u32, coverage: f64) -> bool {
    let at_most = binomial_cdf(hits, SETS, coverage);
    let at_least = 1.0 - binomial_cdf(hits - 1, SETS, coverage);
    at_most > 0.0005 && at_least > 0.0005
}

#[test]
fn medians_of_few_values() {
    for (mut values, expected) in [
        (vec![], None),
        (vec![3.0], Some(3.0)),
        (vec![4.0, 1.0], Some(2.5)),
        (vec![9.0, 1.0, 4.0], Some(4.0)),
        (vec![f64::MAX, f64::MAX / 2.0], Some(f64::MAX * 0.75)),
    ] {
        assert_eq!(median(&mut values), expected);
    }
}

/// Order statistics and coverages as published: Le Boudec's table A.1 where it is symmetric.
#[test]
fn small_samples_follow_the_published_table() {
    for (n, low, high, coverage) in [
        (6, 1, 6, 0.969),
        (7, 1, 7, 0.984),
        (9, 2, 8, 0.961),
        (10, 2, 9, 0.979),
        (12, 3, 10, 0.961),
        (15, 4, 12, 0.965),
        (20, 6, 15, 0.959),
        (25, 8, 18, 0.957),
        (30, 10, 21, 0.957),
    ] {
        let mut values: Vec<f64> = (1..=n).rev().map(f64::from).collect();
        let interval = median_interval(&mut values, 0.95).unwrap();
        assert_eq!((interval.low, interval.high), (f64::from(low), f64::from(high)), "n = {n}");
        assert!((interval.coverage - coverage).abs() < 0.0006, "n = {n}: {}", interval.coverage);
    }
}

#[test]
fn too_few_values_give_no_interval() {
    for (n, confidence, enough) in
        [(0, 0.95, false), (5, 0.95, false), (6, 0.95, true), (7, 0.99, false), (8, 0.99, true)]
    {
        let mut values = vec![1.0; n];
        assert_eq!(median_interval(&mut values, confidence).is_some(), enough, "{n} {confidence}");
        assert_eq!(bootstrap_median_interval(&values, confidence, 100, 0).is_some(), enough);
    }
    for confidence in [-1.0, 0.0, 1.0, f64::NAN] {
        assert_eq!(median_interval(&mut [1.0; 20], confidence), None, "{confidence}");
    }
    assert_eq!(bootstrap_median_interval(&[1.0; 20], 0.95, 0, 0), None);
    let mut with_nan = [1.0; 20];
    with_nan[3] = f64::NAN;
    assert_eq!(bootstrap_median_interval(&with_nan, 0.95, 100, 0), None);
}

#[test]
fn a_large_sample_does_not_underflow() {
    let mut values: Vec<f64> = (0..100_000).map(f64::from).collect();
    let interval = median_interval(&mut values, 0.95).unwrap();
    // The normal approximation: n/2 ± 1.96·√n/2.
    assert!((interval.low - (50_000.0 - 310.0)).abs() < 3.0, "{interval:?}");
    assert!((0.95..0.952).contains(&interval.coverage), "{interval:?}");
}

#[test]
fn order_statistics_cover_as_often_as_they_say() {
    for n in [9, 30, 101] {
        let coverage = median_interval(&mut vec![0.0; n], 0.95).unwrap().coverage;
        let interval = |values: &mut [f64]| median_interval(values, 0.95).unwrap();
        for (draw, truth) in [(normal as Draw, 0.0), (lognormal, 1.0)] {
            let hits = hits(n, draw, truth, interval);
            assert!(agrees(hits, coverage), "n = {n}: {hits} of {SETS}, stated {coverage}");
        }
    }
}

/// The documented 93% to 96%, each end widened by what 2,000 sets can show.
#[test]
fn the_bootstrap_covers_nearly_as_often_as_it_says() {
    for (n, draw, truth) in [(20, normal as Draw, 0.0), (31, lognormal, 1.0), (50, normal, 0.0)] {
        let interval =
            |values: &mut [f64]| bootstrap_median_interval(values, 0.95, 200, 7).unwrap();
        let hits = hits(n, draw, truth, interval);
        let enough = binomial_cdf(hits, SETS, 0.93) > 0.0005;
        let not_too_often = 1.0 - binomial_cdf(hits - 1, SETS, 0.96) > 0.0005;
        assert!(enough && not_too_often, "n = {n}: {hits} of {SETS}");
    }
}

/// For odd n the bootstrap's distribution of the median is known: the k-th value is exceeded with
/// P(binomial(n, k/n) < (n+1)/2) (Efron, Annals of Statistics 7, 1979, section 3). The resampled ends must be at its
/// percentiles, or next to them.
#[test]
fn the_bootstrap_agrees_with_its_exact_distribution() {
    for n in [21_u32, 61, 199] {
        let values: Vec<f64> = (1..=n).map(f64::from).collect();
        let interval = bootstrap_median_interval(&values, 0.95, 20_000, 1).unwrap();
        let exact_low = (1..n)
            .find(|k| 1.0 - binomial_cdf((n - 1) / 2, n, f64::from(*k) / f64::from(n)) >= 0.025);
        let exact_low = f64::from(exact_low.unwrap());
        assert!((interval.low - exact_low).abs() <= 1.0, "n = {n}: {interval:?}, {exact_low}");
        let mirrored = f64::from(n + 1) - exact_low;
        assert!((interval.high - mirrored).abs() <= 1.0, "n = {n}: {interval:?}, {mirrored}");
    }
}

#[test]
fn the_bootstrap_depends_on_its_seed_only() {
    let values: Vec<f64> = (0..50).map(|i| f64::from(i * i)).collect();
    let mut shuffled = values.clone();
    shuffled.reverse();
    let of = |values: &[f64], seed| bootstrap_median_interval(values, 0.95, 50, seed).unwrap();
    assert_eq!(of(&values, 1), of(&shuffled, 1));
    assert_ne!(of(&values, 1), of(&values, 2));
}

#[test]
fn half_widths_are_shares_of_the_median() {
    let interval = |low, median, high| Interval { low, median, high, coverage: 0.95 };
    assert_eq!(interval(90.0, 100.0, 130.0).relative_half_width(), 0.2);
    assert_eq!(interval(-130.0, -100.0, -90.0).relative_half_width(), 0.2);
    assert_eq!(interval(-1.0, 0.0, 1.0).relative_half_width(), f64::INFINITY);
}

proptest! {
    #[test]
    fn intervals_scale_and_shift_with_their_values(
        values in prop::collection::vec(-1000_i32..1000, 6..80),
        scale in 1_i32..8,
        shift in -1000_i32..1000,
    ) {
        // Small integers, so that scaling and shifting are exact.
        let plain: Vec<f64> = values.iter().copied().map(f64::from).collect();
        let moved: Vec<f64> = values.iter().map(|v| f64::from(v * scale + shift)).collect();
        let map = |i: Interval| Interval {
            low: i.low * f64::from(scale) + f64::from(shift),
            median: i.median * f64::from(scale) + f64::from(shift),
            high: i.high * f64::from(scale) + f64::from(shift),
            coverage: i.coverage,
        };
        let order = |values: &[f64]| median_interval(&mut values.to_vec(), 0.95).unwrap();
        prop_assert_eq!(order(&moved), map(order(&plain)));
        let boot = |values: &[f64]| bootstrap_median_interval(values, 0.95, 60, 3).unwrap();
        prop_assert_eq!(boot(&moved), map(boot(&plain)));
    }

    #[test]
    fn the_median_lies_in_its_interval(values in prop::collection::vec(-1e9_f64..1e9, 6..80)) {
        for interval in [
            median_interval(&mut values.clone(), 0.95).unwrap(),
            bootstrap_median_interval(&values, 0.95, 200, 5).unwrap(),
        ] {
            prop_assert!(interval.contains(interval.median), "{:?}", interval);
        }
    }

    #[test]
    fn more_confidence_is_never_narrower(values in prop::collection::vec(0.0_f64..1e6, 8..80)) {
        let of = |confidence| median_interval(&mut values.clone(), confidence).unwrap();
        prop_assert!(of(0.99).low <= of(0.9).low && of(0.99).high >= of(0.9).high);
    }
}
