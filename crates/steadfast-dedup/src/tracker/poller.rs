use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use steadfast_call::{BoxError, Call, Lane, Route, ext};
use steadfast_spec::{Endpoint, FieldNames, OrderListReader, OrderRecord};
use tower_service::Service;

use crate::{
    numbers::{ReadNo, Session},
    protocol::{listed_orders::entries::IDS, read_fault::ReadFault, wake::Purpose},
    tracker::{
        account::{Account, Starter},
        cached::is_out_of_a_cache,
        sent_credentials::{self, SentCredentials},
        shared_protocol::Plan,
        sync::{Mutex, Tasks},
        ticket::{ORDERS, PLACE_ORDER, Ticket, TicketFor},
        tokens::OwnToken,
    },
};

/// How many records are read or taken in before the thread's other tasks get a turn: well below a millisecond.
const SLICE: usize = 256;

/// Reads one account's order list for all waiting calls, at most once a second.
///
/// It runs while something is due and is started again when something becomes due. No caller's drop affects it. A
/// panic of the service counts as a failed read: another poller goes on from there.
pub(crate) struct Poller<S> {
    account: Arc<Account>,
    service: S,
    template: Template,
    running: Running,
}

/// The part that all reads have in common.
#[derive(Clone)]
pub(crate) struct Template {
    uri: Uri,
    route: Arc<Route>,
}

impl Template {
    /// Returns the path of the list beside the endpoint that an order was sent to.
    pub(crate) fn beside<B>(order: &Request<B>, route: Option<Arc<Route>>) -> Option<Self> {
        let mut parts = order.uri().clone().into_parts();
        let path = order.uri().path();
        let base = path.strip_suffix(PLACE_ORDER).or_else(|| path.rfind("/api/").map(|at| &path[..at]))?;
        parts.path_and_query = Some(format!("{base}{ORDERS}").parse().ok()?);
        Some(Self {
            uri: Uri::from_parts(parts).ok()?,
            route: route.unwrap_or_else(|| Arc::new(Route::new(Endpoint::Orders))),
        })
    }

    fn request<B: Default>(
        &self,
        account: &Arc<Account>,
        read: ReadNo,
        lane: Lane,
        own: Option<OwnToken>,
    ) -> Request<B> {
        let mut request = Request::new(B::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.uri.clone();
        // A cached list is no evidence.
        request.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let mut call = Call::default();
        if let Some(OwnToken { authorization, generation, .. }) = own {
            request.headers_mut().insert(header::AUTHORIZATION, authorization);
            call.keep_authorization();
            if let Some(generation) = generation {
                call.set_generation(generation);
            }
        } else if let Some(authorization) = account.authorization() {
            request.headers_mut().insert(header::AUTHORIZATION, authorization);
        }
        let ticket = Ticket { account: account.clone(), purpose: TicketFor::Read(read) };
        call.set_route(self.route.clone())
            .set_lane(lane)
            .set_account(account.name().clone())
            .set_ticket(ext::Ticket::new(Arc::new(ticket)));
        *Call::of_mut(request.extensions_mut()) = call;
        request
    }
}

/// Returns a function that starts an account's poller over `service`, on the runtime that calls it.
pub(crate) fn starter<S, B, RB>(service: &S, template: Template) -> Starter
where
    S: Service<Request<B>, Response = Response<RB>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Default + Send + 'static,
    RB: Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
{
    let first = Tasks::current();
    // Services need not be `Sync`; the lock is held for one clone.
    let service = Mutex::new(service.clone());
    Arc::new(move |account| {
        // Without a runtime now, the first order's is the best guess.
        let Some(tasks) = Tasks::current().or_else(|| first.clone()) else { return false };
        // Made here, not in the task: a runtime that shuts down drops it unpolled.
        let running = Running { account: account.clone(), stage: Stage::Unpolled };
        let poller = Poller { account, service: service.lock().clone(), template: template.clone(), running };
        tasks.spawn(poller.run::<B, RB>());
        true
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
        self.running.stage = Stage::Working;
        loop {
            match self.account.plan() {
                Plan::Read(purpose) => self.read(purpose).await,
                Plan::Tick => {
                    self.account.tick();
                    // More may be due at once, and others wait.
                    tokio::task::yield_now().await;
                }
                Plan::SleepUntil(at) => self.account.sleep_until(at).await,
                Plan::End => break,
            }
        }
        self.running.stage = Stage::Ended;
    }

    async fn read<B, RB>(&mut self, purpose: Purpose)
    where
        S: Service<Request<B>, Response = Response<RB>>,
        S::Error: Into<BoxError>,
        B: Default,
        RB: Body<Data = Bytes>,
        RB::Error: Into<BoxError>,
    {
        let account = self.account.clone();
        let (number, lane, own) = account.open_read(purpose);
        let read = OpenRead { account: &account, read: number, purpose, ended: false };
        let session = own.as_ref().map(|own| own.session);
        let request = self.template.request(&account, number, lane, own);
        // The stack has its own timeouts; this one keeps a stack without any from ending all reads.
        let fetch = account.within(account.settings.gateway_timeout, self.fetch(request, session));
        if lane != Lane::Bulk {
            return read.end(fetch.await.unwrap_or(Err(ReadFault::Failed))).await;
        }
        // It waits in the slowest lane, perhaps until the minute's window ends, and there is only one read at a time.
        let (mut fetch, mut overtaken) = (pin!(fetch), pin!(account.overtaken(number)));
        let list = poll_fn(|cx| match fetch.as_mut().poll(cx) {
            Poll::Ready(list) => Poll::Ready(Some(list)),
            Poll::Pending => overtaken.as_mut().poll(cx).map(|()| None),
        });
        match list.await {
            Some(list) => read.end(list.unwrap_or(Err(ReadFault::Failed))).await,
            None => read.withdraw(),
        }
    }

    /// Reads the list once. `own`: the session of the request's token, if it is not the current one.
    async fn fetch<B, RB>(
        &mut self,
        request: Request<B>,
        own: Option<Session>,
    ) -> Result<Vec<Vec<OrderRecord>>, ReadFault>
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
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if own.is_some() => {
                own.into_iter().for_each(|session| self.account.lose_token(session));
                return Err(ReadFault::Failed);
            }
            StatusCode::FORBIDDEN => return Err(ReadFault::Forbidden),
            _ => return Err(ReadFault::Failed),
        }
        if is_out_of_a_cache(response.headers()) || self.account.are_lists_of_another_day() {
            return Err(ReadFault::Failed);
        }
        let credentials = response.extensions().get::<SentCredentials>().cloned();
        let body = Limited::new(response.into_body(), self.account.settings.list_body_cap);
        let bytes = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(ReadFault::TooLong),
            Err(_) => return Err(ReadFault::Failed),
        };
        let mut list = parse(&bytes, &self.account.settings.field_names).await;
        let names_none = |slices: &Vec<Vec<OrderRecord>>| {
            !slices.iter().all(|records| sent_credentials::have_plausible_ids(records, credentials.as_ref()))
        };
        if list.as_ref().is_ok_and(names_none) {
            list = Err(ReadFault::Unreadable);
        }
        list
    }
}

/// Reads a list in slices, so that other tasks of this thread get turns and no large buffer is moved as it grows.
async fn parse(body: &[u8], names: &FieldNames) -> Result<Vec<Vec<OrderRecord>>, ReadFault> {
    let unreadable = |_| ReadFault::Unreadable;
    let mut reader = OrderListReader::new(body, names).map_err(unreadable)?;
    let mut slices = vec![reader.read(SLICE).map_err(unreadable)?];
    // A short slice is the last one.
    while slices.last().is_some_and(|slice| slice.len() == SLICE) {
        tokio::task::yield_now().await;
        slices.push(reader.read(SLICE).map_err(unreadable)?);
        if slices.len() > IDS / SLICE {
            return Err(ReadFault::TooLong);
        }
    }
    Ok(slices)
}

/// A read that is not over yet. Dropping it counts as a failed read.
struct OpenRead<'a> {
    account: &'a Arc<Account>,
    read: ReadNo,
    purpose: Purpose,
    ended: bool,
}

impl OpenRead<'_> {
    /// Passes on a long list in parts, with turns for other tasks in between.
    async fn end(mut self, list: Result<Vec<Vec<OrderRecord>>, ReadFault>) {
        let last = match list {
            Ok(mut slices) => {
                let last = slices.pop().unwrap_or_default();
                for slice in slices {
                    self.account.part_of_read(self.read, slice);
                    tokio::task::yield_now().await;
                }
                Ok(last)
            }
            Err(fault) => Err(fault),
        };
        self.ended = true;
        self.account.end_read(self.read, self.purpose, last);
    }

    fn withdraw(mut self) {
        self.ended = true;
        self.account.withdraw_read(self.read);
    }
}

impl Drop for OpenRead<'_> {
    // The service panicked, or the runtime shuts down. Ends the read, so that no call waits for it, and the next one
    // keeps its distance.
    fn drop(&mut self) {
        if !self.ended {
            self.account.end_read(self.read, self.purpose, Err(ReadFault::Failed));
        }
    }
}

/// Tells the account if its poller is dropped with work left.
struct Running {
    account: Arc<Account>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unpolled,
    Working,
    Ended,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.stage == Stage::Ended {
            return;
        }
        self.account.poller_dropped();
        // After a panic of the service, this step starts a new poller. A runtime that shuts down takes no new task:
        // there a call that waits on another runtime starts one, or the next order.
        if self.stage == Stage::Working && std::thread::panicking() {
            self.account.tick();
        }
    }
}
