//! Rates, shares and durations as they are typed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A bit rate, typed the way `tc` takes it: `400mbit`, `1gbit`, `64kbit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate {
    bits_per_second: u64,
}

const RATE_UNITS: [(&str, u64); 4] =
    [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

impl Rate {
    /// A rate of so many bits per second.
    pub const fn bits_per_second(bits_per_second: u64) -> Self {
        Rate { bits_per_second }
    }

    /// Bits per second.
    pub const fn as_bits_per_second(self) -> u64 {
        self.bits_per_second
    }

    /// How long `bytes` take on the wire.
    pub(crate) fn time_of(self, bytes: usize) -> Duration {
        Duration::from_nanos((bytes as u128 * 8_000_000_000 / self.bits_per_second as u128) as u64)
    }
}

impl FromStr for Rate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bits = RATE_UNITS.iter().find_map(|(unit, scale)| {
            let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
            Some(number * *scale as f64)
        });
        match bits {
            // Below 1 kbit a frame takes minutes; beyond 1 Tbit nothing on one machine is shaped.
            Some(bits) if (1e3..=1e12).contains(&bits) => {
                Ok(Rate { bits_per_second: bits.round() as u64 })
            }
            _ => Err(Error::Usage(format!(
                "`{text}` is not a rate between 1kbit and 1000gbit: write one as 400mbit"
            ))),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits_per_second;
        let fits = |scale: u64| bits >= scale && bits.is_multiple_of(scale);
        let (unit, scale) = RATE_UNITS.iter().find(|(_, s)| fits(*s)).unwrap_or(&RATE_UNITS[3]);
        write!(f, "{}{unit}", bits / scale)
    }
}

/// A share of frames: `2%` or `0.02`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(f64);

impl Share {
    /// All frames.
    pub const ALL: Share = Share(1.0);

    /// As a number from 0 to 1.
    pub fn fraction(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let fraction = match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(|p: f64| p / 100.0),
            None => text.parse(),
        };
        match fraction {
            Ok(fraction) if fraction > 0.0 && fraction <= 1.0 => Ok(Share(fraction)),
            _ => Err(Error::Usage(format!(
                "`{text}` is not a share above 0 and up to 100%: write one as 2% or 0.02"
            ))),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded at the eighth digit, so that 0.07 shows as 7% and not as 7.000000000000001%.
        write!(f, "{}%", (self.0 * 1e10).round() / 1e8)
    }
}

/// A duration such as `50us`, `1s` or `1m 30s`.
///
/// # Errors
/// When the text is no duration, or one beyond an hour: no fault or link here takes that long.
pub fn duration(text: &str) -> Result<Duration, Error> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration <= Duration::from_secs(3600) => Ok(duration),
        _ => Err(Error::Usage(format!(
            "`{text}` is not a duration of up to an hour: write one as 50us, 100ms or 2s"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_back_as_written() {
        for text in ["400mbit", "1gbit", "64kbit", "1500kbit"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert_eq!("1.5gbit".parse::<Rate>().unwrap().as_bits_per_second(), 1_500_000_000);
    }

    #[test]
    fn a_frame_takes_its_bits_over_the_rate() {
        let rate: Rate = "100mbit".parse().unwrap();
        assert_eq!(rate.time_of(1250), Duration::from_micros(100));
    }

    #[test]
    fn what_is_no_unit_is_refused() {
        for text in ["", "400", "400mb", "-1mbit", "0mbit", "NaNmbit", "1e9gbit"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        for text in ["", "0", "0%", "101%", "2", "-1%", "nan"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
        for text in ["", "5", "5 parsecs", "2h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_show_as_percent() {
        for (typed, shown) in [("2%", "2%"), ("0.07", "7%"), ("0.1%", "0.1%"), ("1", "100%")] {
            assert_eq!(typed.parse::<Share>().unwrap().to_string(), shown);
        }
    }
}
