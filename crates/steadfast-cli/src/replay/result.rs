use std::io::Write;

use serde::Serialize;
use steadfast::dedup::Resolution;

use super::row::BadRow;
use crate::placement::Placement;

/// Writes what became of each row, as soon as it is known.
pub(crate) struct Results<W: Write> {
    writer: csv::Writer<W>,
    pub(crate) counts: Counts,
}

/// How many rows ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) rows: usize,
    pub(crate) placed: usize,
    pub(crate) refused: usize,
    /// Rows that are no orders; nothing was sent for them.
    pub(crate) bad: usize,
    pub(crate) not_observed: usize,
    pub(crate) unresolved: usize,
}

#[derive(Serialize)]
struct Record<'a> {
    line: u64,
    status: &'a str,
    #[serde(rename = "orderId")]
    order_id: &'a str,
    resolution: &'a str,
    msg: &'a str,
}

impl<W: Write> Results<W> {
    pub(crate) fn new(into: W) -> Self {
        Self { writer: csv::Writer::from_writer(into), counts: Counts::default() }
    }

    /// Writes a row that was placed, or was not.
    pub(crate) fn ended(&mut self, line: u64, placement: &Placement) -> std::io::Result<()> {
        self.counts.rows += 1;
        let record = match placement {
            Placement::Placed { order_id, msg, resolution } => {
                self.counts.placed += 1;
                let resolution = resolution.as_ref().map_or("", word);
                Record { line, status: "placed", order_id, resolution, msg }
            }
            Placement::Refused { msg } => {
                self.counts.refused += 1;
                Record { line, status: "refused", order_id: "", resolution: "", msg }
            }
            Placement::NotObserved => {
                self.counts.not_observed += 1;
                let msg = "looked for and not there";
                Record { line, status: "not observed", order_id: "", resolution: "", msg }
            }
            Placement::Unresolved { reason } => {
                self.counts.unresolved += 1;
                Record { line, status: "unresolved", order_id: "", resolution: "", msg: reason }
            }
        };
        self.write(&record)
    }

    /// Writes a row that is no order.
    pub(crate) fn bad(&mut self, row: &BadRow) -> std::io::Result<()> {
        self.counts.rows += 1;
        self.counts.bad += 1;
        let errors: Vec<String> = row.errors.iter().map(|error| error.reason.to_string()).collect();
        self.write(&Record {
            line: row.line,
            status: "bad",
            order_id: "",
            resolution: "",
            msg: &errors.join("; "),
        })
    }

    fn write(&mut self, record: &Record<'_>) -> std::io::Result<()> {
        self.writer.serialize(record).map_err(std::io::Error::other)?;
        // What is known is written before the next order is placed.
        self.writer.flush()
    }
}

fn word(resolution: &Resolution) -> &'static str {
    match resolution {
        Resolution::Recovered { .. } => "recovered",
        Resolution::Resent => "resent",
        Resolution::Attached { .. } => "attached",
        _ => "resolved",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_csv_with_the_columns_of_the_contract() {
        let mut text = Vec::new();
        let mut results = Results::new(&mut text);
        let recovered = Resolution::Recovered { order_id: "7".to_owned(), status: None };
        let placed = Placement::Placed {
            order_id: "7".to_owned(),
            msg: "a, \"b\"".to_owned(),
            resolution: Some(recovered),
        };
        results.ended(2, &placed).unwrap();
        results.ended(3, &Placement::Unresolved { reason: "budget" }).unwrap();
        let counts = results.counts;
        drop(results);
        let lines = "line,status,orderId,resolution,msg\n2,placed,7,recovered,\"a, \"\"b\"\"\"\n3,unresolved,,,budget\n";
        assert_eq!(String::from_utf8(text).unwrap(), lines);
        assert_eq!((counts.rows, counts.placed, counts.unresolved), (2, 1, 1));
    }
}
