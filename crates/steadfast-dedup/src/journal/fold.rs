use std::collections::{BTreeMap, BTreeSet};

use steadfast_call::{Outcome, ext};

use super::entry::{Entry, Record};
use crate::numbers::{IntentNo, TradingDay};

/// How many decided orders with names are kept beyond their trading day.
const NAMED: usize = 100_000;

/// The entries of a journal that still matter.
///
/// Dropped are sends that certainly placed nothing, lists of past days, and the ends of orders of past days, unless
/// the end is uncertain or the order has a name. Orders in doubt are never dropped, and refused ones are kept as long
/// as placed ones: a list may refute the refusal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fold {
    next: u64,
    /// The kept entries, in the order in which they were written.
    kept: BTreeMap<u64, Entry>,
    intents: BTreeMap<(ext::Account, IntentNo), Trail>,
    days: BTreeMap<ext::Account, TradingDay>,
    /// Decided orders with names, the oldest first.
    named: BTreeSet<(u64, ext::Account, IntentNo)>,
    /// The last change that each account sent: it concerns all orders that were sent before.
    changes: BTreeMap<ext::Account, u64>,
    gap: bool,
}

/// The kept entries of an intent.
#[derive(Clone, Debug, Default)]
struct Trail {
    entries: Vec<u64>,
    /// Sends that may have placed an order.
    standing: BTreeSet<usize>,
    /// Those of them that were refused, by the service's word, which a list may refute.
    refused: BTreeSet<usize>,
    day: TradingDay,
    named: bool,
    decided: bool,
}

impl Fold {
    /// Notes that entries before the next one are missing.
    pub(crate) fn gap(&mut self) {
        self.gap = true;
    }

    /// Notes that later entries are complete again.
    pub(crate) fn whole_again(&mut self) {
        self.gap = false;
    }

    pub(crate) fn add(&mut self, mut entry: Entry) {
        let account = entry.account.clone();
        match &mut entry.record {
            Record::Begun { attempt, session, day, name, .. } => {
                // Lists from before this send may be missing with the rest, so it is compared with none.
                if self.gap {
                    *session = crate::numbers::Session::default();
                }
                let (attempt, day, named) = (*attempt, *day, name.is_some());
                self.turn(&account, day);
                let trail = self.intents.entry((account.clone(), attempt.intent)).or_default();
                // Sent again after a refusal, it is not decided any more: it must not make room for others.
                if let Some(first) = trail.entries.first() {
                    self.named.remove(&(*first, account.clone(), attempt.intent));
                }
                trail.standing.insert(attempt.index);
                (trail.day, trail.named, trail.decided) = (day, named, false);
                self.keep(account, Some(attempt.intent), entry);
            }
            Record::Closed { attempt, outcome, .. } => {
                let (attempt, outcome) = (*attempt, outcome.clone());
                let Some(trail) = self.intents.get_mut(&(account.clone(), attempt.intent)) else { return };
                if !trail.standing.contains(&attempt.index) {
                    return;
                }
                match outcome {
                    Outcome::NotExecuted | Outcome::Rejected => {
                        trail.refused.insert(attempt.index);
                    }
                    Outcome::NotSent => {
                        trail.standing.remove(&attempt.index);
                    }
                    Outcome::Accepted { order_id: Some(_) } => trail.decided = true,
                    _ => {}
                }
                trail.decided |= !trail.standing.is_empty() && trail.standing == trail.refused;
                if trail.standing.is_empty() {
                    self.forget(&account, attempt.intent);
                } else {
                    self.keep(account, Some(attempt.intent), entry);
                }
            }
            Record::Confirmed { intent } | Record::Heard { intent } | Record::NamedUntil { intent, .. } => {
                let intent = *intent;
                if self.intents.contains_key(&(account.clone(), intent)) {
                    self.keep(account, Some(intent), entry);
                }
            }
            Record::Ruled { intent, order_id: None } => {
                let intent = *intent;
                self.forget(&account, intent);
            }
            Record::Found { intent, .. } | Record::Ruled { intent, order_id: Some(_) } => {
                let intent = *intent;
                let Some(trail) = self.intents.get_mut(&(account.clone(), intent)) else { return };
                trail.decided = true;
                if matches!(entry.record, Record::Ruled { .. }) {
                    // A ruling corrects the one before.
                    let kept = &mut self.kept;
                    trail.entries.retain(|at| {
                        let is_old = matches!(kept.get(at), Some(Entry { record: Record::Ruled { .. }, .. }));
                        if is_old {
                            kept.remove(at);
                        }
                        !is_old
                    });
                }
                self.keep(account, Some(intent), entry);
            }
            Record::Unresolved { intent, .. } => {
                let intent = *intent;
                let Some(trail) = self.intents.get_mut(&(account.clone(), intent)) else { return };
                // Only the latest matters.
                if std::mem::take(&mut trail.decided)
                    && let Some(first) = trail.entries.first()
                {
                    // Its answer, or a list, had said otherwise before.
                    self.named.remove(&(*first, account.clone(), intent));
                }
                let kept = &mut self.kept;
                trail.entries.retain(|at| {
                    let old = matches!(kept.get(at), Some(Entry { record: Record::Unresolved { .. }, .. }));
                    if old {
                        kept.remove(at);
                    }
                    !old
                });
                self.keep(account, Some(intent), entry);
            }
            Record::Changed => {
                if let Some(earlier) = self.changes.insert(account.clone(), self.next) {
                    self.kept.remove(&earlier);
                }
                self.keep(account, None, entry);
            }
            // The entries themselves get the right day.
            Record::Renamed { from, day, intents } => self.rename_day(&account, *from, *day, intents),
            Record::Seen { day, .. } => {
                let day = *day;
                self.turn(&account, day);
                if self.days.get(&account) == Some(&day) {
                    self.keep(account, None, entry);
                }
            }
        }
    }

    /// Returns the kept entries, in the order in which they were written.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.kept.values()
    }

    fn keep(&mut self, account: ext::Account, intent: Option<IntentNo>, entry: Entry) {
        let at = self.next;
        self.next += 1;
        self.kept.insert(at, entry);
        let Some(intent) = intent else { return };
        let Some(trail) = self.intents.get_mut(&(account.clone(), intent)) else { return };
        trail.entries.push(at);
        if trail.named && trail.decided {
            self.named.insert((trail.entries.first().copied().unwrap_or(at), account, intent));
        }
        while self.named.len() > NAMED {
            let Some((_, account, intent)) = self.named.pop_first() else { break };
            self.forget(&account, intent);
        }
    }

    fn forget(&mut self, account: &ext::Account, intent: IntentNo) {
        let Some(trail) = self.intents.remove(&(account.clone(), intent)) else { return };
        if let Some(first) = trail.entries.first() {
            self.named.remove(&(*first, account.clone(), intent));
        }
        for at in trail.entries {
            self.kept.remove(&at);
        }
    }

    fn rename_day(
        &mut self,
        account: &ext::Account,
        from: TradingDay,
        day: TradingDay,
        intents: &BTreeSet<IntentNo>,
    ) {
        for intent in intents {
            if let Some(trail) = self.intents.get_mut(&(account.clone(), *intent)) {
                trail.day = day;
            }
        }
        for entry in self.kept.values_mut().filter(|entry| entry.account == *account) {
            entry.record.rename_day(from, day, intents);
        }
        match self.days.get_mut(account) {
            Some(latest) if *latest == from => *latest = day,
            _ => self.turn(account, day),
        }
    }

    // The lists of a new day start empty, and yesterday's prove nothing.
    fn turn(&mut self, account: &ext::Account, day: TradingDay) {
        let latest = self.days.entry(account.clone()).or_insert(day);
        if day <= *latest {
            return;
        }
        *latest = day;
        self.kept
            .retain(|_, entry| entry.account != *account || !matches!(entry.record, Record::Seen { .. }));
        let over = self
            .intents
            .iter()
            .filter(|((of, _), trail)| of == account && trail.day < day && trail.decided && !trail.named);
        let over: Vec<_> = over.map(|(key, _)| key.clone()).collect();
        for (account, intent) in over {
            self.forget(&account, intent);
        }
    }
}
