use std::{
    future::{Future, poll_fn},
    mem,
    sync::Arc,
};

use bytes::Bytes;
use http::{Extensions, Request, Response, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use steadfast_call::{BoxError, Call, Failure, Fate, ext, ext::Connection as _};

use super::{
    body::{HostBody, MoreThanAnswered},
    connection::Link,
    connections::Connections,
    lease::Lease,
    pool::Need,
};
use crate::transport::{
    StampedBody,
    ambiguous_length::{AMBIGUOUS_LENGTH, has_ambiguous_length},
};

/// A send until its answer is believed. Dropped before that, it ends its connection.
struct OpenSend {
    /// `None` for a body without content, which is never polled; that it was handed to a connection is the evidence then.
    stamp: Option<ext::SendStamp>,
    link: Option<Arc<Link>>,
}

impl OpenSend {
    /// Ends the connection, and returns how far the request got.
    fn fail(&mut self) -> Fate {
        // Given up before the connection ends: its body is polled on this connection or never.
        let left = match &self.stamp {
            Some(stamp) => !stamp.give_up(),
            None => self.link.is_some(),
        };
        let ended = self.link.take().and_then(|link| link.abort());
        if left { Fate::Lost { ended } } else { Fate::NeverLeft }
    }

    /// Lets the connection go on: nothing was written to it, or the answer's head is believed.
    fn release(&mut self) {
        self.link = None;
    }

    /// Examines the head of an answer. Returns whether another request may follow on its connection.
    fn examine(&mut self, response: &Response<Incoming>) -> Result<bool, BoxError> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(self.disbelieve("the service switched to another protocol, unasked"));
        }
        if has_ambiguous_length(response) {
            return Err(self.disbelieve(AMBIGUOUS_LENGTH));
        }
        Ok(!ends_with_connection(response))
    }

    /// As [`fail`](Self::fail), after an answer: something has left.
    fn disbelieve(&mut self, why: impl Into<BoxError>) -> BoxError {
        let ended = match self.fail() {
            Fate::Lost { ended } => ended,
            _ => None,
        };
        Failure::new(Fate::Lost { ended }, why).into()
    }
}

impl Drop for OpenSend {
    fn drop(&mut self) {
        if self.link.is_some() {
            self.fail();
        }
    }
}

/// Sends a request over one of the connections.
///
/// hyper returns a request of which it has written nothing, because its connection ended first. Such a request goes over
/// the next connection, and over a new one for the last time.
pub(super) fn exchange<B>(
    connections: Arc<Connections<B>>,
    mut request: Request<StampedBody<B>>,
    shared: Option<ext::SendStamp>,
    need: Need,
) -> impl Future<Output = Result<Response<HostBody<B>>, BoxError>> + Send
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let stamp = shared.clone().filter(|_| !request.body().is_end_stream());
    let mut send = OpenSend { stamp, link: None };
    let emptied = emptied(request.extensions_mut());
    // A block rather than a function, which would hold the request twice.
    async move {
        loop {
            let mut lease = match Lease::take(connections.clone(), need).await {
                Ok(lease) => lease,
                Err(error) => return Err(Failure::new(send.fail(), error).into()),
            };
            let is_new = lease.is_new;
            let Some(connection) = lease.connection() else { continue };
            if let Some(stamp) = &shared {
                stamp.set_connection(connection.link.clone());
            }
            send.link = Some(connection.link.clone());
            let mut error = match connection.sender.try_send_request(request).await {
                Ok(mut response) => {
                    if response.extensions().is_empty() {
                        *response.extensions_mut() = emptied;
                    }
                    let may_follow = send.examine(&response)?;
                    let is_whole = response.body().is_end_stream();
                    if is_whole && !poll_fn(|cx| lease.poll_finish(may_follow, cx)).await {
                        return Err(send.disbelieve(MoreThanAnswered));
                    }
                    send.release();
                    let lease = Some(lease).filter(|_| !is_whole);
                    return Ok(response.map(|body| HostBody::new(body, lease, may_follow)));
                }
                Err(error) => error,
            };
            let unsent = error.take_message();
            if unsent.is_some() {
                send.release();
            }
            match unsent {
                Some(unsent) if !is_new => request = unsent,
                _ => return Err(Failure::new(send.fail(), error.into_error()).into()),
            }
        }
    }
}

/// Takes the request's map of extensions for the answer, which saves it a map of its own, unless the caller has something
/// in it. The transport has read the facts of the call.
fn emptied(extensions: &mut Extensions) -> Extensions {
    let holds_more = extensions.len() > 1;
    if holds_more || extensions.remove::<Call>().is_none() {
        return Extensions::new();
    }
    mem::take(extensions)
}

/// Returns true if only the end of the connection shows the end of the answer.
fn ends_with_connection(response: &Response<Incoming>) -> bool {
    let headers = response.headers();
    !response.body().is_end_stream()
        && !headers.contains_key(header::CONTENT_LENGTH)
        && !headers.contains_key(header::TRANSFER_ENCODING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_gets_the_requests_map_only_without_its_content() {
        let mut facts = Extensions::new();
        Call::of_mut(&mut facts).set_repeats(1);
        assert!(emptied(&mut facts).is_empty() && facts.is_empty());

        let mut own = Extensions::new();
        own.insert("the caller's own");
        assert!(emptied(&mut own).is_empty());
        Call::of_mut(&mut own).set_repeats(1);
        assert!(emptied(&mut own).is_empty());
        assert_eq!((own.len(), Call::of(&own).repeats()), (2, 1), "hyper may know what to do with it");
    }
}
