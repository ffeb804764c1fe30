//! The checks that orders and changes share.

use std::{borrow::Cow, str::FromStr};

use rust_decimal::Decimal;

use super::{InvalidOrder, InvalidOrderReason};
use crate::{ToDecimal, UnknownCode, changes_display};

/// The numbers of an order that cannot be held exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NotNumbers(Vec<&'static str>);

impl NotNumbers {
    /// Reads the number of `field`. A later one replaces it, so what was wrong with it is forgotten.
    pub(crate) fn read(&mut self, field: &'static str, number: impl ToDecimal) -> Option<Decimal> {
        self.0.retain(|wrong| *wrong != field);
        let number = number.to_decimal().ok();
        if number.is_none() {
            self.0.push(field);
        }
        number
    }

    /// Refuses the first of them.
    pub(crate) fn check(&self) -> Result<(), InvalidOrder> {
        let wrong = self.0.first().map(|field| InvalidOrder::new(*field, InvalidOrderReason::NotANumber));
        wrong.map_or(Ok(()), Err)
    }
}

/// Reads a field's code.
pub(crate) fn code<T: FromStr<Err = UnknownCode>>(
    field: &'static str,
    text: &str,
) -> Result<T, InvalidOrder> {
    text.parse().map_err(|error| InvalidOrder::new(field, InvalidOrderReason::UnknownCode(error)))
}

/// Checks a price: above zero if the order's type needs it, and never below.
pub(crate) fn check_price(
    field: &'static str,
    price: Option<Decimal>,
    needed: bool,
) -> Result<(), InvalidOrder> {
    match price {
        Some(price) if needed && price <= Decimal::ZERO => {
            Err(InvalidOrder::new(field, InvalidOrderReason::NotPositive))
        }
        Some(price) if price < Decimal::ZERO => Err(InvalidOrder::new(field, InvalidOrderReason::Negative)),
        _ => Ok(()),
    }
}

/// True if two names mean the same field: a service might take `Qty` for `qty`.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one.trim().eq_ignore_ascii_case(other.trim())
}

/// Checks that extra fields can stand beside the `own` ones, and beside each other.
pub(crate) fn check_extra(extra: &[(Cow<'static, str>, String)], own: &[&str]) -> Result<(), InvalidOrder> {
    use InvalidOrderReason::{ControlCharacter, Missing, OwnField, Repeated};

    for (position, (name, _)) in extra.iter().enumerate() {
        let reason = if name.is_empty() {
            return Err(InvalidOrder::new("extra", Missing));
        } else if name.contains(changes_display) {
            return Err(InvalidOrder::new("extra", ControlCharacter));
        } else if own.iter().any(|field| is_same(field, name)) {
            OwnField
        } else if extra.iter().take(position).any(|(earlier, _)| is_same(earlier, name)) {
            Repeated
        } else {
            continue;
        };
        return Err(InvalidOrder::new(name.clone(), reason));
    }
    Ok(())
}
