use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use reqwest::{Client, ClientBuilder, Url, redirect};
use steadfast_call::{BoxError, Call, Failure, Fate, ext};
use tower_service::Service;

use super::{
    ambiguous_length::{AMBIGUOUS_LENGTH, has_ambiguous_length},
    stamped_body::{StampedBody, sent_already},
};

/// Sends requests over `reqwest`, for programs that use it already.
///
/// # Example
///
/// ```
/// use steadfast::{Access, Client, ReqwestTransport};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let access = Access::token("apikey", "access-token")?;
/// let transport = ReqwestTransport::new(reqwest::Client::builder().http1_only())?;
/// let client = Client::builder("http://localhost:8080/v2".parse()?, access).build_over(transport)?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Lost answers
///
/// `reqwest` does not say when a connection ends, so [`Fate::Lost`] says `ended: None`: an order whose answer is lost
/// is looked for and never sent again. It uses the proxies that the environment names, unless `no_proxy()` is set; a
/// proxy for `http` addresses reads the token.
///
/// # Order
///
/// Innermost. [`new`](Self::new) switches `reqwest`'s own redirects and repeats off: a request repeated below the stack
/// would have no permit, and an order could be placed twice.
///
/// # Clone
///
/// Clones share the connection pool.
///
/// # Cancellation
///
/// Dropping the future abandons its connection, which may still deliver data that it was given.
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    client: Client,
    may_redirect: bool,
}

impl ReqwestTransport {
    /// Sends over a client with these settings.
    ///
    /// # Errors
    ///
    /// The error of building the client.
    pub fn new(settings: ClientBuilder) -> Result<Self, reqwest::Error> {
        let client = settings.redirect(redirect::Policy::none()).retry(reqwest::retry::never()).build()?;
        Ok(Self { client, may_redirect: false })
    }

    /// Sends over a client that exists already. [`new`](Self::new) is better where the settings are at hand.
    ///
    /// Build the client with `redirect(Policy::none())`, and without repeats of its own: what a client sends by itself
    /// has no permit, so it can be answered with 429. A request that was redirected all the same is answered with a
    /// failure, and its order is in doubt. A body is sent once, whatever the client repeats.
    #[must_use]
    pub fn over(client: Client) -> Self {
        Self { client, may_redirect: true }
    }
}

impl<B> Service<Request<B>> for ReqwestTransport
where
    B: http_body::Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<reqwest::Body>;
    type Error = BoxError;
    type Future = ReqwestFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ReqwestFuture {
        let shared = || Call::of(request.extensions()).send().cloned().unwrap_or_default();
        let stamp = (!request.body().is_end_stream()).then(shared);
        if stamp.as_ref().is_some_and(|stamp| !stamp.take()) {
            return ReqwestFuture { state: State::SentAlready };
        }
        let request = request.map(|body| match &stamp {
            None => reqwest::Body::default(),
            Some(_) => reqwest::Body::wrap(StampedBody::stamping(body, stamp.clone())),
        });
        match reqwest::Request::try_from(request) {
            Ok(request) => {
                let asked = self.may_redirect.then(|| request.url().clone());
                ReqwestFuture { state: State::Sending { future: self.client.call(request), stamp, asked } }
            }
            Err(error) => ReqwestFuture { state: State::Unsendable { error: Some(error) } },
        }
    }
}

/// The client has followed a redirect by itself.
const REDIRECTED: &str = "client followed a redirect, switch that off with redirect(Policy::none())";

type Sending = <Client as Service<reqwest::Request>>::Future;

pin_project! {
    /// Response future of [`ReqwestTransport`].
    #[derive(Debug)]
    pub struct ReqwestFuture {
        #[pin]
        state: State,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = Project]
    enum State {
        // A body without content is never polled; only a failed connection is evidence for such a request.
        Sending { #[pin] future: Sending, stamp: Option<ext::SendStamp>, asked: Option<Url> },
        Unsendable { error: Option<reqwest::Error> },
        // Another send has taken the stamp.
        SentAlready,
    }
}

impl Future for ReqwestFuture {
    type Output = Result<Response<reqwest::Body>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (error, left) = match self.project().state.project() {
            Project::Sending { future, stamp, asked } => match ready!(future.poll(cx)) {
                Ok(response) if asked.as_ref().is_some_and(|asked| response.url() != asked) => {
                    return Poll::Ready(Err(Failure::new(Fate::Lost { ended: None }, REDIRECTED).into()));
                }
                Ok(response) => {
                    let response = Response::from(response);
                    if has_ambiguous_length(&response) {
                        return Poll::Ready(Err(
                            Failure::new(Fate::Lost { ended: None }, AMBIGUOUS_LENGTH).into()
                        ));
                    }
                    return Poll::Ready(Ok(response));
                }
                Err(error) => {
                    // A connection that failed behind a redirect proves nothing of the request before it.
                    let redirected = || asked.as_ref().is_some_and(|asked| error.url() != Some(asked));
                    let unpolled = || !error.is_connect() || redirected();
                    let left = stamp.as_ref().map_or_else(unpolled, |stamp| !stamp.give_up());
                    (Some(error), left)
                }
            },
            Project::Unsendable { error } => (error.take(), false),
            Project::SentAlready => return Poll::Ready(Err(sent_already())),
        };
        let fate = if left { Fate::Lost { ended: None } } else { Fate::NeverLeft };
        // Its address may hold an order id or a code.
        let source: BoxError =
            error.map_or_else(|| "polled after it was ready".into(), |error| error.without_url().into());
        Poll::Ready(Err(Failure::new(fate, source).into()))
    }
}
