use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::payload::{Fields, is_object, payload, records};
use crate::UnreadableRecord;

const LIST: &str = "list of holdings";

/// An instrument that the account has owned since an earlier day.
///
/// With serde it is written and read as a [`Position`](crate::Position) is.
///
/// # Example
///
/// ```
/// use steadfast_spec::Holding;
///
/// let answer = br#"{"s":"ok","d":{"holdings":[{"symId":"EQT_INFY_EQ_NSE","qty":"10","avgPrice":1500.05}]}}"#;
/// let holdings = Holding::parse_list(answer)?;
/// assert_eq!(holdings[0].qty, 10.into());
/// # Ok::<(), steadfast_spec::UnreadableRecord>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Holding {
    /// The instrument (§2).
    pub sym_id: crate::SymId,
    /// How much is owned (§2).
    #[serde(with = "crate::serialized::exact_number")]
    pub qty: Decimal,
    /// The average price at which it was bought; this name and those below are from public documentation.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub avg_price: Option<Decimal>,
    /// How much of it can be sold now.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub saleable_qty: Option<Decimal>,
    /// How much of it was bought the day before and is not delivered yet.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub t1_qty: Option<Decimal>,
    /// How much of it is pledged.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub pledge_qty: Option<Decimal>,
}

impl Holding {
    /// Reads the answer with the account's holdings; `no-data` is the empty list (§1).
    ///
    /// The records are the payload itself, as §1 has it for a list, or its field `holdings`, as public documentation has
    /// it.
    ///
    /// # Errors
    ///
    /// [`UnreadableRecord`], which names list, record and field. `symId` and `qty` are required.
    pub fn parse_list(body: &[u8]) -> Result<Vec<Self>, UnreadableRecord> {
        let Some(d) = payload(LIST, body)? else { return Ok(Vec::new()) };
        if !is_object(d) {
            return records(LIST, "d", d, Self::read);
        }
        let fields = Fields::of(LIST, d)?;
        let inner = fields.get("holdings")?;
        records(LIST, "holdings", fields.required("holdings", inner)?, Self::read)
    }

    fn read(fields: &Fields<'_>) -> Result<Self, UnreadableRecord> {
        Ok(Self {
            sym_id: fields.sym_id()?,
            qty: fields.required("qty", fields.number("qty")?)?,
            avg_price: fields.number("avgPrice")?,
            saleable_qty: fields.number("saleableQty")?,
            t1_qty: fields.number("t1Qty")?,
            pledge_qty: fields.number("pledgeQty")?,
        })
    }
}
