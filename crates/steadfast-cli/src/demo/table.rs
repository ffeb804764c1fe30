use std::fmt;

use super::tally::Tally;

/// The result as a text table: one column a client, one row a figure.
pub(crate) struct Table<'a>(pub(crate) &'a [(&'a str, &'a Tally)]);

/// A row's label, and its cell for a client.
type Row = (&'static str, fn(&Tally) -> String);

const ROWS: [Row; 15] = [
    ("orders asked for", |t| t.orders.asked.to_string()),
    ("  placed", |t| t.orders.placed.to_string()),
    ("  duplicated", |t| t.orders.duplicated.to_string()),
    ("  lost", |t| t.orders.lost.to_string()),
    ("  unresolved", |t| t.orders.unresolved.to_string()),
    ("went in doubt", |t| t.orders.went_in_doubt.to_string()),
    ("  recovered", |t| t.orders.recovered.to_string()),
    ("429s", |t| t.http_429.to_string()),
    ("requests on the wire", |t| t.wire_requests.to_string()),
    ("place-order quota used", |t| format!("{:.1} %", t.quota_used_pct.place_order)),
    ("general quota used", |t| format!("{:.1} %", t.quota_used_pct.general)),
    ("cancel on the wire after, median", |t| milliseconds(t.cancel_wait_ms.p50)),
    ("  p99", |t| milliseconds(t.cancel_wait_ms.p99)),
    ("cancel within quota after, median", |t| milliseconds(t.cancel_admitted_ms.p50)),
    ("  p99", |t| milliseconds(t.cancel_admitted_ms.p99)),
];

impl Table<'_> {
    /// Returns the rows with their cells.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        ROWS.iter().map(|(name, show)| (*name, self.0.iter().map(|(_, tally)| show(tally)).collect()))
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = ROWS.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let column = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or_default().max(10);
        write!(f, "{:label$}", "")?;
        for (name, _) in self.0 {
            write!(f, "  {name:>column$}")?;
        }
        for (name, cells) in self.rows() {
            write!(f, "\n{name:label$}")?;
            for cell in cells {
                write!(f, "  {cell:>column$}")?;
            }
        }
        Ok(())
    }
}

pub(crate) fn milliseconds(wait: f64) -> String {
    match wait {
        wait if wait < 10.0 => format!("{wait:.1} ms"),
        wait if wait < 1_000.0 => format!("{wait:.0} ms"),
        wait => format!("{:.2} s", wait / 1_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            quota::Share,
            tally::{Orders, Quantiles},
        },
        *,
    };

    #[test]
    fn columns_are_clients_and_cells_are_aligned_to_the_right() {
        let tally = Tally {
            orders: Orders { asked: 300, placed: 300, ..Orders::default() },
            http_429: 12,
            wire_requests: 450,
            quota_used_pct: Share { general: 41.25, place_order: 98.0 },
            cancel_wait_ms: Quantiles { p50: 1.25, p99: 1_234.5 },
            cancel_admitted_ms: Quantiles { p50: 123.4, p99: 9.96 },
        };
        let text = Table(&[("steadfast", &tally), ("checks once", &tally)]).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 16);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["steadfast", "checks", "once"]);
        assert!(lines[1].ends_with("          300          300"), "{text}");
        assert!(lines[12].contains("1.2 ms") && lines[13].contains("1.23 s"), "{text}");
        assert!(lines[14].contains("123 ms") && lines[15].contains("10.0 ms"), "{text}");
    }
}
