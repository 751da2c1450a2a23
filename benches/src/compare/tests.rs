use std::convert::Infallible;

use super::*;
use crate::claim::{Claim, Verdict};

/// Numbers in place of clocks: lognormal noise of the given spread around 100 for A and
/// 100 × `factor` for B.
fn noisy(spread: f64, factor: f64, seed: u64) -> impl FnMut(Side) -> Result<f64, Infallible> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    move |side| {
        // Sum of twelve uniform numbers, less six: near enough to normal, variance 1.
        let normal = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let centre = if side == Side::B { 100.0 * factor } else { 100.0 };
        Ok(centre * (spread * normal).exp())
    }
}

/// The usual plan with fewer resamples: unoptimised, they are what takes time here.
fn plan() -> Plan {
    Plan { resamples: 200, ..Plan::default() }
}

fn run(plan: &Plan, measure: impl FnMut(Side) -> Result<f64, Infallible>) -> Comparison {
    compare(plan, measure, |_, _| {}).unwrap()
}

fn verdict(claim: Claim, comparison: &Comparison) -> Verdict {
    claim.judge(&comparison.estimates).verdict
}

#[test]
fn a_planted_ratio_is_found() {
    let comparison = run(&plan(), noisy(0.15, 1.10, 1));
    let Estimates { ratio, control, difference, .. } = comparison.estimates;
    assert!(ratio.contains(1.10) && !ratio.contains(1.0), "{ratio:?}");
    assert!(control.contains(1.0), "{control:?}");
    assert!(difference.contains(10.0), "{difference:?}");
    assert_eq!(verdict(Claim::within(0.95, 1.05), &comparison), Verdict::Outside);
    assert_eq!(verdict(Claim::at_most(1.2), &comparison), Verdict::Inside);
}

#[test]
fn equal_sides_are_inside() {
    let comparison = run(&plan(), noisy(0.15, 1.0, 2));
    assert!(comparison.estimates.ratio.contains(1.0), "{:?}", comparison.estimates);
    assert_eq!(verdict(Claim::within(0.95, 1.05), &comparison), Verdict::Inside);
}

#[test]
fn too_much_noise_shows_nothing() {
    let plan = Plan { max_pairs: 40, ..plan() };
    for factor in [1.0, 1.08] {
        let comparison = run(&plan, noisy(0.5, factor, 3));
        assert_eq!(comparison.rounds.len(), 40);
        assert_eq!(verdict(Claim::within(0.95, 1.05), &comparison), Verdict::NotShown);
    }
}

/// The intervals keep their coverage although the number of pairs depends on the data: of 150
/// comparisons, some 142 hold the planted ratio; 130 is four and a half standard deviations off.
#[test]
fn stopping_early_keeps_the_coverage() {
    let mut held = [0; 2];
    for seed in 0..150 {
        let plan = Plan { seed, max_pairs: 60, ..plan() };
        let Estimates { ratio, control, .. } =
            run(&plan, noisy(0.08, 1.03, 1_000 + seed)).estimates;
        held[0] += u32::from(ratio.contains(1.03));
        held[1] += u32::from(control.contains(1.0));
    }
    assert!(held.iter().all(|held| *held > 130), "{held:?} of 150");
}

#[test]
fn what_is_quiet_stops_early() {
    let plan = plan();
    let quiet = run(&plan, noisy(0.01, 1.0, 4));
    assert_eq!(quiet.rounds.len(), plan.min_pairs);
    let loud = run(&plan, noisy(0.10, 1.0, 4));
    assert!((plan.min_pairs + 1..plan.max_pairs).contains(&loud.rounds.len()));
    let width = loud.estimates.ratio.relative_half_width();
    assert!(width <= plan.half_width, "{width}");
}

/// A machine that slows down by half while the comparison runs does not move the ratio.
#[test]
fn drift_cancels() {
    let mut steady = noisy(0.02, 1.10, 5);
    let mut calls = 0.0;
    let plan = Plan { min_pairs: 100, ..plan() };
    let comparison = run(&plan, |side| {
        calls += 1.0;
        steady(side).map(|value| value * (1.0 + calls / 600.0))
    });
    assert!(comparison.estimates.ratio.contains(1.10), "{:?}", comparison.estimates.ratio);
    assert!(comparison.estimates.ratio.relative_half_width() < 0.01);
}

/// Whoever runs first in a round pays 20%: random order keeps that from counting for either side.
#[test]
fn the_order_within_a_round_does_not_count() {
    let mut steady = noisy(0.02, 1.0, 6);
    let mut calls = 0_u32;
    let plan = Plan { min_pairs: 200, ..plan() };
    let comparison = run(&plan, |side| {
        let first = calls.is_multiple_of(3);
        calls += 1;
        steady(side).map(|value| if first { value * 1.2 } else { value })
    });
    assert_eq!(verdict(Claim::within(0.95, 1.05), &comparison), Verdict::Inside);
    for order in ORDERS {
        assert!(comparison.rounds.iter().any(|round| round.order == order), "{order:?}");
    }
}

#[test]
fn the_seed_decides_the_order() {
    let of = |seed| {
        let plan = Plan { seed, ..plan() };
        run(&plan, noisy(0.02, 1.0, 7)).rounds
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn warm_up_rounds_are_thrown_away() {
    let mut calls = 0;
    let plan = Plan { warmup_rounds: 2, ..plan() };
    let comparison = run(&plan, |_| {
        calls += 1;
        Ok(if calls <= 6 { 1_000.0 } else { 1.0 })
    });
    assert!(comparison.rounds.iter().all(|r| (r.a, r.again, r.b) == (1.0, 1.0, 1.0)));
}

#[test]
fn what_gives_no_ratio_is_refused() {
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let result = compare(&plan(), |_| Ok::<_, Infallible>(value), |_, _| {});
        assert!(matches!(result, Err(CompareError::NotPositive { .. })), "{value}");
    }
    let few = Plan { min_pairs: 2, max_pairs: 3, ..plan() };
    let result = compare(&few, noisy(0.1, 1.0, 8), |_, _| {});
    assert!(matches!(result, Err(CompareError::TooFewPairs { pairs: 3, .. })));
    let result = compare(&plan(), |_| Err::<f64, _>("broken"), |_, _| {});
    assert!(matches!(result, Err(CompareError::Measure("broken"))));
}
