use std::fmt::Display;

use half::{bf16, f16};

/// A number that messages are made of. Implemented for plain numbers only: any bit pattern is one.
pub(crate) trait Element: Copy + PartialEq + Display + 'static {
    /// The number, exact for the small integers that test data are made of.
    fn from_i64(value: i64) -> Self;

    /// An arbitrary number from 64 random bits, never NaN.
    fn from_random(bits: u64) -> Self;

    /// `self / ranks`: rounded once for floating types, truncated towards zero for integers.
    fn divided(self, ranks: u64) -> Self;

    /// How many representable numbers lie between two, plus one; 0 for equal ones. For integers
    /// different is as far as it gets.
    fn distance(self, other: Self) -> u64 {
        if self == other { 0 } else { u64::MAX }
    }

    /// Another number, for injecting an error.
    fn corrupted(self) -> Self;
}

macro_rules! integers {
    ($($type:ty as $wide:ty),*) => {$(
        impl Element for $type {
            fn from_i64(value: i64) -> Self {
                value as $type
            }
            fn from_random(bits: u64) -> Self {
                bits as $type
            }
            fn divided(self, ranks: u64) -> Self {
                // Wide enough for the number of ranks, which an int8 is not.
                (self as $wide / ranks as $wide) as $type
            }
            fn corrupted(self) -> Self {
                self ^ 1
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty, $bits:ty, $from:expr, $div:expr);*) => {$(
        impl Element for $type {
            fn from_i64(value: i64) -> Self {
                $from(value as f32)
            }
            fn from_random(bits: u64) -> Self {
                let value = <$type>::from_bits(bits as $bits);
                // An exponent of all ones is infinity or NaN: keep its sign and mantissa finite.
                if value.is_finite() { value } else { <$type>::from_bits(bits as $bits & (<$bits>::MAX >> 2)) }
            }
            fn divided(self, ranks: u64) -> Self {
                $div(self, ranks)
            }
            fn distance(self, other: Self) -> u64 {
                if self == other {
                    return 0;
                }
                if self.is_nan() || other.is_nan() || self.is_sign_negative() != other.is_sign_negative() {
                    return u64::MAX;
                }
                u64::from(self.to_bits().abs_diff(other.to_bits()))
            }
            fn corrupted(self) -> Self {
                <$type>::from_bits(self.to_bits() ^ 8)
            }
        }
    )*};
}

integers!(i8 as i32, u8 as u32, i32 as i64, u32 as u64, i64 as i64, u64 as u64);
floats!(
    f32, u32, f32::from, |value: f32, ranks| (f64::from(value) / ranks as f64) as f32;
    f64, u64, f64::from, |value: f64, ranks| value / ranks as f64;
    f16, u16, f16::from_f32, |value: f16, ranks| f16::from_f64(value.to_f64() / ranks as f64);
    bf16, u16, bf16::from_f32, |value: bf16, ranks| bf16::from_f64(value.to_f64() / ranks as f64)
);

/// Runs `$body` with `$T` standing for the Rust type of a [`hpcbench_model::DType`].
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use hpcbench_model::DType;
        match $dtype {
            DType::Int8 => {
                type $T = i8;
                $body
            }
            DType::Uint8 => {
                type $T = u8;
                $body
            }
            DType::Int32 => {
                type $T = i32;
                $body
            }
            DType::Uint32 => {
                type $T = u32;
                $body
            }
            DType::Int64 => {
                type $T = i64;
                $body
            }
            DType::Uint64 => {
                type $T = u64;
                $body
            }
            DType::Half => {
                type $T = half::f16;
                $body
            }
            DType::Float => {
                type $T = f32;
                $body
            }
            DType::Double => {
                type $T = f64;
                $body
            }
            DType::Bfloat16 => {
                type $T = half::bf16;
                $body
            }
        }
    }};
}
pub(crate) use with_element;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn division_truncates_integers_and_rounds_floats() {
        assert_eq!((-7_i8).divided(2), -3);
        assert_eq!(255_u8.divided(1000), 0);
        assert_eq!(u64::MAX.divided(2), u64::MAX / 2);
        assert_eq!(7.0_f32.divided(2), 3.5);
        assert_eq!(f16::from_f32(1.0).divided(3), f16::from_f64(1.0 / 3.0));
    }

    #[test]
    fn neighbours_are_one_apart() {
        assert_eq!(1.0_f32.distance(f32::from_bits(1.0_f32.to_bits() + 1)), 1);
        assert_eq!(bf16::ONE.distance(bf16::ONE), 0);
        assert_eq!(1.0_f64.distance(f64::NAN), u64::MAX);
        assert_eq!(1_i32.distance(2), u64::MAX);
    }

    proptest! {
        #[test]
        fn random_numbers_are_never_nan_and_corruption_shows(bits: u64) {
            prop_assert!(f32::from_random(bits).is_finite() && f16::from_random(bits).is_finite());
            prop_assert!(f64::from_random(bits).is_finite() && bf16::from_random(bits).is_finite());
            prop_assert_ne!(f32::from_random(bits).corrupted(), f32::from_random(bits));
            prop_assert_ne!(i8::from_random(bits).corrupted(), i8::from_random(bits));
        }
    }
}
