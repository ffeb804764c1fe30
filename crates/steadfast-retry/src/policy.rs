use std::{fmt, ops::RangeInclusive, sync::Arc, time::Duration};

use http::{Response, StatusCode};
use http_body::Body;
use steadfast_call::{BoxError, Call, Class, Lane, ext};
use tokio::time::Instant;
use tower::retry::budget::Budget;

use crate::{
    backoff::Backoff,
    ending::{Ending, may_repeat},
    error::RetriesEnded,
    jitter::Jitter,
    last_result::{LastResult, Superseded, replace},
    rules::{Decision, Rules, StopReason},
    schedule::Schedule,
    settings::Settings,
    spare_request::SpareRequest,
    trail::{Attempt, AttemptTrail},
};

/// Repeats requests that are certainly safe to repeat; the policy of a [`RetryLayer`](crate::RetryLayer).
///
/// 1. Whether a request may be repeated follows from its [`Class`] and the [`Outcome`](steadfast_call::Outcome) of
///    the send. [`may_repeat`] is the whole table, with one exception: a request whose refusal no list could refute
///    ([`Route::is_unverifiable`](steadfast_call::Route::is_unverifiable)) is not repeated after a 429. An answer
///    that no layer has classified is judged by its status.
/// 2. The time follows from [`Rules`]: 1, 2, 4 and 8 s by default, longer if the answer asks for it. There is no
///    repeat if it would come too late for the call's [deadline](Call::deadline) or [time to send](Call::send_by). A
///    cancel that meets a 429 waits at the limiter instead, before all others, if
///    [`predict_permit`](RetryPolicy::predict_permit) is set: the limiter has paused the zone.
/// 3. If a repeat is due and not made, the last result is returned. An answer is marked with
///    [`DoNotRetry`](ext::DoNotRetry) and its [`AttemptTrail`]; an error becomes the source of a [`RetriesEnded`].
///    No policy further out repeats a marked result.
/// 4. Every other result passes unchanged. An answer that took more than one send has its [`AttemptTrail`]. So has
///    an error after a send in doubt, because it proves something about the last send, but not about the call.
///
/// # Example
///
/// ```
/// use http_body_util::{Empty, Full};
/// use steadfast_retry::{AttemptTrail, RetryPolicy};
/// use tokio::time::Instant;
/// use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), BoxError> {
/// let overloaded = service_fn(|_: http::Request<Full<bytes::Bytes>>| async {
///     let answer = http::Response::builder().status(500).body(Empty::<bytes::Bytes>::new())?;
///     Ok::<_, BoxError>(answer)
/// });
/// let policy = RetryPolicy::default().jitter(steadfast_retry::Jitter::NONE);
/// let service = ServiceBuilder::new().layer(policy.layer()).service(overloaded);
///
/// let start = Instant::now();
/// let orders = http::Request::get("https://host/v2/api/oms/orders").body(Full::default())?;
/// let response = service.oneshot(orders).await?;
/// assert_eq!(response.status(), 500);
/// assert_eq!(start.elapsed().as_secs(), 1 + 2 + 4 + 8);
/// assert_eq!(response.extensions().get::<AttemptTrail>().map(|t| t.attempts().len()), Some(5));
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Outside the layers that must run for each send: permits, headers, guards, [`Classify`](crate::Classify). Inside
/// the layer that resolves orders in doubt. Two policies in one stack do not multiply each other's repeats, but only
/// the inner one is needed. A timeout further out would drop an order whose outcome is unknown. A debug build panics
/// at a wrong [order](steadfast_call::ext::Place).
///
/// # Clone
///
/// Clones share the settings, the budget and the random numbers. Each call has a clone, which keeps the state of that call.
///
/// # Cost
///
/// About 1,500 instructions and no allocation for a call that succeeds (`cargo xtask bench overhead`).
///
/// # Cancellation
///
/// Dropping the future drops the send or the delay with it; nothing is sent afterwards.
#[derive(Clone)]
pub struct RetryPolicy {
    // One `Arc`, because the policy is cloned for every call.
    settings: Arc<Settings>,
    /// The sends of this call that were repeated.
    earlier: Vec<Attempt>,
}

impl RetryPolicy {
    /// Makes a policy with these rules.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { settings: Arc::new(Settings::new(rules)), earlier: Vec::new() }
    }

    fn settings(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.settings)
    }

    /// Sets the delays; 1, 2, 4, 8 s by default.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.settings().rules_mut().schedule = schedule;
        self
    }

    /// Sets what is added to each delay; up to 10 % by default.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.settings().rules_mut().jitter = jitter;
        self
    }

    /// Draws the jitter from this seed, so that a run can be replayed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings().seed(seed);
        self
    }

    /// Sets the longest delay that a `Retry-After` may ask for; 60 s by default.
    #[must_use]
    pub fn retry_after_cap(mut self, cap: Duration) -> Self {
        self.settings().rules_mut().retry_after_cap = cap;
        self
    }

    /// Sets the least delay after the first 503 of a call; 5 s by default.
    #[must_use]
    pub fn unavailable_delay(mut self, delay: Duration) -> Self {
        self.settings().rules_mut().unavailable_delay = delay;
        self
    }

    /// Sets the delay from the second 502 in a row on, drawn from `range`; off by default (§7: 30 to 60 s).
    #[must_use]
    pub fn persistent_bad_gateway(mut self, range: RangeInclusive<Duration>) -> Self {
        self.settings().rules_mut().persistent_bad_gateway = Some(range);
        self
    }

    /// Uses `predict` to find out when a limiter further in would admit a request of a call at the head of its
    /// lane. A repeat that the limiter would then refuse is not waited for.
    ///
    /// A safe request of the critical lane, such as a cancel, that meets a 429 is handed back to the limiter at once,
    /// and until its deadline. So the limiter must pause after a 429, as a `ZoneLimiter` does.
    #[must_use]
    pub fn predict_permit<F>(mut self, predict: F) -> Self
    where
        F: Fn(&Call) -> Option<Instant> + Send + Sync + 'static,
    {
        self.settings().predict_permit(predict);
        self
    }

    /// Limits the share of repeats among all requests; off by default.
    ///
    /// With a budget the schedule is no longer exact: a repeat beyond the budget is not made.
    #[must_use]
    pub fn budget<B: Budget + Send + Sync + 'static>(mut self, budget: B) -> Self {
        self.settings().budget(budget);
        self
    }

    /// True if a budget limits the share of repeats.
    #[must_use]
    pub fn has_budget(&self) -> bool {
        self.settings.has_budget()
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        self.settings.rules()
    }

    fn decide<B>(&self, class: Class, last: &LastResult, spare: &SpareRequest<B>) -> Decision {
        if last.is_final || !may_repeat(class, last.observation.ending) {
            return Decision::Return;
        }
        let remaining = self.settings.remaining(spare.call());
        let (rules, earlier, draw) = (self.settings.rules(), &self.earlier, self.settings.draw());
        let lane = spare.call().lane().unwrap_or(spare.route().lane);
        let must_get_out = class == Class::Safe && lane == Lane::Critical;
        let decision =
            if must_get_out && last.observation.ending == Ending::Throttled && remaining.permit.is_some() {
                rules.throttled_cancel(earlier, &last.observation, &remaining, draw)
            } else {
                rules.decide(class, earlier, &last.observation, &remaining, draw)
            };
        match decision {
            Decision::Repeat { .. } if !self.settings.withdraw() => Decision::Stop(StopReason::Budget),
            decision => decision,
        }
    }

    fn trail(&mut self, last: LastResult) -> AttemptTrail {
        self.earlier.push(Attempt::new(last.outcome, last.observation.status));
        std::mem::take(&mut self.earlier).into()
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new(Rules::default())
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("rules", self.settings.rules())
            .field("predict_permit", &self.settings.has_prediction())
            .field("budget", &self.settings.has_budget())
            .finish_non_exhaustive()
    }
}

/// The decisions about one call.
impl RetryPolicy {
    /// Returns the delay before a repeat, after the result of a send. `None` if the result is to be returned as it then
    /// is.
    pub(crate) fn after_send<B, R: Body>(
        &mut self,
        spare: &mut SpareRequest<B>,
        result: &mut Result<Response<R>, BoxError>,
    ) -> Option<Backoff<R>> {
        let route = spare.route();
        let (endpoint, class) = (route.endpoint, route.class);
        let unverifiable = route.is_unverifiable();
        let last = LastResult::read(class, result);
        // The answer may be untrue, and no list could show it.
        let believed = last.observation.ending != Ending::Throttled || !unverifiable;
        match if believed { self.decide(class, &last, spare) } else { Decision::Return } {
            // ## Sent => Returned
            //
            // The result is final, or a layer further out decides.
            Decision::Return => {
                self.settings.deposit();
                match result {
                    Ok(response) if !self.earlier.is_empty() => {
                        response.extensions_mut().insert(self.trail(last));
                    }
                    Ok(_) => {}
                    Err(error) => self.tell_doubt(last, error),
                }
                None
            }
            // ## Sent => Stopped
            //
            // A repeat is due, but the schedule or the budget is spent, or it would come too late.
            Decision::Stop(reason) => {
                let (status, outcome) = (last.observation.status.map(|s| s.as_u16()), last.outcome.clone());
                let trail = self.trail(last);
                let sends = trail.attempts().len();
                tracing::debug!(?endpoint, ?status, %outcome, sends, %reason, "not repeated");
                match result {
                    Ok(response) => {
                        response.extensions_mut().insert(trail);
                        response.extensions_mut().insert(ext::DoNotRetry);
                    }
                    Err(error) => {
                        replace(error, |source| RetriesEnded::new(Some(reason), trail, source).into_error());
                    }
                }
                None
            }
            // ## Sent => Waiting
            //
            // Nothing was executed, or executing it twice has the same effect as once.
            Decision::Repeat { after } => {
                let status = last.observation.status.as_ref().map(StatusCode::as_u16);
                tracing::debug!(?endpoint, ?status, outcome = %last.outcome, ?after, "repeating");
                let mut attempt = Attempt::new(last.outcome, last.observation.status);
                attempt.delay = Some(after);
                self.earlier.push(attempt);
                let repeats = u32::try_from(self.earlier.len()).unwrap_or(u32::MAX);
                spare.call_mut().set_repeats(repeats).put_at_head_of_lane();
                let old = std::mem::replace(result, Err(Superseded.into())).ok().map(Response::into_body);
                Some(Backoff::new(after, old))
            }
        }
    }

    /// Ends the call with the error of a service that was not ready for a repeat.
    pub(crate) fn not_ready(&mut self, error: &mut BoxError) {
        self.tell_doubt(LastResult::of_error(error), error);
    }

    /// Adds to the last error what it does not say: that an earlier send is in doubt.
    fn tell_doubt(&mut self, last: LastResult, error: &mut BoxError) {
        if self.earlier.iter().any(|attempt| attempt.outcome.is_unknown()) {
            let trail = self.trail(last);
            replace(error, |source| RetriesEnded::new(None, trail, source).into_error());
        }
    }
}
