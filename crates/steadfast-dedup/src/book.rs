use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use steadfast_spec::{OrderRecord, OrderRequest};

use crate::{
    key::Key,
    matcher,
    stamp::{IntentNo, Seq, Session},
};

/// Every order that was ever listed or acknowledged in the epoch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    entries: BTreeMap<Arc<str>, Entry>,
    sessions: BTreeMap<Session, SessionBook>,
    /// Orders that could still be somebody's, by key.
    fresh: BTreeMap<Key, Vec<Fresh>>,
    /// The same, for records that do not say which key is theirs.
    vague: Vec<Fresh>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// When a list that held it was complete, or its acknowledgement arrived; written once.
    first_seen: Seq,
    owner: Option<IntentNo>,
    /// The session that lists it, since when, and the latest list that did.
    listed: Option<Listed>,
    acknowledged: Option<(Session, Duration)>,
}

#[derive(Clone, Copy, Debug)]
struct Listed {
    session: Session,
    first: Seq,
    last: Seq,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SessionBook {
    /// Whether a list was asked for, for its own sake.
    pub(crate) asked: bool,
    /// Whether a complete list was seen.
    pub(crate) has_baseline: bool,
    pub(crate) not_monotone: bool,
}

/// A listed order that no intent owns yet.
#[derive(Clone, Debug)]
pub(crate) struct Fresh {
    pub(crate) order_id: Arc<str>,
    pub(crate) first_seen: Seq,
    pub(crate) record: Arc<OrderRecord>,
    /// It was reported already, as a candidate or as too many.
    pub(crate) flagged: bool,
}

/// What a list says about the orders that it should have held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Canary {
    Intact,
    /// An order acknowledged long enough ago is not there yet: this list is stale.
    Stale,
    /// An order that was there is gone: no list of this session proves an absence.
    Gone(Arc<str>),
}

/// An identifier that was just given to an intent by the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    Clean,
    /// Another intent owns it, or it was there before the intent was sent.
    Conflict,
}

impl Book {
    pub(crate) fn session(&self, session: Session) -> Option<&SessionBook> {
        self.sessions.get(&session)
    }

    pub(crate) fn session_mut(&mut self, session: Session) -> &mut SessionBook {
        self.sessions.entry(session).or_default()
    }

    /// Takes in a complete list; `keep` says whether a new order could be anybody's.
    ///
    /// A repeated identifier counts once. Returns the owned orders that are listed for the first time.
    pub(crate) fn list(
        &mut self,
        session: Session,
        seen: Seq,
        records: Vec<OrderRecord>,
        mut keep: impl FnMut(Option<&Key>) -> bool,
    ) -> Vec<(IntentNo, OrderRecord)> {
        let mut owned = Vec::new();
        let mut new = BTreeSet::new();
        for record in records {
            let here = Listed { session, first: seen, last: seen };
            if let Some(entry) = self.entries.get_mut(record.order_id.as_str()) {
                let newly = entry.listed.is_none();
                match &mut entry.listed {
                    Some(listed) if listed.session == session => listed.last = seen,
                    listed => *listed = Some(here),
                }
                if let (true, Some(owner)) = (newly, entry.owner) {
                    owned.push((owner, record));
                }
                continue;
            }
            let order_id: Arc<str> = record.order_id.as_str().into();
            let entry = Entry { first_seen: seen, owner: None, listed: Some(here), acknowledged: None };
            self.entries.insert(order_id.clone(), entry);
            let key = Key::of_record(&record);
            if new.insert(order_id.clone()) && keep(key.as_ref()) {
                let fresh = Fresh { order_id, first_seen: seen, record: Arc::new(record), flagged: false };
                match key {
                    Some(key) => self.fresh.entry(key).or_default().push(fresh),
                    None => self.vague.push(fresh),
                }
            }
        }
        owned
    }

    /// Compares the list that was just taken in with what it should hold.
    pub(crate) fn canary(
        &self,
        session: Session,
        started: Seq,
        started_at: Duration,
        seen: Seq,
        lateness: Duration,
    ) -> Canary {
        let mut canary = Canary::Intact;
        for (order_id, entry) in &self.entries {
            match (entry.listed, entry.acknowledged) {
                // Only lists that were complete before this read left could have been a lower bound for it.
                (Some(listed), _)
                    if listed.session == session && listed.first < started && listed.last < seen =>
                {
                    return Canary::Gone(order_id.clone());
                }
                // Younger acknowledgements prove nothing: lists lag.
                (None, Some((acknowledged_in, at)))
                    if acknowledged_in == session && at.saturating_add(lateness) < started_at =>
                {
                    canary = Canary::Stale;
                }
                _ => {}
            }
        }
        canary
    }

    /// Orders without an owner that could show an order of this key.
    pub(crate) fn fresh(&self, key: &Key) -> impl Iterator<Item = &Fresh> {
        self.fresh.get(key).into_iter().flatten().chain(&self.vague)
    }

    /// Orders without an owner that show exactly this order, as far as they show anything.
    pub(crate) fn strict<'a>(
        &'a self,
        key: &Key,
        order: &'a OrderRequest,
    ) -> impl Iterator<Item = &'a Fresh> + 'a {
        self.fresh.get(key).into_iter().flatten().filter(move |fresh| matcher::strict(&fresh.record, order))
    }

    /// Gives an order to an intent that found it in the list.
    pub(crate) fn claim(&mut self, key: &Key, order_id: &str, owner: IntentNo) -> Option<Fresh> {
        let entry = self.entries.get_mut(order_id)?;
        debug_assert!(entry.owner.is_none(), "a claim is never revoked");
        entry.owner = Some(owner);
        self.take_fresh(Some(key), order_id)
    }

    /// Gives an order to the intent whose answer named it.
    pub(crate) fn acknowledge(
        &mut self,
        order_id: &Arc<str>,
        owner: IntentNo,
        sent: Seq,
        session: Session,
        seen: Seq,
        at: Duration,
    ) -> Claimed {
        self.take_fresh(None, order_id);
        let entry = self.entries.entry(order_id.clone()).or_insert(Entry {
            first_seen: seen,
            owner: None,
            listed: None,
            acknowledged: Some((session, at)),
        });
        if entry.owner.is_some_and(|other| other != owner) || entry.first_seen < sent {
            return Claimed::Conflict;
        }
        entry.owner = Some(owner);
        Claimed::Clean
    }

    pub(crate) fn flag(&mut self, order_id: &str) {
        for fresh in self.fresh.values_mut().flatten().chain(&mut self.vague) {
            if &*fresh.order_id == order_id {
                fresh.flagged = true;
            }
        }
    }

    /// Forgets the records that nobody in flight or in doubt could own any more.
    pub(crate) fn prune(&mut self, key: &Key, needed: impl Fn(&Fresh) -> bool) {
        if let Some(fresh) = self.fresh.get_mut(key) {
            fresh.retain(needed);
            if fresh.is_empty() {
                self.fresh.remove(key);
            }
        }
    }

    /// Forgets the records without a key that nobody in flight or in doubt could own any more.
    pub(crate) fn prune_vague(&mut self, needed: impl Fn(&Fresh) -> bool) {
        self.vague.retain(needed);
    }

    pub(crate) fn has_vague(&self) -> bool {
        !self.vague.is_empty()
    }

    pub(crate) fn fresh_keys(&self) -> Vec<Key> {
        self.fresh.keys().cloned().collect()
    }

    /// When an order was first seen, whose it is, and whether somebody may still claim it.
    #[cfg(test)]
    pub(crate) fn known(&self, order_id: &str) -> (Seq, Option<IntentNo>, bool) {
        let fresh = self.fresh.values().flatten().any(|fresh| &*fresh.order_id == order_id);
        self.entries.get(order_id).map_or((Seq(0), None, false), |e| (e.first_seen, e.owner, fresh))
    }

    fn take_fresh(&mut self, key: Option<&Key>, order_id: &str) -> Option<Fresh> {
        let take = |list: &mut Vec<Fresh>| {
            list.iter().position(|fresh| &*fresh.order_id == order_id).map(|at| list.remove(at))
        };
        let found = match key {
            Some(key) => self.fresh.get_mut(key).and_then(take),
            None => self.fresh.values_mut().find_map(take),
        };
        self.fresh.retain(|_, list| !list.is_empty());
        found.or_else(|| take(&mut self.vague))
    }
}
