//! Keeps the tokens that orders were sent with, while their sessions' lists may be needed.

use http::{HeaderMap, HeaderValue, header};
use steadfast_call::{Call, ext};

use crate::{numbers::Session, protocol::order_protocol::OrderProtocol};

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
    /// True if a token of the session is kept.
    pub(crate) fn knows(&self, session: Session) -> bool {
        self.kept.iter().any(|token| token.session == session)
    }

    /// Keeps the token of a request; true if it was not known.
    pub(crate) fn keep(
        &mut self,
        session: Session,
        headers: &HeaderMap,
        extensions: &http::Extensions,
    ) -> bool {
        if self.knows(session) {
            return false;
        }
        let Some(authorization) = headers.get(header::AUTHORIZATION) else { return false };
        let mut authorization = authorization.clone();
        authorization.set_sensitive(true);
        self.kept.push(OwnToken { session, authorization, generation: Call::of(extensions).generation() });
        true
    }

    /// Returns the token for the next read for orders in doubt, if not the current one.
    ///
    /// Every second read uses an old one, while an order of a past session is searched for and its token is kept. Of
    /// several, the one least recently used.
    pub(crate) fn take_turn(&mut self, protocol: &OrderProtocol) -> Option<OwnToken> {
        let over = |token: &OwnToken| {
            protocol.session().is_some_and(|now| now != token.session)
                && protocol.is_searched_in(token.session)
        };
        let next = self.kept.iter().position(over).filter(|_| !self.was_own);
        self.was_own = next.is_some();
        let token = self.kept.remove(next?);
        self.kept.push(token.clone());
        Some(token)
    }

    pub(crate) fn of(&self, session: Session) -> Option<OwnToken> {
        self.kept.iter().find(|token| token.session == session).cloned()
    }

    pub(crate) fn drop_one(&mut self, session: Session) {
        self.kept.retain(|token| token.session != session);
    }

    /// Returns the past sessions in which nothing is in flight, in doubt or watched for. Allocates nothing if there are
    /// none.
    pub(crate) fn needless(&self, protocol: &OrderProtocol) -> Vec<Session> {
        let over = |token: &&OwnToken| {
            protocol.session() != Some(token.session)
                && !protocol.stands_in(token.session)
                && !protocol.is_watched_in(token.session)
        };
        self.kept.iter().filter(over).map(|token| token.session).collect()
    }
}
