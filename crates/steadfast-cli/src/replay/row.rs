mod error;
mod lines;

use std::io::Cursor;

use bytes::Bytes;
use csv::{ByteRecord, ReaderBuilder, Trim};
use steadfast_spec::OrderRequest;

pub(crate) use self::error::{BadRow, HeaderError, RowError, RowErrorReason, UnendedRow};
use self::lines::{Lines, line_breaks};

/// The columns of an order file, each once, in any order.
pub(crate) const COLUMNS: [&str; 8] =
    ["symId", "qty", "side", "type", "product", "validity", "limitPrice", "trigPrice"];

/// Valid values that replace wrong cells while the others are checked.
const HARMLESS: [&str; 8] = ["EQT_X_EQ_NSE", "1", "buy", "market", "delivery", "day", "", ""];

/// Longer than any instrument, number or code.
const LONGEST: usize = 200;

/// Reads the rows of an order file (RFC 4180), one at a time.
pub(crate) struct Rows {
    reader: csv::Reader<Cursor<Bytes>>,
    lines: Lines,
    /// The position of each of [`COLUMNS`] in the file.
    places: [usize; 8],
    record: ByteRecord,
}

/// A row that can be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The line on which it begins, counted from 1.
    pub(crate) line: u64,
    pub(crate) order: OrderRequest,
}

impl Row {
    /// Returns a warning about a row that is placed nevertheless.
    pub(crate) fn warning(&self) -> Option<String> {
        let is_refused = self.order.is_eos_outside_bse();
        is_refused.then(|| format!("line {}: validity eos is for BSE only", self.line))
    }
}

impl Rows {
    pub(crate) fn new(file: impl Into<Bytes>) -> Result<Self, HeaderError> {
        let file = file.into();
        let lines = Lines::of(file.clone());
        let mut reader = ReaderBuilder::new().flexible(true).trim(Trim::All).from_reader(Cursor::new(file));
        let header = reader.byte_headers().map_err(|error| HeaderError::Unreadable(error.to_string()))?;
        let places =
            places(header).map_err(|error| separator_of(header).map_or(error, HeaderError::Separator))?;
        Ok(Self { reader, lines, places, record: ByteRecord::new() })
    }

    fn row(&self, line: u64) -> Result<Row, BadRow> {
        let bad = |errors| Err(BadRow { line, errors });
        let (fields, columns) = (self.record.len(), COLUMNS.len());
        if fields != columns {
            let ends_on = Some(self.lines.last(self.reader.position().byte())).filter(|&last| last > line);
            let reason = RowErrorReason::FieldCount { fields, columns, ends_on };
            return bad(vec![RowError { line, column: None, reason }]);
        }
        let mut errors = Vec::new();
        let mut cells = HARMLESS;
        for (name, cell) in cells.iter_mut().enumerate() {
            match std::str::from_utf8(&self.record[self.places[name]]) {
                Ok(text) => *cell = text,
                Err(_) => errors.push(self.error(line, name, RowErrorReason::Encoding(COLUMNS[name]))),
            }
        }
        for (name, cell) in cells.iter_mut().enumerate() {
            let characters = cell.chars().count();
            if characters > LONGEST {
                *cell = HARMLESS[name];
                let field = COLUMNS[name];
                errors.push(self.error(line, name, RowErrorReason::Length { field, characters }));
            }
        }
        for name in [1, 6, 7] {
            if has_exponent(cells[name]) {
                cells[name] = if name == 1 { HARMLESS[name] } else { "1" };
                errors.push(self.error(line, name, RowErrorReason::Exponent(COLUMNS[name])));
            }
        }
        // The order reports its first wrong field only, so that field is replaced and the others are checked.
        let order = loop {
            match OrderRequest::from_fields(COLUMNS.into_iter().zip(cells)) {
                Ok(order) => break order,
                Err(error) => {
                    let Some(name) = COLUMNS.iter().position(|column| *column == error.field()) else {
                        let reason = RowErrorReason::Order(error);
                        errors.push(RowError { line, column: None, reason });
                        return bad(errors);
                    };
                    // A missing price is replaced by a valid one, a wrong price by none.
                    cells[name] = if cells[name] == HARMLESS[name] { "1" } else { HARMLESS[name] };
                    errors.push(self.error(line, name, RowErrorReason::Order(error)));
                    if errors.len() > 2 * COLUMNS.len() {
                        return bad(errors);
                    }
                }
            }
        };
        // Which prices a row may have is known only if its type is right.
        if errors.iter().all(|error| error.column != Some(self.places[3] + 1)) {
            let order_type = order.order_type();
            let (limit, trigger) = (order_type.needs_limit_price(), order_type.needs_trig_price());
            for (name, has) in [(6, limit), (7, trigger)] {
                if !has && !self.cell(name).is_empty() {
                    let (field, order_type) = (COLUMNS[name], order_type.as_str());
                    errors.push(self.error(line, name, RowErrorReason::Price { field, order_type }));
                }
            }
        }
        if order.sym_id().shape().is_none() {
            errors.insert(0, self.error(line, 0, RowErrorReason::Shape));
        }
        // An empty price may be reported twice: for itself, and for its replacement.
        errors.sort_by_key(|error| error.column);
        errors.dedup_by_key(|error| error.column);
        if errors.is_empty() { Ok(Row { line, order }) } else { bad(errors) }
    }

    /// Returns a cell of the row that was read last.
    fn cell(&self, name: usize) -> &[u8] {
        self.record.get(self.places[name]).unwrap_or_default()
    }

    fn error(&self, line: u64, name: usize, reason: RowErrorReason) -> RowError {
        RowError { line, column: Some(self.places[name] + 1), reason }
    }
}

/// Refuses a file that does not end with a line break, blank or not.
pub(crate) fn refuse_unended(file: &[u8]) -> Result<(), UnendedRow> {
    match file.last() {
        None | Some(b'\n' | b'\r') => Ok(()),
        Some(_) => Err(UnendedRow { line: 1 + line_breaks(file) }),
    }
}

/// Returns true for `1e3` and the like, but not for texts that are no number anyway.
fn has_exponent(cell: &str) -> bool {
    cell.contains(['e', 'E']) && cell.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c))
}

fn places(header: &ByteRecord) -> Result<[usize; 8], HeaderError> {
    let mut found = [None; 8];
    for (place, cell) in header.iter().enumerate() {
        // A file from a spreadsheet may begin with a byte order mark.
        let cell = cell.strip_prefix(b"\xef\xbb\xbf").unwrap_or(cell);
        let (column, name) = (place + 1, String::from_utf8_lossy(cell).into_owned());
        let Some(known) = COLUMNS.iter().position(|known| *known == name) else {
            return Err(HeaderError::Unknown { column, name });
        };
        if found[known].replace(place).is_some() {
            return Err(HeaderError::Repeated { column, name });
        }
    }
    let mut places = [0; 8];
    for ((place, found), name) in places.iter_mut().zip(found).zip(COLUMNS) {
        *place = found.ok_or(HeaderError::Missing(name))?;
    }
    Ok(places)
}

/// Returns the character between the columns' names, if it is not a comma.
fn separator_of(header: &ByteRecord) -> Option<char> {
    let whole = header.iter().collect::<Vec<_>>().join(&b","[..]);
    let whole = String::from_utf8(whole).ok()?;
    [';', '\t', '|'].into_iter().find(|separator| {
        let mut names =
            whole.trim_start_matches('\u{feff}').split(*separator).map(|name| name.trim().trim_matches('"'));
        whole.contains(*separator) && names.all(|name| COLUMNS.contains(&name))
    })
}

impl Iterator for Rows {
    type Item = Result<Row, BadRow>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.reader.read_byte_record(&mut self.record);
        let line = self.lines.at(self.record.position().map_or(0, csv::Position::byte));
        match read {
            Ok(false) => None,
            Ok(true) => Some(self.row(line)),
            Err(error) => {
                let reason = RowErrorReason::Unreadable(error.to_string());
                Some(Err(BadRow { line, errors: vec![RowError { line, column: None, reason }] }))
            }
        }
    }
}

#[cfg(test)]
mod tests;
