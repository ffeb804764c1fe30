//! Requests of a `reqwest` client that a program has already.

use std::{
    error::Error,
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{
    Request, StatusCode, Uri,
    header::{DATE, RETRY_AFTER},
};
use pin_project_lite::pin_project;
use reqwest::{Client, Url};
use steadfast_call::{BoxError, Call, Failure, Fate, Lane, find_cause};
use steadfast_spec::Zone;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    error::Refusal, future::ResponseFuture, request::zones_of::AllIn, service::RateLimit,
    shell::zone_limiter::ZoneLimiter,
};

impl ZoneLimiter {
    /// Sends a request over a `reqwest` client once `zone` admits it, and settles its permit.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use steadfast_limit::{BoxError, MINUTE, Quota, SECOND, Scope, Zone, ZoneLimiter};
    ///
    /// const WEATHER: Zone = Zone::new("weather");
    ///
    /// # async fn run() -> Result<(), BoxError> {
    /// let quota = Quota::new(WEATHER, Scope::Shared).limit(5, SECOND).limit(100, MINUTE);
    /// let limiter = ZoneLimiter::builder().zone(quota).build()?;
    /// let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
    ///
    /// let request = client.get("https://weather.example/v1/today").build()?;
    /// let answer = limiter.send(&client, request, WEATHER).await?;
    /// # let _ = answer;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Redirects and repeats
    ///
    /// One permit is one request. If the client follows redirects or repeats requests by itself, as `reqwest` does
    /// unless it is told otherwise, these further requests leave without a permit. Switch both off:
    /// `redirect(Policy::none())` and `retry(reqwest::retry::never())`.
    ///
    /// # Errors
    ///
    /// [`SendError`] with a [`Refusal`] if nothing was sent, or with the client's error. An answer of any status is no
    /// error.
    ///
    /// A request whose answer is lost holds its slot as one whose future was dropped does (see below): at five a second
    /// five timeouts stop the zone for two minutes.
    ///
    /// # Cancellation
    ///
    /// The future can be dropped at any point. Once the request has left, its slot is held for as long as the service
    /// may still count it ([`Builder::arrives_within`](crate::Builder::arrives_within) and a window): `reqwest` does not
    /// say when a connection has ended.
    pub fn send(&self, client: &Client, request: reqwest::Request, zone: Zone) -> SendRequest {
        // An address that is no `Uri` is refused by `reqwest`, before anything is sent.
        let uri: Uri = request.url().as_str().parse().unwrap_or_default();
        let mut carrier = Request::new(request);
        *carrier.method_mut() = carrier.body().method().clone();
        *carrier.uri_mut() = uri;
        Call::of_mut(carrier.extensions_mut()).set_lane(Lane::Normal);
        SendRequest { service: self.layer().all_in(zone).layer(Carrier(client.clone())), carrier }
    }
}

/// A request that has not begun to wait; made by [`ZoneLimiter::send`]. It waits once it is awaited. Where
/// a future is needed, as by `tokio::spawn` and `join_all`, give them [`into_future`](IntoFuture::into_future) of it.
#[derive(Debug)]
#[must_use = "nothing is sent unless it is awaited"]
pub struct SendRequest {
    service: RateLimit<Carrier, AllIn>,
    carrier: Request<reqwest::Request>,
}

impl SendRequest {
    /// Lets the request wait in `lane`. Default: [`Lane::Normal`].
    pub fn lane(mut self, lane: Lane) -> Self {
        Call::of_mut(self.carrier.extensions_mut()).set_lane(lane);
        self
    }

    /// Refuses the request, at once if possible, if it cannot leave by `send_by`.
    pub fn send_by(mut self, send_by: Instant) -> Self {
        Call::of_mut(self.carrier.extensions_mut()).set_send_by(send_by.into_std());
        self
    }
}

impl IntoFuture for SendRequest {
    type Output = Result<reqwest::Response, SendError>;
    type IntoFuture = SendFuture;

    fn into_future(mut self) -> SendFuture {
        SendFuture { response: self.service.call(self.carrier) }
    }
}

pin_project! {
    /// Waits for a permit, sends, and settles the permit at the head of the answer; made by [`ZoneLimiter::send`].
    ///
    /// # Panics
    ///
    /// If it must wait outside of a tokio runtime with its timer enabled, or is polled after it has resolved.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct SendFuture {
        #[pin]
        response: ResponseFuture<Carrier, reqwest::Request>,
    }
}

impl Future for SendFuture {
    type Output = Result<reqwest::Response, SendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.project().response.poll(cx));
        Poll::Ready(answer.map(http::Response::into_body).map_err(SendError))
    }
}

/// A request that was refused by the limiter, or that failed in `reqwest`.
///
/// `Display` names the cause, without the request's address.
pub struct SendError(BoxError);

impl SendError {
    /// Returns why the limiter refused the request. Then nothing was sent.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        find_cause(&*self.0)
    }

    /// Returns the error of the client.
    #[must_use]
    pub fn request(&self) -> Option<&reqwest::Error> {
        find_cause(&*self.0)
    }

    /// Returns the zone that refused the request.
    #[must_use]
    pub fn zone(&self) -> Option<Zone> {
        self.refusal().and_then(Refusal::zone)
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&steadfast_call::one_line(steadfast_call::causes(&*self.0)))
    }
}

impl fmt::Debug for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for SendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The text holds the texts of all causes.
        self.0.source().and_then(Error::source)
    }
}

/// The client as a service below the limiter. Its requests are the bodies of those that the limiter sees.
#[derive(Clone, Debug)]
struct Carrier(Client);

impl Service<Request<reqwest::Request>> for Carrier {
    type Response = http::Response<reqwest::Response>;
    type Error = BoxError;
    type Future = Carried;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, carrier: Request<reqwest::Request>) -> Carried {
        let request = carrier.into_body();
        Carried { url: request.url().clone(), sending: self.0.call(request) }
    }
}

pin_project! {
    #[derive(Debug)]
    struct Carried {
        url: Url,
        #[pin]
        sending: <Client as Service<reqwest::Request>>::Future,
    }
}

impl Future for Carried {
    type Output = Result<http::Response<reqwest::Response>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(match ready!(this.sending.poll(cx)) {
            Ok(answer) => Ok(carried(answer)),
            Err(error) => Err(failure(error, this.url).into()),
        })
    }
}

/// Returns an answer with those of its facts that the limiter reads.
fn carried(answer: reqwest::Response) -> http::Response<reqwest::Response> {
    let mut facts = http::Response::new(());
    *facts.status_mut() = answer.status();
    if answer.status() == StatusCode::TOO_MANY_REQUESTS {
        for name in [RETRY_AFTER, DATE] {
            for value in answer.headers().get_all(&name) {
                facts.headers_mut().append(name.clone(), value.clone());
            }
        }
    }
    facts.map(|()| answer)
}

/// Returns the failure of a request to `url`.
fn failure(error: reqwest::Error, url: &Url) -> Failure {
    // A connection that fails behind a redirect proves nothing of the request before it.
    let first = error.url().is_none_or(|failed| failed == url);
    let never_left = error.is_builder() || (error.is_connect() && first);
    let fate = if never_left { Fate::NeverLeft } else { Fate::Lost { ended: None } };
    // An address may hold a secret.
    Failure::new(fate, error.without_url())
}
