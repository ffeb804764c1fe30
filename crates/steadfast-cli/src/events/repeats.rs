//! Events that were told before.

use std::collections::BTreeSet;

use super::Seen;

/// The kinds of events that say that a row is in doubt.
const DOUBTS: [&str; 3] = ["conflict", "ack_not_listed", "refusal_unconfirmed"];

/// The event of events that were lost. It never repeats another one.
pub(super) const MISSED: &str = "missed";

/// The events that a run has told.
#[derive(Debug, Default)]
pub(crate) struct ToldBefore(Vec<Seen>);

impl ToldBefore {
    /// Returns true if the event was told, and none of another kind about its order since. It counts as told from now on.
    pub(crate) fn is_repeat(&mut self, seen: &Seen) -> bool {
        let of_order =
            self.0.iter().rev().filter(|told| told.intent == seen.intent && told.name == seen.name);
        let is_repeat = of_order
            .take_while(|told| told.event == seen.event)
            .any(|told| told.event != MISSED && told.is_same(seen));
        if !is_repeat {
            self.0.push(seen.clone());
        }
        is_repeat
    }
}

/// Returns each event once, where it was told last, so that a correction stands behind the event that it corrects. That
/// one says that it is corrected.
pub(super) fn once_each(events: Vec<Seen>) -> Vec<Seen> {
    let (mut told, mut corrected) = (BTreeSet::new(), BTreeSet::new());
    let mut once = Vec::with_capacity(events.len());
    for mut seen in events.into_iter().rev() {
        let is_new = told.insert(format!("{:?}", Seen { at: 0, ..seen.clone() }));
        if !is_new && seen.event != MISSED {
            continue;
        }
        let order = (seen.name.clone(), seen.intent);
        if seen.event == "corrected" {
            corrected.insert(order);
        } else if DOUBTS.contains(&&*seen.event) && corrected.contains(&order) {
            seen.msg += "; corrected below";
        }
        once.push(seen);
    }
    once.reverse();
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(event: &str, order_id: &str, at: u64) -> Seen {
        let (event, order_id, msg) = (event.to_owned(), Some(order_id.to_owned()), String::new());
        Seen { at, event, name: Some("line-2".to_owned()), intent: Some(0), order_id, msg, other: false }
    }

    /// Regression: each run and each `orders verify` told of the same order again, and `orders events` listed it as often.
    #[test]
    fn an_event_of_several_runs_is_listed_once_and_its_correction_behind_it() {
        let events = vec![
            seen("excess", "7", 1),
            seen("conflict", "8", 1),
            seen("corrected", "9", 1),
            seen("excess", "7", 2),
            seen("conflict", "8", 2),
            seen("corrected", "9", 2),
            seen("excess", "6", 2),
        ];
        let once = once_each(events);
        let listed: Vec<_> =
            once.iter().map(|seen| (&*seen.event, seen.order_id.as_deref().unwrap())).collect();
        assert_eq!(listed, [("excess", "7"), ("conflict", "8"), ("corrected", "9"), ("excess", "6")]);
        assert_eq!(once.iter().filter(|seen| seen.msg.ends_with("corrected below")).count(), 1);
        let again = once_each(vec![seen("corrected", "9", 1), seen("conflict", "8", 2)]);
        assert_eq!(again[1].msg, "", "the doubt came after the correction");
    }

    #[test]
    fn a_run_tells_of_an_order_again_only_if_something_else_came_between() {
        let mut told = ToldBefore::default();
        let mut is_repeat = |event: &str, id: &str| told.is_repeat(&seen(event, id, 1));
        assert!(!is_repeat("excess", "7") && !is_repeat("excess", "6") && is_repeat("excess", "7"));
        assert!(!is_repeat("conflict", "8") && !is_repeat("corrected", "9") && is_repeat("corrected", "9"));
        assert!(!is_repeat("conflict", "8"), "the row is in doubt again");
        assert!(!is_repeat("missed", "1") && !is_repeat("missed", "1"));
    }
}
