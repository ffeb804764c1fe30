use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use steadfast_call::{BoxError, Call, Clocks, ext};
use tokio::time::Instant;
use tower_service::Service;

use crate::{
    error::OrderWithheld,
    guard::{
        guarded_body::{CheckedChange, CheckedOrder, GuardedBody, SendCheck, TimeLimits},
        held::{Held, HeldByJournal},
        open_send::{OpenAttempt, OpenSend, SentRead},
    },
    journal::{Durable, session_of},
    tracker::{
        account::recording::Begun,
        halt::Halt,
        order_tracker::OrderTracker,
        sent_credentials::SentCredentials,
        ticket::{AnySession, Kind, Ticket, TicketFor},
    },
};

/// How long an order that may leave waits for its journal entry.
const PATIENCE: Duration = Duration::from_secs(1);

/// The service that [`SendGuardLayer`](crate::SendGuardLayer) makes.
#[derive(Clone, Debug)]
pub struct SendGuard<S> {
    inner: S,
    /// The salt that sessions are hashed with, if the tracker has a journal. The tracker itself would be a cycle: it
    /// keeps the service that reads lists, and that contains this guard.
    salt: Option<[u8; 16]>,
    halt: Arc<Halt>,
    clocks: Clocks,
}

/// A request after its entry.
pub(super) enum Entered<S, B, F> {
    /// It does not go down.
    Withheld(OrderWithheld),
    /// It goes down once the attempt's journal entry is durable.
    Writing(Pin<Box<HeldByJournal<S, B>>>),
    /// It went down.
    Sent(F),
}

impl<S> SendGuard<S> {
    pub(super) fn new(inner: S, tracker: &OrderTracker) -> Self {
        Self {
            inner,
            salt: tracker.salt(),
            halt: tracker.halt_switch(),
            clocks: tracker.settings().clocks.clone(),
        }
    }

    pub(super) fn poll_inner<R>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>
    where
        S: Service<R>,
        S::Error: Into<BoxError>,
    {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    /// Writes down what is about to be sent, and sends it unless it has to wait for its journal entry.
    pub(super) fn enter<B, RB>(&mut self, mut request: Request<B>) -> (Entered<S, B, S::Future>, OpenSend)
    where
        S: Service<Request<GuardedBody<B>>, Response = Response<RB>> + Clone,
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let (own, kind) = (Ticket::of(request.extensions()).is_some(), Kind::of(&request));
        // A request with nothing to poll and nothing to decide gets no stamp: it would stay blank and prove nothing.
        let polled = own || !request.body().is_end_stream() || kind == Kind::Change;
        let stamp = polled.then(ext::SendStamp::new);
        if let Some(stamp) = &stamp {
            Call::of_mut(request.extensions_mut()).set_send(stamp.clone());
        }
        let session =
            self.salt.filter(|_| !own && kind == Kind::List).map(|salt| session_of(&salt, request.headers()));
        let written = if own { write_down(&request) } else { Ok(WrittenDown::default()) };
        let WrittenDown { order, durable, read } = match written {
            Ok(written) => written,
            Err(why) => {
                // The inner service was polled ready and may hold a slot for this call, which is not made. Replace it
                // by a fresh clone.
                let clone = self.inner.clone();
                drop(mem::replace(&mut self.inner, clone));
                return (Entered::Withheld(why), OpenSend::default());
            }
        };
        let attempt = order.as_ref().map(|order| {
            let credentials = SentCredentials::of(request.headers());
            OpenAttempt::new(order.account.clone(), order.attempt, stamp.clone(), credentials)
        });
        let credentials = (attempt.is_none() && kind == Kind::List)
            .then(|| SentCredentials::of(request.headers()))
            .flatten();
        // A change without an epoch from the outer layer belongs to the current one.
        let epoch = |request: &Request<B>| request.extensions().get().copied().or_else(|| self.halt.epoch());
        let change =
            (kind == Kind::Change).then(|| CheckedChange { halt: self.halt.clone(), epoch: epoch(&request) });
        let checked = order.is_some() || change.is_some();
        let limits =
            if checked { TimeLimits::of(request.extensions(), &self.clocks) } else { TimeLimits::default() };
        let asked = own.then(|| self.clocks.at(Instant::now().into_std()));
        let request = request.map(|body| GuardedBody::new(body, SendCheck { limits, stamp, order, change }));
        let entered = match durable {
            None => Entered::Sent(self.inner.call(request)),
            Some(durable) => {
                let clone = self.inner.clone();
                let service = mem::replace(&mut self.inner, clone);
                Entered::Writing(Held::until(durable, PATIENCE, (service, request)))
            }
        };
        (entered, OpenSend { attempt, read, session, credentials, asked })
    }
}

/// The facts about a request before it goes down.
#[derive(Default)]
struct WrittenDown {
    /// The order's part of the check, if it is an order.
    order: Option<CheckedOrder>,
    /// When its journal entry is durable, if there is a journal.
    durable: Option<Durable>,
    /// The tracker's own read, if it is one.
    read: Option<SentRead>,
}

/// Records what is about to be sent.
fn write_down<B>(request: &Request<B>) -> Result<WrittenDown, OrderWithheld> {
    let extensions = request.extensions();
    let Some(ticket) = Ticket::of(extensions) else { return Ok(WrittenDown::default()) };
    let session = ticket.account.session_of(request.headers(), extensions);
    match &ticket.purpose {
        TicketFor::Read(read) => {
            // Transports do not poll empty bodies, so a read starts here: too early is the safe side.
            ticket.account.start_read(*read, session);
            let read = Some(SentRead::new(ticket.account.clone(), *read));
            Ok(WrittenDown { read, ..WrittenDown::default() })
        }
        // Checked again at the body poll; here it saves a journal record.
        TicketFor::Order { epoch, .. } if let Err(why) = ticket.account.halt.check(Some(*epoch)) => Err(why),
        TicketFor::Order { .. }
            if extensions.get::<AnySession>().is_none() && ticket.account.meets(session, request) =>
        {
            Err(OrderWithheld::NewSession)
        }
        TicketFor::Order { intent, epoch } => {
            // An order without an intent is not sent.
            let intent = *intent.get().ok_or(OrderWithheld::NotWanted)?;
            ticket.account.check_day()?;
            let Begun { attempt, durable, journal_day } =
                ticket.account.begin(intent, session).ok_or(OrderWithheld::NotWanted)?;
            let order =
                Some(CheckedOrder { account: ticket.account.clone(), attempt, epoch: *epoch, journal_day });
            Ok(WrittenDown { order, durable, read: None })
        }
    }
}
