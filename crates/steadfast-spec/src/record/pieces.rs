use serde_json::value::RawValue;

use super::{FieldNames, OrderRecord, UnreadableRecord, parse_order_list};

/// Reads the answer to `GET /api/oms/orders` a few records at a time, for callers that must not block their thread for
/// long.
///
/// It agrees with [`parse_order_list`]. The records count only once all have been read: [`read`](Self::read) may find
/// at the end that the body is not a list.
#[derive(Debug)]
pub struct OrderListReader<'a> {
    body: &'a [u8],
    /// The part that was not read yet.
    rest: &'a str,
    names: &'a FieldNames,
    state: State,
    /// `s` has been read, and is `ok`.
    ok: bool,
    /// `d` has been read, and is an array.
    d: bool,
    /// `msg` has been read.
    msg: bool,
    /// Records have been returned.
    some: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the envelope.
    Start,
    /// Before a field, or its end.
    Fields,
    /// In the array of records.
    Records,
    /// After the envelope.
    End,
}

/// The blanks of JSON: a form feed is none.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// An unusual answer, which is left to `parse_order_list`.
struct Unusual;

impl<'a> OrderListReader<'a> {
    /// Creates a reader; nothing is read yet.
    ///
    /// # Errors
    ///
    /// [`UnreadableRecord`] if the body is not UTF-8.
    pub fn new(body: &'a [u8], names: &'a FieldNames) -> Result<Self, UnreadableRecord> {
        let rest = std::str::from_utf8(body).map_err(|_| UnreadableRecord::new("s"))?;
        Ok(Self { body, rest, names, state: State::Start, ok: false, d: false, msg: false, some: false })
    }

    /// Returns the next records, at most `most` and at least one; fewer only at the end.
    ///
    /// # Errors
    ///
    /// [`UnreadableRecord`], which names what cannot be read.
    pub fn read(&mut self, most: usize) -> Result<Vec<OrderRecord>, UnreadableRecord> {
        let most = most.max(1);
        let mut records = Vec::new();
        while self.state != State::End && records.len() < most {
            match self.step() {
                Ok(Some(raw)) => {
                    self.some = true;
                    records.push(OrderRecord::parse(raw, self.names)?);
                }
                Ok(None) => {}
                // No record was returned yet, so read the whole answer at once: it is an error of the service, an empty
                // list, or unreadable.
                Err(Unusual) if !self.some => {
                    self.state = State::End;
                    return parse_order_list(self.body, self.names);
                }
                Err(Unusual) => return Err(UnreadableRecord::new("s")),
            }
        }
        Ok(records)
    }

    /// Advances by one field or record.
    fn step(&mut self) -> Result<Option<&'a RawValue>, Unusual> {
        let ends = match self.state {
            State::Fields => self.is_next('}'),
            State::Records => self.is_next(']'),
            State::Start | State::End => false,
        };
        match self.state {
            State::Start => {
                self.skip('{')?;
                self.state = State::Fields;
            }
            State::Fields if ends => {
                self.skip('}')?;
                let ended = self.rest.trim_start_matches(BLANKS).is_empty();
                if !(ended && self.ok && self.d && self.some) {
                    return Err(Unusual);
                }
                self.state = State::End;
            }
            State::Fields => return self.field().map(|()| None),
            State::Records if ends => {
                self.skip(']')?;
                self.separate('}')?;
                self.state = State::Fields;
            }
            State::Records => {
                let raw = self.value()?;
                self.separate(']')?;
                return Ok(Some(raw));
            }
            State::End => {}
        }
        Ok(None)
    }

    fn field(&mut self) -> Result<(), Unusual> {
        let name: String = serde_json::from_str(self.value()?.get()).map_err(|_| Unusual)?;
        self.skip(':')?;
        match &*name {
            "d" if !self.d && self.is_next('[') => {
                self.skip('[')?;
                (self.d, self.state) = (true, State::Records);
                return Ok(());
            }
            "s" if !self.ok => {
                let s: String = serde_json::from_str(self.value()?.get()).map_err(|_| Unusual)?;
                self.ok = s == "ok";
                if !self.ok {
                    return Err(Unusual);
                }
            }
            "msg" if !self.msg => {
                self.msg = true;
                self.value()?;
            }
            // The field is repeated, or of another kind.
            "d" | "s" | "msg" => return Err(Unusual),
            _ => drop(self.value()?),
        }
        self.separate('}')
    }

    /// Reads the next value.
    fn value(&mut self) -> Result<&'a RawValue, Unusual> {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<&RawValue>();
        let Some(Ok(raw)) = values.next() else { return Err(Unusual) };
        self.rest = self.rest.get(values.byte_offset()..).ok_or(Unusual)?;
        Ok(raw)
    }

    /// Reads a comma with another element after it, or the end.
    fn separate(&mut self, end: char) -> Result<(), Unusual> {
        if self.is_next(',') {
            self.skip(',')?;
            return if self.is_next(end) { Err(Unusual) } else { Ok(()) };
        }
        if self.is_next(end) { Ok(()) } else { Err(Unusual) }
    }

    fn is_next(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start_matches(BLANKS);
        self.rest.starts_with(c)
    }

    fn skip(&mut self, c: char) -> Result<(), Unusual> {
        self.rest = self.rest.trim_start_matches(BLANKS);
        self.rest = self.rest.strip_prefix(c).ok_or(Unusual)?;
        Ok(())
    }
}
