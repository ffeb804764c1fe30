//! Chooses the token of a read, and drops tokens that are not needed any more.

use std::time::Duration;

use crate::{
    numbers::Session,
    protocol::event::Event,
    tracker::{
        shared_protocol::{Effects, State},
        tokens::OwnToken,
    },
};

impl State {
    /// Returns the token for the next read for orders in doubt, if not the current one.
    pub(super) fn own_token(&mut self) -> Option<OwnToken> {
        self.tokens.take_turn(&self.protocol)
    }

    /// Returns the token for the next watch of a past session.
    pub(super) fn watch_token(&mut self) -> Option<OwnToken> {
        let (_, session) = self.protocol.next_own_look()?;
        self.tokens.of(session)
    }

    /// Drops a token that was refused.
    pub(super) fn lose_token(&mut self, session: Session, now: Duration, effects: &mut Effects) {
        self.tokens.drop_one(session);
        effects.extend(self.protocol.step(now, Event::SessionLost(session)));
    }

    /// Drops the tokens of past sessions in which nothing is in flight, in doubt or watched for.
    pub(super) fn let_go_of_tokens(&mut self, now: Duration, effects: &mut Effects) {
        for session in self.tokens.needless(&self.protocol) {
            self.lose_token(session, now, effects);
        }
    }
}
