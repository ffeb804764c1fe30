mod builder;
mod changes;
mod events;
mod halting;
mod lists;
mod placing;
mod record;
mod records;
mod splitter;

use std::{error::Error as StdError, fmt, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use http::{HeaderValue, Request, Response, StatusCode, header, response::Parts};
use http_body_util::{BodyExt, Full, Limited, combinators::UnsyncBoxBody};
use steadfast_auth::TokenSource;
use steadfast_dedup::{Ledger, OrderEvent, Recover, RecoveredOrder, Verdict};
use steadfast_limit::ZoneLimiter;
use steadfast_spec::{BaseUrl, BoxError, Class, Envelope, EnvelopeError, Operation, Outcome, Paths, Resend};
use tower::{ServiceExt, util::BoxCloneSyncService};

pub use self::{
    builder::{ClientBuilder, InvalidClient},
    changes::Cancellation,
    events::MissedEvents,
    placing::Placed,
    record::Record,
    records::Records,
};
use crate::{access::Access, description::Description, error::Error};

/// How much of an answer is held in memory, an order list included.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

/// How many characters of an answer's text are kept.
const TEXT_LIMIT: usize = 256;

/// The body of a raw answer.
pub type Body = UnsyncBoxBody<Bytes, BrokenBody>;

/// The typed client of the trading REST service.
///
/// # Clone
///
/// Clones share the connections, the limits, the tokens and what is known of orders.
///
/// # Cancellation
///
/// Dropping a call's future before its request has left leaves nothing. Dropping a [`place_order`](Self::place_order)
/// after that does not stop it from being looked for, and it is never sent again; see [`in_doubt`](Self::in_doubt).
#[derive(Clone)]
pub struct Client {
    service: BoxCloneSyncService<Request<Full<Bytes>>, Response<Body>, BoxError>,
    base: BaseUrl,
    description: Arc<Description>,
    paths: Paths,
    ledger: Ledger,
    limiter: ZoneLimiter,
    tokens: TokenSource,
}

impl Client {
    /// Starts a client for the service at `base`.
    pub fn builder(base: BaseUrl, access: Access) -> ClientBuilder {
        ClientBuilder::new(base, access)
    }

    /// Calls any operation whose answer is in the envelope; its payload as JSON, `None` for `no-data`. Logins are not
    /// called but made by [`tokens`](Self::tokens).
    ///
    /// # Errors
    ///
    /// [`Error`] if the operation cannot be addressed, or the answer is not a success.
    pub async fn call(&self, operation: &Operation) -> Result<Option<serde_json::Value>, Error> {
        let Some(body) = self.read(operation).await? else { return Ok(None) };
        match Envelope::parse(&body) {
            Ok(Envelope::Ok { d }) => {
                serde_json::from_str(d.get()).map(Some).map_err(|_| EnvelopeError::UnexpectedPayload)
            }
            Ok(_) => Err(EnvelopeError::UnexpectedPayload),
            Err(error) => Err(error),
        }
        .map_err(|error| Error::unexpected(Outcome::Unknown { resend: Resend::Never }, error))
    }

    /// The whole body of a successful answer; `None` for `no-data`.
    async fn read(&self, operation: &Operation) -> Result<Option<Bytes>, Error> {
        let safe = operation.endpoint().class() == Class::Safe;
        let read = async {
            let (parts, body) = self.answer(self.request(operation)?).await?;
            match Envelope::parse(&body) {
                Ok(Envelope::Ok { .. }) if parts.status == StatusCode::OK => Ok(Some(body)),
                Ok(Envelope::NoData { .. }) if parts.status == StatusCode::OK => Ok(None),
                Err(error) if parts.status == StatusCode::OK => {
                    Err(Error::of_answer(&parts, None).because(error))
                }
                _ => Err(Error::of_answer(&parts, self.text_of(&body))),
            }
        };
        read.await.map_err(|error: Error| error.safe(safe))
    }

    async fn answer(&self, request: Request<Full<Bytes>>) -> Result<(Parts, Bytes), Error> {
        self.collect(self.raw(request).await?).await
    }

    async fn collect(&self, response: Response<Body>) -> Result<(Parts, Bytes), Error> {
        let (parts, body) = response.into_parts();
        match Limited::new(body, ANSWER_LIMIT).collect().await {
            Ok(body) => Ok((parts, body.to_bytes())),
            // An answer that breaks off says no more than its status.
            Err(error) => Err(Error::of_answer(&parts, None).because(error)),
        }
    }

    /// Sends a request of the caller's own through all layers; its address must lie below the base address.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no answer. An answer of any status is not an error here.
    pub async fn raw(&self, request: Request<Full<Bytes>>) -> Result<Response<Body>, Error> {
        self.service.clone().oneshot(request).await.map_err(Error::of_failure)
    }

    /// The request of an operation, to be added to and sent by [`raw`](Self::raw).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if the operation cannot be addressed.
    pub fn request(&self, operation: &Operation) -> Result<Request<Full<Bytes>>, Error> {
        let target = operation.target(&self.paths).map_err(Error::invalid)?;
        let uri = self.base.join(&target).map_err(Error::invalid)?;
        let body = operation.body();
        let mut request = Request::new(Full::from(body.clone().unwrap_or_default()));
        *request.method_mut() = operation.method();
        *request.uri_mut() = uri;
        if body.is_some() {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            request.headers_mut().insert(header::CONTENT_TYPE, form);
        }
        Ok(request)
    }

    /// Looks for every order that earlier processes left in doubt, by the order list alone, and says what became of
    /// each. Nothing is ever sent again for them.
    ///
    /// Needs a [`journal`](ClientBuilder::journal). Without this call they are looked for from the first order on.
    ///
    /// # Errors
    ///
    /// [`Error`] if the list cannot be addressed. What cannot be found out is a verdict and no error.
    pub async fn recover(&self) -> Result<Vec<RecoveredOrder>, Error> {
        let pending = |order: &RecoveredOrder| order.verdict == Verdict::Pending;
        if self.recovered().iter().any(pending) {
            let mut request = self.request(&Operation::orders())?;
            request.extensions_mut().insert(Recover);
            self.raw(request).await?;
        }
        Ok(self.recovered())
    }

    /// The orders that earlier processes left in doubt, and what is known of each by now.
    #[must_use]
    pub fn recovered(&self) -> Vec<RecoveredOrder> {
        self.ledger.recovered()
    }

    /// How many orders are in doubt now.
    #[must_use]
    pub fn in_doubt(&self) -> usize {
        self.ledger.in_doubt()
    }

    /// What becomes of orders from now on beyond what their callers are told: those found again, those that appear late,
    /// those that nobody can resolve. It ends with the last clone of the client.
    ///
    /// # Cancellation
    ///
    /// Dropping the stream stops listening; the oldest events are dropped where nobody takes them in time.
    pub fn events(&self) -> BoxStream<'static, Result<OrderEvent, MissedEvents>> {
        events::stream_of(self.ledger.events()).boxed()
    }

    /// What the client will do, layer by layer, with the settings that take effect; for a start-up log.
    #[must_use]
    pub fn describe(&self) -> &Description {
        &self.description
    }

    /// What is known of orders: events, and the count of those in doubt.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The rate limits, and how much of them is used.
    #[must_use]
    pub fn limiter(&self) -> &ZoneLimiter {
        &self.limiter
    }

    /// The tokens: their state, and logins by hand.
    #[must_use]
    pub fn tokens(&self) -> &TokenSource {
        &self.tokens
    }

    /// The `msg` of an error envelope, short enough for a log line and without what no log may hold.
    fn text_of(&self, body: &[u8]) -> Option<String> {
        let (Envelope::Error { msg } | Envelope::NoData { msg }) = Envelope::parse(body).ok()? else {
            return None;
        };
        Some(readable(&self.tokens, &msg))
    }

    /// Waits until no order is in flight or in doubt. Each is decided within the verification budget.
    pub async fn shutdown(&self) {
        self.ledger.shutdown().await;
    }
}

/// The service's own words, short enough for a log line and without what no log may hold.
fn readable(tokens: &TokenSource, text: &str) -> String {
    if tokens.is_quoted_in(text) {
        return "(a text that quotes the credentials)".to_owned();
    }
    text.chars().take(TEXT_LIMIT).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A raw answer's body that broke off.
///
/// A type of its own, because a boxed error in a future's type keeps the future from being spawned.
#[derive(Debug)]
pub struct BrokenBody(BoxError);

impl fmt::Display for BrokenBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("answer's body broke off")
    }
}

impl StdError for BrokenBody {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}
