mod ends;
mod sends;

use std::{sync::Arc, time::Duration};

use steadfast_call::ext;
use steadfast_spec::{OrderRequest, Tag};

use crate::{
    numbers::{LogicalTime, Session, TradingDay},
    protocol::{
        attempt::Attempt,
        doubt::{Block, Doubt, Fault},
        key::Key,
        phase::Phase,
    },
};

/// One order that a caller wants, with everything that was tried for it.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    order: Arc<OrderRequest>,
    key: Key,
    name: Option<ext::IntentId>,
    day: TradingDay,
    /// When its caller asked for it, on the clock of ages.
    opened: Duration,
    /// It was sent so near midnight that it may be listed on either day.
    at_midnight: bool,
    /// If it was lost before midnight: what must happen before it stops blocking later orders.
    block: Option<Block>,
    attempts: Vec<Attempt>,
    phase: Phase,
    caller_waits: bool,
    /// Whether its session's list was known when it was first sent, or has shown none like it since.
    has_baseline: bool,
    /// Whether its last refusal was one of the token (401).
    token_refused: bool,
    /// Whether a resend was rejected. Then the earlier sends are searched for once more and never sent again.
    resend_rejected: bool,
    /// Boxed: few orders are ever in doubt, and all of a day are kept.
    doubt: Option<Box<Doubt>>,
    /// It was reported that the lists behind its resend may have lacked its order.
    suspected: bool,
    /// Orders of it that appeared late, besides the one that its caller was told of.
    late: usize,
    /// The identifier that an answer gave it, true or not.
    answered: Option<Arc<str>>,
    /// The tag that all of its sends carry, to recognise its order by.
    tag: Option<Tag>,
    /// A user ruled on how it ended.
    ruled: bool,
}

impl Intent {
    pub(crate) fn new(
        order: Arc<OrderRequest>,
        name: Option<ext::IntentId>,
        day: TradingDay,
        opened: Duration,
    ) -> Self {
        Self {
            key: Key::of_order(&order),
            order,
            name,
            day,
            opened,
            at_midnight: false,
            block: None,
            attempts: Vec::new(),
            phase: Phase::Idle,
            caller_waits: true,
            has_baseline: false,
            token_refused: false,
            resend_rejected: false,
            doubt: None,
            suspected: false,
            late: 0,
            answered: None,
            tag: None,
            ruled: false,
        }
    }

    pub(crate) fn order(&self) -> &Arc<OrderRequest> {
        &self.order
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn name(&self) -> Option<&ext::IntentId> {
        self.name.as_ref()
    }

    /// Returns what all of its sends carry, to recognise its order by.
    pub(crate) fn tag(&self) -> Option<Tag> {
        self.tag
    }

    /// Gives it its tag, once.
    pub(crate) fn set_tag(&mut self, tag: Tag) {
        self.tag.get_or_insert(tag);
    }

    /// Takes it away: a send of it leaves without.
    pub(crate) fn drop_tag(&mut self) {
        self.tag = None;
    }

    /// Returns the trading day of its first send or, before that, of its call.
    pub(crate) fn day(&self) -> TradingDay {
        self.day
    }

    /// Returns when its caller asked for it, on the clock of ages.
    pub(crate) fn opened(&self) -> Duration {
        self.opened
    }

    /// True if it was sent so near midnight that it may be listed on either day.
    pub(crate) fn at_midnight(&self) -> bool {
        self.at_midnight
    }

    /// True if it was lost before midnight and may still block later orders.
    pub(crate) fn is_block(&self) -> bool {
        self.block.is_some()
    }

    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// True while its caller waits.
    pub(crate) fn has_caller(&self) -> bool {
        self.caller_waits
    }

    pub(crate) fn has_baseline(&self) -> bool {
        self.has_baseline
    }

    pub(crate) fn token_refused(&self) -> bool {
        self.token_refused
    }

    pub(crate) fn was_resend_rejected(&self) -> bool {
        self.resend_rejected
    }

    pub(crate) fn doubt(&self) -> Option<&Doubt> {
        self.doubt.as_deref()
    }

    /// Returns how many orders of it appeared late.
    #[cfg(test)]
    pub(crate) fn late(&self) -> usize {
        self.late
    }

    /// Notes, at its first send, its trading day and whether its session's list is known.
    pub(crate) fn date(&mut self, day: TradingDay, has_baseline: bool) {
        (self.day, self.has_baseline) = (day, has_baseline);
    }

    /// Notes that a list of its session shows no order that could be its.
    pub(crate) fn give_baseline(&mut self) {
        self.has_baseline = true;
    }

    /// Notes whether the latest refusal was one of the token (401).
    pub(crate) fn set_token_refused(&mut self, by_token: bool) {
        self.token_refused = by_token;
    }

    /// Notes that a caller asks for it again.
    pub(crate) fn ask_again(&mut self, now: Duration) {
        (self.caller_waits, self.opened) = (true, now);
    }

    /// Notes that its caller is gone.
    pub(crate) fn abandon(&mut self) {
        self.caller_waits = false;
    }

    /// Takes its name away, so that a caller can use it for another order.
    pub(crate) fn drop_name(&mut self) {
        self.name = None;
    }

    pub(crate) fn rename_day(&mut self, day: TradingDay) {
        self.day = day;
    }

    /// Extends the search by this time; false if that was done before, or nothing is searched for.
    pub(crate) fn prolong(&mut self, by: Duration) -> bool {
        self.doubt.as_mut().is_some_and(|doubt| doubt.prolong(by))
    }

    /// Counts a valid list of this session that was asked for at this position.
    pub(crate) fn count_list(&mut self, session: Session, evidence: LogicalTime) {
        let same = self.session() == Some(session);
        if let Some(doubt) = self.doubt.as_mut() {
            doubt.count_list(same, evidence);
        }
    }

    /// Notes that the latest read was useless.
    pub(crate) fn note_fault(&mut self, fault: Fault) {
        if let Some(doubt) = self.doubt.as_mut() {
            doubt.note_fault(fault);
        }
    }

    /// Blocks later orders until lists that are read from then on show nothing of it.
    pub(crate) fn block_from(&mut self, from: Duration) {
        self.block.get_or_insert(Block::new(from));
    }

    /// Lets those lists count only from this time on, after a restart.
    pub(crate) fn put_off_block(&mut self, from: Duration) {
        if let Some(block) = &mut self.block {
            block.put_off(from);
        }
    }

    /// Counts a list read at this time for its block; true if so many in a row have shown nothing of it.
    pub(crate) fn pass_block(&mut self, at: Duration, session: Session, shown: bool, needed: u8) -> bool {
        self.block.as_mut().is_some_and(|block| block.pass(at, session, shown, needed))
    }
}
