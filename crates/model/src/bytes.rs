use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of bytes, read and written the way nccl-tests does: `8`, `64K`, `1.5M`, `1G`
/// (powers of 1024; `KiB`, `MB` and the like are taken as the same powers).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a size: write a number of bytes, or one with K, M, G or T, such as 8, 64K or 1G"
)]
pub struct ParseBytesError {
    text: String,
}

const UNITS: [(&str, u64); 4] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseBytesError { text: text.to_owned() };
        let trimmed = text.trim();
        let digits =
            trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let unit = unit.trim().to_ascii_uppercase();
        let unit = match unit.strip_suffix("IB") {
            Some(prefix) if !prefix.is_empty() => prefix,
            _ => unit.strip_suffix('B').unwrap_or(&unit),
        };
        let scale = match unit {
            "" => 1,
            _ => UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?.1,
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(scale).map(Bytes).ok_or_else(error);
        }
        let value = number.parse::<f64>().map_err(|_| error())? * scale as f64;
        // 2^63: beyond it a size means nothing and the conversion would saturate.
        if value.is_finite() && value < 9.2e18 { Ok(Bytes(value as u64)) } else { Err(error()) }
    }
}

impl fmt::Display for Bytes {
    /// The largest unit that divides without remainder: `8 B`, `64 KiB`, `1 GiB`, `1000 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, scale) in UNITS {
            if self.0 >= scale && self.0.is_multiple_of(scale) {
                return write!(f, "{} {name}iB", self.0 / scale);
            }
        }
        write!(f, "{} B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_nccl_tests_reads() {
        for (text, bytes) in [
            ("8", 8),
            ("64K", 65536),
            ("64k", 65536),
            ("1.5M", 1_572_864),
            ("1G", 1 << 30),
            ("2 MiB", 2 << 20),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_size() {
        for text in ["", "K", "-8", "8X", "8iB", "1e3", "8 8", "99999999999G", "1..5M", "nan"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(bytes in 0_u64..1 << 50) {
            prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
    }
}
