use std::{future::poll_fn, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use steadfast_spec::{BoxError, Endpoint, Lane, OrderRecord, Route, ext, parse_order_list};
use tokio::runtime::Handle;
use tower_service::Service;

use crate::{
    account::{Account, Starter},
    error::ReadFault,
    registry::{Purpose, Wake},
    stamp::ReadNo,
    ticket::{ORDERS, PLACE_ORDER, Ticket, TicketFor},
};

/// Reads one account's order list for everybody who needs it, at most once a second.
///
/// It lives while something is due and is started again when something becomes due. No caller's drop reaches it.
pub(crate) struct Poller<S> {
    account: Arc<Account>,
    service: S,
    template: Template,
    running: Running,
}

/// What the reads have in common.
#[derive(Clone)]
pub(crate) struct Template {
    uri: Uri,
    route: ext::Route,
}

impl Template {
    /// The list beside the endpoint that an order was sent to.
    pub(crate) fn beside<B>(order: &Request<B>, route: Option<ext::Route>) -> Option<Self> {
        let mut parts = order.uri().clone().into_parts();
        let path = order.uri().path();
        let base = path.strip_suffix(PLACE_ORDER).or_else(|| path.rfind("/api/").map(|at| &path[..at]))?;
        parts.path_and_query = Some(format!("{base}{ORDERS}").parse().ok()?);
        Some(Self {
            uri: Uri::from_parts(parts).ok()?,
            route: route.unwrap_or_else(|| Arc::new(Route::new(Endpoint::Orders))),
        })
    }

    fn request<B: Default>(&self, account: &Arc<Account>, read: ReadNo, purpose: Purpose) -> Request<B> {
        let mut request = Request::new(B::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.uri.clone();
        if let Some(authorization) = account.authorization() {
            request.headers_mut().insert(header::AUTHORIZATION, authorization);
        }
        let extensions = request.extensions_mut();
        extensions.insert(self.route.clone());
        extensions.insert(match purpose {
            Purpose::Baseline | Purpose::Verification => Lane::Verification,
            Purpose::Watch => Lane::Bulk,
        });
        extensions.insert(account.name().clone());
        extensions.insert(Ticket { account: account.clone(), purpose: TicketFor::Read(read) });
        request
    }
}

/// How an account's poller is started over `service`, on the runtime that this is called on.
pub(crate) fn starter<S, B, RB>(service: &S, template: Template) -> Starter
where
    S: Service<Request<B>, Response = Response<RB>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Default + Send + 'static,
    RB: Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
{
    let first = Handle::try_current();
    // Services need not be `Sync`; the lock is held for one clone.
    let service = parking_lot::Mutex::new(service.clone());
    Arc::new(move |account| {
        // Where there is no runtime now, that of the first order is the best guess.
        let Ok(runtime) = Handle::try_current().as_ref().or(first.as_ref()).cloned() else {
            return account.stop_polling();
        };
        // Made here, not in the task: a runtime that shuts down drops it unpolled.
        let running = Running { account: account.clone(), ended: false };
        let poller = Poller { account, service: service.lock().clone(), template: template.clone(), running };
        drop(runtime.spawn(poller.run::<B, RB>()));
    })
}

impl<S> Poller<S> {
    async fn run<B, RB>(mut self)
    where
        S: Service<Request<B>, Response = Response<RB>>,
        S::Error: Into<BoxError>,
        B: Default,
        RB: Body<Data = Bytes>,
        RB::Error: Into<BoxError>,
    {
        while let Some(wake) = self.account.plan() {
            let (Wake::Read(at, _) | Wake::Tick(at)) = wake;
            if at > self.account.now() {
                self.account.sleep_until(at).await;
                continue;
            }
            match wake {
                Wake::Read(_, purpose) => self.read(purpose).await,
                Wake::Tick(_) => self.account.tick(),
            }
        }
        self.running.ended = true;
    }

    async fn read<B, RB>(&mut self, purpose: Purpose)
    where
        S: Service<Request<B>, Response = Response<RB>>,
        S::Error: Into<BoxError>,
        B: Default,
        RB: Body<Data = Bytes>,
        RB::Error: Into<BoxError>,
    {
        let read = self.account.open_read(purpose);
        let request = self.template.request(&self.account, read, purpose);
        let limit = self.account.settings.gateway_timeout;
        // The stack has its own timeouts; this one keeps a stack without any from ending all reads.
        let list = tokio::time::timeout(limit, self.fetch(request)).await;
        self.account.end_read(read, purpose, list.unwrap_or(Err(ReadFault::Failed)));
    }

    async fn fetch<B, RB>(&mut self, request: Request<B>) -> Result<Vec<OrderRecord>, ReadFault>
    where
        S: Service<Request<B>, Response = Response<RB>>,
        S::Error: Into<BoxError>,
        RB: Body<Data = Bytes>,
        RB::Error: Into<BoxError>,
    {
        let ready = poll_fn(|cx| self.service.poll_ready(cx)).await;
        ready.map_err(|_| ReadFault::Failed)?;
        let response = self.service.call(request).await.map_err(|_| ReadFault::Failed)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::FORBIDDEN => return Err(ReadFault::Forbidden),
            _ => return Err(ReadFault::Failed),
        }
        // An answer out of a cache is older than the read.
        let age = response.headers().get(header::AGE);
        if age.is_some_and(|age| age.as_bytes() != b"0") {
            return Err(ReadFault::Failed);
        }
        let body = Limited::new(response.into_body(), self.account.settings.list_body_cap);
        let bytes = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(ReadFault::TooLong),
            Err(_) => return Err(ReadFault::Failed),
        };
        parse_order_list(&bytes, &self.account.settings.field_names).map_err(|_| ReadFault::Unreadable)
    }
}

/// Lets the account know if its poller is dropped with work left, as by a runtime that shuts down.
struct Running {
    account: Arc<Account>,
    ended: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.account.stop_polling();
        }
    }
}
