use std::{borrow::Cow, collections::BTreeMap, io::Write};

use serde::Serialize;

use crate::readable::{cell, composed, identifier, identifier_cell};

/// The columns of the results.
pub(crate) const COLUMNS: [&str; 5] = ["line", "status", "orderId", "resolution", "msg"];

/// One line of the results.
#[derive(Default)]
pub(super) struct Record<'a> {
    pub(super) line: Option<u64>,
    pub(super) status: &'a str,
    pub(super) order_id: &'a str,
    pub(super) resolution: &'a str,
    pub(super) msg: &'a str,
}

/// The end of a row, for `replay --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RowEnd {
    line: u64,
    status: String,
    #[serde(rename = "orderId")]
    order_id: Option<String>,
    /// How the row was placed, if its first answer did not say so.
    resolution: Option<String>,
    msg: String,
}

impl RowEnd {
    /// Returns the row's line if what became of its order is not known.
    pub(crate) fn open_line(&self) -> Option<u64> {
        matches!(self.status.as_str(), "unresolved" | "not observed").then_some(self.line)
    }
}

/// The results as CSV, and the end of each row.
pub(super) struct Sheet<W: Write> {
    writer: csv::Writer<W>,
    /// True for a rehearsal. Each row says so, because the file may be read without knowledge of the run.
    is_rehearsal: bool,
    ends: BTreeMap<u64, RowEnd>,
}

impl<W: Write> Sheet<W> {
    /// Writes the header at once, so that a file without rows has one too.
    pub(super) fn new(into: W, is_rehearsal: bool) -> std::io::Result<Self> {
        let mut writer = csv::Writer::from_writer(into);
        writer.write_record(COLUMNS).map_err(std::io::Error::other)?;
        writer.flush()?;
        Ok(Self { writer, is_rehearsal, ends: BTreeMap::new() })
    }

    /// Writes what was learned of an order beyond its row's result, on a line of its own.
    pub(super) fn add(&mut self, record: &Record<'_>) -> std::io::Result<()> {
        let line = record.line.map(|line| line.to_string()).unwrap_or_default();
        let msg = self.marked(record.msg);
        let (order_id, msg) = (identifier_cell(record.order_id), cell(&msg));
        self.writer
            .write_record([&line, record.status, &order_id, record.resolution, &msg])
            .map_err(std::io::Error::other)?;
        // Results are flushed before the next order is placed.
        self.writer.flush()
    }

    /// Writes the result of a row. The last one holds.
    pub(super) fn end(&mut self, record: &Record<'_>) -> std::io::Result<()> {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        if let Some(line) = record.line {
            let end = RowEnd {
                line,
                status: record.status.to_owned(),
                order_id: some(&identifier(record.order_id)),
                resolution: some(record.resolution),
                msg: composed(&self.marked(record.msg)).into_owned(),
            };
            self.ends.insert(line, end);
        }
        self.add(record)
    }

    /// Returns the end of each row so far, by line.
    pub(super) fn ends(&self) -> impl Iterator<Item = &RowEnd> {
        self.ends.values()
    }

    fn marked<'a>(&self, msg: &'a str) -> Cow<'a, str> {
        if self.is_rehearsal { format!("REHEARSAL: {msg}").into() } else { msg.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c09_the_last_result_of_a_row_is_its_end() {
        let mut sheet = Sheet::new(Vec::new(), false).unwrap();
        for (status, msg) in [("not sent", "halted"), ("unresolved", "budget")] {
            sheet.end(&Record { line: Some(7), status, msg, ..Record::default() }).unwrap();
        }
        let ends: Vec<_> = sheet.ends().map(|end| (end.line, &*end.status, &*end.msg)).collect();
        assert_eq!(ends, [(7, "unresolved", "budget")]);
    }
}
