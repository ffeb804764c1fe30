//! Calls of the typed client end by their deadline, whatever the service does.

use std::{error::Error as _, time::Duration};

use futures_util::StreamExt;
use http::{Method, Response};
use steadfast::{ErrorKind, Outcome, deadline::DeadlineLayer};
use tokio::time::Instant;

use crate::{
    answering::{Answering, trickle, whole},
    world::{SECOND, order},
};

const NO_DATA: &str = r#"{"s":"no-data","msg":"no-data"}"#;

/// Never pauses for as long as the idle timeout, and never ends.
fn trickling() -> Answering {
    Answering::with(|_| Response::new(trickle(r#"{"s":"ok","d":["#, 9 * SECOND)))
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_trickles_for_ever_ends_with_the_deadline() {
    let client = trickling().client();
    let start = Instant::now();
    for error in [client.orders().await.unwrap_err(), client.history().await.unwrap_err()] {
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true));
        assert_eq!(error.source().unwrap().to_string(), "answer was not complete by the call's deadline");
    }
    assert_eq!(start.elapsed(), 240 * SECOND, "two calls of 120 s");
    // The cancel looks the order up, and its status is not known.
    assert_eq!(client.cancel("1").await.unwrap_err().kind(), ErrorKind::InDoubt);
    assert_eq!(start.elapsed(), 480 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_streamed_may_outlast_the_deadline() {
    let client = trickling().client();
    let mut scrips = client.scrip_master().await.unwrap();
    assert!(tokio::time::timeout(600 * SECOND, scrips.next()).await.is_err(), "its reader decides");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_deadline_has_passed_sends_nothing() {
    let transport = Answering::always(NO_DATA);
    tokio::time::advance(SECOND).await;
    let client = transport.client().with_deadline(DeadlineLayer::new(Duration::ZERO));
    let read = client.orders().await.unwrap_err();
    assert!(transport.asked().is_empty(), "{:?}", transport.asked());
    let placed = client.place_order(&order("1")).await.unwrap_err();
    for error in [read, placed] {
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Refused, &Outcome::NotSent), "{error:?}");
    }
    let is_order = |request: &String| request.starts_with("POST");
    assert!(!transport.asked().iter().any(is_order), "{:?}", transport.asked());
}

#[tokio::test(start_paused = true)]
async fn one_clients_deadline_is_not_anothers() {
    let transport = Answering::with(|request| {
        let cancel = request.method() == Method::DELETE;
        Response::new(whole(if cancel { r#"{"s":"ok","d":{}}"# } else { NO_DATA }))
    });
    let client = transport.client();
    let hurried = client.with_deadline(DeadlineLayer::default().send_by(SECOND / 2));
    // The most that reads may use in a second.
    for _ in 0..8 {
        client.orders().await.unwrap();
    }
    let start = Instant::now();
    let error = hurried.orders().await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::Refused, Duration::ZERO), "told at once");
    assert!(error.ready_at().unwrap() > start + SECOND / 2, "and when it could have gone");
    client.orders().await.unwrap();
    assert!(start.elapsed() > SECOND / 2, "the other waited");
    hurried.cancel("1").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deadline_for_some_calls_is_all_of_it() {
    let transport = Answering::always(NO_DATA);
    let hurry = DeadlineLayer::new(5 * SECOND).send_by(SECOND / 2);
    let hurried = crate::answering::builder().deadline(hurry).build_over(transport.clone()).unwrap();
    let calm = hurried.with_deadline(DeadlineLayer::default());
    let endless = hurried.with_deadline(DeadlineLayer::new(Duration::MAX));
    for (client, within, by) in [
        (&hurried, "5s", "500ms"),
        (&calm, "120s", "no limit"),
        (&endless, "18446744073709551615.999999999s", "no limit"),
    ] {
        assert_eq!(client.describe().setting("Deadline", "answered within"), Some(within));
        assert_eq!(client.describe().setting("Deadline", "left within"), Some(by));
    }
    // The most that reads may use in a second.
    for _ in 0..8 {
        calm.orders().await.unwrap();
    }
    assert_eq!(hurried.orders().await.unwrap_err().kind(), ErrorKind::Refused);
    calm.orders().await.unwrap();
    endless.orders().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_at_its_deadline_is_told_of_a_later_instant() {
    let client = Answering::always(NO_DATA).client();
    let (start, send_by) = (Instant::now(), 3 * SECOND / 2);
    let hurried = client.with_deadline(DeadlineLayer::default().send_by(send_by));
    let calls = futures_util::future::join_all((0..60).map(|_| hurried.orders())).await;
    let refused: Vec<_> = calls.into_iter().filter_map(Result::err).collect();
    assert!(refused.len() > 40, "{}", refused.len());
    for error in refused {
        assert!(error.ready_at().unwrap() > start + send_by, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_whose_answer_breaks_off_may_be_repeated() {
    let cut = || futures_util::stream::iter([Err::<http_body::Frame<bytes::Bytes>, _>("cut".into())]);
    let transport = Answering::with(move |_| {
        Response::new(http_body_util::BodyExt::boxed_unsync(http_body_util::StreamBody::new(cut())))
    });
    let client = transport.client();
    let streamed = client.scrip_master().await.unwrap().next().await.unwrap().unwrap_err();
    for error in [client.orders().await.unwrap_err(), client.history().await.unwrap_err(), streamed] {
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unavailable, true), "{error:?}");
        assert!(error.outcome().is_unknown());
    }
    let records: Vec<_> = client.scrip_master().await.unwrap().collect().await;
    assert_eq!(records.len(), 1, "nothing comes after the error");
}
