//! Events that were told before.

use std::{
    collections::BTreeSet,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use steadfast::dedup::Settings;

use super::{Kept, Seen};

/// The kinds of events that say that a row is in doubt.
const DOUBTS: [&str; 3] = ["conflict", "ack_not_listed", "refusal_unconfirmed"];

/// The event of events that were lost. It never repeats another one.
pub(super) const MISSED: &str = "missed";

/// The events that a run has told, and those that a person has looked at before.
#[derive(Debug, Default)]
pub(crate) struct ToldBefore {
    told: Vec<Seen>,
    cleared: Vec<Seen>,
    days: Settings,
}

/// Whether an event is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    New,
    /// This run has told it.
    Told,
    /// A person has looked at it after an earlier run, and cleared it.
    Cleared,
}

impl ToldBefore {
    /// Nothing is told yet; these were cleared.
    pub(crate) fn after(cleared: Vec<Seen>) -> Self {
        Self { cleared, ..Self::default() }
    }

    /// Nothing is told yet; what was cleared stands beside the journal.
    pub(crate) fn beside(journal: &Path) -> Self {
        Self::after(Kept::beside(journal).cleared(&Settings::default()))
    }

    /// Returns whether the event is news: it is told if none of another kind about its order came since. It counts as
    /// told from now on.
    pub(crate) fn hear(&mut self, seen: &Seen) -> Heard {
        // On another day the same identifier may stand for another order.
        let day_of = |seen: &Seen| self.days.day_of(UNIX_EPOCH + Duration::from_secs(seen.at));
        let is_same =
            |told: &Seen| told.event != MISSED && told.is_same(seen) && day_of(told) == day_of(seen);
        let of_order =
            self.told.iter().rev().filter(|told| told.intent == seen.intent && told.name == seen.name);
        if of_order.take_while(|told| told.event == seen.event).any(is_same) {
            return Heard::Told;
        }
        // Each run tells the events of an order in their old sequence again, so what came between does not count.
        let heard = if self.cleared.iter().any(is_same) { Heard::Cleared } else { Heard::New };
        self.told.push(seen.clone());
        heard
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
        let mut is_repeat = |event: &str, id: &str| told.hear(&seen(event, id, 1)) == Heard::Told;
        assert!(!is_repeat("excess", "7") && !is_repeat("excess", "6") && is_repeat("excess", "7"));
        assert!(!is_repeat("conflict", "8") && !is_repeat("corrected", "9") && is_repeat("corrected", "9"));
        assert!(!is_repeat("conflict", "8"), "the row is in doubt again");
        assert!(!is_repeat("missed", "1") && !is_repeat("missed", "1"));
    }

    #[test]
    fn an_event_that_was_cleared_is_no_news_and_another_one_of_its_order_is() {
        let cleared = [seen("conflict", "8", 1), seen("corrected", "9", 1), seen("missed", "1", 1)]
            .map(|seen| Seen { other: false, ..seen });
        let mut told = ToldBefore::after(cleared.to_vec());
        let mut hear = |event: &str, id: &str| told.hear(&Seen { other: true, ..seen(event, id, 2) });
        assert_eq!([hear("conflict", "8"), hear("conflict", "8")], [Heard::Cleared, Heard::Told]);
        assert_eq!([hear("corrected", "9"), hear("corrected", "7")], [Heard::Cleared, Heard::New]);
        assert_eq!([hear("excess", "8"), hear("missed", "1")], [Heard::New; 2]);
        // A process may live for several days.
        let next_day = Seen { at: 2 * 86_400, ..seen("conflict", "8", 2) };
        assert_eq!([told.hear(&next_day), told.hear(&next_day)], [Heard::New, Heard::Told]);
    }
}
