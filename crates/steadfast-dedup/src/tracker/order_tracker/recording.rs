//! Writes a tracker's journal, and replays it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::AtomicBool},
};

use steadfast_call::ext;
use tokio::sync::broadcast;

use super::{EVENTS, OrderTracker, Shared};
use crate::{
    journal::{Entry, Journal, JournalError, NoJournal, Recorder},
    numbers::IntentNo,
    protocol::order_event::OrderEvent,
    settings::Settings,
    tracker::{account::Account, halt::Halt, recovery::RecoveredOrder, sync::Mutex},
};

/// The journal, and the orders found in it.
pub(super) struct Journaled {
    journal: Arc<dyn Journal>,
    /// In doubt when the process began, and searched for since.
    in_doubt: Vec<(Arc<Account>, RecoveredOrder)>,
    /// In doubt on a day that is over: they cannot be resolved any more.
    left: Vec<RecoveredOrder>,
    /// Placed, and not noted as heard when the process began.
    unheard: Vec<(Arc<Account>, IntentNo)>,
}

impl Journaled {
    pub(super) fn recorder(&self, account: &ext::Account) -> Recorder {
        Recorder::new(self.journal.clone(), account.clone())
    }

    pub(super) fn failure(&self) -> Option<JournalError> {
        self.journal.failure()
    }
}

impl OrderTracker {
    /// Returns a tracker that continues a journal and writes what must outlive the process to it.
    ///
    /// Every order that earlier processes left in doubt is searched for, for the whole settle time again, and never
    /// sent. The search starts when [`recover`](Self::recover) is awaited, or when the account's first order is
    /// placed.
    ///
    /// # Example
    ///
    /// ```
    /// use steadfast_dedup::{OrderTracker, Settings, journal::FileJournal};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("orders.journal");
    /// let tracker = OrderTracker::journaled(Settings::default(), FileJournal::open(path)?);
    /// assert_eq!(tracker.in_doubt(), 0);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn journaled(settings: Settings, journal: impl Journal + 'static) -> Self {
        let journal: Arc<dyn Journal> = Arc::new(journal);
        let settings = Arc::new(settings);
        let events = broadcast::channel(EVENTS).0;
        let halt = Arc::new(Halt::new(&journal));
        let mut entries: BTreeMap<ext::Account, Vec<Entry>> = BTreeMap::new();
        for entry in journal.recover() {
            entries.entry(entry.account.clone()).or_default().push(entry);
        }
        let (mut accounts, mut in_doubt, mut left) = (HashMap::new(), Vec::new(), Vec::new());
        let mut unheard = Vec::new();
        for (name, entries) in entries {
            let mut account = Account::new(name.clone(), settings.clone(), halt.clone(), events.clone());
            let recorder = Recorder::new(journal.clone(), name.clone());
            let found = account.replay(recorder, &entries);
            let account = Arc::new(account);
            in_doubt.extend(found.in_doubt.into_iter().map(|order| (account.clone(), order)));
            unheard.extend(found.unheard.into_iter().map(|intent| (account.clone(), intent)));
            left.extend(found.left);
            accounts.insert(name, account);
        }
        let written = Some(Journaled { journal, in_doubt, left, unheard });
        Self::with((*settings).clone(), accounts, written, events, halt)
    }

    pub(super) fn with(
        settings: Settings,
        accounts: HashMap<ext::Account, Arc<Account>>,
        journaled: Option<Journaled>,
        events: broadcast::Sender<OrderEvent>,
        halt: Arc<Halt>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                settings: Arc::new(settings),
                accounts: Mutex::new(accounts),
                guarded: AtomicBool::new(false),
                halt,
                events,
                journaled,
            }),
        }
    }

    /// Returns the orders that earlier processes left in doubt, with their present verdicts.
    ///
    /// # Errors
    ///
    /// [`NoJournal`]: without one, or while another process owns the orders, an empty answer would look as if nothing were
    /// in doubt.
    pub fn recovered(&self) -> Result<Vec<RecoveredOrder>, NoJournal> {
        let owns = self.owned().is_ok();
        let written = self.shared.journaled.as_ref().filter(|_| owns).ok_or(NoJournal)?;
        let looked_for = written.in_doubt.iter().map(|(account, order)| {
            let verdict = account.recovered_now(order.intent);
            RecoveredOrder { verdict, ..order.clone() }
        });
        let left = self.left_over().into_iter().map(|(known, order)| match known {
            Some(account) => RecoveredOrder { verdict: account.recovered_now(order.intent), ..order },
            None => order,
        });
        Ok(left.chain(looked_for).collect())
    }

    /// Returns the undecided orders of earlier days, each with its account if that still knows it, by its name.
    pub(super) fn left_over(&self) -> Vec<(Option<Arc<Account>>, RecoveredOrder)> {
        let left = self.shared.journaled.iter().flat_map(|written| written.left.iter().cloned());
        let known = |order: &RecoveredOrder| {
            self.known_account(Some(&order.account)).filter(|account| account.knows(order.intent))
        };
        left.map(|order| (known(&order), order)).collect()
    }

    /// Returns the orders that earlier processes placed under names on this trading day, and of which none
    /// [noted](Self::note_heard) that the caller has the answer.
    ///
    /// For a program that places orders for others, such as the sidecar: a caller that did not hear of its order sends it
    /// again. Nothing without a journal.
    #[must_use]
    pub fn unheard(&self) -> Vec<RecoveredOrder> {
        let written = self.shared.journaled.iter();
        let unheard = written.flat_map(|written| &written.unheard);
        unheard.filter_map(|(account, intent)| account.placed_order(*intent)).collect()
    }

    /// Writes down for later processes that the caller of the order of this name has its answer, in the first account that
    /// has one.
    ///
    /// The note may be lost in a crash: then the order is [unheard](Self::unheard).
    pub fn note_heard(&self, name: &ext::IntentId) {
        if let Some(account) = self.accounts().into_iter().find(|account| account.verdict_of(name).is_some())
        {
            account.note_heard(name);
        }
    }

    /// Waits until every order that earlier processes left in doubt is decided, then returns them.
    ///
    /// The list must be read meanwhile: a request marked with [`Recover`](crate::Recover), or any order of the
    /// account, shows the path to it.
    ///
    /// # Errors
    ///
    /// [`NoJournal`], as for [`recovered`](Self::recovered).
    pub async fn recover(&self) -> Result<Vec<RecoveredOrder>, NoJournal> {
        let written = self.shared.journaled.as_ref().ok_or(NoJournal)?;
        for (account, order) in &written.in_doubt {
            account.recovered(order.intent).await;
        }
        self.recovered()
    }

    /// Waits until every such order of one account is decided.
    pub(crate) async fn recovered_of(&self, account: &Arc<Account>) {
        let Some(written) = &self.shared.journaled else { return };
        for (_, order) in written.in_doubt.iter().filter(|(of, _)| Arc::ptr_eq(of, account)) {
            account.recovered(order.intent).await;
        }
    }

    /// Waits until everything that was written is durable. A failed journal has reported its error already.
    pub(super) async fn flush(&self) {
        if let Some(written) = &self.shared.journaled {
            drop(written.journal.flush().await);
        }
    }

    /// Returns the salt that sessions are hashed with, which gives them a name in the journal.
    pub(crate) fn salt(&self) -> Option<[u8; 16]> {
        self.shared.journaled.as_ref().map(|written| written.journal.salt())
    }
}
