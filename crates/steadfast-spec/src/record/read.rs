//! Reads records in one pass, copying only the texts that are kept.
//!
//! On a busy day a poll lists thousands of orders, so the work for each field is the cost of a list.

use std::{borrow::Cow, fmt, str::FromStr};

use rust_decimal::Decimal;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Code, FieldNames, OrderRecord, UnreadableRecord, value};
use crate::envelope::order_id;

const FIELDS: usize = 12;

impl FieldNames {
    fn all(&self) -> [&str; FIELDS] {
        let Self {
            order_id,
            sym_id,
            side,
            qty,
            order_type,
            product,
            validity,
            limit_price,
            trig_price,
            status,
            leg_type,
            remarks,
        } = self;
        [
            order_id,
            sym_id,
            side,
            qty,
            order_type,
            product,
            validity,
            limit_price,
            trig_price,
            status,
            leg_type,
            remarks,
        ]
    }
}

/// Reads one record.
pub(super) fn record(raw: &RawValue, names: &FieldNames) -> Result<OrderRecord, UnreadableRecord> {
    let names = names.all();
    let mut json = serde_json::Deserializer::from_str(raw.get());
    let values = Fields(&names).deserialize(&mut json).map_err(|_| UnreadableRecord::new("record"))?;
    Record { names: &names, values }.read()
}

/// Reads all records of an array. On failure, names the field of the first unreadable record.
pub(super) fn records(array: &RawValue, names: &FieldNames) -> Result<Vec<OrderRecord>, UnreadableRecord> {
    if !array.get().starts_with('[') {
        return Err(UnreadableRecord::new("d"));
    }
    let (names, mut unreadable) = (names.all(), None);
    let mut json = serde_json::Deserializer::from_str(array.get());
    json.deserialize_seq(Records { names: &names, unreadable: &mut unreadable })
        .map_err(|_| unreadable.unwrap_or_else(|| UnreadableRecord::new("record")))
}

struct Records<'n> {
    names: &'n [&'n str; FIELDS],
    unreadable: &'n mut Option<UnreadableRecord>,
}

impl<'de> Visitor<'de> for Records<'_> {
    type Value = Vec<OrderRecord>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut records = Vec::new();
        while let Some(values) = seq.next_element_seed(Fields(self.names))? {
            match (Record { names: self.names, values }).read() {
                Ok(record) => records.push(record),
                Err(error) => {
                    *self.unreadable = Some(error.in_record(records.len()));
                    return Err(A::Error::custom("unreadable record"));
                }
            }
        }
        Ok(records)
    }
}

/// Finds the values of the fields with these names. A record that has one of them twice contradicts itself and is no
/// evidence.
#[derive(Clone, Copy)]
struct Fields<'n>(&'n [&'n str; FIELDS]);

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = [Option<&'de RawValue>; FIELDS];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = [Option<&'de RawValue>; FIELDS];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = [None; FIELDS];
        while let Some(which) = map.next_key_seed(Name(self.0))? {
            if which == 0 {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let raw = map.next_value::<&'de RawValue>()?;
            for (at, value) in values.iter_mut().enumerate() {
                if which & (1 << at) != 0 && value.replace(raw).is_some() {
                    return Err(A::Error::custom("field given twice"));
                }
            }
        }
        Ok(values)
    }
}

/// Finds which names a key matches: one bit each, because settings may give two fields the same name.
struct Name<'n>(&'n [&'n str; FIELDS]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = u16;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u16, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = u16;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, key: &str) -> Result<u16, E> {
        let bits = self.0.iter().enumerate().map(|(at, name)| u16::from(*name == key) << at);
        Ok(bits.fold(0, |all, bit| all | bit))
    }
}

/// A record's values, in the order of [`FieldNames::all`].
struct Record<'n, 'a> {
    names: &'n [&'n str; FIELDS],
    values: [Option<&'a RawValue>; FIELDS],
}

impl<'a> Record<'_, 'a> {
    fn read(&self) -> Result<OrderRecord, UnreadableRecord> {
        Ok(OrderRecord {
            order_id: self.values[0]
                .and_then(order_id)
                .map(Cow::into_owned)
                .ok_or_else(|| self.unreadable(0))?,
            // Surrounding space is dropped, as in `SymId`.
            sym_id: self.text(1)?.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
            side: self.code(2)?,
            qty: self.number(3)?,
            order_type: self.code(4)?,
            product: self.code(5)?,
            validity: self.code(6)?,
            limit_price: self.number(7)?,
            trig_price: self.number(8)?,
            status: self.code(9)?,
            leg_type: self.code(10)?,
            // No rule of the service rests on it, so that a value of another kind makes no record unreadable.
            remarks: self.text(11).ok().flatten().map(Cow::into_owned),
        })
    }

    fn unreadable(&self, at: usize) -> UnreadableRecord {
        UnreadableRecord::new(self.names[at])
    }

    fn text(&self, at: usize) -> Result<Option<Cow<'a, str>>, UnreadableRecord> {
        value::text(self.values[at]).map_err(|_| self.unreadable(at))
    }

    fn code<T: FromStr>(&self, at: usize) -> Result<Option<Code<T>>, UnreadableRecord> {
        value::code(self.values[at]).map_err(|_| self.unreadable(at))
    }

    fn number(&self, at: usize) -> Result<Option<Decimal>, UnreadableRecord> {
        value::number(self.values[at]).map_err(|_| self.unreadable(at))
    }
}

#[cfg(test)]
mod tests {
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
}
