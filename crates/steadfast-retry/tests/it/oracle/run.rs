//! Runs the real layers and records the result.

use std::{
    error::Error,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use http::{Request, Response, header::AUTHORIZATION};
use steadfast_auth::{
    ApiKey, Attempt, AuthHeaderLayer, Grant, Login, LoginFailure, LoginMode, RefreshLayer, Renewal,
    TokenSource,
};
use steadfast_call::{BoxError, Call, Failure, WallClock, ext, find_cause};
use steadfast_retry::{AttemptTrail, ClassifyLayer, Jitter, RetriesEnded, RetryPolicy};
use steadfast_spec::Endpoint;
use tokio::time::{Instant, sleep, sleep_until};
use tower::{Layer, Service, ServiceExt, retry::budget::Budget, service_fn, util::BoxCloneService};

use super::{case::Case, predict::Seen};
use crate::support::{Reply, Script, Sent, request};

/// Returns the policy of a case, without the parts that need a running stack.
pub(super) fn policy(case: &Case) -> RetryPolicy {
    let policy = RetryPolicy::default().seed(case.seed);
    let policy = if case.jitter { policy } else { policy.jitter(Jitter::NONE) };
    if case.persistent_502 {
        policy.persistent_bad_gateway(Duration::from_secs(30)..=Duration::from_secs(60))
    } else {
        policy
    }
}

/// Sends one request through the real layers and returns what happened.
pub(super) fn run(case: &Case) -> Seen {
    run_with(policy(case), case)
}

pub(super) fn run_with(policy: RetryPolicy, case: &Case) -> Seen {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(call(policy, case))
}

async fn call(mut policy: RetryPolicy, case: &Case) -> Seen {
    let logins = Arc::<AtomicUsize>::default();
    let tokens = match case.login {
        Some(_) => Some(working_token(case, logins.clone()).await),
        None => None,
    };
    let start = Instant::now();
    let wire = Script::new(case.script.iter().map(super::Line::reply));
    let (closed, sends) = (case.closed, wire.clone());
    let opens = move || Some(start + closed?.opens(sends.sends(), start.elapsed())?);
    if case.predicts {
        let opens = opens.clone();
        policy = policy.predict_permit(move |_| opens());
    }
    let budget = Arc::new(Purse::of(case.budget.unwrap_or_default()));
    if case.budget.is_some() {
        policy = policy.budget(Shared(budget.clone()));
    }
    let carried = Arc::<Mutex<Vec<usize>>>::default();
    let log = carried.clone();
    let transport = wire.clone().map_request(move |request: Request<Sent>| {
        let token = request.headers().get(AUTHORIZATION).map(|header| header.to_str().unwrap());
        // `Bearer key:token-1`, or no token at all.
        let token = token.and_then(|token| token.rsplit_once("token-")?.1.parse().ok());
        log.lock().unwrap().push(token.unwrap_or(0));
        request
    });
    let sends = ClassifyLayer::new().layer(transport);
    let service = match tokens {
        None => BoxCloneService::new(policy.layer().layer(limits(opens, sends))),
        Some(tokens) => {
            let header = AuthHeaderLayer::new(tokens.clone()).layer(sends);
            let refresh = RefreshLayer::new(tokens).layer(limits(opens, header));
            BoxCloneService::new(policy.layer().layer(refresh))
        }
    };
    let mut request = request(case.endpoint);
    let extensions = request.extensions_mut();
    if let Some(deadline) = case.deadline {
        Call::of_mut(extensions).set_deadline((start + deadline).into_std());
    }
    if let Some(send_by) = case.send_by {
        Call::of_mut(extensions).set_send_by((start + send_by).into_std());
    }
    let result = service.oneshot(request).await;
    let mut seen = told(result);
    seen.ended = start.elapsed();
    seen.sends = wire.trace().into_iter().zip(carried.lock().unwrap().iter().copied()).collect();
    seen.logins = logins.load(Ordering::Relaxed).saturating_sub(1);
    seen.budget = budget.moved();
    seen
}

/// Returns what the caller gets.
fn told<R>(result: Result<Response<R>, BoxError>) -> Seen {
    let (mut seen, trail) = match &result {
        Ok(response) => {
            let status = Some(response.status().as_u16());
            let is_final = response.extensions().get::<ext::DoNotRetry>().is_some();
            (Seen { status, is_final, ..Seen::default() }, response.extensions().get::<AttemptTrail>())
        }
        Err(error) => {
            let ended = RetriesEnded::find(&**error);
            let stopped = ended.and_then(RetriesEnded::stopped);
            let frozen = find_cause::<Frozen>(&**error).is_some();
            let seen = Seen { stopped, is_final: stopped.is_some(), frozen, ..Seen::default() };
            (seen, ended.map(RetriesEnded::trail))
        }
    };
    seen.trail = trail.map(|trail| {
        let (last, earlier) = trail.attempts().split_last().unwrap();
        assert_eq!((last.status.map(|status| status.as_u16()), last.delay), (seen.status, None));
        let step = |attempt: &steadfast_retry::Attempt| {
            (attempt.outcome.is_unknown(), attempt.status.map(|status| status.as_u16()), attempt.delay)
        };
        earlier.iter().map(step).collect()
    });
    seen
}

/// Limits, closed until an instant or open. They refuse a request that cannot leave in time at once, with that instant.
fn limits<S, B, R>(
    opens: impl Fn() -> Option<Instant> + Clone + Send,
    inner: S,
) -> impl Service<Request<B>, Response = Response<R>, Error = BoxError, Future: Send> + Clone + Send
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError> + Clone + Send,
    S::Future: Send,
    B: Send,
{
    service_fn(move |request: Request<B>| {
        let (inner, opens) = (inner.clone(), opens());
        async move {
            if let Some(opens) = opens {
                let at = opens.into_std();
                let call = Call::of(request.extensions());
                let late = call.deadline().is_some_and(|deadline| at >= deadline);
                if late || call.send_by().is_some_and(|send_by| at > send_by) {
                    return Err(Failure::refused(Frozen).into());
                }
                sleep_until(opens).await;
            }
            inner.oneshot(request).await
        }
    })
}

#[derive(Debug)]
struct Frozen;

impl fmt::Display for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("limits open too late")
    }
}

impl Error for Frozen {}

/// Returns a source whose first token has worked, and whose next login is the case's.
async fn working_token(case: &Case, logins: Arc<AtomicUsize>) -> TokenSource {
    let start = Instant::now();
    let clock = WallClock::new(move || UNIX_EPOCH + Duration::from_secs(1_700_000_000) + start.elapsed());
    let source = TokenSource::builder(ApiKey::new("key").unwrap(), Scripted { next: case.login, logins })
        .clock(clock)
        .renewal(Renewal::new().jitter_seed(7))
        .build();
    let answer = service_fn(async |_: Request<Sent>| Reply::Status(200).give());
    let header = AuthHeaderLayer::new(source.clone()).layer(answer);
    let first = RefreshLayer::new(source.clone()).layer(header).oneshot(request(Endpoint::Orders)).await;
    assert_eq!(first.unwrap().status(), 200);
    source
}

/// Brings `token-1` at once, and then the result of the case.
struct Scripted {
    next: Option<super::case::Login>,
    logins: Arc<AtomicUsize>,
}

impl Login for Scripted {
    fn mode(&self) -> LoginMode {
        LoginMode::Unattended
    }

    async fn attempt(&self, attempt: &Attempt) -> Result<Grant, LoginFailure> {
        let number = self.logins.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(next) = self.next.filter(|_| number > 1) {
            sleep(next.takes).await;
            if !next.works {
                return Err(LoginFailure::Denied("no such address".into()));
            }
        }
        Ok(Grant::new(format!("token-{number}"), attempt.now()))
    }
}

/// A budget for a number of repeats that counts withdrawals and deposits.
#[derive(Debug)]
struct Purse {
    left: AtomicU32,
    moved: (AtomicU32, AtomicU32),
}

impl Purse {
    fn of(left: u32) -> Self {
        Self { left: left.into(), moved: Default::default() }
    }

    fn moved(&self) -> (u32, u32) {
        (self.moved.0.load(Ordering::Relaxed), self.moved.1.load(Ordering::Relaxed))
    }
}

struct Shared(Arc<Purse>);

impl Budget for Shared {
    fn deposit(&self) {
        self.0.moved.1.fetch_add(1, Ordering::Relaxed);
    }

    fn withdraw(&self) -> bool {
        let Self(purse) = self;
        let left = purse.left.load(Ordering::Relaxed);
        purse.left.store(left.saturating_sub(1), Ordering::Relaxed);
        purse.moved.0.fetch_add(u32::from(left > 0), Ordering::Relaxed);
        left > 0
    }
}
