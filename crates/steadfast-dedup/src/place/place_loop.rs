use std::{future::poll_fn, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, header};
use steadfast_call::{BoxError, Call, Failure, Outcome, Spare, ext, find_cause};
use tokio::time::Instant;
use tower_service::Service;

use crate::{
    error::OrderWithheld,
    guard::open_send::outcome_of_order,
    numbers::IntentNo,
    place::{
        answer::{CallResult, SendResult, in_doubt, joined, synthesized, unsent},
        body::ResponseBody,
        deadline::{deadline, within},
        open_call::OpenCall,
    },
    protocol::resolution::{Reason, Resolution, Unresolved, Verdict},
    tracker::{
        account::Account,
        halt::HaltEpoch,
        ticket::{AnySession, Ticket},
    },
};

/// Sends one intent, as often as it may be sent.
pub(crate) struct PlaceLoop<'a, S> {
    ticket: &'a Arc<Ticket>,
    service: &'a mut S,
    form: Bytes,
    open: OpenCall<'a>,
    epoch: HaltEpoch,
}

impl<'a, S> PlaceLoop<'a, S> {
    pub(crate) fn new(
        ticket: &'a Arc<Ticket>,
        service: &'a mut S,
        form: Bytes,
        open: OpenCall<'a>,
        epoch: HaltEpoch,
    ) -> Self {
        Self { ticket, service, form, open, epoch }
    }

    pub(crate) async fn place<B, RB>(&mut self, request: Request<B>) -> CallResult<RB>
    where
        S: Service<Request<B>, Response = Response<RB>>,
        S::Error: Into<BoxError>,
        B: From<Bytes> + Default,
    {
        let deadline = deadline(request.extensions());
        let ticket = self.ticket;
        let (account, intent) = (&ticket.account, self.open.intent());
        // If the orders are lost meanwhile, it goes on and is withheld.
        if within(deadline, account.unless_lost(account.turn(intent))).await.is_none() {
            // An earlier call may have sent it under the same name.
            let verdict = account.conclude(intent, false);
            return unsent(account, intent, Failure::refused(OrderWithheld::KeyBusy).into(), verdict);
        }
        account.baseline().await;
        self.checked(deadline).await;
        if let Some(answer) = displaced(account, intent).await {
            return answer;
        }
        let spare = Spare::of(&request);
        let mut answer = self.send(request, SendKind::First).await;
        // The token was renewed on the way: read the new session's list before the order leaves in it.
        if let Err(error) = &answer
            && matches!(find_cause(&**error), Some(OrderWithheld::NewSession))
        {
            account.baseline().await;
            self.checked(deadline).await;
            answer = self.send(spare.clone().with(B::default()), SendKind::InNewSession).await;
        }
        // A list has shown it while it waited to leave.
        if answer.is_err()
            && let Some(answer) = displaced(account, intent).await
        {
            return answer;
        }
        // The usual end. Anything else needs the verdict.
        if is_success(&answer) && self.open.acknowledged() {
            return answer.map(|response| response.map(ResponseBody::service));
        }
        // Its repeat did not leave. The caller is told of the refusal before it once a list agrees.
        if answer.is_err() {
            self.checked(deadline).await;
        }
        let (mut resent, mut doubted) = (false, false);
        let mut verdict = account.conclude(intent, is_rejected(&answer));
        loop {
            verdict = match verdict {
                Verdict::Pending => {
                    doubted = true;
                    self.wait(deadline).await
                }
                // An unused grant lapses.
                Verdict::Resend if account.halt.check(Some(self.epoch)).is_err() => {
                    account.conclude(intent, false)
                }
                Verdict::Resend => {
                    let next = self.send(spare.clone().with(B::default()), SendKind::Again).await;
                    let verdict = account.conclude(intent, false);
                    // A resend that certainly placed nothing does not settle the send before it: unless the resend
                    // was acknowledged, keep the first answer.
                    if matches!(verdict, Verdict::Acknowledged { .. }) {
                        answer = next;
                        resent = true;
                    }
                    verdict
                }
                Verdict::Recovered { order_id, status } => {
                    account.wait_durable().await;
                    return Ok(synthesized(
                        &order_id.clone(),
                        "recovered",
                        Resolution::Recovered { order_id, status },
                    ));
                }
                Verdict::Unresolved(unresolved) => return in_doubt(answer, unresolved),
                // An order that was in doubt and is forgotten may still exist.
                Verdict::NotPlaced if doubted && !account.is_refused(intent) => {
                    Verdict::Unresolved(Unresolved::new(Reason::EpochChanged, Vec::new()))
                }
                // A layer below withheld the answer.
                Verdict::Acknowledged { order_id } if !is_success(&answer) => {
                    let resolution = Resolution::Recovered { order_id: order_id.clone(), status: None };
                    return Ok(synthesized(&order_id, "recovered", resolution));
                }
                Verdict::Acknowledged { .. } | Verdict::NotPlaced => {
                    let answer = match answer {
                        Err(error) => return unsent(account, intent, error, verdict),
                        answer => answer,
                    };
                    return answer.map(|mut response| {
                        if resent {
                            response.extensions_mut().insert(Resolution::Resent);
                        }
                        response.map(ResponseBody::service)
                    });
                }
            };
        }
    }

    /// Waits, without a permit, for the list that confirms a refusal. `SendGuard` holds back a send that comes too
    /// early.
    async fn checked(&mut self, deadline: Option<Instant>) {
        if let Some(checked) = self.ticket.account.check(self.open.intent()) {
            within(deadline, checked).await;
        }
    }

    /// Waits for a verdict, the caller's deadline or the loss of the orders. After the deadline the search goes on without
    /// the caller; after the loss it finds nothing any more.
    async fn wait(&mut self, deadline: Option<Instant>) -> Verdict {
        let (account, intent) = (&self.ticket.account, self.open.intent());
        let reason = match within(deadline, account.unless_lost(account.decided(intent))).await {
            Some(Some(verdict)) => return verdict,
            Some(None) => Reason::OwnerChanged,
            None => Reason::Deadline,
        };
        account.abandon(intent);
        Verdict::Unresolved(Unresolved::new(reason, account.candidates(intent)))
    }

    fn send<B, RB>(
        &mut self,
        mut request: Request<B>,
        send: SendKind,
    ) -> impl Future<Output = SendResult<RB>> + use<'_, S, B, RB>
    where
        S: Service<Request<B>, Response = Response<RB>>,
        S::Error: Into<BoxError>,
        B: From<Bytes>,
    {
        *request.body_mut() = B::from(self.form.clone());
        // A caller's own length is that of the form without the tag, and would cut the end off.
        if request.headers().contains_key(header::CONTENT_LENGTH) {
            request.headers_mut().insert(header::CONTENT_LENGTH, self.form.len().into());
        }
        let extensions = request.extensions_mut();
        let call = Call::of_mut(extensions);
        call.set_ticket(ext::Ticket::new(self.ticket.clone()));
        if send == SendKind::Again {
            call.put_at_head_of_lane();
        }
        if send != SendKind::First {
            extensions.insert(AnySession);
        }
        let service = &mut *self.service;
        async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            service.call(request).await.map_err(Into::into)
        }
    }
}

/// Answers for the listed order whose name an unsent one repeats, if there is one.
async fn displaced<RB>(account: &Account, unsent: IntentNo) -> Option<CallResult<RB>> {
    Some(match account.displaced(unsent)? {
        Ok(verdict) => joined(account, verdict).await,
        Err(withheld) => Err(Failure::refused(withheld).into()),
    })
}

/// Which send of an intent it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SendKind {
    First,
    /// The first send, repeated: it was held back because the session was new.
    InNewSession,
    /// After the order was found absent.
    Again,
}

fn is_success<RB>(answer: &SendResult<RB>) -> bool {
    answer.as_ref().is_ok_and(|response| response.status().is_success())
}

fn is_rejected<RB>(answer: &SendResult<RB>) -> bool {
    answer.as_ref().is_ok_and(|response| outcome_of_order(response) == Outcome::Rejected)
}
