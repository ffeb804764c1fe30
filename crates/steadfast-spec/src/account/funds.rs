use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::payload::{Fields, payload};
use crate::UnreadableRecord;

const ANSWER: &str = "answer with the funds";

/// The money that the account trades with. All names are from public documentation.
///
/// With serde it is written and read as a [`Position`](crate::Position) is.
///
/// # Example
///
/// ```
/// use steadfast_spec::Funds;
///
/// let funds = Funds::parse(br#"{"s":"ok","d":{"availMargin":250000.5,"marginUsed":"0"}}"#)?;
/// assert_eq!(funds.avail_margin.to_string(), "250000.5");
/// # Ok::<(), steadfast_spec::UnreadableRecord>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Funds {
    /// The amount that new orders may use: all credits less the margin in use.
    #[serde(with = "crate::serialized::exact_number")]
    pub avail_margin: Decimal,
    /// The margin in use.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub margin_used: Option<Decimal>,
    /// Cash and collateral together.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub total_credits: Option<Decimal>,
    /// The cash of them.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub avail_cash: Option<Decimal>,
    /// Today's gain on what is sold again; a loss is below zero.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub realized_pnl: Option<Decimal>,
    /// The money paid in today.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub pay_in: Option<Decimal>,
    /// The money to be paid out today.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub pay_out: Option<Decimal>,
}

impl Funds {
    /// Reads the answer with the account's funds.
    ///
    /// # Errors
    ///
    /// [`UnreadableRecord`], which names the field. `availMargin` is required; `no-data` counts as an unreadable `d`.
    pub fn parse(body: &[u8]) -> Result<Self, UnreadableRecord> {
        let d = payload(ANSWER, body)?.ok_or_else(|| UnreadableRecord::in_list(ANSWER, "d"))?;
        let fields = Fields::of(ANSWER, d).map_err(|_| UnreadableRecord::in_list(ANSWER, "d"))?;
        Ok(Self {
            avail_margin: fields.required("availMargin", fields.number("availMargin")?)?,
            margin_used: fields.number("marginUsed")?,
            total_credits: fields.number("totalCredits")?,
            avail_cash: fields.number("availCash")?,
            realized_pnl: fields.number("realizedPnl")?,
            pay_in: fields.number("payIn")?,
            pay_out: fields.number("payOut")?,
        })
    }
}
