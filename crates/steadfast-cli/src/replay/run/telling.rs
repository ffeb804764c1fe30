//! The lines that a run prints about events and about waiting.

use std::{collections::BTreeSet, io, time::SystemTime};

use steadfast::dedup::{OrderEvent, Settings};
use tokio::sync::broadcast::{Receiver, error::RecvError, error::TryRecvError};

use super::Replay;
use crate::{
    clock::wall,
    events::{Heard, Seen, Told},
    replay::{known, result::RowEnd},
    row_name,
};

impl Replay {
    /// Prints how many orders have had no result for a while, and how long that may last.
    pub(super) fn note_wait(&self, on_their_way: usize) {
        self.note(waiting(self.client.tracker().in_doubt(), on_their_way, wall()));
    }

    /// Handles the events that have arrived.
    pub(super) fn take_waiting(&mut self, events: &mut Receiver<OrderEvent>) {
        loop {
            match events.try_recv() {
                Ok(event) => self.take(Ok(event)),
                Err(TryRecvError::Lagged(missed)) => self.take(Err(RecvError::Lagged(missed))),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    pub(super) fn take(&mut self, event: Result<OrderEvent, RecvError>) {
        let told = match event {
            Ok(event) => {
                let Self { contradicted, open, .. } = self;
                contradicted
                    .tell(&event, |name| row_name::line_of(name).is_some_and(|line| open.contains_key(&line)))
            }
            Err(RecvError::Lagged(missed)) => Told::missed(missed),
            // Not possible, because this run holds the client that sends them.
            Err(RecvError::Closed) => return,
        };
        match told {
            Told::Stands(seen) => match self.told_before.hear(&seen) {
                Heard::New => self.stands(&seen),
                heard => self.repeated(&seen, heard),
            },
            Told::Note(note) => self.note(note),
            Told::Elsewhere => {}
        }
    }

    /// Prints an event, counts it, and writes it to the results and beside the journal.
    pub(super) fn stands(&mut self, seen: &Seen) {
        self.note(seen.sentence());
        self.events_before.retain(|told| !told.is_same(seen));
        self.events.add(seen);
        let written = self.results.event(seen);
        self.note_unwritten(written);
        if let Some(kept) = &self.kept {
            let written = kept
                .keep(seen)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", kept.path().display())));
            self.note_unwritten(written);
        }
    }

    /// Lets the rows agree with an event that is no news: it counts no more, but holds.
    fn repeated(&mut self, seen: &Seen, heard: Heard) {
        if heard == Heard::Cleared {
            self.note(format_args!("looked at before, and cleared: {}", seen.sentence()));
        }
        let written = self.results.follow(seen);
        self.note_unwritten(written);
    }

    /// Reports orders that an earlier run left in doubt and that no row's result tells.
    pub(super) fn report_leftovers(&mut self) {
        // A run without a journal knows of no earlier one.
        let recovered = self.client.recovered().unwrap_or_default();
        let rows: BTreeSet<&str> = self.sent.iter().map(|name| row_name::first_of(name)).collect();
        let told: BTreeSet<u64> = self.results.ends().filter_map(RowEnd::open_line).collect();
        let mut notes = Vec::new();
        for order in known::unknown(&recovered) {
            let name = order.name.as_ref().map_or("an order without a name", |name| name.as_str());
            let is_told = row_name::line_of(name).is_some_and(|line| told.contains(&line));
            if !is_told && !rows.contains(row_name::first_of(name)) {
                notes.push(format!("{name} of an earlier run is not resolved: see `steadfast orders`"));
            }
        }
        self.leftovers += notes.len();
        notes.iter().for_each(|note| self.note(note));
    }
}

/// How long the last look takes, as `OrderTracker::shutdown` says: the lateness bound and 5 s, and one read of the list.
const LAST_LOOK: &str = "about 20 s, or more where the list is slow";

/// Says what the run waits for, and how long.
fn waiting(in_doubt: usize, on_their_way: usize, now: SystemTime) -> String {
    let bound = Settings::default().verification_bound();
    let until = httpdate::fmt_http_date(now + bound);
    let bound = bound.as_secs();
    if in_doubt > 0 {
        format!(
            "waiting: orders in doubt, which are looked for in the order list: {in_doubt}; {bound} s at most, until {until}; \
             then a last look, {LAST_LOOK}"
        )
    } else if on_their_way > 0 {
        format!(
            "waiting: orders that wait for their turn or for an answer: {on_their_way}; an answer that is lost is looked for, \
             for {bound} s at most"
        )
    } else {
        // An order that the last look contradicts is in doubt from then on, so it may take the whole bound.
        format!(
            "waiting: a last look for orders that the list has not shown yet; {LAST_LOOK}; one that it contradicts is \
             looked for after that, for {bound} s at most"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: it promised the end in 105 s. An acknowledged order that two lists lacked was looked for from then on,
    /// and the run ended after 123 s.
    #[test]
    fn the_wait_for_the_last_look_does_not_include_the_search_after_it() {
        let said = waiting(0, 0, SystemTime::UNIX_EPOCH);
        assert!(said.contains("about 20 s") && said.contains("after that, for 105 s"), "{said}");
        assert!(!said.contains("until "), "{said}");
        let said = waiting(1, 3, SystemTime::UNIX_EPOCH);
        assert!(
            said.contains("105 s at most, until Thu, 01 Jan 1970 00:01:45 GMT; then a last look"),
            "{said}"
        );
    }
}
