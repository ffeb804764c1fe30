#![expect(
    clippy::disallowed_types,
    reason = "plain data for services, which convert to tokio's Instant; nothing here reads a clock"
)]

use std::{sync::Arc, time::Instant};

use http::Extensions;

use crate::{
    Lane, Moment, Route,
    ext::{Account, IntentId, SendStamp, Sends, Ticket, TokenGeneration},
    place::Passed,
};

/// The facts about one call, in the extensions of its request.
///
/// A caller may set the [lane](Self::set_lane), the [account](Self::set_account), the [intent](Self::set_intent), the
/// [deadline](Self::set_deadline) and the [time to send](Self::set_send_by) before the call; layers add the rest. Each
/// layer works without the others: it reads the default where a fact is missing.
///
/// # Example
///
/// ```
/// use http::Request;
/// use steadfast_call::{Call, Lane};
///
/// let mut poll = Request::get("https://api.example/v2/api/oms/orders").body(())?;
/// Call::of_mut(poll.extensions_mut()).set_lane(Lane::Bulk);
/// assert_eq!(Call::of(poll.extensions()).lane(), Some(Lane::Bulk));
/// # Ok::<(), http::Error>(())
/// ```
///
/// # Clone
///
/// Clones share the facts until one of them is changed; a change is seen by no other clone. Another send begins without the
/// [stamp](Self::send) of the last one: see [`next_send`](Self::next_send).
#[derive(Clone, Debug, Default)]
pub struct Call {
    facts: Option<Arc<Facts>>,
    ticket: Option<Ticket>,
    send: Option<SendStamp>,
    generation: Option<TokenGeneration>,
    repeats: u32,
    at_head_of_lane: bool,
    own_authorization: bool,
    passed: Passed,
}

/// The same for all sends of a call.
#[derive(Clone, Debug, Default)]
struct Facts {
    route: Option<Arc<Route>>,
    deadline: Option<Instant>,
    send_by: Option<Instant>,
    began: Option<Moment>,
    lane: Option<Lane>,
    account: Option<Account>,
    intent: Option<IntentId>,
    sends: Option<Sends>,
}

impl Call {
    /// Returns the facts about the request with these extensions; without any, one that knows nothing.
    #[must_use]
    pub fn of(extensions: &Extensions) -> &Self {
        static UNKNOWN: Call = Call {
            facts: None,
            ticket: None,
            send: None,
            generation: None,
            repeats: 0,
            at_head_of_lane: false,
            own_authorization: false,
            passed: Passed::NONE,
        };
        extensions.get().unwrap_or(&UNKNOWN)
    }

    /// Returns the same to be changed.
    pub fn of_mut(extensions: &mut Extensions) -> &mut Self {
        extensions.get_or_insert_default()
    }

    /// Returns the facts for another send of the request: all but the stamp of the last one.
    ///
    /// A [stamp](Self::send) belongs to one send. A blank one that is never written would prove that nothing ever
    /// leaves.
    #[must_use]
    pub fn next_send(&self) -> Self {
        Self { send: None, ..self.clone() }
    }

    fn facts(&self) -> Option<&Facts> {
        self.facts.as_deref()
    }

    fn facts_mut(&mut self) -> &mut Facts {
        Arc::make_mut(self.facts.get_or_insert_default())
    }

    /// Returns what method and path say about the request. Set by the route layer.
    #[must_use]
    pub fn route(&self) -> Option<&Arc<Route>> {
        self.facts()?.route.as_ref()
    }

    /// Sets the route.
    pub fn set_route(&mut self, route: Arc<Route>) -> &mut Self {
        self.facts_mut().route = Some(route);
        self
    }

    /// Returns when the caller wants an answer. Set by the caller or by the deadline layer.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.facts()?.deadline
    }

    /// Sets when the caller wants an answer.
    pub fn set_deadline(&mut self, at: Instant) -> &mut Self {
        self.facts_mut().deadline = Some(at);
        self
    }

    /// Returns when the request must have left; later it is not sent at all. Set by the caller or by the deadline
    /// layer.
    #[must_use]
    pub fn send_by(&self) -> Option<Instant> {
        self.facts()?.send_by
    }

    /// Sets when the request must have left.
    pub fn set_send_by(&mut self, at: Instant) -> &mut Self {
        self.facts_mut().send_by = Some(at);
        self
    }

    /// Returns when a call that places or changes an order began, by every clock. With it, suspension counts for
    /// [`send_by`](Self::send_by) and [`deadline`](Self::deadline), whose instants are of a clock that may have stood
    /// still. Set by the dedup layer.
    #[must_use]
    pub fn began(&self) -> Option<Moment> {
        self.facts()?.began
    }

    /// Sets when the call began.
    pub fn set_began(&mut self, at: Moment) -> &mut Self {
        self.facts_mut().began = Some(at);
        self
    }

    /// Returns the lane that the caller asks for; without one, the route's counts.
    #[must_use]
    pub fn lane(&self) -> Option<Lane> {
        self.facts()?.lane
    }

    /// Sets the lane.
    pub fn set_lane(&mut self, lane: Lane) -> &mut Self {
        self.facts_mut().lane = Some(lane);
        self
    }

    /// Returns the public name of the request's credentials. Set by the caller or by the route layer.
    #[must_use]
    pub fn account(&self) -> Option<&Account> {
        self.facts()?.account.as_ref()
    }

    /// Sets the account.
    pub fn set_account(&mut self, account: Account) -> &mut Self {
        self.facts_mut().account = Some(account);
        self
    }

    /// Returns the caller's own name for an order. Set by the caller.
    #[must_use]
    pub fn intent(&self) -> Option<&IntentId> {
        self.facts()?.intent.as_ref()
    }

    /// Sets the name of the order.
    pub fn set_intent(&mut self, intent: IntentId) -> &mut Self {
        self.facts_mut().intent = Some(intent);
        self
    }

    /// Returns the message of a layer's outer half to its inner half.
    #[must_use]
    pub fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// Sets the message to the inner half.
    pub fn set_ticket(&mut self, ticket: Ticket) -> &mut Self {
        self.ticket = Some(ticket);
        self
    }

    /// Returns the data shared by the spans of the call's sends.
    #[must_use]
    pub fn sends(&self) -> Option<&Sends> {
        self.facts()?.sends.as_ref()
    }

    /// Sets the data for the spans.
    pub fn set_sends(&mut self, sends: Sends) -> &mut Self {
        self.facts_mut().sends = Some(sends);
        self
    }

    /// Returns the evidence of this send. Set by the layer that guards it.
    #[must_use]
    pub fn send(&self) -> Option<&SendStamp> {
        self.send.as_ref()
    }

    /// Sets the evidence of this send.
    pub fn set_send(&mut self, send: SendStamp) -> &mut Self {
        self.send = Some(send);
        self
    }

    /// Returns the generation of the token that this send carries.
    #[must_use]
    pub fn generation(&self) -> Option<TokenGeneration> {
        self.generation
    }

    /// Sets the generation of the token.
    pub fn set_generation(&mut self, generation: TokenGeneration) -> &mut Self {
        self.generation = Some(generation);
        self
    }

    /// Returns how often the retry policy has sent the request before.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.repeats
    }

    /// Sets how often the retry policy has sent the request before.
    pub fn set_repeats(&mut self, repeats: u32) -> &mut Self {
        self.repeats = repeats;
        self
    }

    /// True for a repeat of a request that was admitted once: it waits at the head of its lane, not at the tail.
    #[must_use]
    pub fn is_at_head_of_lane(&self) -> bool {
        self.at_head_of_lane
    }

    /// Puts the request at the head of its lane.
    pub fn put_at_head_of_lane(&mut self) -> &mut Self {
        self.at_head_of_lane = true;
        self
    }

    /// True if the request already carries its `Authorization`, of a session that may have ended. The header is not
    /// replaced, and no token is waited for, renewed or judged because of it.
    #[must_use]
    pub fn has_own_authorization(&self) -> bool {
        self.own_authorization
    }

    /// Keeps the `Authorization` that the request carries.
    pub fn keep_authorization(&mut self) -> &mut Self {
        self.own_authorization = true;
        self
    }

    pub(crate) fn passed(&self) -> Passed {
        self.passed
    }

    pub(crate) fn set_passed(&mut self, passed: Passed) {
        self.passed = passed;
    }
}

#[cfg(test)]
mod tests;
