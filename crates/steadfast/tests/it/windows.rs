//! Every window of every zone, counted directly from the requests that reached the gateway.

use std::time::Duration;

use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, header::RETRY_AFTER};
use steadfast::{OrderChange, limit::ZoneLimiter};
use tokio::time::sleep;

use crate::{
    answers::{Answers, Arrival, NO_DATA, TRIP, placed, reply, reply_with},
    world::{SECOND, order},
};

/// Returns the most that a gateway can count in any window, if it counts anywhere between arrival
/// and answer.
fn densest(arrivals: &[Duration], window: Duration) -> usize {
    let starts = arrivals.iter().map(|at| *at + TRIP);
    let counted =
        |start: Duration| arrivals.iter().filter(|at| **at + TRIP >= start && **at < start + window).count();
    starts.map(counted).max().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn two_clients_that_share_a_limiter_fill_no_window_of_any_zone_and_one_alone_leaves_room_for_neither() {
    let gateway = Answers::with(|arrival, number| match arrival.path.rsplit('/').next() {
        Some("orders") => reply(200, NO_DATA),
        Some("place-order") => reply(200, placed(number)),
        _ => reply(200, r#"{"s":"ok","d":{"msg":"done"}}"#),
    });
    let limiter = ZoneLimiter::builder().preset().build().unwrap();
    let client = || gateway.builder().limiter(limiter.clone()).build_over(gateway.clone()).unwrap();
    let clients = [client(), client()];
    let calls = (0..420_u64).map(|number| {
        let client = &clients[usize::from(number % 2 == 0)];
        async move {
            // All of them within twenty seconds, in bursts.
            sleep(Duration::from_millis(number * 7_919 % 20 * 1_000)).await;
            match number % 6 {
                0 => client.place_order(&order(&format!("EQT_A{number}_EQ_NSE"))).await.map(drop),
                1 => client.cancel("5").await,
                2 => client.modify("5", &OrderChange::new().qty(3)).await,
                _ => client.orders().await.map(drop),
            }
        }
    });
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    let (orders, general): (Vec<Arrival>, Vec<Arrival>) =
        gateway.arrivals().into_iter().partition(|arrival| arrival.path.ends_with("/place-order"));
    let at = |arrivals: Vec<Arrival>| arrivals.iter().map(|arrival| arrival.at).collect::<Vec<_>>();
    let (orders, general) = (at(orders), at(general));
    assert!(orders.len() == 70 && general.len() >= 350, "{} and {}", orders.len(), general.len());
    assert_eq!((densest(&orders, SECOND), densest(&general, SECOND)), (10, 10), "full, and never more");
    assert!(densest(&general, 60 * SECOND) <= 400);
}

#[tokio::test(start_paused = true)]
async fn whatever_retry_after_says_a_429_is_waited_out_for_a_second_at_least_and_not_much_more_than_a_minute()
{
    let values: [&[&[u8]]; 16] = [
        &[b""],
        &[b"0"],
        &[b"-5"],
        &[b"+3"],
        &[b"1.5"],
        &[b"1e9"],
        &[b"0x10"],
        &[b"3, 5"],
        &[b"\xff\xfe"],
        &[b"86400"],
        &[b"18446744073709551615"],
        &[b"99999999999999999999999"],
        &[b"Thu, 01 Jan 1970 00:00:00 GMT"],
        &[b"Fri, 31 Dec 9999 23:59:59 GMT"],
        &[b"Wed, 99 Oct 2099 07:28:00 GMT"],
        &[b"nonsense", b"86400"],
    ];
    for values in values {
        for path in ["/orders", "/place-order"] {
            let gateway = Answers::with(move |arrival, number| {
                if arrival.path.ends_with(path) && number == 1 {
                    let value = |value: &&[u8]| (RETRY_AFTER, HeaderValue::from_bytes(value).unwrap());
                    let headers: HeaderMap = values.iter().map(value).collect();
                    return reply_with(429, headers, r#"{"s":"error","msg":"Too many requests"}"#);
                }
                reply(
                    200,
                    if arrival.path.ends_with("/orders") { NO_DATA.to_owned() } else { placed(number) },
                )
            });
            let client = gateway.client();
            match path {
                "/orders" => drop(client.orders().await.unwrap()),
                _ => drop(client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap()),
            }
            let sends: Vec<Duration> =
                gateway.arrivals().iter().filter(|a| a.path.ends_with(path)).map(|a| a.at).collect();
            let waited = sends[1] - sends[0];
            assert!(
                sends.len() == 2 && waited > SECOND && waited < 67 * SECOND,
                "{values:?} {path}: {sends:?}"
            );
        }
    }
}
