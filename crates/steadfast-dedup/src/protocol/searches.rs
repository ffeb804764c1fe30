//! Says when searches for orders in doubt end, and when the next list is due for one, without a look at all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    numbers::IntentNo,
    protocol::{doubt::Doubt, schedule},
};

/// How many searches end in one step. Each end looks through what lists have shown, and other calls wait for the step.
const IN_ONE_STEP: usize = 8;

/// The open searches.
///
/// When a list is due for one depends on when the last was read, and is reckoned again for all after each read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Searches {
    open: BTreeMap<IntentNo, Search>,
    ends: BTreeSet<(Duration, IntentNo)>,
    due: BTreeSet<(Duration, IntentNo)>,
    /// When a list was last read.
    last: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Search {
    since: Duration,
    until: Duration,
    due: Duration,
}

impl Searches {
    /// Notes how the search for an order stands; `None` if there is none.
    pub(crate) fn note(&mut self, number: IntentNo, doubt: Option<&Doubt>, lateness: Duration) {
        if let Some(before) = self.open.remove(&number) {
            self.ends.remove(&(before.until, number));
            self.due.remove(&(before.due, number));
        }
        let Some(&Doubt { since, until, .. }) = doubt else { return };
        let due = schedule::next_verification(since, self.last, lateness);
        self.open.insert(number, Search { since, until, due });
        self.ends.insert((until, number));
        self.due.insert((due, number));
    }

    /// Notes when a list was last read.
    pub(crate) fn note_read(&mut self, last: Option<Duration>, lateness: Duration) {
        if std::mem::replace(&mut self.last, last) == last {
            return;
        }
        for (number, search) in &mut self.open {
            self.due.remove(&(search.due, *number));
            search.due = schedule::next_verification(search.since, last, lateness);
            self.due.insert((search.due, *number));
        }
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns when the first of them ends.
    pub(crate) fn next_end(&self) -> Option<Duration> {
        self.ends.first().map(|&(until, _)| until)
    }

    /// Returns those that have ended by now, as many as one step takes.
    pub(crate) fn ended(&self, now: Duration) -> Vec<IntentNo> {
        let ended = self.ends.iter().take_while(|(until, _)| *until <= now);
        ended.take(IN_ONE_STEP).map(|&(_, number)| number).collect()
    }

    /// Returns when a list is next due for one of them.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|&(due, _)| due)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::numbers::LogicalTime;

    proptest! {
        /// The answers are those of a look at all searches.
        #[test]
        fn the_next_end_and_the_next_list_are_those_of_all(
            steps in prop::collection::vec((0_u64..16, 0_u8..4, 0_u64..300), 1..80),
        ) {
            let lateness = Duration::from_secs(15);
            let (mut searches, mut all) = (Searches::default(), BTreeMap::new());
            let mut last = None;
            for (number, what, second) in steps {
                let (number, at) = (IntentNo(number), Duration::from_secs(second));
                match what {
                    0 => {
                        last = Some(at);
                        searches.note_read(last, lateness);
                    }
                    1 => {
                        all.remove(&number);
                        searches.note(number, None, lateness);
                    }
                    _ => {
                        let doubt = Doubt::new(at, LogicalTime(0), at, at + Duration::from_secs(60 + number.0));
                        searches.note(number, Some(&doubt), lateness);
                        all.insert(number, doubt);
                    }
                }
                let due = |doubt: &Doubt| schedule::next_verification(doubt.since, last, lateness);
                prop_assert_eq!(searches.len(), all.len());
                prop_assert_eq!(searches.next_end(), all.values().map(|doubt| doubt.until).min());
                prop_assert_eq!(searches.next_due(), all.values().map(due).min());
                let mut over: Vec<_> = all.iter().map(|(number, doubt)| (doubt.until, *number)).collect();
                over.retain(|(until, _)| *until <= at);
                over.sort_unstable();
                let first = over.into_iter().take(IN_ONE_STEP).map(|(_, number)| number);
                prop_assert_eq!(searches.ended(at), first.collect::<Vec<_>>());
            }
        }
    }
}
