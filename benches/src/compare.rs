//! The comparison itself: rounds of A, A again and B in random order, until the ratio is known.

use hpcbench_verdict::stats::{Interval, bootstrap_median_interval};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Rounds between two looks at the interval. Each look is a chance to stop on luck; fewer looks,
/// fewer chances.
const ROUNDS_A_LOOK: usize = 5;

/// How a comparison is carried out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Nominal coverage of the intervals, 0 to 1.
    pub confidence: f64,
    /// Stop when both intervals' half-widths, as a share of the median, are at most this.
    pub half_width: f64,
    /// Pairs to measure in any case.
    pub min_pairs: usize,
    /// Pairs to stop at in any case.
    pub max_pairs: usize,
    /// Rounds run first and thrown away: they pay for cold caches.
    pub warmup_rounds: usize,
    /// Resamples of the bootstrap.
    pub resamples: usize,
    /// Seed of the order within rounds and of the bootstrap.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            confidence: 0.95,
            half_width: 0.025,
            min_pairs: 20,
            max_pairs: 400,
            warmup_rounds: 1,
            resamples: 2_000,
            seed: 1,
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// What is compared with.
    A,
    /// What is compared.
    B,
}

/// The three measurements of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// A.
    A,
    /// A once more: the control.
    Again,
    /// B.
    B,
}

impl Arm {
    const fn side(self) -> Side {
        match self {
            Arm::A | Arm::Again => Side::A,
            Arm::B => Side::B,
        }
    }
}

const ORDERS: [[Arm; 3]; 6] = [
    [Arm::A, Arm::Again, Arm::B],
    [Arm::A, Arm::B, Arm::Again],
    [Arm::Again, Arm::A, Arm::B],
    [Arm::Again, Arm::B, Arm::A],
    [Arm::B, Arm::A, Arm::Again],
    [Arm::B, Arm::Again, Arm::A],
];

/// One round, in the metric's unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// A.
    pub a: f64,
    /// A once more.
    pub again: f64,
    /// B.
    pub b: f64,
    /// The order in which they ran.
    pub order: [Arm; 3],
}

/// What the rounds say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimates {
    /// Median of B ÷ A over the rounds.
    pub ratio: Interval,
    /// Median of A once more ÷ A: 1, if the comparison is sound.
    pub control: Interval,
    /// Median of B − A, in the metric's unit.
    pub difference: Interval,
    /// Median of A once more − A: 0, if the comparison is sound.
    pub control_difference: Interval,
}

/// A finished comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The rounds, in order of time, without the warm-up.
    pub rounds: Vec<Round>,
    /// What they say.
    pub estimates: Estimates,
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError<E> {
    /// A measurement failed.
    #[error(transparent)]
    Measure(E),
    /// A ratio needs positive numbers.
    #[error(
        "side {side:?} measured {value}: a ratio needs a positive number; measure more iterations"
    )]
    NotPositive {
        /// Which side.
        side: Side,
        /// What it measured.
        value: f64,
    },
    /// Too few pairs for an interval.
    #[error("{pairs} pairs give no {confidence} interval: allow more pairs")]
    TooFewPairs {
        /// Pairs measured.
        pairs: usize,
        /// Confidence asked for.
        confidence: f64,
    },
}

/// Measures both sides in interleaved rounds until the plan is met. `measure` gives one value of a
/// side, in any unit, above zero; `watch` is told the pairs so far and the widest relative half-width
/// at the latest look.
///
/// # Errors
/// When a measurement fails or is not positive, or the plan allows too few pairs for an interval.
pub fn compare<E>(
    plan: &Plan,
    mut measure: impl FnMut(Side) -> Result<f64, E>,
    mut watch: impl FnMut(usize, Option<f64>),
) -> Result<Comparison, CompareError<E>> {
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    for _ in 0..plan.warmup_rounds {
        round(&mut rng, &mut measure)?;
    }
    let mut rounds = Vec::new();
    let mut half_width = None;
    while rounds.len() < plan.max_pairs {
        rounds.push(round(&mut rng, &mut measure)?);
        if rounds.len() >= plan.min_pairs && rounds.len().is_multiple_of(ROUNDS_A_LOOK) {
            half_width = widest(plan, &rounds);
        }
        watch(rounds.len(), half_width);
        if half_width.is_some_and(|width| width <= plan.half_width) {
            break;
        }
    }
    let estimates = estimate(plan, &rounds)
        .ok_or(CompareError::TooFewPairs { pairs: rounds.len(), confidence: plan.confidence })?;
    Ok(Comparison { rounds, estimates })
}

fn round<E>(
    rng: &mut ChaCha8Rng,
    measure: &mut impl FnMut(Side) -> Result<f64, E>,
) -> Result<Round, CompareError<E>> {
    let order = ORDERS[rng.random_range(0..ORDERS.len() as u32) as usize];
    let mut round = Round { a: 0.0, again: 0.0, b: 0.0, order };
    for arm in order {
        let value = measure(arm.side()).map_err(CompareError::Measure)?;
        if !(value.is_finite() && value > 0.0) {
            return Err(CompareError::NotPositive { side: arm.side(), value });
        }
        match arm {
            Arm::A => round.a = value,
            Arm::Again => round.again = value,
            Arm::B => round.b = value,
        }
    }
    Ok(round)
}

fn interval(plan: &Plan, rounds: &[Round], value: fn(&Round) -> f64) -> Option<Interval> {
    let values: Vec<f64> = rounds.iter().map(value).collect();
    bootstrap_median_interval(&values, plan.confidence, plan.resamples, plan.seed)
}

fn ratio(round: &Round) -> f64 {
    round.b / round.a
}

fn control(round: &Round) -> f64 {
    round.again / round.a
}

/// The wider of the two relative half-widths: a control less sharp than the ratio would prove little.
fn widest(plan: &Plan, rounds: &[Round]) -> Option<f64> {
    let of = |value| interval(plan, rounds, value).map(|i| i.relative_half_width());
    Some(f64::max(of(ratio)?, of(control)?))
}

fn estimate(plan: &Plan, rounds: &[Round]) -> Option<Estimates> {
    Some(Estimates {
        ratio: interval(plan, rounds, ratio)?,
        control: interval(plan, rounds, control)?,
        difference: interval(plan, rounds, |r| r.b - r.a)?,
        control_difference: interval(plan, rounds, |r| r.again - r.a)?,
    })
}

#[cfg(test)]
mod tests;
