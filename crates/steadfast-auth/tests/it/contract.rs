//! Tower's contract: a call follows readiness, and a dropped future leaves nothing behind.

use std::time::Duration;

use steadfast_auth::{AuthHeaderLayer, RefreshLayer};
use steadfast_verify::probes::{Strict, drop_at_every_poll};
use tower::{Layer, Service, ServiceExt};

use crate::support::{Answer, Bench, orders, secs};

#[tokio::test(start_paused = true)]
async fn every_call_goes_to_the_service_that_was_polled_ready() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["two"]);
    let strict = Strict::new(bench.api.clone());
    let uses = strict.uses();
    let header = AuthHeaderLayer::new(bench.source.clone()).layer(strict);
    let mut service = RefreshLayer::new(bench.source.clone()).layer(header);
    // The first call is sent twice, the second once.
    for calls in [2, 3] {
        let response = service.ready().await.unwrap().call(orders()).await.unwrap();
        assert_eq!((response.status().as_u16(), uses.calls()), (200, calls));
    }
    assert_eq!(uses.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_header_alone_forwards_readiness() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    let strict = Strict::new(bench.api.clone());
    let uses = strict.uses();
    let mut service = AuthHeaderLayer::new(bench.source.clone()).layer(strict);
    for calls in 1..=3 {
        assert_eq!(service.ready().await.unwrap().call(orders()).await.unwrap().status(), 200);
        assert_eq!(uses.calls(), calls);
    }
}

/// A refused send, its renewal and the second send, dropped after each poll: the source keeps working.
#[tokio::test(start_paused = true)]
async fn a_request_dropped_at_any_poll_leaves_a_source_that_works() {
    const TOKENS: [&str; 8] = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];
    let bench = Bench::with_working_token(TOKENS[0], TOKENS[1..].iter().map(|t| Answer::Token(t))).await;
    let _slow = (bench.logins.clone().taking(secs(1)), bench.api.clone().taking(Duration::from_millis(300)));
    let strict = Strict::new(bench.api.clone());
    let uses = strict.uses();
    let header = AuthHeaderLayer::new(bench.source.clone()).layer(strict);
    let stack = RefreshLayer::new(bench.source.clone()).layer(header);
    let current = || bench.source.token().expect("a token").generation().0 as usize;
    let (response, polls) = drop_at_every_poll(
        || {
            // The service accepts the token of the next login.
            bench.api.accept([TOKENS[current()]]);
            stack.clone().oneshot(orders())
        },
        |polls| {
            let (uses, bench) = (uses.clone(), &bench);
            async move {
                assert_eq!(uses.running(), 0, "dropped after {polls} polls");
                // A login that had begun goes on. After a quarter of an hour the next suspicion may cause one.
                tokio::time::sleep(secs(901)).await;
                bench.api.accept([TOKENS[current() - 1]]);
                assert_eq!(bench.get().await.unwrap().status(), 200, "dropped after {polls} polls");
            }
        },
    )
    .await;
    assert_eq!(response.unwrap().status(), 200);
    assert!(polls >= 5, "{polls} polls: readiness, send, renewal, readiness, send");
    assert_eq!(current(), bench.logins.count(), "no login was wasted or repeated");
}
