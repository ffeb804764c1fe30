use std::{collections::BTreeMap, fmt};

use super::{known::End, preview::Preview};
use crate::row_name;

/// The rows of a file, by what a run does with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// They are sent, for the first time or after a refusal.
    pub(super) to_send: usize,
    /// Their orders were placed by earlier runs.
    placed: usize,
    /// It is not known what became of their orders.
    doubtful: usize,
    /// They are no orders.
    bad: usize,
    /// True if an order in doubt is sent once more if it is not there.
    again: bool,
}

impl Plan {
    /// Plans by the ends that the journal knows of the rows' orders.
    pub(super) fn of(preview: &Preview, ends: &BTreeMap<String, End>, again: bool) -> Self {
        let mut plan = Self { to_send: 0, placed: 0, doubtful: 0, bad: preview.bad, again };
        for line in &preview.lines {
            let ends = [row_name::of_first(*line), row_name::of_second(*line)].map(|name| ends.get(&name));
            let is_placed = ends.iter().flatten().any(|end| matches!(end, End::Placed(_)));
            let count = match is_placed {
                true => &mut plan.placed,
                false if ends.contains(&Some(&End::Open)) => &mut plan.doubtful,
                false => &mut plan.to_send,
            };
            *count += 1;
        }
        plan
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { to_send, placed, doubtful, bad, again } = self;
        let rows = to_send + placed + doubtful + bad;
        let look = match (doubtful, again) {
            (0, _) => "",
            (_, false) => " (only looked for)",
            (_, true) => " (looked for, and sent once more if not there)",
        };
        let left_out = if *bad > 0 { " (left out)" } else { "" };
        write!(
            f,
            "rows {rows}: to send {to_send}, placed by earlier runs {placed}, in doubt {doubtful}{look}, bad {bad}{left_out}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_counted_once_by_what_the_run_does_with_it() {
        let ends = [
            ("line-2", End::Placed("7".to_owned())),
            ("line-3", End::Open),
            ("line-4", End::NotPlaced),
            ("line-5", End::Refused),
            ("line-6", End::NotPlaced),
            ("line-6-again", End::Placed("8".to_owned())),
            ("line-7", End::NotPlaced),
            ("line-7-again", End::Open),
        ];
        let ends = ends.map(|(name, end)| (name.to_owned(), end)).into();
        let preview = Preview::with(2..=8, 3);
        let said = Plan::of(&preview, &ends, false).to_string();
        let counts =
            "rows 10: to send 3, placed by earlier runs 2, in doubt 2 (only looked for), bad 3 (left out)";
        assert_eq!(said, counts);
        let said = Plan::of(&Preview::with(9..=9, 0), &ends, true).to_string();
        assert_eq!(said, "rows 1: to send 1, placed by earlier runs 0, in doubt 0, bad 0");
    }
}
