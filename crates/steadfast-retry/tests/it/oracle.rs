//! The wire trace equals the prediction, which is the same policy written a second time, as a loop instead of data.
//!
//! The surroundings of the policy in a whole stack are included: limits that are closed until an instant, a token
//! that one renewal replaces, a budget of repeats.

mod case;
mod predict;
mod run;

use std::{collections::BTreeMap, time::Duration};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use steadfast_retry::{Jitter, RetryPolicy};
use steadfast_spec::{Endpoint, msg};

use self::{
    case::{Case, Line, case, line},
    predict::{Kind, predict},
    run::{policy, run, run_with},
};
use crate::support::{PLACED, Reply, error};

/// How many scripts are tried: a hundred thousand in the deep stages.
fn scripts() -> u32 {
    if std::env::var_os("STEADFAST_DEEP").is_some() { 100_000 } else { 2_000 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scripts()))]

    #[test]
    fn the_wire_trace_is_the_prediction(case in case()) {
        let expected = predict(&case);
        // Two timers that end in the same instant may fire in either order.
        prop_assume!(expected.is_some());
        prop_assert_eq!(Some(run(&case)), expected);
    }

    #[test]
    fn no_order_is_sent_again_after_a_send_in_doubt(script in prop::collection::vec(line(), 1..7), seed: u64) {
        let case = Case { seed, jitter: true, ..Case::exact(Endpoint::PlaceOrder, script) };
        let sends = run(&case).sends.len();
        for line in case.script.iter().take(sends - 1) {
            prop_assert_eq!(line.kind(), Kind::CertainlyNotExecuted);
        }
    }
}

/// For every class and every ending, exactly: how many sends follow it.
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
        for endpoint in Endpoint::SPECIFIED {
            let script = [reply.clone(), Reply::Body(200, PLACED.into())].map(Line::Says);
            let case = Case::exact(endpoint, script.to_vec());
            assert_eq!(Some(run(&case)), predict(&case), "{endpoint:?} {reply:?}");
        }
    }
}

/// Checks that the strategy draws every situation.
#[test]
fn the_drawn_calls_meet_everything() {
    let mut runner = TestRunner::deterministic();
    let mut met = BTreeMap::<String, u32>::new();
    for _ in 0..2_000 {
        let drawn = case().new_tree(&mut runner).unwrap().current();
        let Some(seen) = predict(&drawn) else { continue };
        let pauses =
            || seen.trail.iter().flatten().filter_map(|(_, status, delay)| Some((*status, (*delay)?)));
        let long =
            |of| pauses().any(|(status, delay)| status == Some(of) && delay >= Duration::from_secs(30));
        let dated = drawn.script.iter().any(|line| matches!(line, Line::Until { date: Some(_), .. }));
        // Only the prediction of the limits makes the difference.
        let untold = predict(&Case { predicts: false, ..drawn.clone() });
        for (what, met_it) in [
            ("a date", dated && [429, 500, 504].into_iter().any(long)),
            ("persistent 502s", drawn.persistent_502 && long(502)),
            ("limits that open", seen.sends.first().is_some_and(|(at, _)| *at > Duration::ZERO)),
            ("limits that open too late", seen.frozen),
            ("a stop by what the limits say", untold.is_some_and(|untold| untold != seen && seen.is_final)),
            ("a 401 and a new token", seen.sends.iter().any(|(_, token)| *token == 2)),
            (
                "a new token that is not known yet",
                seen.sends.iter().filter(|(_, token)| *token == 2).count() > 2,
            ),
            ("a 401 without a new token", seen.logins == 1 && seen.status == Some(401)),
            ("a budget that was used", seen.budget.0 > 0),
            (&format!("a stop: {:?}", seen.stopped), true),
        ] {
            *met.entry(what.to_owned()).or_default() += u32::from(met_it);
        }
    }
    // Nine named situations, the four reasons to stop, and none.
    assert_eq!(met.len(), 9 + 5, "{met:#?}");
    assert!(met.values().all(|times| *times >= 5), "{met:#?}");
}

#[test]
fn the_oracle_can_fail() {
    let case = Case::exact(Endpoint::Orders, vec![Line::Says(Reply::Status(500))]);
    let shorter = [1, 2, 4].map(Duration::from_secs).into_iter().collect();
    assert_eq!(Some(run_with(policy(&case), &case)), predict(&case));
    assert_ne!(Some(run_with(policy(&case).schedule(shorter), &case)), predict(&case));
    let tenth = RetryPolicy::default().seed(1).jitter(Jitter::percent(10));
    assert_ne!(Some(run_with(tenth, &case)), predict(&case));
}
