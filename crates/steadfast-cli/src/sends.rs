//! The sends of this process, noted on their way into the journal.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use parking_lot::Mutex;
use steadfast::dedup::journal::{Durable, Entry, FileJournal, Journal, JournalError, Record};

/// The names of the orders for which this process has begun a send, as far as it keeps a journal.
///
/// # Clone
///
/// Clones share the names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sends {
    names: Arc<Mutex<BTreeSet<String>>>,
}

impl Sends {
    /// True if a send of the order of this name has begun.
    pub(crate) fn hold(&self, name: &str) -> bool {
        self.names.lock().contains(name)
    }
}

/// A journal whose new sends are noted.
#[derive(Debug)]
pub(crate) struct NotingJournal {
    journal: FileJournal,
    sends: Sends,
}

impl NotingJournal {
    /// Writes to `journal` and notes in `sends`.
    pub(crate) fn new(journal: FileJournal, sends: Sends) -> Self {
        Self { journal, sends }
    }

    /// Notes a send. None of a journal that was moved or removed: nothing is written to it any more, so the order does not
    /// leave, and no later run finds a record of it.
    fn note(&self, entry: &Entry) {
        if let Record::Begun { name: Some(name), .. } = &entry.record
            && !matches!(self.journal.failure(), Some(JournalError::Displaced { .. }))
        {
            self.sends.names.lock().insert(name.as_str().to_owned());
        }
    }
}

impl Journal for NotingJournal {
    fn recover(&self) -> Vec<Entry> {
        self.journal.recover()
    }

    fn append(&self, entry: Entry) {
        self.note(&entry);
        self.journal.append(entry);
    }

    fn append_durably(&self, entry: Entry) -> Durable {
        self.note(&entry);
        self.journal.append_durably(entry)
    }

    fn flush(&self) -> Durable {
        self.journal.flush()
    }

    fn failure(&self) -> Option<JournalError> {
        self.journal.failure()
    }

    fn path(&self) -> Option<&Path> {
        Journal::path(&self.journal)
    }

    fn salt(&self) -> [u8; 16] {
        self.journal.salt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::records::begun;

    #[test]
    fn only_the_sends_of_this_process_are_noted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let earlier = FileJournal::open(&path).unwrap();
        earlier.append(begun(1, "line-2"));
        drop(earlier);
        let sends = Sends::default();
        let journal = NotingJournal::new(FileJournal::open(&path).unwrap(), sends.clone());
        assert_eq!(journal.recover().len(), 1);
        drop(journal.append_durably(begun(2, "line-3")));
        journal.append(begun(3, "line-4"));
        assert_eq!(["line-2", "line-3", "line-4"].map(|name| sends.hold(name)), [false, true, true]);
    }
}
