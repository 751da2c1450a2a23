use std::fmt;
use std::str::FromStr;

/// From where on a time is a jitter event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Above this many nanoseconds.
    Absolute(u64),
    /// Above this multiple of the row's median so far.
    Relative(f64),
}

/// Why a text is no threshold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a threshold: write a time such as 82ms, 500us or 1.5s, or a multiple of the median such as 3x"
)]
pub struct ParseThresholdError(String);

const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

impl FromStr for Threshold {
    type Err = ParseThresholdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseThresholdError(text.to_owned());
        let trimmed = text.trim();
        let positive =
            |number: &str| number.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
        if let Some(multiple) = trimmed.strip_suffix('x') {
            return positive(multiple)
                .filter(|m| *m > 1.0)
                .map(Threshold::Relative)
                .ok_or_else(error);
        }
        let time =
            UNITS.iter().find_map(|(unit, ns)| Some(positive(trimmed.strip_suffix(unit)?)? * ns));
        time.map(|ns| Threshold::Absolute(ns as u64)).ok_or_else(error)
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threshold::Relative(multiple) => write!(f, "{multiple}x"),
            Threshold::Absolute(ns) => {
                let (unit, scale) =
                    UNITS.iter().rev().find(|(_, scale)| *ns as f64 >= *scale).unwrap_or(&UNITS[0]);
                write!(f, "{}{unit}", *ns as f64 / scale)
            }
        }
    }
}

impl Threshold {
    /// In nanoseconds, given the median so far of the time of an iteration.
    pub fn ns(self, median_ns: u64) -> u64 {
        match self {
            Threshold::Absolute(ns) => ns,
            Threshold::Relative(multiple) => (median_ns as f64 * multiple) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_multiples() {
        for (text, threshold) in [
            ("82ms", Threshold::Absolute(82_000_000)),
            ("1.5s", Threshold::Absolute(1_500_000_000)),
            ("500us", Threshold::Absolute(500_000)),
            ("3x", Threshold::Relative(3.0)),
        ] {
            assert_eq!(text.parse(), Ok(threshold));
            assert_eq!(threshold.to_string(), text);
        }
        for text in ["", "82", "ms", "-3x", "1x", "0s", "3 minutes", "infs"] {
            assert!(text.parse::<Threshold>().is_err(), "{text}");
        }
    }
}
