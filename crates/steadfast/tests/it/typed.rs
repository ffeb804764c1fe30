//! Every typed call of the client over the in-process gateway: lists, margins, changes.

use std::{collections::BTreeMap, time::Duration};

use futures_util::StreamExt;
use steadfast::{
    Access, Client, ErrorKind, MissedEvents, OrderChange, Paths,
    call::{Call, Outcome},
    dedup::OrderEvent,
    spec::{Form, Operation, Zone, msg},
};
use steadfast_sandbox::{BookEdit, Sandbox, SandboxBuilder};
use tokio::time::Instant;

use crate::world::{order, script};

fn client(sandbox: SandboxBuilder) -> (Client, Sandbox) {
    let sandbox = sandbox.build().unwrap();
    let facts = sandbox.credentials();
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let builder = Client::builder(facts.base_url.parse().unwrap(), access).paths(Paths::public());
    (builder.build_over(sandbox.gateway()).unwrap(), sandbox)
}

#[tokio::test(start_paused = true)]
async fn a_scrip_master_arrives_record_by_record() {
    let (client, _sandbox) = client(Sandbox::builder().large_scrip_master(1_234));
    let mut scrips = client.scrip_master().await.unwrap();
    let mut count = 0;
    while let Some(scrip) = scrips.next().await {
        let fields: BTreeMap<String, serde_json::Value> = scrip.unwrap().read().unwrap();
        assert!(fields["symId"].is_string());
        count += 1;
    }
    assert_eq!(count, 1_234);
    assert!(scrips.next().await.is_none(), "it has ended for good");
}

#[tokio::test(start_paused = true)]
async fn a_scrip_master_that_breaks_off_is_never_taken_for_whole() {
    let (client, _sandbox) =
        client(script("[[fault]]\nname = 'connection.reset-mid-body'\nendpoint = 'scrip-master'\nnth = 1"));
    let records: Vec<_> = client.scrip_master().await.unwrap().collect().await;
    let (last, before) = records.split_last().unwrap();
    assert!(before.iter().all(Result::is_ok));
    let error = last.as_ref().unwrap_err();
    assert!(error.outcome().is_unknown() && error.kind() == ErrorKind::Unavailable, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn the_symbols_of_an_unknown_group_are_an_empty_list() {
    let (client, _sandbox) = client(Sandbox::builder());
    assert!(client.symbols("NSE_EQ").await.unwrap().count().await > 0);
    assert_eq!(client.symbols("no such group").await.unwrap().count().await, 0);
    assert_eq!(client.symbols("").await.unwrap_err().kind(), ErrorKind::InvalidRequest);
}

#[tokio::test(start_paused = true)]
async fn a_refused_list_says_why_before_the_first_record() {
    let (client, _sandbox) = client(Sandbox::builder().fault("auth.token-revoked", 1.0).unwrap());
    let error = client.scrip_master().await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Unauthorized, Some(msg::UNAUTHORIZED)));
}

#[tokio::test(start_paused = true)]
async fn history_and_margins_are_told_as_the_service_writes_them() {
    let (client, _sandbox) = client(Sandbox::builder());
    assert!(client.history().await.unwrap().is_empty(), "no-data is no error");
    let infy = order("EQT_INFY_EQ_NSE");
    client.place_order(&infy).await.unwrap();
    assert_eq!(client.history().await.unwrap().len(), 1);
    let margin: BTreeMap<String, String> = client.order_margin(&infy).await.unwrap().read().unwrap();
    assert!(margin.contains_key("margin"), "{margin:?}");
    let basket = Form::new().with("orders", "[]");
    assert!(client.basket_margin(basket).await.unwrap().text().contains("margin"));
    let error = client.basket_margin(Form::new().with("orders", "junk")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rejected);
}

#[tokio::test(start_paused = true)]
async fn every_open_order_is_cancelled_and_no_other() {
    let (client, sandbox) = client(Sandbox::builder());
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id);
    }
    sandbox.edit_order(&ids[1], BookEdit::Fill).unwrap();
    let cancelled = client.cancel_all().await.unwrap();
    let open = [&ids[0], &ids[2], &ids[3]];
    assert_eq!(cancelled.iter().map(|one| &one.order_id).collect::<Vec<_>>(), open);
    assert!(cancelled.iter().all(|one| one.result.is_ok()));
    let statuses: Vec<_> = sandbox.state().orders.iter().map(|order| order.status.to_string()).collect();
    assert_eq!(statuses, ["cancelled", "completed", "cancelled", "cancelled"]);
    assert!(client.cancel_all().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn however_many_orders_are_open_all_are_cancelled() {
    // More than may wait at once, and more than the limits admit within one call's deadline.
    let (client, sandbox) = client(Sandbox::builder());
    for _ in 0..1_500 {
        sandbox.place_foreign(&order("EQT_INFY_EQ_NSE"));
    }
    let cancelled = client.cancel_all().await.unwrap();
    // Some are filled meanwhile; the service refuses to cancel those.
    let failed: Vec<_> = cancelled.iter().filter_map(|one| one.result.as_ref().err()).collect();
    let other: Vec<_> = failed.iter().filter(|error| error.kind() != ErrorKind::Rejected).collect();
    assert!(other.is_empty(), "{} of {}: {:?}", other.len(), cancelled.len(), other[0]);
    let state = sandbox.state();
    assert!(state.orders.iter().all(|order| order.status != "open"));
    assert_eq!(state.refusals.values().sum::<u64>(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_worked_is_never_called_failed_nor_made_twice() {
    let (client, sandbox) =
        client(script("[[fault]]\nname = 'connection.reset-after'\nendpoint = 'modify-order'\nnth = 1"));
    let id = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id;
    let change = OrderChange::new().qty(7);
    client.modify(&id, &change).await.unwrap();
    let state = sandbox.state();
    let sends = state.arrivals.iter().filter(|arrival| arrival.method == "PUT");
    assert_eq!(sends.count(), 1);
    assert_eq!(client.orders().await.unwrap()[0].qty, Some(7.into()));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_list_does_not_show_is_in_doubt() {
    let (client, _sandbox) =
        client(script("[[fault]]\nname = 'connection.reset-before'\nendpoint = 'modify-order'\nnth = 1"));
    let id = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id;
    let change = OrderChange::new().qty(7);
    let error = client.modify(&id, &change).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InDoubt);
    client.modify(&id, &change).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn o01_a_late_change_does_not_land_over_a_newer_one() {
    let (client, sandbox) =
        client(script("[[fault]]\nname = 'connection.reset-before'\nendpoint = 'modify-order'\nnth = 1"));
    let id = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id;
    let other = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id;
    let lost = Instant::now();
    let error = client.modify(&id, &OrderChange::new().qty(7)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InDoubt);
    let error = client.modify(&id, &OrderChange::new().qty(8)).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Refused, &Outcome::NotSent));
    let ready = error.ready_at().unwrap();
    assert!(ready >= lost + Duration::from_secs(45), "{:?}", ready - lost);
    let state = sandbox.state();
    assert_eq!(state.arrivals.iter().filter(|arrival| arrival.method == "PUT").count(), 1);
    // A change of another order is not held up, nor is a cancel.
    client.modify(&other, &OrderChange::new().qty(8)).await.unwrap();
    tokio::time::sleep_until(ready).await;
    // The order may be filled by now, and the service may refuse the change.
    let told = client.modify(&id, &OrderChange::new().qty(8)).await;
    assert!(told.is_ok() || told.is_err_and(|error| error.kind() == ErrorKind::Rejected));
    let state = sandbox.state();
    assert_eq!(state.arrivals.iter().filter(|arrival| arrival.method == "PUT").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_nothing_or_of_an_order_that_has_ended_is_refused() {
    let (client, sandbox) = client(Sandbox::builder());
    let id = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id;
    let error = client.modify(&id, &OrderChange::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    sandbox.edit_order(&id, BookEdit::Fill).unwrap();
    let error = client.modify(&id, &OrderChange::new().qty(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rejected);
}

#[tokio::test(start_paused = true)]
async fn prewarming_reads_the_list_once_and_places_nothing() {
    let (client, sandbox) = client(Sandbox::builder());
    client.prewarm().await.unwrap();
    let state = sandbox.state();
    assert_eq!((state.arrivals.len(), state.orders.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_found_again_is_an_event() {
    let (client, _sandbox) = client(script("[[fault]]\nname = 'placement.504-applied'\nnth = 1"));
    let mut events = client.events();
    let placed = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    let event = events.next().await.unwrap().unwrap();
    assert!(matches!(event, OrderEvent::Recovered { order_id, .. } if order_id == placed.order_id));
    drop(client);
    assert_eq!(events.next().await, None::<Result<OrderEvent, MissedEvents>>);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_leave_in_time_says_when_it_could() {
    let (client, _sandbox) = client(Sandbox::builder());
    let infy = order("EQT_INFY_EQ_NSE");
    for _ in 0..10 {
        client.place_order(&infy).await.unwrap();
    }
    let now = tokio::time::Instant::now();
    let mut request = client.request(&Operation::place_order(&infy)).unwrap();
    Call::of_mut(request.extensions_mut()).set_send_by(now.into_std());
    let refused = client.raw(request).await.unwrap_err();
    assert_eq!((refused.kind(), refused.zone()), (ErrorKind::Refused, Some(Zone::PLACE_ORDER)));
    let ready = refused.ready_at().unwrap();
    assert!(ready > now && ready < now + std::time::Duration::from_secs(2), "{:?}", ready - now);
    assert!(refused.is_retryable());
}

#[tokio::test(start_paused = true)]
async fn a_header_of_the_callers_goes_with_every_request_and_none_of_the_layers_own() {
    let sandbox = Sandbox::builder().build().unwrap();
    let facts = sandbox.credentials();
    let builder = || {
        let access = Access::token(facts.api_key.clone(), facts.access_token.clone()).unwrap();
        Client::builder(facts.base_url.parse().unwrap(), access)
    };
    let named = http::HeaderName::from_static("x-test-intent");
    let client = builder().header(named, "mine".parse().unwrap()).build_over(sandbox.gateway()).unwrap();
    client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    assert_eq!(sandbox.state().orders[0].intent.as_deref(), Some("mine"));
    let refused = builder().header(http::header::AUTHORIZATION, "mine".parse().unwrap());
    let refused = refused.build_over(sandbox.gateway()).unwrap_err();
    assert_eq!(refused.to_string(), "header authorization is not for the caller to set");
}
