use std::{collections::BTreeMap, time::Duration};

use crate::gateway::{directory::UserIndex, draw::Draw, settings::EleventhSession};

/// How long a token is valid from its issue (§2, §5).
pub(crate) const TOKEN_LIFE: Duration = Duration::from_secs(86_400);
/// The number of active login sessions per user (§5.8, §8).
const MOST_SESSIONS: usize = 10;
/// How long an authorization code is valid; the specification does not say.
const CODE_LIFE: Duration = Duration::from_secs(600);

/// The login sessions and authorization codes that are alive.
#[derive(Default)]
pub(crate) struct Sessions {
    by_token: BTreeMap<String, Session>,
    codes: BTreeMap<String, Code>,
    issued: u64,
}

/// One login.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    pub(crate) user: UserIndex,
    pub(crate) issued: Duration,
    /// The number of the login within the sandbox's life; an order stores that of its session.
    pub(crate) number: u64,
}

struct Code {
    user: UserIndex,
    redirect_uri: String,
    issued: Duration,
}

/// A login beyond the ten sessions of §8.
#[derive(Debug)]
pub(crate) struct TooManySessions;

impl Sessions {
    /// Opens a session and returns its token.
    pub(crate) fn open(
        &mut self,
        user: UserIndex,
        now: Duration,
        eleventh: EleventhSession,
        draw: Draw,
    ) -> Result<String, TooManySessions> {
        self.by_token.retain(|_, session| now < session.issued + TOKEN_LIFE);
        if self.of(user).count() >= MOST_SESSIONS {
            match eleventh {
                EleventhSession::Refuse => return Err(TooManySessions),
                EleventhSession::EvictOldest => self.evict_oldest(user),
            }
        }
        self.issued += 1;
        let token = draw.text("access-token", &self.issued.to_string());
        self.by_token.insert(token.clone(), Session { user, issued: now, number: self.issued });
        Ok(token)
    }

    /// Returns the session of a token that is valid at `now`. A token ends silently after 24 hours
    /// (§3).
    pub(crate) fn find(&self, token: &str, now: Duration) -> Option<Session> {
        self.by_token.get(token).copied().filter(|session| now < session.issued + TOKEN_LIFE)
    }

    pub(crate) fn revoke(&mut self, token: &str) {
        self.by_token.remove(token);
    }

    pub(crate) fn revoke_all(&mut self) {
        self.by_token.clear();
    }

    /// Ends every token of a user.
    pub(crate) fn revoke_user(&mut self, user: UserIndex) {
        self.by_token.retain(|_, session| session.user != user);
    }

    /// Returns the token of a user's latest valid session.
    pub(crate) fn latest(&self, user: UserIndex, now: Duration) -> Option<String> {
        let alive = self.of(user).filter(|(_, session)| now < session.issued + TOKEN_LIFE);
        alive.max_by_key(|(_, session)| session.number).map(|(token, _)| token.clone())
    }

    pub(crate) fn evict_oldest(&mut self, user: UserIndex) {
        let oldest = self.of(user).min_by_key(|(_, session)| session.number).map(|(token, _)| token.clone());
        if let Some(token) = oldest {
            self.by_token.remove(&token);
        }
    }

    fn of(&self, user: UserIndex) -> impl Iterator<Item = (&String, &Session)> {
        self.by_token.iter().filter(move |(_, session)| session.user == user)
    }

    /// Issues an authorization code for the redirect.
    pub(crate) fn issue_code(
        &mut self,
        user: UserIndex,
        redirect_uri: &str,
        now: Duration,
        draw: Draw,
    ) -> String {
        self.codes.retain(|_, code| now < code.issued + CODE_LIFE);
        self.issued += 1;
        let code = draw.text("code", &self.issued.to_string())[..32].to_owned();
        self.codes.insert(code.clone(), Code { user, redirect_uri: redirect_uri.to_owned(), issued: now });
        code
    }

    /// Uses up an authorization code: valid once, whichever client presents it.
    pub(crate) fn take_code(&mut self, code: &str, redirect_uri: &str, now: Duration) -> Option<UserIndex> {
        let code = self.codes.remove(code)?;
        (code.redirect_uri == redirect_uri && now < code.issued + CODE_LIFE).then_some(code.user)
    }

    pub(crate) fn active(&self, now: Duration) -> usize {
        self.by_token.values().filter(|session| now < session.issued + TOKEN_LIFE).count()
    }
}
