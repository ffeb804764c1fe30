use http::Extensions;

use crate::{
    Outcome,
    ext::{SendStamp, TokenGeneration},
};

/// The facts about the send behind an answer, in the extensions of the answer.
///
/// A request carries its [`Call`](crate::Call), and its answer carries this. Each layer adds its own facts, for layers
/// further out and for the caller.
///
/// # Example
///
/// ```
/// use http::Extensions;
/// use steadfast_call::{Outcome, ext::{Sent, TokenGeneration}};
///
/// let mut answer = Extensions::new();
/// Sent::of_mut(&mut answer).set_generation(TokenGeneration(1)).set_outcome(Outcome::Rejected);
/// assert_eq!(Sent::of(&answer).generation(), Some(TokenGeneration(1)));
/// assert_eq!(Outcome::of(&answer), Some(&Outcome::Rejected));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sent {
    outcome: Option<Outcome>,
    stamp: Option<SendStamp>,
    generation: Option<TokenGeneration>,
}

impl Sent {
    /// Returns the facts about the answer with these extensions; without any, one that knows nothing.
    #[must_use]
    pub fn of(extensions: &Extensions) -> &Self {
        static UNKNOWN: Sent = Sent { outcome: None, stamp: None, generation: None };
        extensions.get().unwrap_or(&UNKNOWN)
    }

    /// Returns the same to be changed.
    pub fn of_mut(extensions: &mut Extensions) -> &mut Self {
        extensions.get_or_insert_default()
    }

    /// Returns the conclusion from the answer. Set by the classify layer, and by the layer that ends an order's doubt.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Sets the conclusion.
    pub fn set_outcome(&mut self, outcome: Outcome) -> &mut Self {
        self.outcome = Some(outcome);
        self
    }

    /// Returns the evidence of the send, with which its connection can be ended. Set by the layer that ends sends, where
    /// the answer may leave the request in doubt.
    #[must_use]
    pub fn stamp(&self) -> Option<&SendStamp> {
        self.stamp.as_ref()
    }

    /// Sets the evidence of the send.
    pub fn set_stamp(&mut self, stamp: SendStamp) -> &mut Self {
        self.stamp = Some(stamp);
        self
    }

    /// Returns the generation of the token that the send carried. Set by the layer that adds the token.
    #[must_use]
    pub fn generation(&self) -> Option<TokenGeneration> {
        self.generation
    }

    /// Sets the generation of the token.
    pub fn set_generation(&mut self, generation: TokenGeneration) -> &mut Self {
        self.generation = Some(generation);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_facts_are_one_entry() {
        let mut answer = Extensions::new();
        let unknown = Sent::of(&answer);
        assert!(unknown.outcome().is_none() && unknown.stamp().is_none() && unknown.generation().is_none());
        Sent::of_mut(&mut answer).set_generation(TokenGeneration(7));
        Sent::of_mut(&mut answer).set_stamp(SendStamp::new()).set_outcome(Outcome::Rejected);
        Sent::of_mut(&mut answer).set_outcome(Outcome::NotExecuted);
        assert_eq!(answer.len(), 1);
        assert_eq!(Sent::of(&answer).generation(), Some(TokenGeneration(7)));
        assert_eq!(Sent::of(&answer).outcome(), Some(&Outcome::NotExecuted));
        assert!(Sent::of(&answer).stamp().is_some());
    }
}
