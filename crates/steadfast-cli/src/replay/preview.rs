use super::row::Rows;
use crate::exit::print_note;

/// The contents of a file, before any order is placed.
pub(super) struct Preview {
    /// The lines of the orders.
    pub(super) lines: Vec<u64>,
    pub(super) bad: usize,
    /// The errors of the first bad rows.
    first: Vec<String>,
    /// The line of the last of those.
    last: u64,
}

impl Preview {
    /// How many bad rows are shown before the question.
    const SHOWN: usize = 3;

    pub(super) fn of(rows: Rows) -> Self {
        let mut preview = Self { lines: Vec::new(), bad: 0, first: Vec::new(), last: 0 };
        for row in rows {
            match row {
                Ok(row) => preview.lines.push(row.line),
                Err(bad) => {
                    preview.bad += 1;
                    if preview.bad <= Self::SHOWN {
                        preview.first.extend(bad.errors.iter().map(ToString::to_string));
                        preview.last = bad.line;
                    }
                }
            }
        }
        preview
    }

    /// Returns the contents of a file with orders in these lines, and with this many bad rows.
    #[cfg(test)]
    pub(super) fn with(lines: impl IntoIterator<Item = u64>, bad: usize) -> Self {
        Self { lines: lines.into_iter().collect(), bad, first: Vec::new(), last: 0 }
    }

    /// Prints which rows are not orders. Returns the last line whose faults it names.
    pub(super) fn warn(&self) -> u64 {
        let Self { lines, bad, first, last } = self;
        if *bad > 0 {
            print_note(format_args!("{bad} of {} rows are bad, and are not placed:", lines.len() + bad));
            first.iter().for_each(|error| print_note(format_args!("  {error}")));
            if *bad > Self::SHOWN {
                print_note(format_args!("  and {} more; --check names them all", bad - Self::SHOWN));
            }
        }
        *last
    }
}
