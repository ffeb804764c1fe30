use http::{HeaderMap, Request};
use http_body::{Body, SizeHint};
use http_body_util::BodyExt;
use steadfast_call::{BoxError, Failure, Outcome};
use steadfast_retry::{BufferBodyLayer, BufferedBody, Replay};
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{Reply, Step, Steps, data};

/// Returns the body that arrives below the layer.
async fn buffered(layer: BufferBodyLayer, steps: Vec<Step>) -> Result<BufferedBody<Steps>, BoxError> {
    arrived(layer, Steps::new(steps)).await
}

async fn arrived(layer: BufferBodyLayer, body: Steps) -> Result<BufferedBody<Steps>, BoxError> {
    let (give, mut take) = tokio::sync::mpsc::unbounded_channel();
    let inner = service_fn(move |request: Request<BufferedBody<Steps>>| {
        let sent = give.send(request.into_body());
        async move {
            sent.map_err(|_| "gone")?;
            Reply::Status(200).give()
        }
    });
    layer.layer(inner).oneshot(Request::new(body)).await?;
    Ok(take.recv().await.unwrap())
}

fn trailers() -> HeaderMap {
    [(http::header::ETAG, "x".parse().unwrap())].into_iter().collect()
}

#[tokio::test]
async fn a_short_body_can_be_replayed_any_number_of_times() {
    let body =
        buffered(BufferBodyLayer::new().limit(8), vec![data("ab"), data("cd"), Step::Trailers(trailers())])
            .await
            .unwrap();
    assert_eq!(body.size_hint().exact(), Some(4));
    for _ in 0..3 {
        let copy = body.replay().unwrap().collect().await.unwrap();
        assert_eq!(copy.trailers(), Some(&trailers()));
        assert_eq!(copy.to_bytes(), "abcd");
    }
}

#[tokio::test]
async fn a_long_body_is_sent_once_and_whole() {
    let body = buffered(
        BufferBodyLayer::new().limit(3),
        vec![data("ab"), data("cd"), data("ef"), Step::Trailers(trailers())],
    )
    .await
    .unwrap();
    assert!(body.replay().is_none());
    assert!(!body.is_end_stream());
    assert_eq!((body.size_hint().lower(), body.size_hint().upper()), (4, None));
    let whole = body.collect().await.unwrap();
    assert_eq!(whole.trailers(), Some(&trailers()));
    assert_eq!(whole.to_bytes(), "abcdef");
}

#[tokio::test]
async fn sixty_four_kibibytes_are_held_and_not_one_byte_more() {
    const HELD: usize = 64 * 1024;
    for (length, is_held) in [(0, true), (1, true), (HELD, true), (HELD + 1, false), (10 * HELD, false)] {
        // In one piece, and in many.
        for piece in [length.max(1), 1_000] {
            let pieces: Vec<_> = vec![b'x'; length].chunks(piece).map(|piece| data(piece.to_vec())).collect();
            let body = buffered(BufferBodyLayer::new(), pieces).await.unwrap();
            assert_eq!(body.replay().is_some(), is_held, "{length} in pieces of {piece}");
            assert_eq!(
                body.collect().await.unwrap().to_bytes().len(),
                length,
                "{length} in pieces of {piece}"
            );
        }
    }
}

#[tokio::test]
async fn a_body_that_says_how_long_it_is_is_believed_only_in_what_comes() {
    // It announces more than the limit, and delivers less.
    for (announced, comes, is_held) in [(100, 2, false), (1, 20, false), (1, 4, true)] {
        let mut hint = SizeHint::new();
        hint.set_lower(announced);
        let steps = Steps::new([data(vec![b'x'; comes])]).announcing(hint);
        let body = arrived(BufferBodyLayer::new().limit(8), steps).await.unwrap();
        assert_eq!(body.replay().is_some(), is_held, "{announced} announced, {comes} came");
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), comes);
    }
}

#[tokio::test]
async fn a_body_that_fails_while_it_is_read_refuses_the_request() {
    // K7: nothing has left, and the same body would fail again.
    let error =
        buffered(BufferBodyLayer::new().limit(8), vec![data("ab"), Step::Fail("disk")]).await.unwrap_err();
    assert_eq!(Failure::outcome_of(&*error), Outcome::NotSent);
    assert!(Failure::find(&*error).is_some_and(Failure::is_refusal));
}

#[tokio::test]
async fn an_empty_body_stays_empty() {
    let body = buffered(BufferBodyLayer::new().limit(8), vec![]).await.unwrap();
    assert!(body.is_end_stream());
    assert!(body.replay().unwrap().is_end_stream());
    assert!(BufferedBody::<Steps>::from(bytes::Bytes::new()).is_end_stream());
}
