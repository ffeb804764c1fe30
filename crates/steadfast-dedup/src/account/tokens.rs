//! The tokens that orders were sent with, as long as their session's list may be wanted.

use http::{HeaderMap, HeaderValue, header};
use steadfast_spec::ext::{self, Stamp};

use crate::{
    event::Event,
    monitor::{Effects, State},
    stamp::Session,
};

/// The token of a session, in memory only.
#[derive(Clone)]
pub(crate) struct OwnToken {
    /// As the registry knows it.
    pub(crate) session: Session,
    pub(crate) authorization: HeaderValue,
    pub(crate) generation: Option<ext::TokenGeneration>,
}

/// The token of the session that orders are sent in now, and those of older ones in which an order is in flight, in doubt
/// or watched for.
#[derive(Default)]
pub(crate) struct Tokens {
    /// The one that was read with last is at the end.
    kept: Vec<OwnToken>,
    /// Whether the latest read for orders in doubt was one with a token of these.
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
    /// The token to look for orders in doubt with, if not with the current one: each second read, while an order of a
    /// session that is over is looked for and its token is kept, and of several the one that was read with least recently.
    pub(super) fn own_token(&mut self) -> Option<OwnToken> {
        let (tokens, registry) = (&mut self.tokens, &self.registry);
        let over = |token: &OwnToken| {
            registry.session.is_some_and(|now| now != token.session) && registry.is_searched_in(token.session)
        };
        let next = tokens.kept.iter().position(over).filter(|_| !tokens.was_own);
        tokens.was_own = next.is_some();
        let token = tokens.kept.remove(next?);
        tokens.kept.push(token.clone());
        Some(token)
    }

    /// The token to look with for what is watched for in a session that is over.
    pub(super) fn watch_token(&mut self) -> Option<OwnToken> {
        let (_, session) = self.registry.next_own_look()?;
        self.tokens.kept.iter().find(|token| token.session == session).cloned()
    }

    /// A token that was refused is not read with again.
    pub(super) fn lose_token(&mut self, session: Session, now: std::time::Duration, effects: &mut Effects) {
        self.tokens.kept.retain(|token| token.session != session);
        effects.extend(self.registry.step(now, Event::SessionLost(session)));
    }

    /// Lets go of the tokens of sessions that are over and in which nothing is in flight, in doubt or watched for.
    pub(super) fn let_go_of_tokens(&mut self, now: std::time::Duration, effects: &mut Effects) {
        let registry = &self.registry;
        let over = |token: &&OwnToken| {
            registry.session != Some(token.session)
                && !registry.stands_in(token.session)
                && !registry.is_watched_in(token.session)
        };
        // Nothing is allocated where nothing is over.
        let over: Vec<_> = self.tokens.kept.iter().filter(over).map(|token| token.session).collect();
        for session in over {
            self.lose_token(session, now, effects);
        }
    }
}
