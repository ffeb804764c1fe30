use std::{error::Error, fmt, io::Cursor};

use bytes::Bytes;
use csv::{ByteRecord, ReaderBuilder, Trim};
use steadfast_spec::{InvalidOrder, OrderRequest};

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

/// Counts lines as an editor does; the CSV reader assigns blank lines and the second half of a line break to the
/// next row.
struct Lines {
    file: Bytes,
    counted: usize,
    line: u64,
}

/// A row that can be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The line on which it begins, counted from 1.
    pub(crate) line: u64,
    pub(crate) order: OrderRequest,
}

/// A row that cannot be placed, with all its errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadRow {
    pub(crate) line: u64,
    pub(crate) errors: Vec<RowError>,
}

/// One error in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowError {
    pub(crate) line: u64,
    /// The column, counted from 1; `None` if the row as a whole is wrong.
    pub(crate) column: Option<usize>,
    pub(crate) reason: RowErrorReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowErrorReason {
    /// A field breaks a rule of §4.4.
    Order(InvalidOrder),
    /// The instrument has none of the three forms of §2.
    Shape,
    /// A field is longer than any valid value: a quote is missing, or it is another kind of file.
    Length { field: &'static str, characters: usize },
    /// A number has an exponent: `1e3` is easily misread.
    Exponent(&'static str),
    /// A price that an order of this type does not have; the author probably meant another type.
    Price { field: &'static str, order_type: &'static str },
    /// A field is not UTF-8.
    Encoding(&'static str),
    /// There are more or fewer fields than columns; one of them may contain line breaks.
    FieldCount { fields: usize, columns: usize, ends_on: Option<u64> },
    /// The rest of the file cannot be read.
    Unreadable(String),
}

/// A first row that does not name the columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Missing(&'static str),
    Unknown {
        column: usize,
        name: String,
    },
    Repeated {
        column: usize,
        name: String,
    },
    /// The names are there, but the separator is not a comma.
    Separator(char),
    Unreadable(String),
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
        let lines = Lines { file: file.clone(), counted: 0, line: 1 };
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

impl Lines {
    /// Returns the line of the first row that begins at or after `from`, past line breaks.
    fn at(&mut self, from: u64) -> u64 {
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(self.file.len());
        let breaks = self.file[from..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let passed = self.file.get(self.counted..from + breaks).unwrap_or_default();
        self.line += line_breaks(passed);
        self.counted = self.counted.max(from + breaks);
        self.line
    }

    /// Returns the line on which the last row ends, if the next one begins at `end`.
    fn last(&self, end: u64) -> u64 {
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(self.file.len());
        self.line + line_breaks(self.file.get(self.counted..end).unwrap_or_default().trim_ascii_end())
    }
}

/// Counts line breaks. A single CR is one, because the CSV reader ends rows there, and a row's line names its order.
fn line_breaks(bytes: &[u8]) -> u64 {
    let is_break = |(at, byte): (usize, &u8)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    bytes.iter().enumerate().filter(|&one| is_break(one)).count() as u64
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

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl fmt::Display for RowErrorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order(error) => error.fmt(f),
            Self::Shape => f.write_str("symId has none of the shapes EQT_…, FUT_…, OPT_…"),
            Self::Length { field, characters } => {
                write!(f, "{field} has {characters} characters, and no {field} has more than {LONGEST}")
            }
            Self::Exponent(name) => write!(f, "{name} has an exponent; write it in digits"),
            Self::Price { field, order_type } => {
                write!(
                    f,
                    "{field} is no part of an order of type {order_type}; leave it empty, or correct the type"
                )
            }
            Self::Encoding(name) => write!(f, "{name} is not utf-8"),
            Self::FieldCount { fields, columns, ends_on } => {
                let s = if *fields == 1 { "" } else { "s" };
                write!(f, "row has {fields} field{s} instead of {columns}")?;
                ends_on.map_or(Ok(()), |line| {
                    write!(f, "; it ends on line {line}, as if a quote were not closed")
                })
            }
            Self::Unreadable(error) => write!(f, "row cannot be read: {error}"),
        }
    }
}

impl Error for RowError {}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("line 1")?;
        match self {
            Self::Missing(name) => write!(f, ": header lacks the column {name}"),
            Self::Unknown { column, name } => {
                write!(f, ", column {column}: {name:?} is none of {}", COLUMNS.join(", "))
            }
            Self::Repeated { column, name } => write!(f, ", column {column}: {name} is there twice"),
            Self::Separator(separator) => {
                write!(
                    f,
                    ": columns are separated by {separator:?} instead of a comma; save the file with commas"
                )
            }
            Self::Unreadable(error) => write!(f, ": header cannot be read: {error}"),
        }
    }
}

impl Error for HeaderError {}

#[cfg(test)]
mod tests {
    use steadfast_spec::{AssetClass, OrderType, Product, Side, Validity};

    use super::*;

    const HEADER: &str = "symId,qty,side,type,product,validity,limitPrice,trigPrice\n";

    fn read(rows: &[u8]) -> Vec<Result<Row, BadRow>> {
        Rows::new([HEADER.as_bytes(), rows].concat()).unwrap().collect()
    }

    fn errors(row: &str) -> Vec<String> {
        match read(row.as_bytes()).remove(0) {
            Ok(row) => panic!("{row:?}"),
            Err(bad) => bad.errors.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn c08_every_wrong_field_is_named_by_line_and_column() {
        for (row, named) in [
            ("INFY,1,buy,market,intraday,day,,", "line 2, column 1: symId has none of the shapes"),
            (",1,buy,market,intraday,day,,", "line 2, column 1: symId is required"),
            (
                &*format!("EQT_{}_EQ_NSE,1,buy,market,intraday,day,,", "X".repeat(70_000)),
                "line 2, column 1: symId has 70011 characters",
            ),
            ("EQT_INFY_EQ_NSE,ten,buy,market,intraday,day,,", "line 2, column 2: qty is not a decimal"),
            ("EQT_INFY_EQ_NSE,0,buy,market,intraday,day,,", "line 2, column 2: qty"),
            ("EQT_INFY_EQ_NSE,-5,buy,market,intraday,day,,", "line 2, column 2: qty"),
            ("EQT_INFY_EQ_NSE,1,BUY,market,intraday,day,,", "line 2, column 3: side is not one of buy, sell"),
            ("EQT_INFY_EQ_NSE,1,buy,mkt,intraday,day,,", "line 2, column 4: type is not one of"),
            ("EQT_INFY_EQ_NSE,1,buy,market,cnc,day,,", "line 2, column 5: product is not one of"),
            ("EQT_INFY_EQ_NSE,1,buy,market,intraday,DAY,,", "line 2, column 6: validity is not one of"),
            ("EQT_INFY_EQ_NSE,1,buy,limit,intraday,day,,", "line 2, column 7: limitPrice is required"),
            ("EQT_INFY_EQ_NSE,1,buy,limit,intraday,day,x,", "line 2, column 7: limitPrice is not a decimal"),
            ("EQT_INFY_EQ_NSE,1,buy,stopmarket,intraday,day,,", "line 2, column 8: trigPrice is required"),
            ("EQT_INFY_EQ_NSE,1e3,buy,market,intraday,day,,", "line 2, column 2: qty has an exponent"),
            (
                "EQT_INFY_EQ_NSE,1,buy,limit,intraday,day,1.5E2,",
                "line 2, column 7: limitPrice has an exponent",
            ),
            (
                "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,1500,",
                "line 2, column 7: limitPrice is no part of an order of type market",
            ),
            (
                "EQT_INFY_EQ_NSE,1,buy,limit,intraday,day,1500,1400",
                "line 2, column 8: trigPrice is no part of an order of type limit",
            ),
            ("EQT_INFY_EQ_NSE,1,buy,market,intraday,day,", "line 2: row has 7 fields instead of 8"),
        ] {
            let errors = errors(row);
            assert!(errors.len() == 1 && errors[0].starts_with(named), "{row}: {errors:?}");
        }
    }

    #[test]
    fn all_wrong_fields_of_a_row_are_named_at_once() {
        let errors = errors("x,0,up,stoplimit,cnc,DAY,,-1");
        let columns: Vec<&str> = errors.iter().map(|error| error.split(':').next().unwrap()).collect();
        let expected: Vec<String> =
            [1, 2, 3, 5, 6, 7, 8].iter().map(|column| format!("line 2, column {column}")).collect();
        assert_eq!(columns, expected, "{errors:?}");
    }

    #[test]
    fn a_bad_row_does_not_end_the_file_and_lines_are_those_of_an_editor() {
        let rows = b"EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n\
            \n\
            \"EQT_TCS_EQ_NSE\",\"1\",\"sell\",\"limit\",\"delivery\",\"gtc\",\"3,400\",\n\
            EQT_\xff_EQ_NSE,1,buy,market,intraday,day,,\r\n\
            EQT_ITC_EQ_BSE,2,sell,stoplimit,delivery,eos,430.05,431\r\n";
        let rows = read(rows);
        let lines: Vec<(u64, bool)> = rows
            .iter()
            .map(|row| match row {
                Ok(row) => (row.line, true),
                Err(bad) => (bad.line, false),
            })
            .collect();
        assert_eq!(lines, [(2, true), (4, false), (5, false), (6, true)]);
        let Err(bad) = &rows[2] else { panic!("bytes that are no text") };
        assert_eq!(bad.errors[0].to_string(), "line 5, column 1: symId is not utf-8");
    }

    #[test]
    fn columns_may_stand_in_any_order_but_must_all_be_there() {
        let file = "\u{feff}side,symId,qty,type,product,validity,trigPrice,limitPrice\nup,EQT_INFY_EQ_NSE,1,market,intraday,day,,\n";
        let Err(bad) = Rows::new(file.as_bytes()).unwrap().next().unwrap() else { panic!("side is wrong") };
        assert_eq!(bad.errors[0].column, Some(1));
        for (header, named) in [
            ("", "line 1: header lacks the column symId"),
            ("symId,qty", "line 1: header lacks the column side"),
            ("symId,Qty", "line 1, column 2: \"Qty\" is none of"),
            ("symId,symId", "line 1, column 2: symId is there twice"),
            ("symId;qty;side", "line 1: columns are separated by ';' instead of a comma"),
            ("\u{feff}symId\tqty", "line 1: columns are separated by '\\t' instead of a comma"),
        ] {
            let Err(error) = Rows::new(header.as_bytes()) else { panic!("{header}") };
            assert!(error.to_string().starts_with(named), "{error}");
        }
    }

    #[test]
    fn the_example_files_are_whole_and_hold_every_code() {
        for (file, least) in [
            (&include_bytes!("../../../../examples/data/orders.csv")[..], 1_000),
            (&include_bytes!("../../../../examples/data/orders-40.csv")[..], 40),
        ] {
            let rows: Vec<Row> = Rows::new(file).unwrap().collect::<Result<_, _>>().unwrap();
            assert!(rows.len() >= least, "{}", rows.len());
            assert!(rows.iter().all(|row| !row.order.is_eos_outside_bse()));
            let has = |is: &dyn Fn(&OrderRequest) -> bool| rows.iter().any(|row| is(&row.order));
            assert!(OrderType::ALL.iter().all(|code| has(&|order| order.order_type() == *code)));
            assert!(Product::ALL.iter().all(|code| has(&|order| order.product() == *code)));
            assert!(Validity::ALL.iter().all(|code| has(&|order| order.validity() == *code)));
            assert!(Side::ALL.iter().all(|code| has(&|order| order.side() == *code)));
            let classes = [AssetClass::Equity, AssetClass::Future, AssetClass::Option];
            assert!(classes.iter().all(|class| has(&|order| order.sym_id().asset_class() == Some(*class))));
        }
    }

    #[test]
    fn an_unclosed_quote_is_one_bad_row_and_no_order() {
        let rows = read(
            b"\"EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\nEQT_TCS_EQ_NSE,1,buy,market,intraday,day,,\n",
        );
        let [Err(bad)] = rows.as_slice() else { panic!("{rows:?}") };
        let named = "line 2: row has 1 field instead of 8; it ends on line 3, as if a quote were not closed";
        assert_eq!(bad.errors[0].to_string(), named);
    }

    /// Rows on the same line had the same name: the second was reported as placed but was not.
    #[test]
    fn rows_that_a_cr_alone_parts_are_on_lines_of_their_own() {
        let row = "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,";
        for (file, lines) in [
            (format!("{}\r{row}\r{row}\r\r{row}\r", HEADER.trim()), [2, 3, 5]),
            (format!("{HEADER}{row}\r{row}\n{row}\r\n"), [2, 3, 4]),
            (format!("{HEADER}{row}\r\n\r\n{row}\r\n{row}"), [2, 4, 5]),
        ] {
            let rows: Vec<Row> = Rows::new(file.clone()).unwrap().collect::<Result<_, _>>().unwrap();
            assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), lines, "{file:?}");
        }
    }
}
