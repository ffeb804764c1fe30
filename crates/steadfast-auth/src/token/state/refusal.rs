use std::time::Duration;

use super::{BETWEEN_PROBES, Breaker, Held, Now, TokenState};
use crate::login::LoginMode;

/// How long a new token may be unknown to parts of the service.
const PROPAGATION: Duration = Duration::from_secs(2);

/// The action that follows a 401.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterRefusal {
    /// Send again: there is a newer token already.
    Resend,
    /// Wait for the login, then send again; if `start`, the caller starts it.
    Join { start: bool },
    /// Send again with the same token, once, at that time.
    ResendAt(Duration),
    /// Ask for a token again. The login for its successor was interrupted, and the next one starts soon.
    Ask,
    /// Return the 401 to the caller.
    Surface,
}

impl TokenState {
    /// Handles a 401 to a request that was sent with token `generation`. `resent`: the request had been refused with
    /// another token before.
    ///
    /// A request that was sent again does not wait for another login. It is sent once more only with a newer token that
    /// is there, or with one that the service may not know everywhere yet.
    pub(crate) fn refused(&mut self, generation: u64, resent: bool, now: Now) -> AfterRefusal {
        match self.judge_refusal(generation, resent, now) {
            decision @ (AfterRefusal::Resend | AfterRefusal::ResendAt(_)) => decision,
            _ if resent => AfterRefusal::Surface,
            decision => decision,
        }
    }

    fn judge_refusal(&mut self, generation: u64, resent: bool, now: Now) -> AfterRefusal {
        let Some(held) = self.held else { return AfterRefusal::Surface };
        if generation < held.generation {
            return AfterRefusal::Resend;
        }
        if generation > held.generation {
            return AfterRefusal::Surface;
        }
        if self.flying {
            return if resent { AfterRefusal::Surface } else { self.join(false) };
        }
        if held.doubted && self.resumes_at(now).is_some() {
            return AfterRefusal::Ask;
        }
        // ## (Valid | Advisory | Mandatory) => Expired
        //
        // Its age explains the refusal, so no other cause is suspected.
        if self.is_too_old(held, now) {
            return match (resent, self.may_start(now)) {
                (false, Ok(())) => self.join(true),
                _ => AfterRefusal::Surface,
            };
        }
        if held.worked && !held.fresh { self.suspect(resent, now) } else { self.not_yet(held, resent, now) }
    }

    /// ## Valid => Suspect
    ///
    /// The session was evicted or revoked overnight, or the 401 has another reason. One login may help. If its token is
    /// refused soon as well, another one may help less.
    fn suspect(&mut self, resent: bool, now: Now) -> AfterRefusal {
        if let Some(held) = &mut self.held {
            held.denied.get_or_insert(now.elapsed);
        }
        if resent || !self.may_suspect(now) {
            return AfterRefusal::Surface;
        }
        self.suspicions.begin(now.elapsed);
        self.join(true)
    }

    /// True if a login may follow the refusal of a young token now.
    ///
    /// The pauses between such logins are longer than the rest after a success, so that rest is not checked. Where the
    /// service accepts other requests with the token, a login is less likely to help, and waits longest.
    pub(super) fn may_suspect(&self, now: Now) -> bool {
        let is_patient = self.has_many_sessions() || !self.is_dead(now);
        let has_rested = self.suspicions.next(is_patient).is_none_or(|at| at <= now.elapsed);
        let unattended = self.mode == Some(LoginMode::Unattended) && self.breaker.is_none();
        has_rested && unattended && self.policy.may_be_asked(now.elapsed).is_ok()
    }

    /// True if 401s have cast doubt on the held token since the service accepted it last.
    pub(crate) fn is_denied(&self) -> bool {
        self.held.is_some_and(|held| held.denied.is_some())
    }

    /// True if the service refuses the held token, which had worked, and has accepted nothing with it since.
    pub(super) fn is_dead(&self, now: Now) -> bool {
        let denied = self.held.and_then(|held| held.denied);
        // Answers that were under way with the first refusal may still show that it works.
        denied.is_some_and(|first| now.elapsed >= first + PROPAGATION)
    }

    /// ## Valid => (Valid | Suspect | Suspect, breaker open)
    ///
    /// A token that is refused at first use may not be known everywhere yet, and one 401 of a given one may be a mistake of
    /// the service. If it is refused again later, that is not the reason, and no login would help, unless the token has
    /// worked elsewhere and was ended since.
    fn not_yet(&mut self, held: Held, resent: bool, now: Now) -> AfterRefusal {
        let first = held.refused.unwrap_or(now.elapsed);
        if let Some(held) = &mut self.held {
            held.refused = Some(first);
        }
        if now.elapsed < first + PROPAGATION {
            // No copy is kept of a request with a given token. The next one tries it once more.
            let given = self.mode == Some(LoginMode::Once);
            return if given { AfterRefusal::Surface } else { AfterRefusal::ResendAt(first + PROPAGATION) };
        }
        if held.worked {
            return self.suspect(resent, now);
        }
        self.breaker = Some(Breaker { probe_at: now.elapsed + BETWEEN_PROBES });
        AfterRefusal::Surface
    }

    pub(super) fn join(&mut self, start: bool) -> AfterRefusal {
        self.flying = true;
        // A login by a person may take minutes. One 401 is no reason to make all requests wait for it.
        if let (Some(held), Some(LoginMode::Unattended)) = (&mut self.held, self.mode) {
            held.doubted = true;
        }
        AfterRefusal::Join { start }
    }
}
