//! The schedule of repeats, as a client's own end of the wire shows it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;

use crate::sim::wire::{Ended, Exchange};

/// The sends that may follow a send of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Another one, after a wait.
    Repeat,
    /// One with another token, at once.
    Replay,
    /// Nothing by itself: an order must be searched for first, a read may be repeated.
    Verify,
    /// Nothing.
    End,
}

/// The least waits between the sends of one call (§7); there is no sixth send.
const WAITS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
/// The least wait after the first 503 of a call.
const UNAVAILABLE: Duration = Duration::from_secs(5);
/// The share of the least wait that a refused cancel spends at the limiter, whose pause may have begun with an earlier
/// refusal of the same burst.
const PAUSED: f64 = 0.9;
/// The longest that an answer may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(60);
/// How often a request is sent again after a 401. An order: once in each of two rounds, and once because the session is
/// another one. Others: with the token of another login, once more with that, and with one that came meanwhile.
pub(crate) const MOST_REPLAYS: u32 = 3;
/// The time after which a refused new token is known everywhere, if ever.
const PROPAGATION: Duration = Duration::from_secs(2);
/// How long the first order of a session waits for a list that does not leave.
const PATIENCE: Duration = Duration::from_secs(1);

/// When each token was first refused.
pub(crate) type Refused = BTreeMap<usize, Instant>;

pub(crate) fn refused(exchanges: &[Exchange]) -> Refused {
    let mut tokens = Refused::new();
    for exchange in exchanges {
        if let Some((at, Ended::Answered { status: 401, .. })) = exchange.ended {
            let first = tokens.entry(exchange.session).or_insert(at);
            *first = at.min(*first);
        }
    }
    tokens
}

/// True if a refused token is sent once more before it can be known everywhere.
pub(crate) fn is_unknown_yet(previous: &Exchange, send: &Exchange, tokens: &Refused) -> bool {
    previous.session == send.session
        && tokens.get(&send.session).is_some_and(|&first| send.sent < first + PROPAGATION)
}

/// Whether an order may have waited for the list of its session before its send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    No,
    /// A list was read then.
    ForAList,
    /// A list left after it: if it was requested before, it waited for a permit itself, and the order waited in vain.
    ForAListThatQueues,
}

/// Returns how long an answer asks the client to wait.
fn asked(ended: Ended) -> Duration {
    match ended {
        Ended::Answered { retry_after, .. } => retry_after.unwrap_or_default().min(LONGEST_ASKED),
        Ended::NotSent | Ended::Broken => Duration::ZERO,
    }
}

/// The sends of one call that follow the schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loop {
    repeats: usize,
    had_503: bool,
    replays: u32,
    /// The tokens that were sent once more, because they might not be known everywhere yet.
    waited: BTreeSet<usize>,
    /// It was held back for a list once, and started again.
    held_back: bool,
    /// It is a cancel: after a 429 it waits at the limiter, before all others, until its deadline.
    gets_out: bool,
}

impl Loop {
    /// Returns the schedule of a cancel.
    pub(crate) fn of_cancel() -> Self {
        Self { gets_out: true, ..Self::default() }
    }

    /// Returns the least wait before the next send, if there may be one.
    pub(crate) fn wait(&self, ended: Ended) -> Option<Duration> {
        if self.waits_at_limiter(ended) {
            // A cancel must get out: it does not follow a `Retry-After` beyond the schedule's last wait.
            let asked =
                Some(asked(ended)).filter(|asked| *asked <= WAITS[3]).unwrap_or_default().max(WAITS[0]);
            return Some(asked.mul_f64(PAUSED));
        }
        let scheduled = *WAITS.get(self.repeats)?;
        let Ended::Answered { status, .. } = ended else { return Some(scheduled) };
        let asked = asked(ended);
        let unavailable = if status == 503 && !self.had_503 { UNAVAILABLE } else { Duration::ZERO };
        Some(scheduled.max(asked).max(unavailable))
    }

    fn waits_at_limiter(&self, ended: Ended) -> bool {
        self.gets_out && matches!(ended, Ended::Answered { status: 429, .. })
    }

    /// Returns the rule that the next send breaks, if any.
    pub(crate) fn next(
        &mut self,
        previous: &Exchange,
        send: &Exchange,
        then: Then,
        tokens: &Refused,
    ) -> Option<&'static str> {
        let (at, ended) = previous.ended.unwrap_or((previous.sent, Ended::Broken));
        match then {
            Then::End | Then::Verify => Some("repeated_after_the_end"),
            Then::Replay => {
                let known = previous.session == send.session && !self.waited.insert(send.session);
                self.replays += 1;
                if known || self.replays > MOST_REPLAYS {
                    return Some("replayed_again");
                }
                is_unknown_yet(previous, send, tokens).then_some("replayed_too_soon")
            }
            Then::Repeat => {
                let wait = self.wait(ended);
                self.repeats += usize::from(!self.waits_at_limiter(ended));
                self.had_503 |= matches!(ended, Ended::Answered { status: 503, .. });
                (self.replays, self.waited) = (0, BTreeSet::new());
                match wait {
                    None => Some("sent_too_often"),
                    Some(wait) => (send.sent < at + wait).then_some("repeated_too_soon"),
                }
            }
        }
    }

    /// True if the time between two sends covers the schedule's wait and a vain wait for a list.
    fn leaves_room(&self, previous: &Exchange, send: &Exchange) -> bool {
        let Some((at, ended)) = previous.ended else { return false };
        self.wait(ended).is_some_and(|wait| send.sent >= at + wait + PATIENCE)
    }

    fn restarted(held_back: bool) -> Self {
        Self { held_back, ..Self::default() }
    }
}

/// Every schedule that an order's sends may follow.
///
/// If the list of its session is not known yet, an order waits for that list once, and then restarts its schedule. It
/// waits for a second at most, in which the list may get no permit and appear on the wire only later. The wire does not
/// show whether a list was read for this order or for another. So a send breaks a rule only if it breaks it by every
/// schedule.
#[derive(Debug)]
pub(crate) struct Courses(Vec<Loop>);

impl Default for Courses {
    fn default() -> Self {
        Self(vec![Loop::default()])
    }
}

impl Courses {
    pub(crate) fn restart(&mut self) {
        let held_back = self.0.iter().all(|course| course.held_back);
        self.0 = vec![Loop::restarted(held_back)];
    }

    /// Returns the rule that the next send breaks by every schedule, if any. `waits`: whether it may have waited for a
    /// list.
    pub(crate) fn next(
        &mut self,
        (previous, send): (&Exchange, &Exchange),
        then: Then,
        waits: Waits,
        tokens: &Refused,
    ) -> Option<&'static str> {
        let (mut courses, mut wrong) = (Vec::new(), None);
        for mut course in self.0.drain(..) {
            let waits = match waits {
                Waits::No => false,
                Waits::ForAList => true,
                Waits::ForAListThatQueues => course.leaves_room(previous, send),
            };
            match course.next(previous, send, then, tokens) {
                Some(rule) => drop(wrong.get_or_insert((rule, course))),
                None => {
                    let restarted = (waits && !course.held_back).then(|| Loop::restarted(true));
                    courses.extend([course].into_iter().chain(restarted));
                }
            }
        }
        courses.dedup();
        let broken = wrong.filter(|_| courses.is_empty()).map(|(rule, course)| {
            courses.push(course);
            rule
        });
        self.0 = courses;
        broken
    }
}
