//! What a run tells of events and of waiting.

use std::{collections::BTreeSet, io};

use steadfast::dedup::{OrderEvent, Settings};
use tokio::sync::broadcast::{Receiver, error::RecvError, error::TryRecvError};

use super::Replay;
use crate::{
    clock::wall,
    events::{Seen, Told},
    replay::{known, name},
};

impl Replay {
    /// Prints how many orders have had no result for a while, and how long that may last.
    pub(super) fn note_wait(&self, on_their_way: usize) {
        let bound = Settings::default().verification_bound();
        let until = httpdate::fmt_http_date(wall() + bound);
        let (doubtful, bound) = (self.client.tracker().in_doubt(), bound.as_secs());
        if doubtful > 0 {
            self.note(format_args!(
                "waiting: orders in doubt, which are looked for in the order list: {doubtful}; {bound} s at most, until {until}"
            ));
        } else if on_their_way > 0 {
            self.note(format_args!(
                "waiting: orders that wait for their turn or for an answer: {on_their_way}; an answer that is lost is looked \
                 for, for {bound} s at most"
            ));
        } else {
            self.note(format_args!(
                "waiting: a last look for orders that the list has not shown yet; {bound} s at most, until {until}"
            ));
        }
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
                    .tell(&event, |name| name::line_of(name).is_some_and(|line| open.contains_key(&line)))
            }
            Err(RecvError::Lagged(missed)) => Told::missed(missed),
            // Not possible, because this run holds the client that sends them.
            Err(RecvError::Closed) => return,
        };
        match told {
            Told::Stands(seen) => self.stands(&seen),
            Told::Note(note) => self.note(note),
            Told::Elsewhere => {}
        }
    }

    /// Prints an event, counts it, and writes it to the results and beside the journal.
    pub(super) fn stands(&mut self, seen: &Seen) {
        let row = seen.name.as_deref().and_then(name::line_of);
        let row = row.map_or_else(String::new, |line| format!("line {line}: "));
        self.note(format_args!("{row}{}: {}", seen.event.replace('_', " "), seen.msg));
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

    /// Reports orders that an earlier run left in doubt and that have no row in this file.
    pub(super) fn report_leftovers(&mut self) {
        // A run without a journal knows of no earlier one.
        let recovered = self.client.recovered().unwrap_or_default();
        let rows: BTreeSet<&str> = self.sent.iter().map(|name| name::first_of(name)).collect();
        let mut notes = Vec::new();
        for order in known::unknown(&recovered) {
            let name = order.name.as_ref().map_or("an order without a name", |name| name.as_str());
            if !rows.contains(name::first_of(name)) {
                notes.push(format!("{name} of an earlier run is not resolved: see `steadfast orders`"));
            }
        }
        self.leftovers += notes.len();
        notes.iter().for_each(|note| self.note(note));
    }
}
