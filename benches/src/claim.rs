//! What is claimed of a comparison, and whether it was shown.

use hpcbench_verdict::stats::Interval;
use serde::Serialize;

use crate::compare::Estimates;

/// Bounds on B against A.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Smallest ratio B ÷ A, where the claim has one.
    pub ratio_low: Option<f64>,
    /// Largest ratio B ÷ A.
    pub ratio_high: f64,
    /// A difference B − A, in the metric's unit, that is fine whatever the ratio.
    pub difference_high: Option<f64>,
}

/// Whether a claim was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// The whole interval keeps the claim.
    #[serde(rename = "inside")]
    Inside,
    /// Neither.
    #[serde(rename = "not shown")]
    NotShown,
    /// The whole interval breaks the claim.
    #[serde(rename = "outside")]
    Outside,
}

/// A verdict and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Whether the claim was shown.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
}

impl Claim {
    /// B ÷ A between two bounds.
    pub const fn within(low: f64, high: f64) -> Self {
        Claim { ratio_low: Some(low), ratio_high: high, difference_high: None }
    }

    /// B ÷ A at most this.
    pub const fn at_most(high: f64) -> Self {
        Claim { ratio_low: None, ratio_high: high, difference_high: None }
    }

    /// B − A at most `difference`, in the metric's unit, is fine too.
    pub const fn or_difference(self, difference: f64) -> Self {
        Claim { difference_high: Some(difference), ..self }
    }

    /// Judges by whole intervals: one that a bound cuts shows neither. Where A differs from itself,
    /// nothing is shown either.
    pub fn judge(&self, estimates: &Estimates) -> Judgement {
        let ratio = &estimates.ratio;
        if !self.control_is_sound(estimates) {
            let control = &estimates.control;
            return Judgement {
                verdict: Verdict::NotShown,
                reason: format!(
                    "A against itself gives {}: the machine does not hold still",
                    show(control)
                ),
            };
        }
        let (verdict, what) = if self.kept_by(estimates) {
            (Verdict::Inside, "keeps the claim")
        } else if self.broken_by(estimates) {
            (Verdict::Outside, "breaks the claim")
        } else {
            (Verdict::NotShown, "lies across a bound of the claim")
        };
        let difference = match self.difference_high {
            Some(_) => format!(", or the difference {}", show(&estimates.difference)),
            None => String::new(),
        };
        Judgement { verdict, reason: format!("the ratio {}{difference} {what}", show(ratio)) }
    }

    fn kept_by(&self, Estimates { ratio, difference, .. }: &Estimates) -> bool {
        let by_ratio =
            ratio.high <= self.ratio_high && self.ratio_low.is_none_or(|low| low <= ratio.low);
        by_ratio || self.difference_high.is_some_and(|high| difference.high <= high)
    }

    fn broken_by(&self, Estimates { ratio, difference, .. }: &Estimates) -> bool {
        let by_ratio =
            ratio.low > self.ratio_high || self.ratio_low.is_some_and(|low| ratio.high < low);
        by_ratio && self.difference_high.is_none_or(|high| difference.low > high)
    }

    /// Whether A against itself differs from 1 by no more than the claim can notice, all of its
    /// interval: a wide one proves nothing.
    fn control_is_sound(&self, estimates: &Estimates) -> bool {
        let off_by = |bound: f64| bound.ln().abs();
        let margin = self.ratio_low.map_or(f64::INFINITY, off_by).min(off_by(self.ratio_high));
        let control = &estimates.control;
        let difference = &estimates.control_difference;
        control.low.ln().abs().max(control.high.ln().abs()) <= margin
            || self.difference_high.is_some_and(|d| -d <= difference.low && difference.high <= d)
    }
}

fn show(interval: &Interval) -> String {
    format!("{:.4} [{:.4}, {:.4}]", interval.median, interval.low, interval.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Interval {
        Interval { low, median: (low + high) / 2.0, high, coverage: 0.95 }
    }

    fn verdict(claim: Claim, ratio: (f64, f64), control: (f64, f64)) -> Verdict {
        let estimates = Estimates {
            ratio: interval(ratio.0, ratio.1),
            control: interval(control.0, control.1),
            // As if A took 100 units.
            difference: interval(100.0 * (ratio.0 - 1.0), 100.0 * (ratio.1 - 1.0)),
            control_difference: interval(100.0 * (control.0 - 1.0), 100.0 * (control.1 - 1.0)),
        };
        claim.judge(&estimates).verdict
    }

    const SOUND: (f64, f64) = (0.98, 1.02);

    #[test]
    fn whole_intervals_decide() {
        let band = Claim::within(0.95, 1.05);
        let limit = Claim::at_most(1.2);
        for (claim, ratio, expected) in [
            (band, (0.96, 1.04), Verdict::Inside),
            (band, (0.94, 1.04), Verdict::NotShown),
            (band, (0.96, 1.06), Verdict::NotShown),
            (band, (0.90, 1.10), Verdict::NotShown),
            (band, (1.06, 1.09), Verdict::Outside),
            (band, (0.90, 0.94), Verdict::Outside),
            (limit, (0.5, 1.2), Verdict::Inside),
            (limit, (1.1, 1.3), Verdict::NotShown),
            (limit, (1.21, 1.3), Verdict::Outside),
        ] {
            assert_eq!(verdict(claim, ratio, SOUND), expected, "{claim:?} {ratio:?}");
        }
    }

    #[test]
    fn a_small_difference_keeps_what_the_ratio_does_not() {
        let claim = Claim::at_most(1.01).or_difference(20.0);
        for (ratio, expected) in [
            ((1.00, 1.005), Verdict::Inside),
            ((1.10, 1.15), Verdict::Inside),
            ((1.15, 1.25), Verdict::NotShown),
            ((1.25, 1.35), Verdict::Outside),
        ] {
            assert_eq!(verdict(claim, ratio, SOUND), expected, "{ratio:?}");
        }
    }

    #[test]
    fn an_unsound_control_shows_nothing() {
        let band = Claim::within(0.95, 1.05);
        for (control, shown) in [
            ((0.90, 1.10), false),
            ((1.001, 1.03), true),
            ((1.001, 1.08), false),
            ((0.90, 0.99), false),
        ] {
            let judged = verdict(band, (0.99, 1.01), control);
            assert_eq!(judged == Verdict::Inside, shown, "{control:?}");
            assert_eq!(verdict(band, (1.2, 1.3), control) == Verdict::Outside, shown);
        }
    }
}
