use std::{error::Error, fmt};

use rust_decimal::Decimal;

/// A text that is not a decimal number, or one with too many digits to be held exactly.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InvalidDecimal;

impl fmt::Display for InvalidDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a decimal number that can be held exactly")
    }
}

impl fmt::Debug for InvalidDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for InvalidDecimal {}

/// A number that is exactly a decimal: an integer, a [`Decimal`], or a text such as `"1500.05"`.
///
/// Binary floats are none of these, because most prices cannot be held in one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no exact decimal number",
    note = "write a price as a text, `\"1500.05\"`, an integer or a `Decimal`; a binary float cannot hold most prices"
)]
pub trait ToDecimal {
    /// Returns the number.
    ///
    /// # Errors
    ///
    /// [`InvalidDecimal`] if a text is none, or has too many digits.
    fn to_decimal(self) -> Result<Decimal, InvalidDecimal>;
}

impl ToDecimal for &str {
    fn to_decimal(self) -> Result<Decimal, InvalidDecimal> {
        parse_decimal(self)
    }
}

impl ToDecimal for String {
    fn to_decimal(self) -> Result<Decimal, InvalidDecimal> {
        parse_decimal(&self)
    }
}

macro_rules! exact {
    ($($number:ty),+) => {
        $(impl ToDecimal for $number {
            fn to_decimal(self) -> Result<Decimal, InvalidDecimal> {
                Ok(self.into())
            }
        })+
    };
}

exact!(Decimal, i32, u32, i64, u64);

/// Reads a decimal number exactly, plain (`100.05`) or with an exponent (`1e2`).
///
/// # Errors
///
/// [`InvalidDecimal`] for anything else: spaces, `NaN`, digit separators, or a number that would have to be
/// rounded (more than 28 decimals, or beyond about 7.9e28).
pub fn parse_decimal(text: &str) -> Result<Decimal, InvalidDecimal> {
    // `Decimal` accepts `1_000`, but no form or record of the service uses that.
    if text.is_empty() || text.bytes().any(|b| !matches!(b, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E')) {
        return Err(InvalidDecimal);
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        None => (text, 0),
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| InvalidDecimal)?),
    };
    let digits = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    if digits.is_empty() || !digits.starts_with(|c: char| c.is_ascii_digit()) || digits.ends_with('.') {
        return Err(InvalidDecimal);
    }
    let value = Decimal::from_str_exact(mantissa).map_err(|_| InvalidDecimal)?;
    // Without an exponent the number keeps its decimals as written.
    if exponent == 0 { Ok(value) } else { scale(value, exponent).ok_or(InvalidDecimal) }
}

/// Returns `value` times ten to the `exponent`, or `None` if that is not exact.
fn scale(value: Decimal, exponent: i32) -> Option<Decimal> {
    if value.is_zero() {
        return Some(Decimal::ZERO);
    }
    let value = value.normalize();
    let scale = i64::from(value.scale()) - i64::from(exponent);
    if scale > 28 {
        return None;
    }
    if scale >= 0 {
        return Decimal::try_from_i128_with_scale(value.mantissa(), u32::try_from(scale).ok()?).ok();
    }
    let factor = 10_i128.checked_pow(u32::try_from(-scale).ok()?)?;
    Decimal::try_from_i128_with_scale(value.mantissa().checked_mul(factor)?, 0).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_number_in_many_spellings_is_one_value() {
        for text in ["100", "100.00", "1e2", "1E+2", "+100", "1000e-1", "0100"] {
            assert_eq!(parse_decimal(text), Ok(Decimal::ONE_HUNDRED), "{text}");
        }
        assert_eq!(parse_decimal("-0.0"), Ok(Decimal::ZERO));
        assert_eq!(parse_decimal("0e999999"), Ok(Decimal::ZERO));
    }

    #[test]
    fn what_is_not_an_exact_decimal_is_refused() {
        for text in [
            "",
            " 1",
            "1 ",
            "1_000",
            "1,000",
            "NaN",
            "inf",
            "0x10",
            "1e",
            "e1",
            ".",
            ".5",
            "5.",
            "--1",
            "+-1",
            "1.2.3",
            "1e400",
            "1e-400",
            "1e1e1",
            "79228162514264337593543950336",
            "0.00000000000000000000000000001",
            "1e99999999999",
            "१००",
        ] {
            assert_eq!(parse_decimal(text), Err(InvalidDecimal), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_decimal_survives_its_own_text(mantissa in any::<i64>(), scale in 0_u32..=28) {
            let value = Decimal::new(mantissa, scale);
            prop_assert_eq!(parse_decimal(&value.to_string()), Ok(value));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = parse_decimal(&text);
        }

        #[test]
        fn no_text_of_number_letters_panics(text in "[-+.eE0-9]{0,40}") {
            let _ = parse_decimal(&text);
        }
    }
}
