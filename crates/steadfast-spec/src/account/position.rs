use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::payload::{Fields, payload, records};
use crate::{Code, Product, UnreadableRecord};

const LIST: &str = "list of positions";

/// The account's position in one instrument and product, and its trades of it.
///
/// With serde it is written and read under the names of these fields in camel case; that is for a program's own files, and
/// [`parse_list`](Self::parse_list) for the service's answers.
///
/// # Example
///
/// ```
/// use steadfast_spec::Position;
///
/// let answer = br#"{"s":"ok","d":[{"symId":"EQT_INFY_EQ_NSE","netQty":-3,"sellAvgPrice":1500.05,"lot":"1"}]}"#;
/// let positions = Position::parse_list(answer)?;
/// assert!(positions[0].qty.is_sign_negative(), "three are owed");
/// assert_eq!(positions[0].sell_avg_price, Some("1500.05".parse()?));
/// assert_eq!(positions[0].product, None, "the answer does not say");
///
/// let error = Position::parse_list(br#"{"s":"ok","d":[{"symId":"EQT_INFY_EQ_NSE"}]}"#).unwrap_err();
/// assert_eq!((error.index(), error.field()), (Some(0), "qty"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Position {
    /// The instrument (§2).
    pub sym_id: crate::SymId,
    /// How much is held: bought less sold; below zero if it is owed. `qty` (§2), or `netQty` in public documentation.
    #[serde(with = "crate::serialized::exact_number")]
    pub qty: Decimal,
    /// The product (§2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<Code<Product>>,
    /// The average price of what is held: `netAvgPrice` in public documentation, as are the names below.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub net_avg_price: Option<Decimal>,
    /// How much was bought.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub buy_qty: Option<Decimal>,
    /// The average price of that.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub buy_avg_price: Option<Decimal>,
    /// How much was sold.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub sell_qty: Option<Decimal>,
    /// The average price of that.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub sell_avg_price: Option<Decimal>,
    /// How much of it was held before today.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub cf_qty: Option<Decimal>,
    /// The gain on what is sold again; a loss is below zero.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::serialized::exact")]
    pub realized_pnl: Option<Decimal>,
}

impl Position {
    /// Reads the answer with the account's positions; `no-data` is the empty list (§1).
    ///
    /// # Errors
    ///
    /// [`UnreadableRecord`], which names list, record and field. `symId` and the quantity are required. If `qty` and
    /// `netQty` are both given and differ, neither is believed.
    pub fn parse_list(body: &[u8]) -> Result<Vec<Self>, UnreadableRecord> {
        payload(LIST, body)?.map_or(Ok(Vec::new()), |d| records(LIST, "d", d, Self::read))
    }

    fn read(fields: &Fields<'_>) -> Result<Self, UnreadableRecord> {
        let qty = match (fields.number("qty")?, fields.number("netQty")?) {
            (Some(qty), Some(net)) if qty != net => return Err(fields.unreadable("netQty")),
            (qty, net) => fields.required("qty", qty.or(net))?,
        };
        Ok(Self {
            sym_id: fields.sym_id()?,
            qty,
            product: fields.code("product")?,
            net_avg_price: fields.number("netAvgPrice")?,
            buy_qty: fields.number("buyQty")?,
            buy_avg_price: fields.number("buyAvgPrice")?,
            sell_qty: fields.number("sellQty")?,
            sell_avg_price: fields.number("sellAvgPrice")?,
            cf_qty: fields.number("cfQty")?,
            realized_pnl: fields.number("realizedPnl")?,
        })
    }
}
