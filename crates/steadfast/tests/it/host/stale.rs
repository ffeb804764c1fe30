//! Connections that the service closes while they are unused.

use std::{
    io,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use http::Uri;
use hyper_util::rt::TokioIo;
use steadfast::{HostTransport, Line, call::Fate};
use tokio::{
    io::{AsyncWriteExt, BufReader, DuplexStream, duplex},
    task::{JoinHandle, yield_now},
};
use tower::service_fn;

use super::{Form, Gateway, MOMENT, OK, Step, fate, whole};

const SECOND: Duration = Duration::from_secs(1);

/// A gateway at the other end of pipes in memory, whose tasks can be ended.
struct Piped {
    gateway: Gateway,
    serving: Arc<Mutex<Vec<JoinHandle<()>>>>,
    transport: HostTransport<Form>,
}

fn piped(script: Vec<Vec<Step>>) -> Piped {
    let gateway = Gateway::new("http://localhost/v2", script);
    let serving = Arc::<Mutex<Vec<JoinHandle<()>>>>::default();
    let (far, kept) = (gateway.clone(), serving.clone());
    let connector = service_fn(move |_: Uri| {
        let (near, server) = duplex(64 * 1024);
        kept.lock().unwrap().push(tokio::spawn(far.clone().serve(BufReader::new(server))));
        std::future::ready(Ok::<_, io::Error>(Line::over(TokioIo::new(near), true)))
    });
    let transport = HostTransport::over(&gateway.base, connector);
    Piped { gateway, serving, transport }
}

#[tokio::test]
async fn connection_that_the_service_closed_is_not_used_again() {
    let gateway = Gateway::start(vec![vec![OK, Step::Close], vec![OK]]).await;
    let transport = gateway.transport();
    whole(&transport, gateway.read()).await.unwrap();
    tokio::time::sleep(MOMENT).await;
    whole(&transport, gateway.order()).await.unwrap();
    assert_eq!(gateway.requests(), [1, 2]);
}

// The runtime hears of the close only when it looks next; the order must not leave before.
#[tokio::test]
async fn order_takes_no_connection_whose_close_only_the_kernel_has_heard() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gateway = Gateway::new(&format!("http://{}/v2", listener.local_addr().unwrap()), vec![vec![OK]]);
    let (close, closing) = std::sync::mpsc::channel::<()>();
    let (closed, has_closed) = std::sync::mpsc::channel::<()>();
    let served = std::thread::spawn(move || {
        for nth in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1024];
            let mut filled = 0;
            while !head[..filled].ends_with(b"qty=1") {
                filled += stream.read(&mut head[filled..]).unwrap();
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
            if nth == 0 {
                closing.recv().unwrap();
                drop(stream);
                closed.send(()).unwrap();
            }
        }
    });
    let transport = gateway.transport();
    whole(&transport, gateway.order()).await.unwrap();
    close.send(()).unwrap();
    // Blocks the runtime, so that it cannot look.
    has_closed.recv().unwrap();
    whole(&transport, gateway.order()).await.unwrap();
    served.join().unwrap();
}

// Handed to a connection that had ended unnoticed, it was not written to it.
#[tokio::test(start_paused = true)]
async fn order_over_a_connection_that_ends_just_then_goes_over_a_new_one_and_is_not_in_doubt() {
    let gateway = Gateway::new("http://localhost/v2", vec![vec![OK]]);
    let far = Arc::<Mutex<Option<DuplexStream>>>::default();
    let (held, later) = (far.clone(), gateway.clone());
    let connector = service_fn(move |_: Uri| {
        let (near, server) = duplex(64 * 1024);
        match &mut *held.lock().unwrap() {
            first @ None if later.connections() == 0 => *first = Some(server),
            _ => drop(tokio::spawn(later.clone().serve(BufReader::new(server)))),
        }
        std::future::ready(Ok::<_, io::Error>(Line::over(TokioIo::new(near), true)))
    });
    let transport = HostTransport::over(&gateway.base, connector);
    transport.prewarm().await.unwrap();
    // Its end is here, and hyper's task has not looked at it when the order is handed over.
    gateway.connections.fetch_add(1, Ordering::SeqCst);
    drop(far.lock().unwrap().take());
    let (order, stamp) = gateway.stamped_order();
    whole(&transport, order).await.unwrap();
    assert!(stamp.began().is_some());
    assert_eq!(gateway.requests(), [2]);
    assert!(stamp.abort().is_some());
    whole(&transport, gateway.read()).await.unwrap();
    assert_eq!(gateway.requests(), [2, 3], "giving it up ends the connection that it left over");
}

#[tokio::test(start_paused = true)]
async fn order_takes_no_connection_that_was_unused_for_more_than_two_seconds() {
    let piped = piped(vec![vec![OK]]);
    let gateway = &piped.gateway;
    whole(&piped.transport, gateway.read()).await.unwrap();
    tokio::time::sleep(2 * SECOND).await;
    whole(&piped.transport, gateway.order()).await.unwrap();
    tokio::time::sleep(2 * SECOND + MOMENT).await;
    whole(&piped.transport, gateway.read()).await.unwrap();
    assert_eq!(gateway.requests(), [1, 1, 1], "unused for two seconds, or carrying a read");
    tokio::time::sleep(2 * SECOND + MOMENT).await;
    whole(&piped.transport, gateway.order()).await.unwrap();
    assert_eq!(gateway.requests(), [1, 1, 1, 2]);
    // A login or a change must not be sent twice either.
    tokio::time::sleep(2 * SECOND + MOMENT).await;
    let mut login = gateway.order();
    *login.uri_mut() = format!("{}/api/individual/token", gateway.base).parse().unwrap();
    whole(&piped.transport, login).await.unwrap();
    assert_eq!(gateway.requests(), [1, 1, 1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn unused_connection_is_closed_after_a_minute() {
    let piped = piped(vec![vec![OK]]);
    whole(&piped.transport, piped.gateway.read()).await.unwrap();
    tokio::time::sleep(59 * SECOND).await;
    assert!(!piped.serving.lock().unwrap()[0].is_finished());
    tokio::time::sleep(2 * SECOND).await;
    assert!(piped.serving.lock().unwrap()[0].is_finished());
    whole(&piped.transport, piped.gateway.read()).await.unwrap();
    assert_eq!(piped.gateway.requests(), [1, 2]);
    tokio::time::sleep(62 * SECOND).await;
    assert!(piped.serving.lock().unwrap()[1].is_finished(), "the next one is watched too");
}

#[tokio::test(start_paused = true)]
async fn connections_end_with_the_last_clone() {
    let piped = piped(vec![vec![OK]]);
    whole(&piped.transport, piped.gateway.read()).await.unwrap();
    drop(piped.transport);
    for _ in 0..5 {
        yield_now().await;
    }
    assert!(piped.serving.lock().unwrap()[0].is_finished());
}

#[tokio::test]
async fn service_that_speaks_first_or_closes_at_once_is_told_nothing() {
    for greeting in ["HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n", "SSH-2.0-x\r\n", ""] {
        let (near, mut far) = duplex(1024);
        far.write_all(greeting.as_bytes()).await.unwrap();
        let shut = greeting.is_empty();
        let ends = Arc::new(Mutex::new(Some((near, far))));
        let kept = Arc::<Mutex<Vec<DuplexStream>>>::default();
        let noted = kept.clone();
        let connector = service_fn(move |_: Uri| {
            let (near, far) = ends.lock().unwrap().take().unwrap();
            if !shut {
                noted.lock().unwrap().push(far);
            }
            std::future::ready(Ok::<_, io::Error>(Line::over(TokioIo::new(near), true)))
        });
        let gateway = Gateway::new("http://localhost/v2", vec![vec![OK]]);
        let (order, stamp) = gateway.stamped_order();
        let error = whole(&HostTransport::over(&gateway.base, connector), order).await.unwrap_err();
        assert_eq!(fate(&error), Some(Fate::NeverLeft), "{greeting:?}: {error:?}");
        assert_eq!(stamp.began(), None, "{greeting:?}");
    }
}
