use std::{borrow::Cow, error::Error, fmt, str::FromStr, sync::Arc};

use rust_decimal::Decimal;

use crate::parse_decimal;

/// An instrument identifier (§2).
///
/// Three shapes are understood. Any other text is kept as it is, because the scrip master decides what is valid.
/// Surrounding space is dropped, so that an order is found however it is listed. Two identifiers are equal only if
/// their texts are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymId(Arc<str>);

/// The asset class that an identifier's first part names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AssetClass {
    /// `EQT`
    Equity,
    /// `FUT`
    Future,
    /// `OPT`
    Option,
}

/// The right of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OptionKind {
    /// `CE`
    Call,
    /// `PE`
    Put,
}

/// The parts of an identifier of one of the three shapes of §2.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SymIdShape<'a> {
    /// `EQT_<symbol>_<series>_<exchange>`
    Equity {
        /// The symbol.
        symbol: &'a str,
        /// The series.
        series: &'a str,
        /// The exchange.
        exchange: &'a str,
    },
    /// `FUT_<symbol>_FUT_<exchange>_<expiry>`
    Future {
        /// The symbol.
        symbol: &'a str,
        /// The exchange.
        exchange: &'a str,
        /// Day, month abbreviation, year.
        expiry: &'a str,
    },
    /// `OPT_<symbol>_<CE or PE>_<exchange>_<expiry>_<strike>`
    Option {
        /// The symbol.
        symbol: &'a str,
        /// Call or put.
        kind: OptionKind,
        /// The exchange.
        exchange: &'a str,
        /// Day, month abbreviation, year.
        expiry: &'a str,
        /// The strike price.
        strike: Decimal,
    },
}

impl SymId {
    /// Returns the identifier's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns one text for all spellings of an instrument: capitals, a day without its zero, a year of two digits, a
    /// strike without trailing zeros.
    ///
    /// Two identifiers that are equal here may be one instrument, so the search for a missing order compares these.
    /// Only the service knows whether two that differ are different instruments.
    #[must_use]
    pub fn folded(&self) -> Self {
        let is_upper = !self.0.contains(char::is_lowercase);
        let upper = if is_upper { self.clone() } else { Self(self.0.to_uppercase().into()) };
        // An equity has no part that is written in two ways.
        if upper.0.starts_with("EQT_") {
            return upper;
        }
        let folded = match upper.shape() {
            Some(SymIdShape::Future { symbol, exchange, expiry }) => {
                format!("FUT_{symbol}_FUT_{exchange}_{}", short_expiry(expiry))
            }
            Some(SymIdShape::Option { symbol, kind, exchange, expiry, strike }) => {
                let kind = if kind == OptionKind::Call { "CE" } else { "PE" };
                format!("OPT_{symbol}_{kind}_{exchange}_{}_{}", short_expiry(expiry), strike.normalize())
            }
            Some(SymIdShape::Equity { .. }) | None => return upper,
        };
        Self(folded.into())
    }

    /// Returns the identifier's parts, if it has one of the three shapes of §2.
    #[must_use]
    pub fn shape(&self) -> Option<SymIdShape<'_>> {
        let (class, rest) = self.0.split_once('_')?;
        // Symbols may contain underscores, so fixed parts are taken from the right.
        match class {
            "EQT" => {
                let (rest, exchange) = part(rest)?;
                let (symbol, series) = part(rest)?;
                word(symbol).map(|symbol| SymIdShape::Equity { symbol, series, exchange })
            }
            "FUT" => {
                let (rest, expiry) = part(rest)?;
                let (rest, exchange) = part(rest)?;
                let symbol = word(rest.strip_suffix("_FUT")?)?;
                is_expiry(expiry).then_some(SymIdShape::Future { symbol, exchange, expiry })
            }
            "OPT" => {
                let (rest, strike) = part(rest)?;
                let (rest, expiry) = part(rest)?;
                let (rest, exchange) = part(rest)?;
                let (symbol, kind) = part(rest)?;
                let kind = match kind {
                    "CE" => OptionKind::Call,
                    "PE" => OptionKind::Put,
                    _ => return None,
                };
                let strike = parse_decimal(strike).ok().filter(|strike| !strike.is_sign_negative())?;
                let symbol = word(symbol)?;
                is_expiry(expiry).then_some(SymIdShape::Option { symbol, kind, exchange, expiry, strike })
            }
            _ => None,
        }
    }

    /// Returns the asset class, if the identifier has one of the three shapes.
    #[must_use]
    pub fn asset_class(&self) -> Option<AssetClass> {
        self.shape().map(|shape| match shape {
            SymIdShape::Equity { .. } => AssetClass::Equity,
            SymIdShape::Future { .. } => AssetClass::Future,
            SymIdShape::Option { .. } => AssetClass::Option,
        })
    }

    /// Returns the exchange, if the identifier has one of the three shapes.
    #[must_use]
    pub fn exchange(&self) -> Option<&str> {
        self.shape().map(|shape| match shape {
            SymIdShape::Equity { exchange, .. }
            | SymIdShape::Future { exchange, .. }
            | SymIdShape::Option { exchange, .. } => exchange,
        })
    }
}

/// Splits the last part off; neither side may be empty.
fn part(text: &str) -> Option<(&str, &str)> {
    let (rest, last) = text.rsplit_once('_')?;
    (!rest.is_empty()).then_some(())?;
    word(last).map(|last| (rest, last))
}

fn word(text: &str) -> Option<&str> {
    (!text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !c.is_control())).then_some(text)
}

/// Day, month abbreviation, year: `28Nov2026`, `5DEC26`, `28-Nov-2026`.
fn is_expiry(text: &str) -> bool {
    let joined = without_hyphens(text);
    let text = joined.as_ref();
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (Some(day), Some(month), Some(year)) =
        (text.get(..digits), text.get(digits..digits + 3), text.get(digits + 3..))
    else {
        return false;
    };
    let day_is_possible = day.len() <= 2 && day.parse().is_ok_and(|day: u8| (1..=31).contains(&day));
    let year_is_possible = matches!(year.len(), 2 | 4) && year.bytes().all(|b| b.is_ascii_digit());
    day_is_possible && year_is_possible && MONTHS.iter().any(|m| month.eq_ignore_ascii_case(m))
}

/// Returns an expiry without hyphens. §2 gives the order of its parts, not what stands between them. A single hyphen is
/// a typing error.
fn without_hyphens(text: &str) -> Cow<'_, str> {
    let mut parts = text.split('-');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(day), Some(month), Some(year), None)
            if day.bytes().all(|b| b.is_ascii_digit()) && month.len() == 3 =>
        {
            format!("{day}{month}{year}").into()
        }
        _ => text.into(),
    }
}

/// Shortens `05DEC2026` to `5DEC26`.
fn short_expiry(expiry: &str) -> String {
    let expiry = &*without_hyphens(expiry);
    let expiry = expiry.trim_start_matches('0');
    let (day_and_month, year) =
        expiry.split_at(expiry.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1));
    format!("{day_and_month}{}", &year[year.len().saturating_sub(2)..])
}

/// The error for an empty identifier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EmptySymId;

impl fmt::Display for EmptySymId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("symId is empty")
    }
}

impl fmt::Debug for EmptySymId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for EmptySymId {}

impl FromStr for SymId {
    type Err = EmptySymId;

    fn from_str(text: &str) -> Result<Self, EmptySymId> {
        let text = text.trim();
        if text.is_empty() { Err(EmptySymId) } else { Ok(Self(text.into())) }
    }
}

impl fmt::Display for SymId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
