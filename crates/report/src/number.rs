//! Numbers as C's printf writes them, where nccl-tests' format asks for it.

/// `value` right-aligned in `width` characters with two decimals, with fewer where they do not fit,
/// and with an exponent where that does not either (nccl-tests 2.19, `getFloatStr` in
/// `src/util.cu`).
pub(crate) fn fitted(value: f64, width: usize) -> String {
    if !value.is_finite() {
        return format!("{:>width$}", value.to_string().to_lowercase());
    }
    (0..=2)
        .rev()
        .map(|decimals| format!("{value:>width$.decimals$}"))
        .find(|text| text.len() <= width)
        .unwrap_or_else(|| scientific(value, usize::from(width >= 7)))
}

/// C's `%g`: six significant digits, no trailing zeros.
pub(crate) fn general(value: f64) -> String {
    const DIGITS: i32 = 6;
    if value == 0.0 || !value.is_finite() {
        return value.to_string().to_lowercase();
    }
    let rounded = format!("{value:.*e}", DIGITS as usize - 1);
    let exponent = exponent_of(&rounded);
    if !(-4..DIGITS).contains(&exponent) {
        let (mantissa, _) = rounded.split_once('e').unwrap_or((&rounded, ""));
        return with_c_exponent(without_trailing_zeros(mantissa), exponent);
    }
    let decimals = (DIGITS - 1 - exponent) as usize;
    without_trailing_zeros(&format!("{value:.decimals$}")).to_owned()
}

/// C's `%.{decimals}e`.
fn scientific(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    let (mantissa, _) = text.split_once('e').unwrap_or((&text, ""));
    with_c_exponent(mantissa, exponent_of(&text))
}

fn exponent_of(scientific: &str) -> i32 {
    scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

/// C writes the exponent with its sign and at least two digits.
fn with_c_exponent(mantissa: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_width() {
        for (value, width, text) in [
            (1.234, 7, "   1.23"),
            (99999.5, 7, "99999.5"),
            (1_234_567.4, 7, "1234567"),
            (12_345_678.0, 7, "1.2e+07"),
            (1234.5, 6, "1234.5"),
            (12_345_678.0, 6, "1e+07"),
            (f64::INFINITY, 7, "    inf"),
            (f64::NAN, 6, "   nan"),
        ] {
            assert_eq!(fitted(value, width), text);
        }
    }

    #[test]
    fn general_is_printfs() {
        for (value, text) in [
            (0.0, "0"),
            (3.0, "3"),
            (1e5, "100000"),
            (1e6, "1e+06"),
            (1_234_567.0, "1.23457e+06"),
            (0.1234567, "0.123457"),
            (0.00001, "1e-05"),
            (9.999_999, "10"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(general(value), text);
        }
    }
}
