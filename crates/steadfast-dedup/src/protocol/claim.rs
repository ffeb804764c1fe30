//! Decides which intent owns which listed order.
//!
//! Three rules, each with a counterexample if it is left out: an intent takes the *oldest* eligible order; a claim
//! waits while another attempt in flight could own the order; and no intent is absent before *every* attempt in doubt
//! of the key is settled.

use std::{sync::Arc, time::Duration};

use steadfast_spec::{Code, OrderRecord};

use crate::{
    numbers::{IntentNo, LogicalTime},
    protocol::{
        attempt::{Attempt, Never},
        by_tag::ByTag,
        doubt::Fault,
        effect::Effect,
        intent::Intent,
        key::Key,
        keys::KeyIntents,
        listed_orders::fresh::Fresh,
        matcher,
        order_protocol::OrderProtocol,
        phase::Finding,
        resolution::{Reason, Unresolved},
        tally::Confidence,
    },
    settings::policy::AccountMode,
};

impl OrderProtocol {
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
        // Found once for both: lists may be long.
        let matches = self.matches_of(intent);
        let answered = intent.answered().map(ToString::to_string);
        let unresolved =
            Unresolved { answered, ..Unresolved::new(reason, self.candidates_among(intent, &matches)) };
        // Candidates that the caller is told of now are not reported again when they are listed again.
        let told = self.told_of(intent, matches);
        self.listed.flag_all(&told);
        self.finish(number, Finding::Unresolved(unresolved), out);
    }

    /// Ends a search whose budget is spent.
    pub(crate) fn give_up(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        // Giving up the intent before this one may have ended this one too. Report it once.
        let Some(intent) = self.intents.get(&number).filter(|intent| intent.is_open()) else { return };
        let reason = match intent.doubt() {
            Some(doubt) if doubt.fault == Some(Fault::NotMonotone) => Reason::ListNotMonotone,
            Some(doubt) if doubt.fault == Some(Fault::Unusable) => Reason::Unverifiable,
            Some(doubt) if doubt.elsewhere.reads > 0 && doubt.here.reads == 0 => Reason::SessionChanged,
            _ if self.is_vetoed(intent) => Reason::NearMatch,
            _ if intent.never() == Some(Never::Success) => Reason::AcceptedUnknownId,
            _ => Reason::Budget,
        };
        let key = intent.key().clone();
        self.finish_unresolved(number, reason, out);
        self.resolve(&key, out);
    }

    /// Returns the next claim that can be decided on a key: intents with the worst alternative first, then the
    /// oldest.
    ///
    /// From its first send on, each intent could own every order that appears. If each takes the oldest one, as many
    /// as possible get one, in any sequence: which twin owns which order is a convention, their number is not. The
    /// sequence only decides which intent gets none; that should be one that can be sent again.
    fn next_claim(&self, key: &Key) -> Option<(IntentNo, Claim)> {
        let open = self.open_of(key);
        let claim = |number: IntentNo| Some((number, self.claim_of(key, number)?));
        if open.len() > 1 && self.rules.worst_alternative_first {
            let ranked: Vec<_> = open.iter().map(|&number| (self.alternative(number), number)).collect();
            for worst in [Alternative::Contradiction, Alternative::Report] {
                let mut claims = ranked.iter().filter(|(alternative, _)| *alternative == worst);
                // A barred claim ends without an order, so it waits until the others have taken theirs.
                let take = |&(_, number): &(_, IntentNo)| {
                    claim(number).filter(|(_, claim)| matches!(claim, Claim::Take(_)))
                };
                if let Some(taken) = claims.find_map(take) {
                    return Some(taken);
                }
            }
        }
        open.into_iter().find_map(claim)
    }

    fn claim_of(&self, key: &Key, number: IntentNo) -> Option<Claim> {
        let intent = self.intents.get(&number)?;
        match self.by_tag(intent) {
            ByTag::Its(order_id) => return Some(Claim::Take(order_id)),
            ByTag::Copied => return Some(Claim::Barred(Reason::NearMatch)),
            ByTag::Unclear => return None,
            ByTag::Nothing => {}
        }
        let mut eligible: Vec<&Fresh> = self.intent_strict(intent).collect();
        eligible.sort_by_key(|fresh| (fresh.first_seen, fresh.order_id.clone()));
        let fresh = if self.rules.oldest_first { eligible.first() } else { eligible.last() }?;
        if self.rules.owner_wait && self.may_be_answered_yet(key, number, fresh.first_seen) {
            return None;
        }
        let claim = match self.settings.account_mode {
            _ if self.awaits_its_own(number, intent, fresh) => return None,
            _ if self.is_blocked_for(key, intent, fresh) => Claim::Barred(Reason::Tainted),
            // The order may be one that a wrong answer gave to another intent, and the listed one a stranger's.
            _ if self.is_disputed_exactly(intent) => Claim::Barred(Reason::NearMatch),
            AccountMode::Shared => Claim::Barred(Reason::AmbiguousOwner),
            // An order that is listed today may have been listed yesterday.
            AccountMode::Exclusive if intent.day() != self.time.day() => Claim::Barred(Reason::EpochChanged),
            AccountMode::Exclusive if !intent.has_baseline() => Claim::Barred(Reason::NoBaseline),
            AccountMode::Exclusive if self.rules.oldest_first && self.may_own_an_older(intent, fresh) => {
                return None;
            }
            AccountMode::Exclusive => Claim::Take(fresh.order_id.clone()),
        };
        // Until the order is certainly listed, lists may still prove that tags tell whose it is.
        let waits = matches!(claim, Claim::Barred(_)) && self.may_prove_tag(intent);
        (!waits).then_some(claim)
    }

    /// Returns what would follow if an intent were found absent as soon as it can be.
    fn alternative(&self, number: IntentNo) -> Alternative {
        let Some(intent) = self.intents.get(&number) else { return Alternative::Resend };
        if intent.never() == Some(Never::Success) {
            return Alternative::Contradiction;
        }
        let settles = intent.doubt().map(|doubt| doubt.settles(self.settings.lateness));
        let young = self.is_young(intent, settles.unwrap_or_default().max(self.time.now()));
        if young && self.resend_allowed(intent).is_ok() { Alternative::Resend } else { Alternative::Report }
    }

    pub(crate) fn take(&mut self, number: IntentNo, order_id: &str, out: &mut Vec<Effect>) {
        let confidence = self.confidence(number, order_id);
        let tagged = self
            .intents
            .get(&number)
            .and_then(|intent| self.tagged(intent).find(|fresh| *fresh.order_id == *order_id).cloned());
        let Some(fresh) = self.listed.claim(order_id, number).or(tagged) else { return };
        // It was claimed by its instrument's name, so lists use our spelling of it; by its tag, that may be otherwise.
        let is_named = |intent: &&Intent| {
            fresh.record.sym_id.is_some() && matcher::may_be_its_instrument(&fresh.record, intent.order())
        };
        if let Some(intent) = self.intents.get(&number).filter(is_named) {
            self.listed.recognise(intent.order().sym_id().folded());
        }
        self.tally.recover(confidence, self.lateness_of(number));
        let status = fresh.record.status.as_ref().map(|status| match status {
            Code::Known(status) => status.as_str().to_owned(),
            Code::Other(text) => text.clone(),
        });
        if confidence != Confidence::Tagged {
            self.look_for_own(number);
        }
        self.finish(number, Finding::Recovered { order_id: fresh.order_id, status }, out);
    }

    /// Returns how certain it is that a listed order is this intent's alone.
    fn confidence(&self, number: IntentNo, order_id: &str) -> Confidence {
        let Some(intent) = self.intents.get(&number) else { return Confidence::Partial };
        if let ByTag::Its(its) = self.by_tag(intent)
            && *its == *order_id
        {
            return Confidence::Tagged;
        }
        let mut strict = self.intent_strict(intent);
        let rivals = |fresh: &Fresh| {
            self.live_of(intent.key()).any(|(other, rival)| {
                other != number
                    && rival.could_own(fresh.first_seen)
                    && matcher::strict(&fresh.record, rival.order())
            })
        };
        match (strict.next(), strict.next()) {
            (Some(fresh), None) if &*fresh.order_id == order_id && !rivals(fresh) => {
                let full = matcher::is_full(&fresh.record, intent.order());
                if full { Confidence::Exact } else { Confidence::Partial }
            }
            _ => Confidence::Interchangeable,
        }
    }

    /// Returns how long after its lateness base an intent's order is seen now; zero if it was never in doubt.
    pub(crate) fn lateness_of(&self, number: IntentNo) -> Duration {
        let doubt = self.intents.get(&number).and_then(|intent| intent.doubt());
        doubt.map_or(Duration::ZERO, |doubt| self.time.now().saturating_sub(doubt.base))
    }

    /// True if another attempt in flight was sent before the order was seen: its answer may name it.
    pub(crate) fn may_be_answered_yet(&self, key: &Key, claimant: IntentNo, first_seen: LogicalTime) -> bool {
        self.live_of(key).any(|(number, intent)| {
            number != claimant
                && intent.attempts().iter().filter_map(Attempt::in_flight).any(|sent| sent.seq < first_seen)
        })
    }

    /// True if an intent may own an order without an owner that was seen before this one.
    ///
    /// Then the later order is left to its twins: they cannot own the older one, and would be sent again without this
    /// one.
    fn may_own_an_older(&self, intent: &Intent, fresh: &Fresh) -> bool {
        let sent = intent.first_sent().map(|sent| sent.seq).unwrap_or_default();
        self.listed.unowned.has_overflow(intent.key(), sent, Some(fresh.first_seen))
            || self.listed.withdrawn.awaits_recalled(intent.key(), sent, fresh.first_seen)
            || self.near(intent).any(|older| older.first_seen < fresh.first_seen)
    }

    /// True if an earlier order of the key ended without certainty whether it exists.
    pub(crate) fn is_blocked(&self, key: &Key) -> bool {
        self.keys.get(key).is_some_and(|key| key.blocked_since().is_some())
    }

    /// True if a listed order may belong to an intent that ended without certainty.
    ///
    /// For an intent that was sent after that end, this is any order; for others, the orders that both could own.
    fn is_blocked_for(&self, key: &Key, intent: &Intent, fresh: &Fresh) -> bool {
        let Some(its) = self.keys.get(key) else { return false };
        let Some(since) = its.blocked_since() else { return false };
        let later = intent.first_sent().is_some_and(|sent| sent.seq > since);
        let mut others = its.blockers().iter().filter_map(|number| self.intents.get(number));
        later
            || others.any(|other| {
                other.could_own(fresh.first_seen) && matcher::strict(&fresh.record, other.order())
            })
    }

    pub(crate) fn live_sends(&self, key: &Key) -> impl Iterator<Item = LogicalTime> {
        self.live_of(key).filter_map(|(_, intent)| intent.first_left().map(|sent| sent.seq))
    }

    pub(crate) fn live_of(&self, key: &Key) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let live = self.keys.get(key).map_or(&[][..], KeyIntents::live);
        live.iter().filter_map(|&number| self.intents.get(&number).map(|intent| (number, intent)))
    }

    /// Returns the decided intents of a key.
    pub(crate) fn finished_of(&self, key: &Key) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let finished = self.keys.get(key).into_iter().flat_map(|key| key.finished().iter());
        finished.filter_map(|number| Some((number, self.intents.get(&number)?)))
    }

    /// Returns those that asked for the quantity which a record shows: no other one can match it exactly.
    pub(crate) fn finished_like(
        &self,
        key: &Key,
        record: &OrderRecord,
    ) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let finished = self.keys.get(key).zip(record.qty);
        let finished = finished.into_iter().flat_map(|(key, qty)| key.finished().of_qty(qty));
        finished.filter_map(|number| Some((number, self.intents.get(&number)?)))
    }

    /// Returns the intents of a key that are searched for, in the order of their first sends.
    fn open_of(&self, key: &Key) -> Vec<IntentNo> {
        let open = self.live_of(key).filter(|(_, intent)| intent.is_open());
        let mut open: Vec<_> =
            open.map(|(number, intent)| (intent.first_sent().map(|sent| sent.seq), number)).collect();
        open.sort_unstable();
        open.into_iter().map(|(_, number)| number).collect()
    }
}

/// The consequence of an intent's absence, the worst first.
#[derive(PartialEq, Eq)]
enum Alternative {
    /// The service said that it took the order, so the absence blocks the key.
    Contradiction,
    /// The caller is told.
    Report,
    /// It is sent again.
    Resend,
}

enum Claim {
    Take(Arc<str>),
    Barred(Reason),
}
