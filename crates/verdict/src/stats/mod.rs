//! Medians and how far they can be trusted.
//!
//! Every interval here takes its values for independent. The times of neighbouring iterations are
//! not: what slows one slows the next. So pass one value per independent unit, never iterations:
//! the medians of timed blocks, or the ratios of paired runs. With dependent values an interval comes
//! out far too narrow, and nothing in it shows that.

mod bootstrap;
mod order;

pub use bootstrap::bootstrap_median_interval;
pub use order::{median, median_interval};

/// An interval that holds the population's median with a known probability, in the values' unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The sample's median.
    pub median: f64,
    /// Upper end.
    pub high: f64,
    /// Probability, 0 to 1, that such an interval holds the population's median: exact for order
    /// statistics, nominal for the bootstrap.
    pub coverage: f64,
}

impl Interval {
    /// Half the width, as a share of the median: 0.01 is ±1%. Infinite where the median is 0.
    pub fn relative_half_width(&self) -> f64 {
        if self.median == 0.0 {
            return f64::INFINITY;
        }
        (self.high - self.low) / 2.0 / self.median.abs()
    }

    /// Whether a value lies in it, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

#[cfg(test)]
mod tests;
