use std::{borrow::Cow, fmt, str::FromStr};

use rust_decimal::Decimal;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Code, Envelope, EnvelopeError, SymId, UnreadableRecord, envelope, record::value};

/// Returns the payload of a successful answer; `None` for `no-data` (§1).
pub(super) fn payload<'a>(
    list: &'static str,
    body: &'a [u8],
) -> Result<Option<&'a RawValue>, UnreadableRecord> {
    match Envelope::parse(body) {
        Ok(Envelope::NoData { .. }) => Ok(None),
        Ok(Envelope::Ok { d }) => Ok(Some(d)),
        Err(EnvelopeError::OkWithoutPayload | EnvelopeError::NoDataWithPayload) => {
            Err(UnreadableRecord::in_list(list, "d"))
        }
        Ok(Envelope::Error { .. }) | Err(_) => Err(UnreadableRecord::in_list(list, "s")),
    }
}

/// Reads each record of the array with the name `field`.
pub(super) fn records<T>(
    list: &'static str,
    field: &str,
    array: &RawValue,
    read: impl Fn(&Fields<'_>) -> Result<T, UnreadableRecord>,
) -> Result<Vec<T>, UnreadableRecord> {
    let raws: Vec<&RawValue> =
        serde_json::from_str(array.get()).map_err(|_| UnreadableRecord::in_list(list, field))?;
    let read = |(index, raw)| {
        Fields::of(list, raw).and_then(|fields| read(&fields)).map_err(|error| error.in_record(index))
    };
    raws.into_iter().enumerate().map(read).collect()
}

/// True for the text of a JSON object.
pub(super) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// The fields of one record.
///
/// As in the order list, a field that is absent, `null` or an empty text counts as not carried, and one that is asked for
/// and given twice makes the record unreadable.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    list: &'static str,
    fields: Vec<(String, &'a RawValue)>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(list: &'static str, raw: &'a RawValue) -> Result<Self, UnreadableRecord> {
        let mut json = serde_json::Deserializer::from_str(raw.get());
        let fields = json.deserialize_map(Pairs).map_err(|_| UnreadableRecord::in_list(list, "record"))?;
        Ok(Self { list, fields })
    }

    pub(super) fn unreadable(&self, name: &str) -> UnreadableRecord {
        UnreadableRecord::in_list(self.list, name)
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<&'a RawValue>, UnreadableRecord> {
        let mut given = self.fields.iter().filter(|(field, _)| field == name);
        let value = given.next().map(|(_, value)| *value);
        if given.next().is_some() { Err(self.unreadable(name)) } else { Ok(value) }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<Decimal>, UnreadableRecord> {
        value::number(self.get(name)?).map_err(|_| self.unreadable(name))
    }

    pub(super) fn code<T: FromStr>(&self, name: &str) -> Result<Option<Code<T>>, UnreadableRecord> {
        value::code(self.get(name)?).map_err(|_| self.unreadable(name))
    }

    /// Returns a text on which nothing rests, so that a value of another kind counts as absent.
    pub(super) fn note(&self, name: &str) -> Result<Option<String>, UnreadableRecord> {
        Ok(value::text(self.get(name)?).ok().flatten().map(Cow::into_owned))
    }

    /// Returns an identifier, written as a text or a number.
    pub(super) fn id(&self, name: &str) -> Result<Option<String>, UnreadableRecord> {
        Ok(self.get(name)?.and_then(envelope::order_id).map(Cow::into_owned))
    }

    pub(super) fn sym_id(&self) -> Result<SymId, UnreadableRecord> {
        let text = value::text(self.get("symId")?).ok().flatten();
        self.required("symId", text.and_then(|text| text.parse().ok()))
    }

    /// Returns the value of a field without which the record says nothing.
    pub(super) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, UnreadableRecord> {
        value.ok_or_else(|| self.unreadable(name))
    }
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}
