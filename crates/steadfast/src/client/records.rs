use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::Stream;
use http::{Response, response::Parts};
use http_body::Body as _;
use steadfast_auth::TokenSource;

use super::{
    Body, Record,
    answer::readable,
    splitter::{Ending, Splitter},
};
use crate::error::Error;

/// The records of a long list (§4.1), one at a time while the answer arrives.
///
/// A scrip master may be hundreds of megabytes long; only a piece of it and one record are held. A record is the JSON
/// text that the service wrote; its fields are "not shown", so the caller chooses the type.
///
/// There is no time limit for the whole, but the body must not pause for longer than 10 s. The list was complete only
/// if the stream ended without an error.
#[must_use = "nothing is read before the stream is polled"]
pub struct Records {
    parts: Parts,
    body: Body,
    tokens: TokenSource,
    splitter: Splitter,
    ended: bool,
}

impl Records {
    pub(super) fn new(response: Response<Body>, tokens: TokenSource) -> Self {
        let (parts, body) = response.into_parts();
        Self { parts, body, tokens, splitter: Splitter::default(), ended: false }
    }

    /// Returns the next record; `None` once the list was read to its end.
    ///
    /// # Errors
    ///
    /// [`Error`] if the answer breaks off or is not a list; the stream then ends.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Record, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn take(&mut self, piece: &Bytes) -> Result<(), Error> {
        self.splitter.feed(piece).map_err(|broken| self.error(broken))
    }

    fn end(&self) -> Result<(), Error> {
        match self.splitter.finish() {
            Ok(Ending::Ok | Ending::NoData) => Ok(()),
            Ok(Ending::Error(text)) => {
                Err(Error::of_answer(&self.parts, Some(readable(&self.tokens, &text))).safe(true))
            }
            Err(broken) => Err(self.error(broken)),
        }
    }

    fn error(&self, source: impl Into<crate::BoxError>) -> Error {
        Error::of_answer(&self.parts, None).because(source).safe(true)
    }
}

impl Stream for Records {
    type Item = Result<Record, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(record) = this.splitter.next_record() {
                return Poll::Ready(Some(Ok(Record::new(record))));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            let step = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame.into_data().map_or(Ok(()), |piece| this.take(&piece)),
                Some(Err(broken)) => Err(Error::broken_off(&this.parts, broken).safe(true)),
                None => {
                    this.ended = true;
                    this.end()
                }
            };
            if let Err(error) = step {
                this.ended = true;
                this.splitter = Splitter::default();
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

// The answer's headers may hold a session's secrets.
impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("ended", &self.ended).finish_non_exhaustive()
    }
}
