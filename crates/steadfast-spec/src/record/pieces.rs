use serde_json::value::RawValue;

use super::{FieldNames, OrderRecord, UnreadableRecord, parse_order_list};

/// The answer to `GET /api/oms/orders`, read a few records at a time by whoever shares a thread with others.
///
/// As with [`parse_order_list`], which it agrees with, what was read counts only once all of it was: [`read`](Self::read)
/// may find out at the end that it is no list.
#[derive(Debug)]
pub struct OrderListReader<'a> {
    body: &'a [u8],
    /// What was not looked at yet.
    rest: &'a str,
    names: &'a FieldNames,
    state: State,
    /// `s` was there, and was `ok`.
    ok: bool,
    /// `d` was there, and was an array.
    d: bool,
    /// `msg` was there.
    msg: bool,
    /// Records were read.
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
    /// Behind the envelope.
    End,
}

/// Something that is not the answer of every day; `parse_order_list` knows what to make of it.
struct Unusual;

impl<'a> OrderListReader<'a> {
    /// Reads nothing yet.
    ///
    /// # Errors
    ///
    /// [`UnreadableRecord`] if the body is no text.
    pub fn new(body: &'a [u8], names: &'a FieldNames) -> Result<Self, UnreadableRecord> {
        let rest = std::str::from_utf8(body).map_err(|_| UnreadableRecord::new("s"))?;
        Ok(Self { body, rest, names, state: State::Start, ok: false, d: false, msg: false, some: false })
    }

    /// The next records, at most so many; fewer only at the end.
    ///
    /// # Errors
    ///
    /// [`UnreadableRecord`] naming what cannot be read.
    pub fn read(&mut self, most: usize) -> Result<Vec<OrderRecord>, UnreadableRecord> {
        let mut records = Vec::new();
        while self.state != State::End && records.len() < most {
            match self.step() {
                Ok(Some(raw)) => {
                    self.some = true;
                    records.push(OrderRecord::parse(raw, self.names)?);
                }
                Ok(None) => {}
                // Nothing was given out, so all of it is: an error of the service, an empty list, or nothing that is read.
                Err(Unusual) if !self.some => {
                    self.state = State::End;
                    return parse_order_list(self.body, self.names);
                }
                Err(Unusual) => return Err(UnreadableRecord::new("s")),
            }
        }
        Ok(records)
    }

    /// Goes on by one field or record.
    fn step(&mut self) -> Result<Option<&'a RawValue>, Unusual> {
        let ends = match self.state {
            State::Fields => self.is_next('}'),
            State::Records => self.is_next(']'),
            State::Start | State::End => false,
        };
        match self.state {
            State::Start => {
                self.rest = self.rest.trim_ascii_start();
                self.skip('{')?;
                self.state = State::Fields;
            }
            State::Fields if ends => {
                self.skip('}')?;
                let ended = self.rest.trim_ascii_start().is_empty();
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
            // Twice, or of another kind.
            "d" | "s" | "msg" => return Err(Unusual),
            _ => drop(self.value()?),
        }
        self.separate('}')
    }

    /// Whatever stands next.
    fn value(&mut self) -> Result<&'a RawValue, Unusual> {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<&RawValue>();
        let Some(Ok(raw)) = values.next() else { return Err(Unusual) };
        self.rest = self.rest.get(values.byte_offset()..).ok_or(Unusual)?;
        Ok(raw)
    }

    /// A comma with something behind it, or the end.
    fn separate(&mut self, end: char) -> Result<(), Unusual> {
        if self.is_next(',') {
            self.skip(',')?;
            return if self.is_next(end) { Err(Unusual) } else { Ok(()) };
        }
        if self.is_next(end) { Ok(()) } else { Err(Unusual) }
    }

    fn is_next(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.starts_with(c)
    }

    fn skip(&mut self, c: char) -> Result<(), Unusual> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest = self.rest.strip_prefix(c).ok_or(Unusual)?;
        Ok(())
    }
}
