//! Reports listed orders in another form than ours were sent in.
//!
//! A list may show an order with another price, type or quantity, or without its side. In an exclusive account such an
//! order without an owner is one of ours all the same: one that was refused, or one more than was asked for. It is
//! reported only if no order in flight, in doubt or unresolved can be it.

use crate::{
    numbers::IntentNo,
    protocol::{
        effect::Effect, intent::Intent, key::Key, listed_orders::fresh::Fresh, matcher,
        order_protocol::OrderProtocol,
    },
    settings::policy::AccountMode,
};

impl OrderProtocol {
    /// Returns the decided intent that a listed order may be in another form, if no other order of ours can be it.
    pub(crate) fn alike_owner(&self, key: &Key, fresh: &Fresh) -> Option<IntentNo> {
        if self.settings.account_mode != AccountMode::Exclusive
            || self.listed.is_ambiguous(&fresh.order_id)
            || matcher::is_exit_leg(&fresh.record)
            || self.may_be_awaited(fresh)
        {
            return None;
        }
        let is_like = |intent: &Intent| {
            intent.day() == self.time.day()
                && intent.could_own(fresh.first_seen)
                && matcher::loose(&fresh.record, intent.order())
        };
        // Few were refused, and the others of a busy day are many.
        let refused =
            self.finished_of(key).filter(|(number, intent)| self.is_believed_refused(*number, intent));
        let alike = refused.filter(|(_, intent)| is_like(intent));
        alike.max_by_key(|(number, _)| *number).map(|(number, _)| number)
    }

    /// Reports refused orders that a list shows without their key. Those with a key are reported with the others.
    pub(crate) fn report_vague(&mut self, out: &mut Vec<Effect>) {
        let unreported: Vec<Fresh> =
            self.listed.unowned.vague().filter(|fresh| !fresh.flagged).cloned().collect();
        for fresh in unreported {
            let owner =
                self.keys.iter().find_map(|(key, _)| Some((key.clone(), self.alike_owner(key, &fresh)?)));
            if let Some((key, number)) = owner {
                self.report_late(&key, number, &fresh, out);
            }
        }
    }

    /// True if an order in flight or in doubt, of any key that the record may have, can be a listed one.
    fn may_be_awaited(&self, fresh: &Fresh) -> bool {
        self.live_intents().any(|(_, intent)| {
            intent.could_own(fresh.first_seen) && matcher::loose(&fresh.record, intent.order())
        })
    }

    /// True if a refusal of an intent was believed, and no repeat of its name waits for a list that confirms it.
    fn is_believed_refused(&self, number: IntentNo, intent: &Intent) -> bool {
        let is_decided = intent.order_id().is_some() || intent.was_told_not_placed();
        intent.was_refused() && is_decided && !self.rejected.is_unconfirmed(number, Some(intent))
    }
}
