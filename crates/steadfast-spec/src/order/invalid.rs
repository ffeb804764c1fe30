use std::{borrow::Cow, error::Error, fmt};

use crate::OrderType;

/// An order that breaks a rule of §4.4, or a change that no order allows, found before anything was sent.
#[derive(Clone, PartialEq, Eq)]
pub struct InvalidOrder {
    field: Cow<'static, str>,
    reason: InvalidOrderReason,
}

/// The mistake in the field that an [`InvalidOrder`] names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidOrderReason {
    /// It is required and absent or empty.
    Missing,
    /// It is required by the order's type and absent.
    RequiredByType(OrderType),
    /// It is not a decimal number that can be held exactly.
    NotANumber,
    /// It must be above zero.
    NotPositive,
    /// It must not be below zero.
    Negative,
    /// It is not one of the field's codes.
    UnknownCode(crate::UnknownCode),
    /// It is given twice.
    Repeated,
    /// It is one of the order's own fields, in any case, so it cannot be an extra one.
    OwnField,
    /// It holds a control character, such as a line feed, or a character that changes the direction of writing.
    ControlCharacter,
    /// `eos` is for BSE only.
    OutsideBse,
}

impl InvalidOrder {
    pub(crate) fn new(field: impl Into<Cow<'static, str>>, reason: InvalidOrderReason) -> Self {
        Self { field: field.into(), reason }
    }

    /// Returns the field's name, as in forms and CSV headers.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the mistake.
    #[must_use]
    pub fn reason(&self) -> &InvalidOrderReason {
        &self.reason
    }
}

impl fmt::Display for InvalidOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = &self.field;
        match &self.reason {
            InvalidOrderReason::Missing => write!(f, "{field} is required"),
            InvalidOrderReason::RequiredByType(order_type) => {
                write!(f, "{field} is required when type is {order_type}")
            }
            InvalidOrderReason::NotANumber => {
                write!(f, "{field} is not a decimal number that can be held exactly")
            }
            InvalidOrderReason::NotPositive => write!(f, "{field} must be above zero"),
            InvalidOrderReason::Negative => write!(f, "{field} must not be below zero"),
            InvalidOrderReason::UnknownCode(error) => error.fmt(f),
            InvalidOrderReason::Repeated => write!(f, "{field} is given twice"),
            InvalidOrderReason::OwnField => write!(f, "{field} cannot be given as an extra field"),
            InvalidOrderReason::ControlCharacter => write!(f, "{field} holds a control character"),
            InvalidOrderReason::OutsideBse => write!(f, "{field} eos is for BSE only"),
        }
    }
}

impl fmt::Debug for InvalidOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for InvalidOrder {}
