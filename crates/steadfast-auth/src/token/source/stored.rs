use std::{collections::VecDeque, sync::Arc, time::Duration};

use steadfast_call::ext::TokenGeneration;
use tokio::runtime::Handle;

use super::{
    shared::Shared,
    single_flight::{State, tell},
};
use crate::{
    error::{AuthError, AuthErrorKind},
    login::{Grant, LoginFailure, Throttled},
    secret::InvalidSecret,
    skew::unix_ms,
    store::{Damaged, LoginLease, Record, Spent, StoreError, StoredThrottled, StoredToken},
    token::{
        Token,
        state::{Adopted, Now},
    },
};

/// The service's verdict on a token.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    Accepted,
    Refused,
    /// A program that logs in by itself is refused. It goes on with the token until its next login, by the service's clock.
    Denied {
        next_login: Option<i64>,
    },
}

/// Which budgets a failure has spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    pub(super) own: bool,
    pub(super) account: bool,
}

/// State that a source shares with others through its store.
impl Shared {
    /// Takes over a newer token, failures and sessions from the store. True if there was a newer token.
    pub(super) async fn look(&self) -> Result<bool, StoreError> {
        // A running login reads and writes the record itself.
        if !self.shares || self.flight.lock().token.is_logging_in() {
            return Ok(false);
        }
        let record = self.account.read(self.damaged()).await?;
        if self.flight.lock().token.is_logging_in() {
            return Ok(false);
        }
        Ok(self.take_over(&record))
    }

    /// Returns true if a look found a token, or ended a flight that was only a look.
    pub(super) async fn found_or_told(&self) -> Result<bool, AuthError> {
        if !self.shares {
            return Ok(false);
        }
        let record = self.account.read(self.damaged()).await.map_err(unusable)?;
        if self.take_over(&record) {
            return Ok(true);
        }
        let now = self.now();
        let mut state = self.flight.lock();
        let Err(refusal) = state.token.looked(now) else { return Ok(false) };
        // Under the same lock: later requests belong to the next flight.
        let error = self.explain(refusal, &state);
        let waiting = state.disembark();
        self.flight.publish(state);
        tell(waiting, &Err(error));
        Ok(true)
    }

    /// Says how an unreadable record is treated when a login begins.
    pub(super) fn damaged(&self) -> Damaged {
        if self.flight.lock().is_forgiven() { Damaged::BegunAnew } else { Damaged::Refused }
    }

    /// Begins a login under the lease. Returns true if the record has made it unnecessary.
    pub(super) async fn begin(&self, lease: &LoginLease) -> Result<bool, AuthError> {
        self.forgive(lease).await.map_err(unusable)?;
        if self.take_over(&lease.record()) {
            return Ok(true);
        }
        let now = self.now();
        let state = self.flight.lock();
        match state.token.policy.may_be_asked(now.elapsed) {
            Ok(()) => Ok(false),
            Err(refusal) => Err(self.explain(refusal, &state)),
        }
    }

    /// Stores the token of our own login, then holds it. `before` is the serial that the login began with. If another
    /// process has logged in since, because the lease ran out, its token is the account's.
    pub(super) async fn keep(
        &self,
        lease: &LoginLease,
        grant: Grant,
        before: u64,
    ) -> Result<(), InvalidSecret> {
        // A token that cannot stand in a header must not become the account's token.
        self.api_key.header_with(&grant.token)?;
        lease.settle();
        let now = self.now();
        let issued = unix_ms(grant.sent) + self.skew.lock().offset().unwrap_or_default();
        let suspected = self.with_token(|token, now| token.suspected().map(|at| now.wall_at(at)));
        let resets = self.flight.lock().resets;
        let kept = lease.amend_failures(|record| {
            record.suspected = record.suspected.max(suspected);
            record.failures.succeeded();
            record.know();
            record.sessions.retain(|&at| now.wall - at < DAY_MS);
            record.sessions.push(now.wall);
            if record.serial() > before {
                return record.token.clone();
            }
            // It is not the token of the user who tried before.
            if self.account.identity.user_label().is_none() {
                record.user = None;
            }
            record.token = Some(StoredToken {
                serial: record.serial() + 1,
                secret: grant.token.clone(),
                issued,
                life: grant.life,
                worked: false,
                refused: false,
                refused_at: None,
                next_login: None,
            });
            None
        });
        let kept = kept.await;
        if kept.is_ok() {
            self.flight.lock().told(resets);
        }
        match kept {
            Ok(Some(theirs)) if self.adopt(&theirs) => Ok(()),
            Ok(_) => self.granted(grant, lease.record().serial()),
            Err(error) => {
                tracing::warn!(error = %error, "token cannot be stored: it ends with this process");
                // The store does not know either that the attempt it has counted was successful.
                self.flight.lock().resets += 1;
                self.granted(grant, before + 1)
            }
        }
    }

    /// Writes down how an attempt failed, and which budgets it has spent.
    pub(super) async fn write_down(&self, lease: &LoginLease, failure: &LoginFailure, charge: Charge) {
        let counted = lease.settle();
        let settle = |count: &mut u32, charged: bool| match (charged, counted.is_some()) {
            (true, false) => *count = count.saturating_add(1),
            (false, true) => *count = count.saturating_sub(1),
            _ => {}
        };
        let unsent = matches!(failure, LoginFailure::NotSent(_) | LoginFailure::Store(_));
        let (unknown, why, throttled, sessions, suspected) = self.with_token(|token, now| {
            let unknown: Vec<i64> = token.policy.unknown().map(|at| now.wall_at(at)).collect();
            let suspected = token.suspected().map(|at| now.wall_at(at));
            let last = Some(token.policy.throttled()).filter(|throttled| throttled.count > 0);
            let throttled = last.map(|throttled| StoredThrottled {
                count: throttled.count,
                at_ms: now.wall_at(throttled.at),
                wait_ms: u64::try_from(throttled.wait.as_millis()).unwrap_or(u64::MAX),
            });
            (unknown, token.policy.why().map(str::to_owned), throttled, token.session_times(), suspected)
        });
        let (own, resets, forgiven, unsaved) = {
            let state = self.flight.lock();
            (state.token.policy.spent(), state.resets, state.is_forgiven(), state.unsaved)
        };
        let written = lease.amend_failures(|record| {
            let failures = &mut record.failures;
            settle(&mut failures.account, charge.account);
            settle(&mut failures.last.spent, charge.own);
            if forgiven {
                // There was a reset during the attempt: this failure counts, those before it do not.
                failures.begin_anew(own);
            } else if unsaved {
                failures.account = failures.account.max(own.account);
                failures.last.spent = failures.last.spent.max(own.own);
            }
            failures.last.unknown = own.unknown;
            failures.last.latched |= own.latched;
            if let Some(step) = counted.flatten().filter(|_| unsent) {
                record.steps.retain(|&used| used != step);
            }
            record.unknown.clone_from(&unknown);
            record.unknown_why.clone_from(&why);
            record.throttled = throttled;
            record.sessions.clone_from(&sessions);
            record.suspected = record.suspected.max(suspected);
        });
        match written.await {
            Ok(()) => self.flight.lock().told(resets),
            Err(error) => {
                tracing::warn!(error = %error, "failed login cannot be written down");
                self.flight.lock().unsaved = true;
            }
        }
    }

    /// Stores that the service has accepted the account's token number `serial`, for processes that take it over.
    pub(super) fn tell_accepted(self: &Arc<Self>, serial: u64) {
        let shared = Arc::clone(self);
        self.in_background(async move { shared.note_verdict(serial, Verdict::Accepted).await });
    }

    /// Stores that the service refuses the held token, for those who ask the store, once for each denial.
    pub(super) fn tell_denial(self: &Arc<Self>) {
        let now = self.now();
        let (serial, next_login) = {
            let mut state = self.flight.lock();
            if !state.token.tells_denial(now) {
                return;
            }
            let wait = state.token.next_login(now).map(|at| at.saturating_sub(now.elapsed).as_millis());
            let next = wait.map(|wait| now.wall.saturating_add(i64::try_from(wait).unwrap_or(i64::MAX)));
            (state.serial, next)
        };
        tracing::warn!("the service refuses the access token, and no login may follow yet");
        let shared = Arc::clone(self);
        let verdict = Verdict::Denied { next_login };
        self.in_background(async move { shared.note_verdict(serial, verdict).await });
    }

    /// Writes down the service's verdict on the account's token number `serial`, unless there is a later token.
    pub(super) async fn note_verdict(&self, serial: u64, verdict: Verdict) -> Result<(), StoreError> {
        let lease = self.account.open_own().await?;
        let now = self.now().wall;
        let note = |token: &mut StoredToken| match verdict {
            Verdict::Accepted => {
                (token.worked, token.refused) = (true, false);
                (token.refused_at, token.next_login) = (None, None);
            }
            Verdict::Refused => (token.refused, token.refused_at) = (true, Some(now)),
            Verdict::Denied { next_login } => {
                (token.refused_at, token.next_login) = (Some(now), next_login);
            }
        };
        let is_news = |mut token: StoredToken| {
            let before = (token.worked, token.refused, token.refused_at);
            note(&mut token);
            token.serial == serial && (token.worked, token.refused, token.refused_at) != before
        };
        if !lease.record().token.is_some_and(is_news) {
            return Ok(());
        }
        let change = |record: &mut Record| {
            if let Some(token) = record.token.as_mut().filter(|token| token.serial == serial) {
                note(token);
            }
        };
        lease.amend(change).await
    }

    /// As [`note_verdict`](Shared::note_verdict), for the held token.
    pub(super) async fn note(&self, verdict: Verdict) -> Result<(), StoreError> {
        let held = {
            let state = self.flight.lock();
            state.token.holds().then_some(state.serial)
        };
        match held {
            Some(serial) => self.note_verdict(serial, verdict).await,
            None => Ok(()),
        }
    }

    /// Stores a reset, in the background.
    pub(super) fn tell_reset(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        self.in_background(async move {
            let lease = shared.account.open(Damaged::BegunAnew).await?;
            shared.forgive(&lease).await
        });
    }

    /// Stores a reset that the store does not know of yet. A login that was under way may have done so already.
    async fn forgive(&self, lease: &LoginLease) -> Result<(), StoreError> {
        let (resets, forgiven) = {
            let state = self.flight.lock();
            (state.resets, state.is_forgiven())
        };
        if forgiven {
            lease.amend(Record::forgive).await?;
            self.flight.lock().told(resets);
        }
        Ok(())
    }

    /// Writes to the store in the background.
    fn in_background(&self, telling: impl Future<Output = Result<(), StoreError>> + Send + 'static) {
        // A store that is not shared learns it with the next login and needs no task.
        let Some(runtime) = Handle::try_current().ok().filter(|_| self.shares) else { return };
        drop(runtime.spawn(async move {
            if let Err(error) = telling.await {
                tracing::warn!(error = %error, "token store cannot be written");
            }
        }));
    }

    /// Takes over the content of a record. True if its token is newer than the held one.
    fn take_over(&self, record: &Record) -> bool {
        let now = self.now();
        let mut state = self.flight.lock();
        state.restore(record, self.account.spent(record), now);
        let newer = record.token.as_ref().filter(|token| state.is_newer(token));
        // A token that was refused on the record is not taken over, even if its age is fine.
        let newer = newer.filter(|token| !token.refused);
        let newer = newer.filter(|token| state.token.is_worth(token.issued, token.expires(), now)).cloned();
        self.flight.publish(state);
        newer.is_some_and(|token| self.adopt(&token))
    }

    /// Holds a token that another process has fetched. Returns false if it cannot be used.
    fn adopt(&self, token: &StoredToken) -> bool {
        let Ok(header) = self.api_key.header_with(&token.secret) else { return false };
        let now = self.now();
        let mut state = self.flight.lock();
        if !state.is_newer(token) {
            return false;
        }
        let same = self.flight.holds(&token.secret, &state);
        let adopted = Adopted { issued: token.issued, expires: token.expires(), worked: token.worked };
        let generation = TokenGeneration(state.token.adopted(&adopted, same, now));
        if !same {
            let fresh = Token::new(token.secret.clone(), header, generation);
            if token.worked {
                fresh.note_worked();
            }
            self.flight.hold(fresh);
        }
        state.serial = token.serial;
        self.flight.landed(state);
        tracing::info!(generation = generation.0, same, "token taken over from the store");
        true
    }
}

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

impl State {
    /// Takes over the failures and sessions of a record.
    fn restore(&mut self, record: &Record, mut spent: Spent, now: Now) {
        // A time far in the future was written before a clock was set back, and would count until that time comes
        // again.
        let is_past = |&ms: &i64| ms <= now.wall.saturating_add(HOUR_MS);
        let suspected = record.suspected.filter(is_past).map(|ms| now.elapsed_at(ms));
        self.token.restore(&record.sessions, suspected, now);
        // The store does not know of the reset yet.
        if self.is_forgiven() {
            return;
        }
        // A future time still counts as one unknown end, but adds no wait.
        let elapsed = |&ms: &i64| if is_past(&ms) { now.elapsed_at(ms) } else { Duration::ZERO };
        let mut unknown: VecDeque<_> = record.unknown.iter().map(elapsed).collect();
        unknown.make_contiguous().sort_unstable();
        let mut why = record.unknown_why.clone();
        let throttled = record.throttled.map(|last| {
            let wait = Duration::from_millis(last.wait_ms);
            Throttled::stored(last.count, elapsed(&last.at_ms), wait, now.elapsed)
        });
        let policy = &mut self.token.policy;
        let was_latched = policy.is_latched();
        // Failures that could not be written count in addition to those in the store.
        if self.unsaved {
            let known = policy.spent();
            spent.own = spent.own.max(known.own);
            spent.account = spent.account.max(known.account);
            spent.latched |= known.latched;
            spent.unknown = spent.unknown.max(known.unknown);
            if policy.unknown().count() > unknown.len() {
                unknown = policy.unknown().collect();
                why = policy.why().map(str::to_owned);
            }
        }
        // One that could not be written is known here alone.
        let known = policy.throttled();
        let throttled = throttled.unwrap_or_default();
        if !self.unsaved || throttled.until() > known.until() {
            policy.restore_throttled(throttled);
        }
        policy.restore(spent, unknown, now.elapsed);
        policy.restore_why(why);
        if was_latched && !policy.is_latched() {
            self.last = None;
        }
    }

    /// True while the store does not know of a reset.
    fn is_forgiven(&self) -> bool {
        self.resets != self.resets_told
    }

    /// Notes that the store knows of all failures and of that many resets.
    fn told(&mut self, resets: u64) {
        self.resets_told = resets;
        self.unsaved = false;
    }

    /// Returns true if a stored token is of a later login than the held one. A store that was removed restarts its
    /// serials; then the time of issue decides.
    fn is_newer(&self, token: &StoredToken) -> bool {
        let later = self.token.issued().is_some_and(|issued| token.issued > issued);
        token.serial > self.serial || (token.serial < self.serial && later)
    }
}

pub(super) fn unusable(error: StoreError) -> AuthError {
    AuthError::new(AuthErrorKind::Unavailable).with_source(error)
}

#[cfg(test)]
mod tests;
