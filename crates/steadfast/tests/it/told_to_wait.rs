//! Cancels in a zone whose polls were told to wait for a minute.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use http::{HeaderMap, Method, header::RETRY_AFTER};
use steadfast::Client;
use steadfast_sandbox::enforce::{Enforcer, Kind, Window, decide};
use tokio::time::{Instant, sleep};

use crate::{
    answers::{Answers, NO_DATA, reply, reply_with},
    served::serve,
    world::{SECOND, order, script},
};

const CANCELS: usize = 20;
const TOLD: u32 = 60;

/// The requests whose 429s ask for a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Polls,
    All,
}

/// The quota of the gateway for everything but the first poll, which it refuses.
#[derive(Clone, Copy, Debug)]
enum Quota {
    /// As documented.
    Whole,
    /// This many in this time.
    Lowered(u32, Duration),
    /// Nothing until then.
    GoneUntil(Duration),
}

/// The cancels that came after the poll.
#[derive(Debug)]
struct Cancelled {
    /// How long each took, in ascending order.
    took: Vec<Duration>,
    failed: usize,
    /// When cancels were refused, from the poll's 429 on.
    refused: Vec<Duration>,
    /// When the next poll came after the one that was refused.
    next_poll: Option<Duration>,
}

impl Cancelled {
    fn longest(&self) -> Duration {
        self.took[self.took.len() - 1]
    }

    /// Returns the most refusals within `span`.
    fn most_within(&self, span: Duration) -> usize {
        let within =
            |from: &Duration| self.refused.iter().filter(|at| (*from..*from + span).contains(*at)).count();
        self.refused.iter().map(within).max().unwrap_or(0)
    }
}

async fn cancel_all(client: &Client, numbers: std::ops::Range<usize>) -> (Vec<Duration>, usize) {
    let cancels = join_all(numbers.map(|number| async move {
        let asked = Instant::now();
        let is_out = client.cancel(&number.to_string()).await.is_ok();
        (asked.elapsed(), is_out)
    }))
    .await;
    let mut took: Vec<_> = cancels.iter().map(|(took, _)| *took).collect();
    took.sort_unstable();
    (took, cancels.iter().filter(|(_, is_out)| !is_out).count())
}

/// Answers one poll with 429 and `Retry-After: 60`, and then sends 20 cancels at once while ten polls wait.
async fn cancel_while_told(quota: Quota, told: Told) -> Cancelled {
    let refused = Arc::new(Mutex::new(Vec::new()));
    let log = refused.clone();
    let window = match quota {
        Quota::Lowered(limit, period) => Window::new(limit, period),
        Quota::Whole | Quota::GoneUntil(_) => Window::new(10, SECOND),
    };
    let window = Mutex::new(Enforcer::new(Kind::SlidingLog, window.unwrap()));
    let gateway = Answers::with(move |arrival, number| {
        let is_poll = arrival.method == Method::GET;
        let admitted = match quota {
            Quota::GoneUntil(back) => arrival.at >= back,
            _ => decide(&mut [&mut window.lock().unwrap()], arrival.at).is_ok(),
        };
        if is_poll && number == 1 || !admitted {
            log.lock().unwrap().push((arrival.at, arrival.method.clone()));
            let mut headers = HeaderMap::new();
            if is_poll || told == Told::All {
                headers.insert(RETRY_AFTER, TOLD.into());
            }
            return reply_with(429, headers, r#"{"s":"error","msg":"Too many requests"}"#);
        }
        match arrival.method {
            Method::GET => reply(200, NO_DATA),
            _ => reply(200, r#"{"s":"ok","d":{"msg":"done"}}"#),
        }
    });
    let client = gateway.client();
    let polls: Vec<_> = (0..10)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { while client.orders().await.is_ok() {} })
        })
        .collect();
    sleep(SECOND / 10).await;
    let (took, failed) = cancel_all(&client, 0..CANCELS).await;
    sleep(150 * SECOND).await;
    polls.iter().for_each(tokio::task::JoinHandle::abort);
    let refused = refused.lock().unwrap().clone();
    let first = refused[0].0;
    let cancels = refused.iter().filter(|(_, method)| *method != Method::GET);
    let after = |at: &Duration| *at > first + SECOND / 10;
    let polled = gateway.arrivals().into_iter().filter(|arrival| arrival.method == Method::GET);
    Cancelled {
        took,
        failed,
        refused: cancels.map(|(at, _)| *at - first).collect(),
        next_poll: polled.map(|poll| poll.at).find(after).map(|at| at - first),
    }
}

/// The pause of one second, a second for every ten cancels and one more, and a trip for each of the first ten, which
/// leave one by one.
const WHOLE: Duration = Duration::from_millis(3_300);

/// Regression: the cancels waited for the whole minute.
#[tokio::test(start_paused = true)]
async fn polls_that_are_told_to_wait_hold_cancels_for_a_second() {
    for told in [Told::Polls, Told::All] {
        let cancelled = cancel_while_told(Quota::Whole, told).await;
        println!("{told:?}: {cancelled:?}");
        assert_eq!((cancelled.failed, cancelled.refused.len()), (0, 0), "{told:?}");
        assert!(cancelled.longest() <= WHOLE, "{told:?}: {:?}", cancelled.longest());
        let next = cancelled.next_poll.unwrap();
        assert!(next >= TOLD * SECOND, "the others wait as they were told: {next:?}");
    }
}

/// Regression: nine left at once and were refused together.
#[tokio::test(start_paused = true)]
async fn cancels_leave_one_by_one_where_little_of_the_quota_is_left() {
    // At one a second, the tenth of 20 is out after 10 s and some refusals that teach the limit.
    for (limit, longest) in [(1, 22), (3, 11)] {
        for told in [Told::Polls, Told::All] {
            let cancelled = cancel_while_told(Quota::Lowered(limit, SECOND), told).await;
            println!("{limit} a second, {told:?}: {cancelled:?}");
            assert_eq!(cancelled.failed, 0, "{limit} {told:?}");
            assert!(cancelled.longest() <= longest * SECOND, "{limit} {told:?}: {:?}", cancelled.longest());
            assert!(cancelled.refused.len() <= 5, "{limit} {told:?}: {:?}", cancelled.refused);
            assert_eq!(cancelled.most_within(SECOND), 1, "{limit} {told:?}: {:?}", cancelled.refused);
        }
    }
}

/// The gateway refuses cancels, too, for a while, and tells them to wait for a minute.
#[tokio::test(start_paused = true)]
async fn a_cancel_gets_out_within_eight_seconds_of_the_quota_being_back() {
    for seconds in [1, 3, 5, 20, 61] {
        for told in [Told::Polls, Told::All] {
            let cancelled = cancel_while_told(Quota::GoneUntil(seconds * SECOND), told).await;
            println!("{seconds} s, {told:?}: {cancelled:?}");
            assert_eq!(cancelled.failed, 0, "{seconds} {told:?}");
            // The pauses grow from one second to eight.
            let behind = (seconds + 1).min(8) * SECOND;
            let longest = seconds * SECOND + behind + WHOLE - SECOND;
            assert!(cancelled.longest() <= longest, "{seconds} {told:?}: {:?}", cancelled.longest());
            // One tries at 1, 3, 7 and 15 s, and then every eight seconds.
            assert!(cancelled.refused.len() <= 3 + seconds as usize / 8, "{:?}", cancelled.refused);
        }
    }
}

/// Real sockets and real time.
#[tokio::test]
async fn cancels_leave_over_a_socket_although_a_poll_was_told_to_wait() {
    let fault = "[[fault]]\nname = 'quota.storm-retry-after-60'\nendpoint = 'history'\nnth = 1";
    let served = serve(script(fault).build().unwrap()).await;
    let client = served.client();
    let symbol = order("EQT_INFY_EQ_NSE");
    let mut ids = Vec::new();
    for _ in 0..CANCELS {
        ids.push(client.place_order(&symbol).await.unwrap().order_id);
    }
    let poll = tokio::spawn({
        let client = client.clone();
        async move { client.history().await }
    });
    sleep(SECOND / 2).await;
    let start = Instant::now();
    let cancelled = join_all(ids.iter().map(|id| client.cancel(id))).await;
    let took = start.elapsed();
    println!("{CANCELS} cancels took {took:?}");
    assert_eq!(cancelled.iter().filter(|cancelled| cancelled.is_err()).count(), 0, "{cancelled:?}");
    assert!(!poll.is_finished(), "the poll waits as it was told");
    // The bound of virtual time, and as much for a busy machine.
    assert!(took < 2 * WHOLE, "{took:?}");
    poll.abort();
}
