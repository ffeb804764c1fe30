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
mod tests;
