mod account;
mod answer;
mod body;
mod builder;
mod changes;
mod events;
mod forwarding;
mod late_changes;
mod placing;
mod record;
mod records;
mod splitter;

use std::{error::Error as StdError, fmt, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use http::{Request, Response, header};
use http_body_util::Full;
use steadfast_auth::TokenSource;
use steadfast_call::{
    BoxError, Outcome, Resend,
    ext::{IntentId, Place},
};
use steadfast_dedup::{OrderEvent, OrderTracker, Recover, RecoveredOrder};
use steadfast_limit::ZoneLimiter;
use steadfast_spec::{
    AuthKind, BaseUrl, Endpoint, Envelope, EnvelopeError, Form, Operation, OrderChange, OrderRecord,
    OrderRequest, Paths, parse_order_list,
};
use tower::{ServiceExt, util::BoxCloneSyncService};

pub use self::{
    body::{Body, BrokenBody},
    builder::ClientBuilder,
    changes::Cancellation,
    events::MissedEvents,
    placing::Placed,
    record::Record,
    records::Records,
};
use crate::{access::Access, deadline::DeadlineLayer, description::Description, error::Error};

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
    service: ClientService,
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

/// The layers of a [`Client`] as a tower service, made by [`Client::service`].
pub type ClientService = BoxCloneSyncService<Request<Full<Bytes>>, Response<Body>, BoxError>;

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

    /// Prepares for the first order: obtains a token, opens a connection and reads the order list once.
    ///
    /// # Errors
    ///
    /// [`Error`] if any of that fails; an order would fail as well.
    pub async fn prewarm(&self) -> Result<(), Error> {
        self.orders().await.map(drop)
    }

    /// Places an order (§4.4), at most once if every applied order is listed within the lateness bound.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InDoubt`](crate::ErrorKind::InDoubt) if it is not known whether the order was placed,
    /// [`ErrorKind::NotObserved`](crate::ErrorKind::NotObserved) if it was not found beyond the lateness bound. Every
    /// other kind means that it was not placed.
    pub async fn place_order(&self, order: &OrderRequest) -> Result<Placed, Error> {
        self.place(order, None).await
    }

    /// Places an order under a name of the caller's. Calls with the same name place at most one order between them,
    /// within a trading day and among its last 100,000 orders.
    ///
    /// Begin the name with the day, because the names of a day are free on the next one: with its date in the time zone of
    /// the [trading day](steadfast_dedup::Settings::trading_day), or with the count of days that
    /// [`today`](steadfast_dedup::Settings::today) returns, `client.tracker().settings().today().0`.
    ///
    /// # Errors
    ///
    /// As [`place_order`](Self::place_order); [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if the name is
    /// empty: it would tell no call from another.
    pub async fn place_order_as(&self, order: &OrderRequest, intent: IntentId) -> Result<Placed, Error> {
        if intent.as_str().is_empty() {
            return Err(Error::invalid("intent id is empty"));
        }
        self.place(order, Some(intent)).await
    }

    /// Cancels an order (§4.5). Cancelling twice changes nothing, so the cancel is repeated in doubt. If no answer is
    /// clear, the order's status in the list decides.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Rejected`](crate::ErrorKind::Rejected) if the service's first answer is that the order is not open: it
    /// was cancelled before, or has ended; [`ErrorKind::NotOpen`](crate::ErrorKind::NotOpen) if the list showed that it
    /// ended otherwise, [`ErrorKind::InDoubt`](crate::ErrorKind::InDoubt) if the result is not known, and the kind of the
    /// service's refusal.
    pub async fn cancel(&self, order_id: &str) -> Result<(), Error> {
        self.cancel_order(order_id).await
    }

    /// Cancels every order of the session's list that may still be open, in the list's order. The read of the list and the
    /// cancels leave ahead of all other requests.
    ///
    /// The number of orders is not limited; they leave as fast as the limits allow. Orders in flight or in doubt are
    /// not in the list yet: stop placing first ([`halt`](Self::halt)), and call it again once
    /// [`in_flight`](Self::in_flight) and [`in_doubt`](Self::in_doubt) are both zero.
    ///
    /// # Errors
    ///
    /// [`Error`] if the list cannot be read; then nothing was cancelled. A record that cannot be read is not an error:
    /// its order may be open, and is cancelled. A record without an id is returned as a failed cancellation.
    pub async fn cancel_all(&self) -> Result<Vec<Cancellation>, Error> {
        self.cancel_orders().await
    }

    /// Changes an open order (§4.5), once its path is set.
    ///
    /// A change in doubt is never sent again: the order's record in the list decides. While it may still be made,
    /// another change of the same order is refused, because the older one could undo it. This lasts W after an error
    /// that the service documents, T_gw and W after the end of the connection, and 120 s longer where no transport can
    /// say that it ended. The same change may be made again.
    ///
    /// This memory does not outlive the process, with or without a journal: after a restart, wait as long before
    /// another change of an order whose change was in doubt.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if an earlier change of the order may still be made, with the
    /// time until which it may ([`Error::ready_at`]); [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest)
    /// if there is nothing to change, a field is wrong, or no path is set;
    /// [`ErrorKind::NotOpen`](crate::ErrorKind::NotOpen) if the order has ended;
    /// [`ErrorKind::InDoubt`](crate::ErrorKind::InDoubt) if the list does not show the change; and the kind of the
    /// service's refusal.
    pub async fn modify(&self, order_id: &str, change: &OrderChange) -> Result<(), Error> {
        self.change_order(order_id, change).await
    }

    /// Returns the session's orders (§4.5); an empty list if there are none.
    ///
    /// # Errors
    ///
    /// [`Error`] if the list cannot be read whole by the deadline.
    pub async fn orders(&self) -> Result<Vec<OrderRecord>, Error> {
        let Some(body) = self.read(&Operation::orders()).await? else { return Ok(Vec::new()) };
        parse_order_list(&body, self.tracker.settings().record_names())
            .map_err(|error| Error::unexpected(Outcome::Unknown { resend: Resend::Never }, error))
    }

    /// Returns the margin that one order needs. Path, payload and answer are "not shown" (§4.5): the order's own fields
    /// are sent, and the answer is returned as it came.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if [`Paths`](crate::Paths) gives it no path, and
    /// [`Error`] if the answer is not a success.
    pub async fn order_margin(&self, order: &OrderRequest) -> Result<Record, Error> {
        self.record(&Operation::new(Endpoint::OrderMargin).form(order.form())).await
    }

    /// Returns the margin that several orders need together (§4.5). The payload is "not shown", so the caller gives the
    /// form.
    ///
    /// # Errors
    ///
    /// [`Error`] if the answer is not a success.
    pub async fn basket_margin(&self, form: Form) -> Result<Record, Error> {
        self.record(&Operation::new(Endpoint::BasketMargin).form(form)).await
    }

    /// Places an order of a special kind (`gtt`, `oco`, `bo`, `co`), with a form of the caller's.
    ///
    /// The specification knows no such orders, and no list can check them. So a request that may have been executed is
    /// never repeated: look at the service before you place it again. A [halt](Self::halt) stops it. Changes, exits and
    /// conversions are the same, by [`call`](Self::call).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InDoubt`](crate::ErrorKind::InDoubt) if it is not known whether it was placed;
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if [`Paths`](crate::Paths) gives it no path; and
    /// the kind of the service's refusal.
    pub async fn place_special(&self, kind: &str, form: Form) -> Result<Record, Error> {
        let operation = Operation::special(Endpoint::PlaceSpecial, kind).form(form);
        self.record(&operation).await.map_err(Error::in_doubt_if_unknown)
    }

    /// Returns the instruments of a group (§4.1), one at a time while the answer arrives.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no list. A list that breaks off later is an error of the stream.
    pub async fn symbols(&self, scrip_group: &str) -> Result<Records, Error> {
        self.records(&Operation::symbols(scrip_group)).await
    }

    /// Returns all instruments (§4.1), one at a time while the answer arrives, because the list is long.
    ///
    /// The payload is "not shown"; an array of records is expected. Another form, such as CSV, is an error: use
    /// [`raw`](Self::raw) with [`request`](Self::request), which returns it as it arrives.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if [`Paths`](crate::Paths) gives it no path, and
    /// [`Error`] if there is no list. A list that breaks off later is an error of the stream.
    pub async fn scrip_master(&self) -> Result<Records, Error> {
        self.records(&Operation::new(Endpoint::ScripMaster)).await
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

    /// Sends a request of another program through all layers, and resolves what is in doubt before it returns: for a
    /// program that passes requests on.
    ///
    /// An order is placed as by [`place_order`](Self::place_order), a cancel sent as by [`cancel`](Self::cancel), a change
    /// as by [`modify`](Self::modify): where no answer is clear, the order list decides. If it shows what was asked for,
    /// the answer is made of that, with `x-steadfast-resolution: recovered`. Every other request is sent as by
    /// [`raw`](Self::raw). The service gets the form as it is.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no answer, or if a cancel or a change was not confirmed. An answer of another endpoint is no
    /// error, whatever its status; to an order it may have [`Unresolved`](steadfast_dedup::Unresolved) in its extensions.
    pub async fn forward(&self, request: Request<Full<Bytes>>) -> Result<Response<Body>, Error> {
        self.forward_request(request).await
    }

    /// Returns the client's own layers and connections as a tower service, for requests that a program makes by itself.
    ///
    /// It shares everything with the client: limits, tokens, and what is known of orders. A request needs its whole
    /// address, and no `Authorization`. Unlike the client's own calls, an answer of any status is no error. Its error is a
    /// [`BoxError`](crate::BoxError), as that of tower's layers.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # use steadfast::{BoxError, Client};
    /// # async fn run(client: Client) -> Result<(), BoxError> {
    /// use tower::ServiceExt as _;
    ///
    /// let request = http::Request::get("https://api.example/tradeapi/v2/api/oms/orders").body(Default::default())?;
    /// let answer = client.service().oneshot(request).await?;
    /// println!("{}", answer.status());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn service(&self) -> ClientService {
        self.service.clone()
    }

    /// Returns the number of orders that are sent and not answered yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.tracker.in_flight()
    }

    /// Returns the number of orders in doubt that are looked for: sent, and no answer proves what became of them.
    ///
    /// An order whose search has ended without certainty is not counted. The gauge `steadfast_orders_in_doubt` counts it
    /// until a ruling.
    #[must_use]
    pub fn in_doubt(&self) -> usize {
        self.tracker.in_doubt()
    }

    /// Looks for every order that earlier processes left in doubt, and returns what became of each.
    ///
    /// It also starts the reads for acknowledged orders that no list has shown yet, and does not wait for them: they end with
    /// [`events`](Self::events). Only the order list is read; nothing is ever sent again for any of them. Needs a
    /// [`journal`](ClientBuilder::journal). Without this call the reads begin with the first order.
    ///
    /// If anything is in doubt, it takes at least 45 s (T_gw + W), and again at each start until a
    /// [ruling](steadfast_dedup::OrderTracker::resolve) on what stays unresolved.
    ///
    /// # Errors
    ///
    /// [`Error`] with the source [`NoJournal`](steadfast_dedup::journal::NoJournal) if there is no journal, because an
    /// empty answer would look as if nothing were in doubt; or if the list cannot be addressed. An order that cannot be
    /// resolved is a verdict, not an error.
    pub async fn recover(&self) -> Result<Vec<RecoveredOrder>, Error> {
        self.recovered()?;
        let mut request = self.request(&Operation::orders())?;
        request.extensions_mut().insert(Recover);
        self.raw(request).await?;
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

    /// Returns the news about orders that goes beyond the results of calls: orders that are found, appear late or stay
    /// unresolved. The stream ends with the last clone of the client.
    ///
    /// # Cancellation
    ///
    /// Dropping the stream stops listening. If events are not taken in time, the oldest are dropped.
    pub fn events(&self) -> BoxStream<'static, Result<OrderEvent, MissedEvents>> {
        events::stream_of(self.tracker.events()).boxed()
    }

    /// The kill switch: from its return until [`resume`](Self::resume), no order and no change of an order leaves,
    /// including queued ones and resends.
    ///
    /// They end as [`ErrorKind::Halted`](crate::ErrorKind::Halted). Cancels, reads and the search for orders in doubt
    /// go on. A [raw](Self::raw) request to a path in no table is not known to be an order, and leaves, unless the routes
    /// [guard](steadfast_call::Routes::guard_unknown) such paths. See
    /// [`OrderTracker::halt`](steadfast_dedup::OrderTracker::halt).
    pub fn halt(&self) {
        self.tracker.halt();
    }

    /// Lets orders leave that are placed from now on, and none that was placed before.
    pub fn resume(&self) {
        self.tracker.resume();
    }

    /// Returns true between [`halt`](Self::halt) and [`resume`](Self::resume), and while a halt of all processes that share the
    /// orders stands.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.tracker.is_halted()
    }

    /// Waits until every call with an order has returned, no order is in doubt, and lists have shown or contradicted every
    /// acknowledged order, or cannot be read: see [`OrderTracker::shutdown`]. [`halt`](Self::halt) first, if what waits in
    /// a queue is not to leave any more.
    pub async fn shutdown(&self) {
        self.tracker.shutdown().await;
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

    /// Returns the layers with the settings that take effect, for a start-up log.
    #[must_use]
    pub fn describe(&self) -> &Description {
        &self.description
    }

    /// Publishes the counts and states of this client now, as [`metrics::record`](crate::metrics::record).
    #[cfg(feature = "metrics")]
    pub fn record_metrics(&self) {
        crate::metrics::record(self);
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

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.address.base).finish_non_exhaustive()
    }
}
