mod answer;
mod builder;
mod changes;
mod events;
mod halting;
mod late_changes;
mod lists;
mod placing;
mod record;
mod records;
mod splitter;

use std::{error::Error as StdError, fmt, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use http::{Request, Response, header};
use http_body_util::{Full, combinators::UnsyncBoxBody};
use steadfast_auth::TokenSource;
use steadfast_call::{BoxError, Outcome, Resend, ext::Place};
use steadfast_dedup::{OrderEvent, OrderTracker, Recover, RecoveredOrder, Verdict};
use steadfast_limit::ZoneLimiter;
use steadfast_spec::{AuthKind, BaseUrl, Envelope, EnvelopeError, Form, Operation, Paths};
use tower::{ServiceExt, util::BoxCloneSyncService};

pub use self::{
    builder::{ClientBuilder, InvalidClient},
    changes::Cancellation,
    events::MissedEvents,
    placing::Placed,
    record::Record,
    records::Records,
};
use crate::{access::Access, deadline::DeadlineLayer, description::Description, error::Error};

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
/// Before its request has left, a call's future can be dropped without effect. A [`place_order`](Self::place_order)
/// that is dropped later is still looked for and never sent again; see [`in_doubt`](Self::in_doubt).
#[derive(Clone)]
pub struct Client {
    service: BoxCloneSyncService<Request<Full<Bytes>>, Response<Body>, BoxError>,
    // Shared, because programs clone a client for every task.
    address: Arc<Address>,
    description: Arc<Description>,
    deadline: DeadlineLayer,
    /// True if the deadline differs from that of the layers.
    own_deadline: bool,
    tracker: OrderTracker,
    late_changes: Arc<late_changes::LateChanges>,
    limiter: ZoneLimiter,
    tokens: TokenSource,
}

/// The addresses of the service's endpoints.
struct Address {
    base: BaseUrl,
    paths: Paths,
}

impl Client {
    /// Starts a client for the service at `base`.
    pub fn builder(base: BaseUrl, access: Access) -> ClientBuilder {
        ClientBuilder::new(base, access)
    }

    /// Calls any operation whose answer is in the envelope. Returns its payload as JSON, or `None` for `no-data`.
    ///
    /// Logins are refused here; [`tokens`](Self::tokens) makes them.
    ///
    /// # Errors
    ///
    /// [`Error`] if the operation cannot be addressed, or the answer is not a success.
    pub async fn call(&self, operation: &Operation) -> Result<Option<serde_json::Value>, Error> {
        if operation.endpoint().auth() != AuthKind::Full {
            return Err(Error::invalid(LoginIsNotCalled));
        }
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

    /// Returns the same client with another deadline, for calls that must be answered, or must leave, sooner or later
    /// than the others.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use steadfast::{Client, Error, OrderRequest, deadline::DeadlineLayer};
    /// # async fn run(client: Client, order: OrderRequest) -> Result<(), Error> {
    /// // A market order is worth sending for 15 s; a cancel always is.
    /// let hurried = client.with_deadline(DeadlineLayer::default().send_by(Duration::from_secs(15)));
    /// let placed = hurried.place_order(&order).await?;
    /// client.cancel(&placed.order_id).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_deadline(&self, deadline: DeadlineLayer) -> Self {
        let mut description = (*self.description).clone();
        for layer in description.layers.iter_mut().filter(|layer| layer.name == Place::Deadline.as_str()) {
            *layer = deadline.described();
        }
        Self { deadline, own_deadline: true, description: Arc::new(description), ..self.clone() }
    }

    /// Sends a request of the caller's own through all layers.
    ///
    /// Its address must lie below the base address. The answer's body comes as it arrives: the deadline covers only the
    /// head.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no answer. An answer of any status is not an error here.
    pub async fn raw(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Body>, Error> {
        if self.own_deadline {
            self.deadline.stamp_whole(request.extensions_mut());
        }
        let answer = self.service.clone().oneshot(request).await;
        answer.map_err(|error| Error::of_failure(error).at(&self.address.base))
    }

    /// Returns the request of an operation, to be completed and sent by [`raw`](Self::raw).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if the operation cannot be addressed.
    pub fn request(&self, operation: &Operation) -> Result<Request<Full<Bytes>>, Error> {
        let target = operation.target(&self.address.paths).map_err(Error::invalid)?;
        let uri = self.address.base.join(&target).map_err(Error::invalid)?;
        let body = operation.body();
        let mut request = Request::new(Full::from(body.clone().unwrap_or_default()));
        *request.method_mut() = operation.method();
        *request.uri_mut() = uri;
        if body.is_some() {
            request.headers_mut().insert(header::CONTENT_TYPE, Form::CONTENT_TYPE);
        }
        Ok(request)
    }

    /// Looks for every order that earlier processes left in doubt, and returns what became of each.
    ///
    /// Only the order list is read; nothing is ever sent again for them. Needs a [`journal`](ClientBuilder::journal).
    /// Without this call the search begins with the first order.
    ///
    /// # Errors
    ///
    /// [`Error`] with the source [`NoJournal`](steadfast_dedup::journal::NoJournal) if there is no journal, because an
    /// empty answer would look as if nothing were in doubt; or if the list cannot be addressed. An order that cannot be
    /// resolved is a verdict, not an error.
    pub async fn recover(&self) -> Result<Vec<RecoveredOrder>, Error> {
        let pending = |order: &RecoveredOrder| order.verdict == Verdict::Pending;
        if self.recovered()?.iter().any(pending) {
            let mut request = self.request(&Operation::orders())?;
            request.extensions_mut().insert(Recover);
            self.raw(request).await?;
        }
        self.recovered()
    }

    /// Returns the orders that earlier processes left in doubt, and what is known of each so far.
    ///
    /// # Errors
    ///
    /// [`Error`] with the source [`NoJournal`](steadfast_dedup::journal::NoJournal) if there is no journal.
    pub fn recovered(&self) -> Result<Vec<RecoveredOrder>, Error> {
        self.tracker.recovered().map_err(Error::invalid)
    }

    /// Returns the number of orders that are sent and not answered yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.tracker.in_flight()
    }

    /// Returns the number of orders in doubt: sent, and no answer proves what became of them.
    #[must_use]
    pub fn in_doubt(&self) -> usize {
        self.tracker.in_doubt()
    }

    /// Returns the news about orders that goes beyond the results of calls: orders that are found, appear late or stay
    /// unresolved. The stream ends with the last clone of the client.
    ///
    /// # Cancellation
    ///
    /// Dropping the stream stops listening. If events are not taken in time, the oldest are dropped.
    pub fn events(&self) -> BoxStream<'static, Result<OrderEvent, MissedEvents>> {
        events::stream_of(self.tracker.events()).boxed()
    }

    /// Returns the layers with the settings that take effect, for a start-up log.
    #[must_use]
    pub fn describe(&self) -> &Description {
        &self.description
    }

    /// Returns what is known of orders: events, and the number in doubt.
    #[must_use]
    pub fn tracker(&self) -> &OrderTracker {
        &self.tracker
    }

    /// Returns the rate limits, and how much of them is used.
    #[must_use]
    pub fn limiter(&self) -> &ZoneLimiter {
        &self.limiter
    }

    /// Returns the token source: its state, and logins by hand.
    #[must_use]
    pub fn tokens(&self) -> &TokenSource {
        &self.tokens
    }

    /// Waits until every call with an order has returned, no order is in doubt, and lists have shown or contradicted every
    /// acknowledged order, or cannot be read: see [`OrderTracker::shutdown`]. [`halt`](Self::halt) first, if what waits in
    /// a queue is not to leave any more.
    pub async fn shutdown(&self) {
        self.tracker.shutdown().await;
    }
}

/// A login that was called like any other operation. It would bypass the login budget that protects the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoginIsNotCalled;

impl fmt::Display for LoginIsNotCalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("logins are made by the client's tokens and not called")
    }
}

impl StdError for LoginIsNotCalled {}

/// The error of a raw answer's body that broke off.
///
/// It is a type of its own because a future with a boxed error in its type cannot be spawned.
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
        f.debug_struct("Client").field("base", &self.address.base).finish_non_exhaustive()
    }
}
