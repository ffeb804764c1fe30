//! The news about orders, for the operator.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use steadfast::dedup::OrderEvent;
use tokio::{
    sync::{
        broadcast::{Receiver, error::RecvError},
        oneshot,
    },
    task::JoinHandle,
};

use crate::{
    events::{Contradicted, Heard, Kept, Seen, Told, ToldBefore},
    exit::print_note,
    journal::clearing,
    readable::identifier,
};

/// Tells the news of each client that the proxy has had.
pub(super) struct Telling {
    journal: Option<PathBuf>,
    hearers: Mutex<Vec<(oneshot::Sender<()>, JoinHandle<usize>)>>,
}

impl Telling {
    /// Events that a person has to look at are written down beside `journal`.
    pub(super) fn new(journal: Option<PathBuf>) -> Self {
        Self { journal, hearers: Mutex::default() }
    }

    /// Tells what these events say, until the end.
    pub(super) fn hear(&self, events: Receiver<OrderEvent>) {
        let (journal, (enough, last)) = (self.journal.clone(), oneshot::channel());
        let hearer = tokio::spawn(async move { tell(events, journal.as_deref(), last).await });
        self.hearers.lock().push((enough, hearer));
    }

    /// Tells what is left, and returns how many events a person has to look at.
    pub(super) async fn end(&self) -> usize {
        let (mut told, hearers) = (0, std::mem::take(&mut *self.hearers.lock()));
        for (enough, hearer) in hearers {
            drop(enough);
            // It only ends early if it panics, and then an event may not have been told.
            told += hearer.await.unwrap_or(1);
        }
        told
    }
}

/// Prints the news about orders, and writes down beside `journal` what a person has to look at, until `enough` and no
/// news is left. Returns how many events a person has to look at.
async fn tell(
    mut events: Receiver<OrderEvent>,
    journal: Option<&Path>,
    mut enough: oneshot::Receiver<()>,
) -> usize {
    let kept = journal.map(Kept::beside);
    let mut told_before = journal.map(ToldBefore::beside).unwrap_or_default();
    let (mut contradicted, mut unwritten, mut standing) = (Contradicted::default(), Vec::new(), 0);
    loop {
        let event = tokio::select! {
            biased;
            event = events.recv() => event,
            _ = &mut enough => break,
        };
        let told = match event {
            Ok(event) => match contradicted.tell(&event, |_| false) {
                Told::Elsewhere => end_without_caller(&event).map_or(Told::Elsewhere, Told::Note),
                told => told,
            },
            Err(RecvError::Lagged(missed)) => Told::missed(missed),
            Err(RecvError::Closed) => break,
        };
        match told {
            Told::Stands(seen) => match told_before.hear(&seen) {
                Heard::New => {
                    print_note(seen.sentence());
                    standing += 1;
                    unwritten.push(seen);
                    write_down(kept.as_ref(), &mut unwritten);
                }
                Heard::Cleared => {
                    print_note(format_args!("looked at before, and cleared: {}", seen.sentence()));
                }
                Heard::Told => {}
            },
            Told::Note(note) => print_note(note),
            Told::Elsewhere => {}
        }
    }
    write_down(kept.as_ref(), &mut unwritten);
    standing
}

/// Returns how many events a person has to look at: those beside `journal`, also of earlier processes, and at least as many as
/// this one has `told`. Says how to clear them.
pub(super) fn standing(journal: Option<&Path>, told: usize) -> usize {
    let Some(journal) = journal else { return told };
    let kept = Kept::beside(journal);
    let count = match kept.read() {
        Ok(events) => events.len().max(told),
        Err(error) => {
            print_note(format_args!("steadfast: {}: {error}", kept.path().display()));
            told.max(1)
        }
    };
    if count > 0 {
        print_note(format_args!("events {count}: {}", clearing(journal)));
    }
    count
}

/// Writes down these events. Those that cannot be written are tried again with the next event, and at the end.
fn write_down(kept: Option<&Kept>, unwritten: &mut Vec<Seen>) {
    let Some(kept) = kept else { return unwritten.clear() };
    while let Some(seen) = unwritten.first() {
        if let Err(error) = kept.keep(seen) {
            let (count, path) = (unwritten.len(), kept.path().display());
            return print_note(format_args!("steadfast: {path}: {error}: events not written down: {count}"));
        }
        unwritten.remove(0);
    }
}

/// Describes the end of an order of which no caller may have been told, because callers can go at any time.
fn end_without_caller(event: &OrderEvent) -> Option<String> {
    let (name, end) = match event {
        OrderEvent::PlacedUnheard { name, order_id, .. } => {
            (name, format!("was placed as {}; its caller has gone", identifier(order_id)))
        }
        OrderEvent::Unresolved { name, unresolved, .. } => {
            (name, format!("is in doubt: {}", unresolved.reason))
        }
        _ => return None,
    };
    let name = name.as_ref().map_or("without a name", |name| name.as_str());
    Some(format!("steadfast: order {name} {end}"))
}

#[cfg(test)]
mod tests {
    use steadfast::{dedup::IntentNo, ext::IntentId};
    use tokio::sync::broadcast;

    use super::*;

    #[test]
    fn an_order_whose_caller_has_gone_is_told_to_the_operator() {
        let (intent, name, order_id) = (IntentNo(0), Some(IntentId::new("k7")), "240101000000001".to_owned());
        let told = end_without_caller(&OrderEvent::PlacedUnheard { intent, name, order_id });
        assert_eq!(
            told.as_deref(),
            Some("steadfast: order k7 was placed as 240101000000001; its caller has gone")
        );
        let heard = OrderEvent::Recovered { intent, name: None, order_id: "7".to_owned() };
        assert_eq!(end_without_caller(&heard), None);
    }

    /// Tells of an order more than was acknowledged, for each of these, as one process does.
    async fn process(journal: &Path, order_ids: &[&str]) -> usize {
        let (events, news) = broadcast::channel(8);
        for order_id in order_ids {
            let order_id = (*order_id).to_owned();
            events.send(OrderEvent::Excess { intent: IntentNo(0), order_id }).unwrap();
        }
        let (enough, last) = oneshot::channel();
        enough.send(()).unwrap();
        tell(news, Some(journal), last).await
    }

    fn kept(journal: &Path) -> Vec<Option<String>> {
        Kept::beside(journal).read().unwrap().into_iter().map(|seen| seen.order_id).collect()
    }

    #[tokio::test]
    async fn the_last_news_is_written_down_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("orders.journal");
        assert_eq!(process(&journal, &["1", "2", "1"]).await, 2, "one is told twice");
        assert_eq!(kept(&journal), [Some("1".to_owned()), Some("2".to_owned())]);
    }

    /// Regression: each start of the proxy wrote down again what a person had cleared.
    #[tokio::test]
    async fn c03_cleared_events_do_not_come_back_with_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("orders.journal");
        process(&journal, &["1"]).await;
        Kept::beside(&journal).clear(&journal).unwrap();
        assert_eq!(process(&journal, &["1", "2"]).await, 1, "one is cleared");
        assert_eq!(kept(&journal), [Some("2".to_owned())]);
    }

    #[test]
    fn c03_an_event_that_could_not_be_written_down_is_written_with_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("orders.journal");
        let kept_here = Kept::beside(&journal);
        std::fs::create_dir(kept_here.path()).unwrap();
        let Told::Stands(seen) = Told::missed(1) else { panic!("it stands") };
        let mut unwritten = vec![seen];
        write_down(Some(&kept_here), &mut unwritten);
        assert_eq!(unwritten.len(), 1);
        std::fs::remove_dir(kept_here.path()).unwrap();
        unwritten.push(unwritten[0].clone());
        write_down(Some(&kept_here), &mut unwritten);
        assert!(unwritten.is_empty());
        assert_eq!(kept_here.read().unwrap().len(), 2);
    }
}
