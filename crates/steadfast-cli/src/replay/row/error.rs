use std::{error::Error, fmt};

use steadfast_spec::InvalidOrder;

use super::{COLUMNS, LONGEST};

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

/// A last row without a line end: the file may be cut within it, and the beginning of a number is a number too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnendedRow {
    pub(crate) line: u64,
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

impl fmt::Display for UnendedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line } = self;
        write!(
            f,
            "line {line} has no line end, so that the file may be cut within it; if it is whole, end it with a line break"
        )
    }
}

impl Error for UnendedRow {}
