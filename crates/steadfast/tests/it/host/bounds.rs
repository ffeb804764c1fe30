//! How many connections are made, and which requests wait for one.

use std::{num::NonZeroUsize, time::Duration};

use futures_util::future::{join_all, try_join_all};
use steadfast::{HostTransport, Transport, call::Fate};
use tokio::net::TcpListener;
use tower::ServiceExt;

use super::{Form, Gateway, MOMENT, OK, Step, fate, whole};

fn at_most(most: usize, gateway: &Gateway) -> HostTransport<Form> {
    Transport::new().max_connections(NonZeroUsize::new(most).unwrap()).to(&gateway.base).unwrap()
}

#[tokio::test]
async fn further_requests_wait_for_a_connection() {
    let gateway = Gateway::start(vec![vec![Step::Wait(MOMENT), OK]]).await;
    let transport = at_most(2, &gateway);
    try_join_all((0..7).map(|_| whole(&transport, gateway.read()))).await.unwrap();
    assert_eq!((gateway.connections(), gateway.requests().len()), (2, 7));
}

#[tokio::test]
async fn further_requests_get_the_place_of_a_connection_that_ended() {
    let gateway = Gateway::start(vec![vec![Step::Wait(MOMENT), OK, Step::Close]]).await;
    let transport = at_most(1, &gateway);
    try_join_all((0..4).map(|_| whole(&transport, gateway.order()))).await.unwrap();
    assert_eq!(gateway.requests(), [1, 2, 3, 4]);
}

#[tokio::test]
async fn cancel_does_not_wait_for_a_connection() {
    let silent = vec![Step::Wait(Duration::from_secs(60))];
    let gateway = Gateway::start(vec![silent, vec![OK]]).await;
    let transport = at_most(1, &gateway);
    let poll = tokio::spawn(whole_of(transport.clone(), gateway.read()));
    tokio::time::sleep(MOMENT).await;
    whole(&transport, gateway.cancel()).await.unwrap();
    assert_eq!(gateway.requests(), [1, 2]);
    poll.abort();
}

async fn whole_of(transport: HostTransport<Form>, request: http::Request<Form>) {
    whole(&transport, request).await.unwrap();
}

#[tokio::test]
async fn waiting_request_that_is_dropped_leaves_its_place_to_the_next() {
    let gateway = Gateway::start(vec![vec![Step::Wait(2 * MOMENT), OK]]).await;
    let transport = at_most(1, &gateway);
    let first = tokio::spawn(whole_of(transport.clone(), gateway.read()));
    tokio::time::sleep(MOMENT).await;
    let dropped = tokio::time::timeout(MOMENT / 3, transport.clone().oneshot(gateway.order()));
    let (dropped, third) = tokio::join!(dropped, whole(&transport, gateway.read()));
    dropped.unwrap_err();
    third.unwrap();
    first.await.unwrap();
    assert_eq!(gateway.requests(), [1, 1], "the order was never sent");
}

#[tokio::test]
async fn order_at_the_bound_takes_the_place_of_an_old_unused_connection() {
    let gateway = Gateway::start(vec![vec![OK]]).await;
    let one = NonZeroUsize::MIN;
    let transport =
        Transport::new().max_connections(one).order_idle_timeout(MOMENT).to(&gateway.base).unwrap();
    whole(&transport, gateway.read()).await.unwrap();
    tokio::time::sleep(2 * MOMENT).await;
    whole(&transport, gateway.order()).await.unwrap();
    whole(&transport, gateway.read()).await.unwrap();
    assert_eq!(gateway.requests(), [1, 2, 2]);
}

#[tokio::test]
async fn prewarmed_connection_carries_the_order() {
    let gateway = Gateway::start(vec![vec![OK]]).await;
    let transport = gateway.transport();
    transport.prewarm().await.unwrap();
    transport.prewarm().await.unwrap();
    assert_eq!((gateway.connections(), gateway.requests()), (1, vec![]));
    whole(&transport, gateway.order()).await.unwrap();
    assert_eq!(gateway.connections(), 1);
}

#[tokio::test]
async fn refused_connections_fail_every_request_that_waits_and_nothing_has_left() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = Gateway::new(&format!("http://{}/v2", listener.local_addr().unwrap()), vec![vec![OK]]);
    drop(listener);
    let transport = at_most(2, &gateway);
    transport.prewarm().await.unwrap_err();
    let requests = (0..5).map(|nth| if nth % 2 == 0 { gateway.read() } else { gateway.order() });
    for told in join_all(requests.map(|request| whole(&transport, request))).await {
        assert_eq!(fate(&told.unwrap_err()), Some(Fate::NeverLeft));
    }
}

#[tokio::test]
async fn connection_that_is_never_made_is_given_up_in_time() {
    // A full backlog: this one is never accepted.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = Gateway::new(&format!("https://{}/v2", listener.local_addr().unwrap()), vec![vec![OK]]);
    let transport = Transport::new().connect_timeout(3 * MOMENT).to(&gateway.base).unwrap();
    let told: Vec<_> =
        join_all([whole(&transport, gateway.read()), whole(&transport, gateway.order())]).await;
    for told in told {
        assert_eq!(fate(&told.unwrap_err()), Some(Fate::NeverLeft));
    }
}

// The tasks of a connection end with their runtime, and the transport outlives it.
#[test]
fn transport_outlives_the_runtime_that_made_its_connections() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (serving, first, second) = (runtime(), runtime(), runtime());
    let gateway = serving.block_on(Gateway::start(vec![vec![OK]]));
    let served = std::thread::spawn(move || {
        serving.block_on(async { tokio::time::sleep(Duration::from_secs(2)).await })
    });
    let transport = at_most(1, &gateway);
    first.block_on(whole(&transport, gateway.read())).unwrap();
    drop(first);
    second.block_on(whole(&transport, gateway.order())).unwrap();
    assert_eq!(gateway.requests(), [1, 2]);
    served.join().unwrap();
}
