use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Buf;
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

/// How much of an unused answer is read so that its connection can be reused: 64 KiB.
const DRAIN_LIMIT: u64 = 64 * 1024;

pin_project! {
    /// The delay before a repeat. Meanwhile it reads the old answer to its end.
    ///
    /// A connection is reused only after its answer has been read. If the rest is longer than 64 KiB, or has not
    /// arrived when the delay is over, the answer is dropped together with its connection: a stalled body cannot
    /// hold up the repeat.
    pub(crate) struct Backoff<R> {
        #[pin]
        sleep: Sleep,
        #[pin]
        old: Option<R>,
        left: u64,
    }
}

impl<R: Body> Backoff<R> {
    pub(crate) fn new(delay: Duration, old: Option<R>) -> Self {
        let old = old.filter(|body| body.size_hint().lower() <= DRAIN_LIMIT);
        Self { sleep: sleep(delay), old, left: DRAIN_LIMIT }
    }
}

impl<R: Body> Future for Backoff<R> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        while let Some(body) = this.old.as_mut().as_pin_mut() {
            let frame = match body.poll_frame(cx) {
                Poll::Pending => break,
                Poll::Ready(frame) => frame,
            };
            // An empty frame counts too, so that the loop ends.
            let read = match frame {
                Some(Ok(frame)) => frame.data_ref().map_or(1, |data| data.remaining().max(1) as u64),
                Some(Err(_)) | None => u64::MAX,
            };
            match this.left.checked_sub(read) {
                Some(left) => *this.left = left,
                None => this.old.set(None),
            }
        }
        this.sleep.poll(cx)
    }
}
