use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::parse_decimal;

/// The same, in one separate step for each rule.
fn slowly(array: &str, names: &FieldNames) -> Result<Vec<OrderRecord>, String> {
    let raws: Vec<&RawValue> = serde_json::from_str(array).map_err(|_| "d")?;
    raws.into_iter().map(|raw| one(raw, names)).collect()
}

fn one(raw: &RawValue, names: &FieldNames) -> Result<OrderRecord, String> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).map_err(|_| "record")?;
    let text = |name: &String| {
        let Some(raw) = fields.get(name).filter(|raw| raw.get() != "null") else { return Ok(None) };
        let text: String = serde_json::from_str(raw.get()).map_err(|_| name.clone())?;
        Ok::<_, String>(Some(text).filter(|text| !text.is_empty()))
    };
    let number = |name: &String| {
        let Some(raw) = fields.get(name).filter(|raw| raw.get() != "null") else { return Ok(None) };
        let text = serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
        if text.is_empty() {
            return Ok(None);
        }
        parse_decimal(&text).map(Some).map_err(|_| name.clone())
    };
    fn code<T: FromStr>(text: Option<String>) -> Option<Code<T>> {
        text.map(|text| text.parse().map_or_else(|_| Code::Other(text), Code::Known))
    }
    let id = fields.get(&names.order_id).and_then(|raw| order_id(raw)).map(Cow::into_owned);
    Ok(OrderRecord {
        order_id: id.ok_or_else(|| names.order_id.clone())?,
        sym_id: text(&names.sym_id)?.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
        side: code(text(&names.side)?),
        qty: number(&names.qty)?,
        order_type: code(text(&names.order_type)?),
        product: code(text(&names.product)?),
        validity: code(text(&names.validity)?),
        limit_price: number(&names.limit_price)?,
        trig_price: number(&names.trig_price)?,
        status: code(text(&names.status)?),
        leg_type: code(text(&names.leg_type)?),
        remarks: text(&names.remarks).ok().flatten(),
    })
}

/// Field names and values as services write them, and as they should not.
fn field() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        6 => prop::sample::select(FieldNames::default().all().map(str::to_owned).to_vec()),
        1 => Just("new".to_owned()),
        1 => Just(r"q\u0074y".to_owned()),
        1 => Just(r"\ud800".to_owned()),
    ];
    let value = prop::sample::select(vec![
        "null",
        "1",
        "10.50",
        "\"7\"",
        "\"\"",
        "\"buy\"",
        "\"buy \"",
        "\"B\"",
        "\"1e2\"",
        "1e400",
        "{}",
        "[1]",
        "true",
        "\" \"",
        r#""\u0031""#,
        r#""\ud800""#,
        r#""a\"b""#,
        r#""limit""#,
        r#""completed""#,
        "-3",
        "\"é\"",
    ]);
    (name, value).prop_map(|(name, value)| format!("\"{name}\":{value}"))
}

proptest! {
    #[test]
    fn one_pass_reads_what_the_rules_say(
        records in prop::collection::vec((any::<bool>(), prop::collection::vec(field(), 0..9)), 0..4),
        same_names in any::<bool>(),
    ) {
        let mut names = FieldNames::default();
        if same_names {
            names.trig_price.clone_from(&names.limit_price);
        }
        let record = |(named, mut fields): (bool, Vec<String>)| {
            let mut given = BTreeSet::new();
            fields.retain(|field| given.insert(field.replace(r"\u0074", "t").split(':').next().map(str::to_owned)));
            if named && !given.contains(&Some("\"orderId\"".to_owned())) {
                fields.push(r#""orderId":"o""#.to_owned());
            }
            format!("{{{}}}", fields.join(" , "))
        };
        let array = format!("[{}]", records.into_iter().map(record).collect::<Vec<_>>().join(","));
        let raw: &RawValue = serde_json::from_str(&array).unwrap();
        let read = super::records(raw, &names).map_err(|error| error.field().to_owned());
        prop_assert_eq!(read, slowly(&array, &names), "{}", array);
    }
}
