//! Keeps the tokens that orders were sent with, while their sessions' lists may be needed.

use http::{HeaderMap, HeaderValue, header};
use steadfast_call::ext::{self, Stamp};

use crate::{
    numbers::Session,
    protocol::event::Event,
    tracker::shared_protocol::{Effects, State},
};

/// The token of a session, in memory only.
#[derive(Clone)]
pub(crate) struct OwnToken {
    /// As the protocol knows it.
    pub(crate) session: Session,
    pub(crate) authorization: HeaderValue,
    pub(crate) generation: Option<ext::TokenGeneration>,
}

/// The token of the current session, and those of older ones with an order in flight, in doubt or watched for.
#[derive(Default)]
pub(crate) struct Tokens {
    /// The one that was read with last is at the end.
    kept: Vec<OwnToken>,
    /// Whether the latest read for orders in doubt used one of these tokens.
    was_own: bool,
}

impl Tokens {
    /// Keeps the token of a request; true if it was not known.
    pub(crate) fn keep(
        &mut self,
        session: Session,
        headers: &HeaderMap,
        extensions: &http::Extensions,
    ) -> bool {
        if self.kept.iter().any(|token| token.session == session) {
            return false;
        }
        let Some(authorization) = headers.get(header::AUTHORIZATION) else { return false };
        let mut authorization = authorization.clone();
        authorization.set_sensitive(true);
        self.kept.push(OwnToken { session, authorization, generation: Stamp::of(extensions).copied() });
        true
    }
}

impl State {
    /// Returns the token for the next read for orders in doubt, if not the current one.
    ///
    /// Every second read uses an old one, while an order of a past session is searched for and its token is kept. Of
    /// several, the one least recently used.
    pub(super) fn own_token(&mut self) -> Option<OwnToken> {
        let (tokens, protocol) = (&mut self.tokens, &self.protocol);
        let over = |token: &OwnToken| {
            protocol.session().is_some_and(|now| now != token.session)
                && protocol.is_searched_in(token.session)
        };
        let next = tokens.kept.iter().position(over).filter(|_| !tokens.was_own);
        tokens.was_own = next.is_some();
        let token = tokens.kept.remove(next?);
        tokens.kept.push(token.clone());
        Some(token)
    }

    /// Returns the token for the next watch of a past session.
    pub(super) fn watch_token(&mut self) -> Option<OwnToken> {
        let (_, session) = self.protocol.next_own_look()?;
        self.tokens.kept.iter().find(|token| token.session == session).cloned()
    }

    /// Drops a token that was refused.
    pub(super) fn lose_token(&mut self, session: Session, now: std::time::Duration, effects: &mut Effects) {
        self.tokens.kept.retain(|token| token.session != session);
        effects.extend(self.protocol.step(now, Event::SessionLost(session)));
    }

    /// Drops the tokens of past sessions in which nothing is in flight, in doubt or watched for.
    pub(super) fn let_go_of_tokens(&mut self, now: std::time::Duration, effects: &mut Effects) {
        let protocol = &self.protocol;
        let over = |token: &&OwnToken| {
            protocol.session() != Some(token.session)
                && !protocol.stands_in(token.session)
                && !protocol.is_watched_in(token.session)
        };
        // Allocates nothing if there are none.
        let over: Vec<_> = self.tokens.kept.iter().filter(over).map(|token| token.session).collect();
        for session in over {
            self.lose_token(session, now, effects);
        }
    }
}
