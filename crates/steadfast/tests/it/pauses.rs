//! The pause after a 429: what it stops, for how long, and what goes on meanwhile.

use std::time::Duration;

use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method, header};
use steadfast::{
    Client, ErrorKind, Outcome,
    deadline::DeadlineLayer,
    limit::{Account, ZoneLimiter},
    spec::Zone,
};
use tokio::time::{Instant, sleep};

use crate::{
    answers::{Answers, NO_DATA, TRIP, placed, reply, reply_with},
    world::{SECOND, order},
};

const NOON: &str = "Sat, 21 Nov 2026 12:00:00 GMT";
const HALF_A_MINUTE_LATER: &str = "Sat, 21 Nov 2026 12:00:30 GMT";

/// Refuses request number `nth` with a path ending in `path`, and asks for the pauses in `after`.
fn refusing(path: &'static str, nth: usize, after: &'static [&'static str]) -> Answers {
    Answers::with(move |arrival, number| {
        if arrival.path.ends_with(path) && number == nth {
            let mut headers = HeaderMap::new();
            headers.insert(header::DATE, HeaderValue::from_static(NOON));
            for value in after {
                headers.append(header::RETRY_AFTER, HeaderValue::from_static(value));
            }
            return reply_with(429, headers, r#"{"s":"error","msg":"Too many requests"}"#);
        }
        match (&arrival.method, arrival.path.rsplit('/').next()) {
            (&Method::GET, _) => reply(200, NO_DATA),
            (_, Some("place-order")) => reply(200, placed(number)),
            _ => reply(200, r#"{"s":"ok","d":{"msg":"done"}}"#),
        }
    })
}

async fn place(client: &Client, sym_id: &str) {
    client.place_order(&order(sym_id)).await.unwrap();
}

async fn took<T>(call: impl Future<Output = T>) -> Duration {
    let start = Instant::now();
    call.await;
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_refused_order_stops_the_orders_of_its_account_for_as_long_as_asked_and_nothing_else() {
    let cases: [(&[&str], Duration); 6] = [
        (&[], SECOND),
        (&["soon"], SECOND),
        (&["30"], 30 * SECOND),
        (&[HALF_A_MINUTE_LATER], 30 * SECOND),
        (&["5", HALF_A_MINUTE_LATER], 30 * SECOND),
        (&[HALF_A_MINUTE_LATER, "40"], 40 * SECOND),
    ];
    for (after, pause) in cases {
        let gateway = refusing("/place-order", 2, after);
        let limiter = ZoneLimiter::builder().preset().build().unwrap();
        let client = |account: &str| {
            let builder = gateway.builder().limiter(limiter.clone()).account(Account::new(account));
            builder.build_over(gateway.clone()).unwrap()
        };
        let (one, beside, other) = (client("one"), client("one"), client("other"));
        for client in [&one, &beside, &other] {
            client.prewarm().await.unwrap();
        }
        place(&one, "EQT_A_EQ_NSE").await;
        let refused = {
            let one = one.clone();
            tokio::spawn(async move { took(place(&one, "EQT_C_EQ_NSE")).await })
        };
        sleep(5 * TRIP).await;
        assert_eq!(gateway.orders_sent(), 2, "the second was refused");
        let waits = async {
            let shares_the_pause = took(place(&beside, "EQT_D_EQ_NSE")).await;
            assert!(shares_the_pause + 5 * TRIP > pause, "{after:?}: {shares_the_pause:?}");
            assert!(shares_the_pause < pause + 2 * SECOND, "{after:?}: {shares_the_pause:?}");
        };
        let goes_on = async {
            for elapsed in [
                took(place(&other, "EQT_E_EQ_NSE")).await,
                took(async { one.orders().await.unwrap() }).await,
                took(async { one.cancel("5").await.unwrap() }).await,
            ] {
                assert!(elapsed < SECOND / 2, "{after:?}: {elapsed:?}");
            }
        };
        tokio::join!(waits, goes_on);
        let waited = refused.await.unwrap();
        // A repeat waits up to a tenth longer, so that refused requests do not return all at once.
        assert!(waited > pause && waited < pause * 11 / 10 + SECOND, "{after:?}: {waited:?}");
        assert_eq!(gateway.orders_sent(), 5, "each once, and the refused one again");
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_wait_for_the_end_of_a_pause_is_told_of_zone_and_instant_and_a_cancel_gets_out() {
    let gateway = refusing("/orders", 9, &["30"]);
    let client = gateway.client();
    for _ in 0..8 {
        client.orders().await.unwrap();
    }
    // More reads than the limits admit in a second, queued before and during the pause.
    let polls: Vec<_> = (0..40)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.orders().await.map(drop) })
        })
        .collect();
    while gateway.count("/orders") < 9 {
        sleep(TRIP).await;
    }
    sleep(2 * TRIP).await;
    // The requests that left together with the refused one have arrived by now.
    let (before, start) = (gateway.arrivals().len(), Instant::now());
    let hurried = client.with_deadline(DeadlineLayer::default().send_by(5 * SECOND));
    for error in join_all((0..3).map(|_| hurried.orders())).await.into_iter().map(Result::unwrap_err) {
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Refused, &Outcome::NotSent), "{error:?}");
        assert_eq!(error.zone(), Some(Zone::GENERAL), "{error:?}");
        assert!(error.ready_at().unwrap() > start + 29 * SECOND, "{error:?}");
        assert!(format!("{error}").len() < 500);
    }
    assert_eq!(start.elapsed(), Duration::ZERO, "told at once");
    let cancelled = took(async { client.cancel("5").await.unwrap() }).await;
    assert!(cancelled <= SECOND + 2 * TRIP, "the polls alone were told to wait: {cancelled:?}");
    assert_eq!(gateway.arrivals()[before].method, Method::DELETE, "the first of all that waited");
    for poll in polls {
        poll.await.unwrap().unwrap();
    }
    let arrivals = gateway.arrivals();
    assert!(arrivals[before + 1].at > arrivals[before].at + 28 * SECOND, "the polls wait as they were told");
}
