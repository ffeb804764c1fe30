//! The wire trace equals the prediction: the same policy written a second time, as a loop and not as data.

use std::time::Duration;

use proptest::prelude::*;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use steadfast_retry::{AttemptTrail, ClassifyLayer, Jitter, RetriesEnded, RetryPolicy};
use steadfast_spec::{Endpoint, ext, msg};
use tokio::time::Instant;
use tower::{ServiceBuilder, ServiceExt};

use crate::support::{PLACED, Reply, Script, error, request};

/// A send as the policy should see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    CertainlyNotExecuted,
    InDoubt,
    Final,
}

fn kind(reply: &Reply) -> Kind {
    match reply {
        Reply::NeverLeft => Kind::CertainlyNotExecuted,
        Reply::Refused => Kind::Final,
        Reply::Lost | Reply::Plain => Kind::InDoubt,
        Reply::Status(429) | Reply::Header(429, ..) => Kind::CertainlyNotExecuted,
        Reply::Status(500..=599) | Reply::Header(500..=599, ..) => Kind::InDoubt,
        Reply::Body(400, text) if text.contains(msg::INTERNAL_ERROR) => Kind::InDoubt,
        Reply::Status(_) | Reply::Header(..) | Reply::Body(..) => Kind::Final,
    }
}

fn status(reply: &Reply) -> Option<u16> {
    match reply {
        Reply::Status(status) | Reply::Body(status, _) | Reply::Header(status, ..) => Some(*status),
        _ => None,
    }
}

/// What should happen on the wire.
#[derive(Debug, Default, PartialEq, Eq)]
struct Predicted {
    sends: Vec<Duration>,
    stopped: bool,
}

fn predict(
    endpoint: Endpoint,
    script: &[Reply],
    deadline: Option<Duration>,
    mut draw: impl FnMut() -> Option<u64>,
) -> Predicted {
    let harmless = !matches!(
        endpoint,
        Endpoint::PlaceOrder | Endpoint::ModifyOrder | Endpoint::Token | Endpoint::IndividualToken
    );
    let mut predicted = Predicted::default();
    let mut now = Duration::ZERO;
    let mut had_503 = false;
    for send in 0.. {
        predicted.sends.push(now);
        let reply = script.get(send).or(script.last()).unwrap();
        let again = match kind(reply) {
            Kind::CertainlyNotExecuted => true,
            Kind::InDoubt => harmless,
            Kind::Final => false,
        };
        if !again {
            return predicted;
        }
        let random = draw();
        predicted.stopped = true;
        if send == 4 {
            return predicted;
        }
        let mut wait = Duration::from_secs(1 << send);
        if let Reply::Header(_, _, asked) = reply {
            wait = wait.max(Duration::from_secs(asked.parse::<u64>().unwrap_or(0).min(60)));
        }
        if status(reply) == Some(503) {
            if !had_503 {
                wait = wait.max(Duration::from_secs(5));
            }
            had_503 = true;
        }
        if let Some(random) = random {
            // A tenth of the delay, times the draw's share of all draws.
            let tenth = wait.as_nanos() / 10;
            wait += Duration::from_nanos(((tenth * u128::from(random >> 32)) >> 32) as u64);
        }
        // tokio's clock ticks in milliseconds, and never early.
        now = Duration::from_millis((now + wait).as_nanos().div_ceil(1_000_000) as u64);
        if deadline.is_some_and(|deadline| predicted.sends[send] + wait >= deadline) {
            return predicted;
        }
        predicted.stopped = false;
    }
    unreachable!("a script ends after five sends");
}

fn reply() -> impl Strategy<Value = Reply> {
    let statuses =
        vec![200, 202, 302, 400, 401, 403, 404, 405, 408, 409, 415, 425, 429, 500, 502, 503, 504, 599];
    let retried = vec![429u16, 500, 502, 503, 504];
    let asked = prop_oneof![
        (0..100u64).prop_map(|n| n.to_string()),
        Just("later".to_owned()),
        Just("-5".to_owned()),
    ];
    prop_oneof![
        4 => prop::sample::select(retried.clone()).prop_map(Reply::Status),
        2 => prop::sample::select(statuses).prop_map(Reply::Status),
        2 => (prop::sample::select(retried), asked).prop_map(|(s, v)| Reply::Header(s, "retry-after", v)),
        1 => prop::sample::select(vec![msg::INTERNAL_ERROR, msg::BAD_REQUEST, msg::INPUT_VALIDATION, "?"])
            .prop_map(|text| Reply::Body(400, error(text))),
        1 => Just(Reply::Body(200, PLACED.into())),
        2 => Just(Reply::NeverLeft),
        1 => Just(Reply::Lost),
        1 => Just(Reply::Plain),
        1 => Just(Reply::Refused),
    ]
}

/// Sends one request through the real layers and says what happened on the wire.
fn run(endpoint: Endpoint, script: &[Reply], policy: RetryPolicy, deadline: Option<Duration>) -> Predicted {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let wire = Script::new(script.iter().cloned());
        let service =
            ServiceBuilder::new().layer(policy.layer()).layer(ClassifyLayer::new()).service(wire.clone());
        let mut request = request(endpoint);
        if let Some(deadline) = deadline {
            request.extensions_mut().insert(ext::Deadline((Instant::now() + deadline).into_std()));
        }
        let (stopped, attempts) = match service.oneshot(request).await {
            Ok(response) => (
                response.extensions().get::<ext::DoNotRetry>().is_some(),
                response.extensions().get::<AttemptTrail>().map(|trail| trail.attempts().len()),
            ),
            Err(error) => {
                let ended = RetriesEnded::find(&*error);
                (
                    ended.is_some_and(|ended| ended.stopped().is_some()),
                    ended.map(|ended| ended.trail().attempts().len()),
                )
            }
        };
        // A trail, where there is one, tells the same story as the wire.
        assert!(attempts.is_none_or(|attempts| attempts == wire.sends()));
        Predicted { sends: wire.trace(), stopped }
    })
}

/// How many scripts are tried: some plainly, a hundred thousand in the deep stages.
fn scripts() -> u32 {
    if std::env::var_os("STEADFAST_DEEP").is_some() { 100_000 } else { 2_000 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scripts()))]

    #[test]
    fn the_wire_trace_is_the_prediction(
        endpoint in prop::sample::select(Endpoint::ALL.to_vec()),
        script in prop::collection::vec(reply(), 1..7),
        seed in prop::option::of(any::<u64>()),
        deadline in prop::option::of((0..40_000u64).prop_map(Duration::from_millis)),
    ) {
        let policy = RetryPolicy::default();
        let policy = match seed {
            Some(seed) => policy.seed(seed),
            None => policy.jitter(Jitter::NONE),
        };
        let mut rng = ChaCha8Rng::seed_from_u64(seed.unwrap_or_default());
        let expected = predict(endpoint, &script, deadline, || seed.map(|_| rng.next_u64()));
        prop_assert_eq!(run(endpoint, &script, policy, deadline), expected);
    }

    #[test]
    fn no_order_is_sent_again_after_a_send_in_doubt(script in prop::collection::vec(reply(), 1..7)) {
        let sends = run(Endpoint::PlaceOrder, &script, RetryPolicy::default(), None).sends.len();
        for reply in script.iter().take(sends - 1) {
            prop_assert_eq!(kind(reply), Kind::CertainlyNotExecuted);
        }
    }
}

/// Every class and every way a send can end, exactly: how many sends follow one that ends so.
#[test]
fn every_endpoint_meets_every_reply() {
    let replies = [
        Reply::NeverLeft,
        Reply::Lost,
        Reply::Plain,
        Reply::Refused,
        Reply::Body(400, error(msg::INTERNAL_ERROR)),
        Reply::Body(400, error(msg::BAD_REQUEST)),
        Reply::Body(400, error("?")),
    ];
    let statuses = (100..=599).map(Reply::Status);
    for reply in replies.into_iter().chain(statuses) {
        for endpoint in Endpoint::ALL {
            let script = [reply.clone(), Reply::Body(200, PLACED.into())];
            let expected = predict(endpoint, &script, None, || None);
            let policy = RetryPolicy::default().jitter(Jitter::NONE);
            assert_eq!(run(endpoint, &script, policy, None), expected, "{endpoint:?} {reply:?}");
        }
    }
}

#[test]
fn the_oracle_can_fail() {
    let script = [Reply::Status(500)];
    let expected = predict(Endpoint::Orders, &script, None, || None);
    let policy = RetryPolicy::default()
        .jitter(Jitter::NONE)
        .schedule([1, 2, 4].map(Duration::from_secs).into_iter().collect());
    assert_ne!(run(Endpoint::Orders, &script, policy, None), expected);
}
