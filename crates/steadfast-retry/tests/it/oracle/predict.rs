//! The prediction: from the written rules, using nothing of the crate but its names.

use std::time::Duration;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use steadfast_retry::StopReason;
use steadfast_spec::{Endpoint, msg};

use super::case::{Case, Line};
use crate::support::Reply;

const SECOND: Duration = Duration::from_secs(1);

/// A send as the policy should classify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    CertainlyNotExecuted,
    InDoubt,
    Final,
}

impl Line {
    pub(super) fn kind(&self) -> Kind {
        match (self, self.status()) {
            (Self::Says(Reply::NeverLeft), _) | (_, Some(429)) => Kind::CertainlyNotExecuted,
            (Self::Says(Reply::Lost | Reply::Plain), _) | (_, Some(500..=599)) => Kind::InDoubt,
            (Self::Says(Reply::Body(400, text)), _) if text.contains(msg::INTERNAL_ERROR) => Kind::InDoubt,
            _ => Kind::Final,
        }
    }

    fn status(&self) -> Option<u16> {
        match self {
            Self::Until { status, .. }
            | Self::Says(Reply::Status(status) | Reply::Body(status, _) | Reply::Header(status, ..)) => {
                Some(*status)
            }
            Self::Says(_) => None,
        }
    }

    /// Returns the pause that it asks for: in seconds, or until a date relative to the answer's own.
    fn asked(&self) -> Duration {
        let seconds = match self {
            Self::Says(Reply::Header(_, _, asked)) => asked.parse().unwrap_or(0),
            Self::Until { until, date: Some(date), .. } => until.second.saturating_sub(date.second),
            _ => 0,
        };
        Duration::from_secs(seconds.min(60))
    }
}

/// A send of the trail: whether it was in doubt, its status, and the delay after it.
pub(super) type Step = (bool, Option<u16>, Option<Duration>);

/// The expected sends on the wire and the expected result of the call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// When each send left, and with which token.
    pub(super) sends: Vec<(Duration, usize)>,
    pub(super) ended: Duration,
    /// The status of the answer; `None` for an error.
    pub(super) status: Option<u16>,
    /// True if no layer further out may repeat it.
    pub(super) is_final: bool,
    /// Why an error was not repeated. An answer does not say.
    pub(super) stopped: Option<StopReason>,
    /// True if the error says that the limits open too late.
    pub(super) frozen: bool,
    /// All sends but the last, if the result carries a trail.
    pub(super) trail: Option<Vec<Step>>,
    pub(super) logins: usize,
    /// How often the budget was withdrawn from, and how often it was paid into.
    pub(super) budget: (u32, u32),
}

/// How one attempt of the policy ends.
enum Ended<'a> {
    By(&'a Line),
    /// A 401 without a token for another try.
    Unrenewed,
    /// Refused by the limits, unsent.
    Frozen,
}

/// The state of one call.
struct Call<'a> {
    case: &'a Case,
    now: Duration,
    seen: Seen,
    /// When the new token was first refused.
    new_refused: Option<Duration>,
}

/// Returns the prediction, or `None` if two timers end in the same instant.
pub(super) fn predict(case: &Case) -> Option<Seen> {
    let mut call = Call { case, now: Duration::ZERO, seen: Seen::default(), new_refused: None };
    let mut draws = ChaCha8Rng::seed_from_u64(case.seed);
    let harmless = !matches!(
        case.endpoint,
        Endpoint::PlaceOrder | Endpoint::ModifyOrder | Endpoint::Token | Endpoint::IndividualToken
    );
    let mut steps: Vec<Step> = Vec::new();
    let mut left = case.budget;
    loop {
        let ended = call.attempt()?;
        let (kind, status) = match ended {
            Ended::By(line) => (line.kind(), line.status()),
            Ended::Unrenewed => (Kind::Final, Some(401)),
            Ended::Frozen => (Kind::Final, None),
        };
        (call.seen.ended, call.seen.status) = (call.now, status);
        let again = kind == Kind::CertainlyNotExecuted || kind == Kind::InDoubt && harmless;
        let (true, Ended::By(line)) = (again, &ended) else {
            // Returned unchanged. An answer after repeats carries a trail, an error only after doubt.
            let doubt = steps.iter().any(|(in_doubt, ..)| *in_doubt);
            let told = if status.is_some() { !steps.is_empty() } else { doubt };
            call.seen.trail = told.then_some(steps);
            call.seen.is_final = matches!(ended, Ended::Unrenewed);
            call.seen.frozen = matches!(ended, Ended::Frozen);
            call.seen.budget.1 = u32::from(case.budget.is_some());
            return Some(call.seen);
        };
        let random = draws.next_u64();
        let delay = match call.opens().filter(|_| case.predicts && line.status() == Some(429)) {
            Some(opens) if case.endpoint == Endpoint::CancelOrder => {
                let held = opens - call.now;
                getting_out(case, &steps, line, random, held)
            }
            _ => (steps.len() < 4).then(|| delay(case, &steps, line, line.asked(), random)),
        };
        let stopped = match delay {
            None => Some(StopReason::Spent),
            Some(delay) => call.too_late(delay),
        };
        let stopped = stopped.or_else(|| {
            let left = left.as_mut()?;
            call.seen.budget.0 += u32::from(*left > 0);
            let spent = left.checked_sub(1);
            *left = spent.unwrap_or(0);
            spent.is_none().then_some(StopReason::Budget)
        });
        if stopped.is_some() {
            call.seen.trail = Some(steps);
            call.seen.is_final = true;
            call.seen.stopped = stopped.filter(|_| status.is_none());
            return Some(call.seen);
        }
        steps.push((kind == Kind::InDoubt, status, delay));
        // tokio's clock ticks in milliseconds, and never early.
        let due = (call.now + delay.unwrap_or_default()).as_nanos().div_ceil(1_000_000);
        call.now = Duration::from_millis(u64::try_from(due).unwrap_or(u64::MAX));
    }
}

/// Returns the longer of schedule and the pause asked for; more after the first 503 and, if so set, after 502s in a row.
fn delay(case: &Case, earlier: &[Step], line: &Line, asked: Duration, random: u64) -> Duration {
    let share = |of: Duration| {
        let part = (of.as_nanos() * u128::from(random >> 32)) >> 32;
        Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX))
    };
    let mut wait = (SECOND * (1 << earlier.len().min(3))).max(asked);
    if line.status() == Some(503) && earlier.iter().all(|(_, status, _)| *status != Some(503)) {
        wait = wait.max(5 * SECOND);
    }
    let again_502 = line.status() == Some(502) && earlier.last().is_some_and(|step| step.1 == Some(502));
    if again_502 && case.persistent_502 {
        return wait.max(30 * SECOND + share(30 * SECOND));
    }
    if case.jitter { wait + share(wait / 10) } else { wait }
}

/// Returns the delay of a cancel after a 429, where the limits are known to stay closed for `held`. Only sends that did
/// not end with a 429 count, unless there is no deadline. A pause beyond the schedule's last delay is not followed.
fn getting_out(case: &Case, earlier: &[Step], line: &Line, random: u64, held: Duration) -> Option<Duration> {
    let counted = |(_, status, _): &&Step| case.deadline.is_none() || *status != Some(429);
    if earlier.iter().filter(counted).count() >= 4 {
        return None;
    }
    let asked = Some(line.asked()).filter(|asked| *asked <= 8 * SECOND).unwrap_or_default();
    let least = asked.max(SECOND);
    Some(if 10 * held >= 9 * least { Duration::ZERO } else { delay(case, earlier, line, asked, random) })
}

impl<'a> Call<'a> {
    /// Returns when the limits open, if they are closed.
    fn opens(&self) -> Option<Duration> {
        self.case.closed.and_then(|closed| closed.opens(self.seen.sends.len(), self.now))
    }

    /// Returns why a repeat after `delay` could not leave or be answered in time, by what is known now.
    fn too_late(&self, delay: Duration) -> Option<StopReason> {
        let opens = self.opens().filter(|_| self.case.predicts).unwrap_or_default();
        let leaves = opens.max(self.now + delay);
        let answered = self.case.deadline.is_none_or(|deadline| leaves < deadline);
        let left = self.case.send_by.is_none_or(|send_by| leaves <= send_by);
        match (answered, left) {
            (false, _) => Some(StopReason::Deadline),
            (true, false) => Some(StopReason::SendBy),
            (true, true) => None,
        }
    }

    /// Runs one attempt: the limits, then a send. After a 401 for a token that may be old there is one send more,
    /// and another one where the new token may not be known everywhere yet.
    fn attempt(&mut self) -> Option<Ended<'a>> {
        let case = self.case;
        let has_token =
            !matches!(case.endpoint, Endpoint::Authorize | Endpoint::Token | Endpoint::IndividualToken);
        let login = case.login.filter(|_| has_token);
        let limit = case.deadline.into_iter().chain(case.send_by).min().unwrap_or(Duration::MAX);
        let mut resent = 0;
        loop {
            if let Some(opens) = self.opens() {
                let late = case.deadline.is_some_and(|deadline| opens >= deadline);
                if late || case.send_by.is_some_and(|send_by| opens > send_by) {
                    return Some(Ended::Frozen);
                }
                self.now = opens;
            }
            let line = case.script.get(self.seen.sends.len()).or(case.script.last())?;
            let token = if login.is_some() { 1 + self.seen.logins } else { 0 };
            self.seen.sends.push((self.now, token));
            let Some(login) = login.filter(|_| line.status() == Some(401)) else {
                return Some(Ended::By(line));
            };
            let at = match self.seen.logins {
                _ if resent == 3 => return Some(Ended::Unrenewed),
                // The caller gives up at once, before or after the renewal has begun in its own task.
                0 if self.now >= limit => return None,
                0 => {
                    self.seen.logins = 1;
                    self.now + login.takes
                }
                // A new token may not be known everywhere yet. A refusal two seconds later has another reason.
                _ => {
                    let known = *self.new_refused.get_or_insert(self.now) + 2 * SECOND;
                    if self.now >= known || known >= limit {
                        return Some(Ended::Unrenewed);
                    }
                    known
                }
            };
            if at == limit.max(self.now) {
                return None;
            }
            self.now = at.min(limit.max(self.now));
            if at > limit || !login.works {
                return Some(Ended::Unrenewed);
            }
            resent += 1;
        }
    }
}
