use super::Interval;

/// The median: the middle value, or the mean of the two middle ones; `None` without values. Reorders
/// the values. NaN sorts above everything.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    median_of_sorted(values)
}

pub(super) fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    // Halved before adding: the sum of two large values would overflow.
    Some(if lower == upper { upper } else { lower / 2.0 + upper / 2.0 })
}

/// The narrowest symmetric pair of order statistics that holds the population's median with at least
/// the given probability, whatever the distribution of the values. `None` where even the smallest and
/// the largest value do not (95% takes 6 values, 99% takes 8), or where `confidence` is no number
/// between 0 and 1. Reorders the values.
///
/// For n independent values, the number of them below the median is binomial(n, ½), so the l-th
/// smallest and the l-th largest enclose it with probability 1 − 2·P(B ≤ l−1): exact for a continuous
/// distribution, a lower bound for one with ties (Hahn and Meeker, "Statistical Intervals", 1991,
/// section 5.2; Le Boudec, "Performance Evaluation of Computer and Communication Systems", 2010,
/// theorem 2.1 and appendix A). The values must be independent: see the module's first lines.
pub fn median_interval(values: &mut [f64], confidence: f64) -> Option<Interval> {
    let (outside, coverage) = enclosing_order(values.len(), confidence)?;
    let median = median(values)?;
    Some(Interval {
        low: values[outside],
        median,
        high: values[values.len() - 1 - outside],
        coverage,
    })
}

/// How many of `n` sorted values may be left out at each end, and the coverage that remains.
fn enclosing_order(n: usize, confidence: f64) -> Option<(usize, f64)> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    // Logarithms, because 2⁻ⁿ underflows beyond n = 1074.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    let mut best = None;
    for k in 0..n.div_ceil(2) {
        tail += log_term.exp();
        let coverage = 1.0 - 2.0 * tail;
        if coverage < confidence {
            break;
        }
        best = Some((k, coverage));
        log_term += ((n - k) as f64 / (k + 1) as f64).ln();
    }
    best
}
