//! Who owns which order.
//!
//! Three rules, each with a counterexample if it is left out: the *oldest* eligible order is taken; a claim waits
//! while another attempt in flight could own the order; and nothing is absent before *every* attempt in doubt of the
//! key is settled.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use steadfast_spec::Code;

use crate::{
    attempt::{Attempt, Never},
    book::Fresh,
    event::Effect,
    intent::{Fault, Finding, Intent, Phase},
    key::Key,
    matcher,
    policy::AccountMode,
    registry::Registry,
    resolution::{Reason, Unresolved},
    stamp::{IntentNo, Seq},
    tally::Confidence,
};

/// So many candidates are told, the oldest first.
const CANDIDATES: usize = 100;

impl Registry {
    /// Draws every conclusion that the evidence on a key allows.
    pub(crate) fn resolve(&mut self, key: &Key, out: &mut Vec<Effect>) {
        self.refute(key, out);
        self.believe_again(key, out);
        // Each claim may take away what kept another intent in doubt.
        while let Some((number, claim)) = self.next_claim(key) {
            match claim {
                Claim::Take(order_id) => self.take(number, &order_id, out),
                Claim::Barred(reason) => self.finish_unresolved(number, reason, out),
            }
        }
        for number in self.open_of(key) {
            self.conclude_absence(number, out);
        }
        self.sweep(key, out);
    }

    pub(crate) fn finish_unresolved(&mut self, number: IntentNo, reason: Reason, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get(&number) else { return };
        let unresolved = Unresolved::of(reason, self, intent);
        // What the caller is told of now is not reported again when it is seen again.
        let told = self.told_of(intent);
        self.book.flag_all(&told);
        self.finish(number, Finding::Unresolved(unresolved), out);
    }

    /// Ends a search whose budget is spent.
    pub(crate) fn give_up(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let once = || self.intents.get(&number).is_some_and(|intent| intent.resends() == 0);
        if steadfast_spec::Planted::UnresolvedResent.is_on() && once() {
            let granted = |intent: &mut Intent| (intent.phase, intent.doubt) = (Phase::Granted, None);
            self.intents.entry(number).and_modify(granted);
            return out.push(Effect::Decided(number));
        }
        // One that was given up just before may have ended it, which is told once.
        let Some(intent) = self.intents.get(&number).filter(|intent| intent.is_open()) else { return };
        let reason = match intent.doubt.as_ref() {
            Some(doubt) if doubt.fault == Some(Fault::NotMonotone) => Reason::ListNotMonotone,
            Some(doubt) if doubt.fault == Some(Fault::Unusable) => Reason::Unverifiable,
            Some(doubt) if doubt.elsewhere.reads > 0 && doubt.here.reads == 0 => Reason::SessionChanged,
            _ if self.is_vetoed(intent) => Reason::NearMatch,
            _ if intent.never() == Some(Never::Success) => Reason::AcceptedUnknownId,
            _ => Reason::Budget,
        };
        let key = intent.key.clone();
        self.finish_unresolved(number, reason, out);
        self.resolve(&key, out);
    }

    /// The candidates of an intent that are told of nowhere else.
    ///
    /// What is no more than like it, and exactly what a send was that is taken for dead or was refused, tells that send's
    /// caller nothing: that it is late, or there at all, is still to be reported, when nobody waits for it any more. So is
    /// what a refused send was, and the intent would be itself, where more is listed than all that it may be: without prices a
    /// list shows two orders alike, and one of them is too many.
    fn told_of(&self, intent: &Intent) -> BTreeSet<Arc<str>> {
        let is_refused = |fresh: &Fresh| self.refused_owner(&intent.key, fresh).is_some();
        let dead: Vec<_> = self.dead_of(&intent.key).map(|(_, intent)| intent).collect();
        let asked: BTreeSet<_> = dead.iter().map(|it| it.order.qty()).collect();
        let is_dead = |fresh: &Fresh| {
            let is_its =
                |it: &&Intent| it.could_own(fresh.first_seen) && matcher::strict(&fresh.record, &it.order);
            fresh.record.qty.is_some_and(|qty| asked.contains(&qty)) && dead.iter().any(is_its)
        };
        let is_news = |fresh: &&Fresh| !is_dead(fresh) || steadfast_spec::Planted::LikenessTakesNews.is_on();
        let near: Vec<_> = self.near(intent).filter(is_news).collect();
        let mut strict: Vec<_> = self.intent_strict(intent).collect();
        if self.refused_of(&intent.key).next().is_none() {
            return strict.into_iter().chain(near).map(|fresh| fresh.order_id.clone()).collect();
        }
        let (alike, near): (Vec<_>, Vec<_>) =
            near.into_iter().partition(|fresh| matcher::strict(&fresh.record, &intent.order));
        strict.extend(alike);
        let near = near
            .into_iter()
            .filter(|fresh| !is_refused(fresh) || steadfast_spec::Planted::LikenessTakesNews.is_on());
        strict.sort_by_key(|fresh| (fresh.first_seen, &fresh.order_id));
        let mut too_many = strict.len().saturating_sub(self.claimants(intent, &strict));
        strict.retain(|fresh| {
            let left = too_many > 0 && is_refused(fresh);
            too_many -= usize::from(left);
            !left
        });
        strict.into_iter().chain(near).map(|fresh| fresh.order_id.clone()).collect()
    }

    /// How many that wait, this one among them, one of these orders may be of.
    fn claimants(&self, intent: &Intent, orders: &[&Fresh]) -> usize {
        let may_own = |other: &Intent| {
            let is_it = |fresh: &&Fresh| {
                other.could_own(fresh.first_seen) && matcher::strict(&fresh.record, &other.order)
            };
            orders.iter().any(is_it)
        };
        self.live_of(&intent.key).filter(|(_, other)| may_own(other)).count().max(1)
    }

    pub(crate) fn candidates_of(&self, intent: &Intent) -> Vec<String> {
        // What is exactly another order of ours is that one's, late or not, and is told of there.
        let mut eligible: Vec<_> = self.intent_strict(intent).chain(self.likely(intent)).collect();
        eligible.sort_by_key(|fresh| fresh.first_seen);
        eligible.into_iter().take(CANDIDATES).map(|fresh| fresh.order_id.to_string()).collect()
    }

    /// The next claim that can be decided on a key: of whoever is worst off without one first, then oldest intent first.
    ///
    /// Each intent could own every order from some moment on, and takes the oldest of them: then as many are served as
    /// can be, in whatever order they take (§2.4 of the design: whose order is whose is a convention, how many there are
    /// is not). Who goes first only decides who is left, and that should be one that is sent again if it is absent.
    fn next_claim(&self, key: &Key) -> Option<(IntentNo, Claim)> {
        let open = self.open_of(key);
        let claim = |number: IntentNo| Some((number, self.claim_of(key, number)?));
        if open.len() > 1 && self.rules.neediest_first {
            for worst in [Alternative::Contradiction, Alternative::Report] {
                let mut claims = open.iter().filter(|&&number| self.alternative(number) == worst);
                // What is barred ends without an order, and waits until the others have taken theirs.
                let take = |&number| claim(number).filter(|(_, claim)| matches!(claim, Claim::Take(_)));
                if let Some(taken) = claims.find_map(take) {
                    return Some(taken);
                }
            }
        }
        open.into_iter().find_map(claim)
    }

    fn claim_of(&self, key: &Key, number: IntentNo) -> Option<Claim> {
        let intent = self.intents.get(&number)?;
        let mut eligible: Vec<&Fresh> = self.intent_strict(intent).collect();
        eligible.sort_by_key(|fresh| (fresh.first_seen, fresh.order_id.clone()));
        let fresh = if self.rules.oldest_first { eligible.first() } else { eligible.last() }?;
        if self.rules.owner_wait && self.may_be_answered_yet(key, number, fresh.first_seen) {
            return None;
        }
        Some(match self.settings.account_mode {
            _ if self.awaits_its_own(number, intent, fresh) => return None,
            _ if self.is_tainted_for(key, intent, fresh) => Claim::Barred(Reason::Tainted),
            // It may be the one that a wrong answer gave to another, and this one somebody else's.
            _ if self.is_disputed(intent) => Claim::Barred(Reason::NearMatch),
            AccountMode::Shared => Claim::Barred(Reason::AmbiguousOwner),
            // What is listed today may have been there yesterday.
            AccountMode::Exclusive if intent.epoch != self.epoch => Claim::Barred(Reason::EpochChanged),
            AccountMode::Exclusive if !intent.has_baseline => Claim::Barred(Reason::NoBaseline),
            AccountMode::Exclusive if self.rules.oldest_first && self.may_own_an_older(intent, fresh) => {
                return None;
            }
            AccountMode::Exclusive => Claim::Take(fresh.order_id.clone()),
        })
    }

    /// What would become of an intent, were it found absent as soon as it can be.
    fn alternative(&self, number: IntentNo) -> Alternative {
        let Some(intent) = self.intents.get(&number) else { return Alternative::Resend };
        if intent.never() == Some(Never::Success) {
            return Alternative::Contradiction;
        }
        let settles = intent.doubt.as_ref().map(|doubt| doubt.base.saturating_add(self.settings.lateness));
        let young = self.is_young(intent, settles.unwrap_or_default().max(self.now));
        if young && self.resend_allowed(intent).is_ok() { Alternative::Resend } else { Alternative::Report }
    }

    pub(crate) fn take(&mut self, number: IntentNo, order_id: &str, out: &mut Vec<Effect>) {
        let confidence = self.confidence(number, order_id);
        let Some(fresh) = self.book.claim(order_id, number) else { return };
        // It was taken because it is named as ours is.
        if let Some(intent) = self.intents.get(&number) {
            self.book.recognise(intent.order.sym_id().folded());
        }
        self.tally.recover(confidence, self.lag(number));
        let status = fresh.record.status.as_ref().map(|status| match status {
            Code::Known(status) => status.as_str().to_owned(),
            Code::Other(text) => text.clone(),
        });
        self.finish(number, Finding::Recovered { order_id: fresh.order_id, status }, out);
    }

    /// How sure it is that a listed order is this intent's and nobody else's.
    fn confidence(&self, number: IntentNo, order_id: &str) -> Confidence {
        let Some(intent) = self.intents.get(&number) else { return Confidence::Partial };
        let mut strict = self.intent_strict(intent);
        let rivals = |fresh: &Fresh| {
            self.live_of(&intent.key).any(|(other, rival)| {
                other != number
                    && rival.could_own(fresh.first_seen)
                    && matcher::strict(&fresh.record, &rival.order)
            })
        };
        match (strict.next(), strict.next()) {
            (Some(fresh), None) if &*fresh.order_id == order_id && !rivals(fresh) => {
                let full = matcher::is_full(&fresh.record, &intent.order);
                if full { Confidence::Exact } else { Confidence::Partial }
            }
            _ => Confidence::Interchangeable,
        }
    }

    /// How long after it could first have appeared an intent's order is seen now.
    pub(crate) fn lag(&self, number: IntentNo) -> Duration {
        let doubt = self.intents.get(&number).and_then(|intent| intent.doubt.as_ref());
        doubt.map_or(Duration::ZERO, |doubt| self.now.saturating_sub(doubt.base))
    }

    /// True if another attempt in flight was sent before the order was seen: its answer may name it.
    pub(crate) fn may_be_answered_yet(&self, key: &Key, claimant: IntentNo, first_seen: Seq) -> bool {
        self.live_of(key).any(|(number, intent)| {
            number != claimant
                && intent.attempts.iter().filter_map(Attempt::in_flight).any(|sent| sent.seq < first_seen)
        })
    }

    /// True if an intent may own an order that was seen before this one and that no record gives to anybody.
    ///
    /// Then the later one is left to its twins: they cannot own the older one, and would be sent again without this.
    fn may_own_an_older(&self, intent: &Intent, fresh: &Fresh) -> bool {
        let sent = intent.first_sent().map(|sent| sent.seq).unwrap_or_default();
        self.book.is_crowded(&intent.key, sent, Some(fresh.first_seen))
            || self.book.awaits_recalled(&intent.key, sent, fresh.first_seen)
            || self.near(intent).any(|older| older.first_seen < fresh.first_seen)
    }

    /// True if an earlier order of the key ended without anybody knowing whether it exists.
    pub(crate) fn is_tainted(&self, key: &Key) -> bool {
        self.keys.get(key).is_some_and(|key| !key.tainting.is_empty())
    }

    /// True if an order may be that of one that ended without certainty: for whoever was sent after that, any order;
    /// for the others, those that it could own as well.
    fn is_tainted_for(&self, key: &Key, intent: &Intent, fresh: &Fresh) -> bool {
        let Some(book) = self.keys.get(key).filter(|book| !book.tainting.is_empty()) else { return false };
        let later = intent.first_sent().is_some_and(|sent| sent.seq > book.tainted);
        let mut others = book.tainting.iter().filter_map(|number| self.intents.get(number));
        later
            || others.any(|other| {
                other.could_own(fresh.first_seen) && matcher::strict(&fresh.record, &other.order)
            })
    }

    pub(crate) fn live_sends(&self, key: &Key) -> impl Iterator<Item = Seq> {
        self.live_of(key).filter_map(|(_, intent)| intent.first_left().map(|sent| sent.seq))
    }

    pub(crate) fn live_of(&self, key: &Key) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let live = self.keys.get(key).map_or(&[][..], |key| &key.live);
        live.iter().filter_map(|&number| self.intents.get(&number).map(|intent| (number, intent)))
    }

    /// The intents of a key that are looked for, in the order in which they were first sent.
    fn open_of(&self, key: &Key) -> Vec<IntentNo> {
        let open = self.live_of(key).filter(|(_, intent)| intent.is_open());
        let mut open: Vec<_> =
            open.map(|(number, intent)| (intent.first_sent().map(|sent| sent.seq), number)).collect();
        open.sort_unstable();
        open.into_iter().map(|(_, number)| number).collect()
    }
}

/// What follows from an intent's absence, the worst first.
#[derive(PartialEq, Eq)]
enum Alternative {
    /// The service said that it took the order: nothing is concluded of its key any more.
    Contradiction,
    /// Its caller is told.
    Report,
    /// It is sent again.
    Resend,
}

enum Claim {
    Take(Arc<str>),
    Barred(Reason),
}
