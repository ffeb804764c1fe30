//! Reports orders that appear too late, or that are too many.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use crate::{
    numbers::{IntentNo, LogicalTime, Session},
    protocol::{
        effect::Effect,
        held_back::{Judgement, Outlook, Sweep},
        intent::Intent,
        key::Key,
        listed_orders::fresh::Fresh,
        matcher,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        phase::Finding,
        resolution::{Reason, Unresolved},
        work,
    },
    settings::policy::AccountMode,
};

impl OrderProtocol {
    /// Reports orders that no intent in flight or in doubt can own: they are late, or one too many. Each is reported once.
    pub(crate) fn sweep(&mut self, key: &Key, out: &mut Vec<Effect>) {
        self.sweep_for(Outlook::MoreLists, key, out);
    }

    pub(crate) fn sweep_for(&mut self, outlook: Outlook, key: &Key, out: &mut Vec<Effect>) {
        let unreported = |fresh: &&Fresh| !fresh.flagged;
        let mut left = self.may_be_late(key);
        let mut sweep = Sweep::of(key, outlook);
        debug_assert!(work::uncounted(|| self.misses_none(&Sweep::of(key, outlook), &left)));
        let (mut kept, mut may_be) = (BTreeSet::new(), BTreeMap::<_, Vec<_>>::new());
        while let Some(fresh) = left.pop_front() {
            let Some((number, judgement)) = self.judge_late(&sweep, &fresh) else { continue };
            match judgement {
                Judgement::Certain => {
                    // If it resolves its owner, the other candidates of that one are not its own.
                    let candidates = self.candidates_of_it_alone(number);
                    self.report_late(key, number, &fresh, out);
                    if self.listed.owner(&fresh.order_id) == Some(number) {
                        sweep = sweep.again();
                        self.listed.unflag_all(&candidates);
                        let others = self.listed.unowned.of(key).filter(unreported);
                        left.extend(others.filter(|it| candidates.contains(&it.order_id)).cloned());
                    }
                }
                Judgement::HeldBack => drop(kept.insert(fresh.order_id)),
                Judgement::MayBe(acknowledged) => {
                    for number in acknowledged {
                        may_be.entry(number).or_default().push(fresh.order_id.clone());
                    }
                    kept.insert(fresh.order_id);
                }
                Judgement::MayBeYesterdays(acknowledged) => {
                    self.listed.flag(&fresh.order_id);
                    for number in acknowledged {
                        may_be.entry(number).or_default().push(fresh.order_id.clone());
                    }
                }
            }
        }
        self.tell_may_be(may_be, out);
        let firsts: Vec<LogicalTime> = self.waiting_sends(key).collect();
        self.listed.unowned.prune(key, |fresh| {
            kept.contains(&fresh.order_id) || firsts.iter().any(|&sent| sent < fresh.first_seen)
        });
        self.listed.unowned.prune_overflow(Some(key), |seen| firsts.iter().any(|&sent| sent < seen));
        if self.listed.unowned.has_vague() {
            let all: Vec<LogicalTime> =
                self.keys.iter().flat_map(|(key, _)| self.waiting_sends(key)).collect();
            self.listed.unowned.prune_vague(|fresh| all.iter().any(|&sent| sent < fresh.first_seen));
            self.listed.unowned.prune_overflow(None, |seen| all.iter().any(|&sent| sent < seen));
        }
    }

    /// Asks for one more list where an order is found beside equal ones while its own may still appear.
    ///
    /// It may be the second order of an equal one, whose 429 was untrue or whose request was applied twice. Then its own
    /// comes later, is one too many, and no other read is due that would show it.
    pub(crate) fn look_for_own(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.get(&number) else { return };
        let Some(doubt) = intent.doubt() else { return };
        let settles = doubt.settles(self.settings.lateness);
        let has_equals = self.keys.get(intent.key()).is_some_and(|key| key.has_others(number));
        // In a shared account it may be a stranger's, and no event reports it.
        let is_told = self.settings.account_mode == AccountMode::Exclusive;
        if has_equals && is_told && settles >= self.time.now() {
            self.watches.look_after(settles);
        }
    }

    /// Returns the unreported orders of a key that may belong to a decided intent.
    ///
    /// Such an order has the quantity of one, carries the tag of one, or may be one that was found absent or refused,
    /// in another form. A crowd of other ones is not compared with each decided intent.
    fn may_be_late(&self, key: &Key) -> VecDeque<Fresh> {
        let mut unreported = self.listed.unowned.of(key).filter(|fresh| !fresh.flagged).peekable();
        if unreported.peek().is_none() {
            // The usual case: no look at each decided intent.
            return VecDeque::new();
        }
        let mut decided = self.finished_of(key).map(|(_, intent)| intent);
        let in_any_form =
            !self.tags.is_unused() || decided.any(|it| it.was_told_absent() || it.was_refused());
        let is_of_one = |fresh: &&Fresh| self.finished_like(key, &fresh.record).next().is_some();
        unreported.filter(|fresh| in_any_form || is_of_one(fresh)).cloned().collect()
    }

    /// True if no other unreported order of the key belongs to a decided intent, by a look at each of them.
    fn misses_none(&self, sweep: &Sweep<'_>, late: &VecDeque<Fresh>) -> bool {
        let mut others =
            self.listed.unowned.of(sweep.key()).filter(|fresh| {
                !fresh.flagged && !late.iter().any(|it| Arc::ptr_eq(&it.record, &fresh.record))
            });
        others.all(|fresh| self.judge_late(sweep, fresh).is_none())
    }

    /// Returns the decided intent that a listed order without an owner belongs to, and whether that may be reported.
    fn judge_late(&self, sweep: &Sweep<'_>, fresh: &Fresh) -> Option<(IntentNo, Judgement)> {
        let key = sweep.key();
        if let Some(number) = self.owner_too_late(key, fresh) {
            return Some((number, self.judge_equal(sweep, number, fresh)));
        }
        let number = self.alike_owner(key, fresh)?;
        Some((number, self.judge_alike(sweep, fresh)))
    }

    /// Returns when orders of a key were sent that a listed order may still turn out to be.
    fn waiting_sends(&self, key: &Key) -> impl Iterator<Item = LogicalTime> {
        self.live_sends(key).chain(self.barring_sends(key)).chain(self.unconfirmed_sends(key))
    }

    /// Reports resends whose absence rested on lists of a session that now lack an order they should show.
    pub(crate) fn suspect_resends(&mut self, session: Session, out: &mut Vec<Effect>) {
        for (number, _) in self.watches.iter() {
            let Some(intent) = self.intents.get_mut(&number) else { continue };
            let is_one =
                intent.resends() > 0 && intent.day() == self.time.day() && intent.was_sent_in(session);
            if is_one && intent.suspect() {
                let (name, kept) = (intent.name().cloned(), intent.order_id().map(ToString::to_string));
                out.push(Effect::Report(OrderEvent::MayBeDoubled { intent: number, name, kept }));
            }
        }
    }

    /// Reports refused or absent orders that are listed under identifiers which answers gave to other intents.
    pub(crate) fn report_disputed(&mut self, out: &mut Vec<Effect>) {
        let owned = |fresh: &Fresh| {
            let key = Key::of_record(&fresh.record)?;
            let absent = || self.absent_owner(&key, fresh, matcher::strict);
            // It is more likely an order in doubt, whose caller is told of it.
            let absent = || absent().filter(|_| !self.is_wanted(&key, fresh));
            let owner = self.refused_owner(&key, fresh).or_else(absent)?;
            Some((owner, fresh.order_id.clone()))
        };
        let owned: Vec<_> = self.listed.disputed.unreported().filter_map(owned).collect();
        for (number, order_id) in owned {
            let Some(intent) = self.intents.get(&number) else { continue };
            let (name, kept, shown) = (intent.name().cloned(), None, order_id.to_string());
            self.listed.disputed.report(&order_id);
            self.listed.flag(&order_id);
            out.push(Effect::Report(match intent.was_told_not_placed() {
                true => OrderEvent::RefusedButPlaced { intent: number, name, order_id: shown, kept },
                false => OrderEvent::LateDuplicate { intent: number, name, order_id: shown, kept },
            }));
            self.take_name_back_for(number, &order_id, out);
        }
    }

    /// Makes the name of a refused or rejected order stand for it again, once a list shows the order.
    ///
    /// A call that repeats the name gets that order or, where it may be a stranger's, an order in doubt. After a
    /// rejection the name was free at once: it returns unless another intent has taken it by now.
    pub(crate) fn take_name_back_for(&mut self, number: IntentNo, order_id: &str, out: &mut Vec<Effect>) {
        self.take_name_back(number, Unresolved::new(Reason::NearMatch, vec![order_id.to_owned()]), out);
    }

    /// Does the same for an order that was rejected and may exist; a repeat gets `unresolved`.
    pub(crate) fn take_name_back(&mut self, number: IntentNo, unresolved: Unresolved, out: &mut Vec<Effect>) {
        let Some(holder) = self.intents.take_name_back(number) else { return };
        // A repeat that waits for this list is told.
        if self.rejected.release(holder) {
            out.push(Effect::Decided(holder));
        }
        let Some(intent) = self.intents.get_mut(&number) else { return };
        if intent.was_told_not_placed() {
            intent.finish(Finding::Unresolved(unresolved));
        }
    }

    /// Lets an intent whose answer is withdrawn own orders that were reported as late ones of equal intents: its own may
    /// be among them.
    pub(crate) fn take_back_late(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.get(&number) else { return };
        let intents = &self.intents;
        let is_equal =
            |other: &Intent| other.key() == intent.key() && other.order().qty() == intent.order().qty();
        let freed = self.listed.unflag_late(|other, first_seen| {
            intent.could_own(first_seen) && intents.get(&other).is_some_and(is_equal)
        });
        for other in freed {
            if let Some(other) = self.intents.get_mut(&other) {
                other.uncount_late();
            }
        }
    }

    pub(crate) fn report_late(&mut self, key: &Key, number: IntentNo, fresh: &Fresh, out: &mut Vec<Effect>) {
        let lag = self.lateness_of(number);
        let Some(intent) = self.intents.get(&number) else { return };
        let refused = intent.was_told_not_placed();
        // It still bars waiting intents that are like it: most refusals are true, and orders get changed.
        let wanted = refused && self.live_of(key).any(|(_, intent)| intent.could_own(fresh.first_seen));
        let tagged = self.owner_by_tag(fresh) == Some(number);
        // An order that is listed today may have been listed yesterday.
        let certain = !wanted
            && intent.order_id().is_none()
            && intent.day() == self.time.day()
            && self.would_be_claimed(intent, fresh)
            && (tagged || !self.has_another_candidate(intent, fresh));
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let (name, kept) = (intent.name().cloned(), intent.order_id().map(Arc::clone));
        let order_id = fresh.order_id.to_string();
        let appeared = |order_id| match refused {
            true => OrderEvent::RefusedButPlaced { intent: number, name: name.clone(), order_id, kept: None },
            false => OrderEvent::LateDuplicate { intent: number, name: name.clone(), order_id, kept: None },
        };
        match (kept, intent.resends(), self.settings.account_mode) {
            // Its caller was told that it is unresolved, and this does not resolve it.
            (None, ..) if !certain => {
                self.listed.flag(&fresh.order_id);
                out.push(Effect::Report(appeared(order_id)));
                self.take_name_back_for(number, &fresh.order_id, out);
            }
            // Its caller was told that it is unresolved. Now it is resolved, and the order has its owner.
            (None, ..) => {
                self.listed.claim(&fresh.order_id, number);
                // A rejected order was never in doubt, so how late it is listed is not known.
                if !refused {
                    self.tally.visibility_lag.observe(lag);
                }
                let status = None;
                intent.finish(Finding::Recovered { order_id: fresh.order_id.clone(), status });
                out.push(Effect::Report(appeared(order_id)));
                self.keys.unblock(key, number);
                self.take_name_back_for(number, &fresh.order_id, out);
            }
            (Some(kept), 1.., _) => {
                intent.count_late();
                self.listed.flag_late(&fresh.order_id, number);
                self.tally.visibility_lag.observe(lag);
                let kept = Some(kept.to_string());
                out.push(Effect::Report(OrderEvent::LateDuplicate { intent: number, name, order_id, kept }));
            }
            (Some(kept), 0, AccountMode::Exclusive) if intent.was_refused() => {
                self.listed.flag(&fresh.order_id);
                let kept = Some(kept.to_string());
                out.push(Effect::Report(OrderEvent::RefusedButPlaced {
                    intent: number,
                    name,
                    order_id,
                    kept,
                }));
            }
            (Some(_), 0, mode) if mode == AccountMode::Exclusive || tagged => {
                self.listed.flag(&fresh.order_id);
                out.push(Effect::Report(OrderEvent::Excess { intent: number, order_id }));
            }
            // Others place orders too, and this one may well be theirs.
            (Some(_), 0, _) => {}
        }
    }
}
