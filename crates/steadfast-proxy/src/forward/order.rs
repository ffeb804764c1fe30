//! The way of one order through the stack: its entry, its answer, and what happens if its caller goes away.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Extensions, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected, Full, Limited};
use steadfast::{
    Client, ErrorKind, Outcome,
    call::Call,
    dedup::{Resolution, Unresolved, Verdict},
    ext::IntentId,
    spec::{Form, OrderRequest, PlacedOrder},
};
use tokio::time::{Instant, timeout_at};

use super::{
    Forward,
    errors::{conflict, is_doubtful, of_error},
    terms::terms,
};
use crate::{
    answer::{AnswerBody, Own, clean},
    dashboard::{OrderEnd, WatchedOrder},
    front::Admitted,
    mask::Masked,
    orders::{Conflict, Entry, Orders, UNHEARD, found},
    screen::Talk,
};

/// Begins the names of orders without a name of their caller's, in every process.
pub(super) const NAMES: &str = "sidecar-";
/// How long an order waits for the moment in which the answer to an equal one was heard or is lost.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(1);
/// The header with the status that the order list shows for an order that was found there.
const LISTED: HeaderName = HeaderName::from_static("x-steadfast-listed");
/// The longest answer to an order.
const ORDER_ANSWER: usize = 64 * 1024;

impl Forward {
    /// Places an order, and holds its answer until it is resolved.
    pub(super) async fn place(
        &self,
        admitted: Admitted,
        mut request: Request<Full<Bytes>>,
        body: Bytes,
        talk: Arc<Talk<Admitted>>,
    ) -> Response<AnswerBody> {
        let order = Form::parse(&body).ok().and_then(|form| OrderRequest::from_fields(form.iter()).ok());
        let form = match &order {
            Some(order) => terms(order),
            // The stack refuses it, and nothing leaves.
            None => String::from_utf8_lossy(&body).into_owned(),
        };
        let is_named = admitted.key.is_some();
        if !is_named
            && !admitted.is_new_order
            && let Some(known) = self.left_in_doubt(&form)
        {
            return conflict(Conflict::Equal(known)).into_response();
        }
        let entry = match self.enter(form, admitted.key, admitted.is_new_order).await {
            Ok(entry) => entry,
            Err(reason) => return conflict(reason).into_response(),
        };
        let client = self.client.get();
        if !is_known(&client, &entry.name)
            && let Some(refusal) = self.token.refusal(&client).await
        {
            entry.placed_nothing();
            return refusal.into_response();
        }
        Call::of_mut(request.extensions_mut()).set_intent(entry.name.clone());
        let watched = order.map(|order| self.dashboard.order(&entry.name, &order));
        let call = self.dashboard.call(admitted.endpoint);
        let caller = Waiting {
            forward: self,
            client: client.clone(),
            entry: Some(entry),
            request: Some(request.clone()),
        };
        let answer = client.forward(request).await;
        call.ends(&answer);
        let Some(entry) = caller.answered() else {
            return Own::in_doubt("order has no entry").into_response();
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let in_doubt = error.outcome().is_unknown() || is_doubtful(error.kind());
                WatchedOrder::end(watched, OrderEnd::of_error(&error, in_doubt));
                if in_doubt {
                    entry.in_doubt();
                } else {
                    entry.placed_nothing();
                    self.learn_day(&client);
                }
                return of_error(&error, true, self).into_response();
            }
        };
        let (mut parts, body) = answer.into_parts();
        let unresolved = parts.extensions.get::<Unresolved>().cloned();
        let end = End::of(&parts.extensions);
        let body = Limited::new(body, ORDER_ANSWER).collect().await.ok().map(Collected::to_bytes);
        let placed = body.as_ref().and_then(|body| PlacedOrder::parse(body).ok());
        let delivery = match end {
            End::PlacedNothing => {
                WatchedOrder::end(watched, OrderEnd::of_status(parts.status));
                entry.placed_nothing();
                None
            }
            End::Placed(_) if placed.is_some() && parts.status == StatusCode::OK => {
                let order_id = placed.map(|placed| placed.order_id);
                WatchedOrder::end(watched, OrderEnd::of_answer(parts.extensions.get(), order_id.clone()));
                Some(entry.answered(order_id))
            }
            _ => {
                WatchedOrder::end(watched, OrderEnd::InDoubt(unresolved.as_ref().map(Into::into)));
                let why = unresolved.as_ref().map_or("answer proves nothing", |it| it.reason.as_str());
                let details = format!("order is in doubt: {why}");
                entry.in_doubt();
                return Own::in_doubt(&details).into_response();
            }
        };
        let body = body.unwrap_or_default();
        clean(&mut parts.headers);
        parts.headers.remove(LISTED);
        // An order that was found as rejected is at the service, and is no position.
        if let Some(Resolution::Recovered { status: Some(status), .. }) = parts.extensions.get()
            && let Ok(status) = HeaderValue::from_str(status)
        {
            parts.headers.insert(LISTED, status);
        }
        let then = delivery.map(|delivery| (talk, delivery));
        Response::from_parts(parts, AnswerBody::Own { body: Masked::of(Full::new(body)), then })
    }

    /// Enters an order. While the answer to an equal one is on its way, it waits for the moment in which it is known
    /// whether that was heard: a caller that has read the answer can be back sooner than the sidecar knows of it.
    async fn enter(&self, form: String, key: Option<String>, is_new: bool) -> Result<Entry, Conflict> {
        let due = Instant::now() + DELIVERY_PATIENCE;
        loop {
            let mut answers = self.orders.answers();
            match self.orders.enter(form.clone(), key.clone(), is_new) {
                Err(Conflict::Leaving(_))
                    if matches!(timeout_at(due, answers.changed()).await, Ok(Ok(()))) => {}
                entered => return entered,
            }
        }
    }

    /// Returns the order with this form that an earlier process left in doubt, with its id if it was found: as long as
    /// it is in doubt, or its caller may not have heard of it.
    fn left_in_doubt(&self, form: &str) -> Option<Option<String>> {
        let left = self.client.get().recovered().ok()?;
        let is_new = self.began.lock().elapsed() < UNHEARD;
        left.into_iter().filter(|left| terms(&left.order) == form).find_map(|left| match left.verdict {
            Verdict::Pending | Verdict::Resend | Verdict::Unresolved(_) => Some(None),
            verdict => found(verdict).filter(|_| is_new).map(Some),
        })
    }
}

/// Enters the orders without a name whose answers the journal does not say to have been heard.
pub(super) fn stand_unheard(orders: &Orders, client: &Client) {
    for left in client.tracker().unheard() {
        if let Some(name) = left.name.filter(|name| name.as_str().starts_with(NAMES)) {
            orders.stand(terms(&left.order), name, found(left.verdict));
        }
    }
}

/// True if an order of this name was sent: its repetition is told of its end, and is not sent.
fn is_known(client: &Client, name: &IntentId) -> bool {
    client.tracker().verdict_of(name).is_some_and(|verdict| verdict != Verdict::NotPlaced)
}

/// A caller that waits for its order. If it goes away, a task waits for the order's end, and sends nothing.
struct Waiting<'a> {
    forward: &'a Forward,
    client: Arc<Client>,
    entry: Option<Entry>,
    request: Option<Request<Full<Bytes>>>,
}

impl Waiting<'_> {
    fn answered(mut self) -> Option<Entry> {
        self.request = None;
        self.entry.take()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let (Some(entry), Some(mut request)) = (self.entry.take(), self.request.take()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        // A call with its name joins it. If the order never left, this one cannot leave either: its time has passed.
        Call::of_mut(request.extensions_mut()).set_send_by(Instant::now().into_std());
        let client = self.client.clone();
        let (dashboard, name) = (self.forward.dashboard.clone(), entry.name.clone());
        runtime.spawn(async move {
            match client.forward(request).await {
                Ok(answer) => match End::of(answer.extensions()) {
                    End::Placed(id) => {
                        let end = OrderEnd::Placed { how: "placed_unheard", order_id: Some(id.clone()) };
                        dashboard.order_ended(&name, end);
                        drop(entry.answered(Some(id)));
                    }
                    End::PlacedNothing => {
                        dashboard.order_ended(&name, OrderEnd::of_status(answer.status()));
                        entry.placed_nothing();
                    }
                    End::InDoubt => {
                        let doubt = answer.extensions().get::<Unresolved>().map(Into::into);
                        dashboard.order_ended(&name, OrderEnd::InDoubt(doubt));
                        entry.in_doubt();
                    }
                },
                // The name was free again, so the first call has sent nothing.
                Err(error) if error.kind() == ErrorKind::Refused => {
                    dashboard.order_ended(&name, OrderEnd::of_error(&error, false));
                    entry.placed_nothing();
                }
                Err(error) => {
                    dashboard.order_ended(&name, OrderEnd::of_error(&error, true));
                    entry.in_doubt();
                }
            }
        });
    }
}

/// How an order ended, as far as the extensions of its answer say.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Placed(String),
    PlacedNothing,
    InDoubt,
}

impl End {
    fn of(answer: &Extensions) -> Self {
        match (answer.get::<Unresolved>(), Outcome::of(answer)) {
            (None, Some(Outcome::Accepted { order_id: Some(id) })) => Self::Placed(id.as_ref().to_owned()),
            (None, Some(outcome)) if outcome.is_not_executed() => Self::PlacedNothing,
            _ => Self::InDoubt,
        }
    }
}

#[cfg(test)]
mod tests {
    use steadfast::ext::Sent;

    use super::*;

    #[test]
    fn an_order_is_in_doubt_unless_its_answer_says_how_it_ended() {
        let end = |outcome: Option<Outcome>| {
            let mut answer = Extensions::new();
            if let Some(outcome) = outcome {
                Sent::of_mut(&mut answer).set_outcome(outcome);
            }
            End::of(&answer)
        };
        let accepted = |id: Option<&str>| Some(Outcome::Accepted { order_id: id.map(Into::into) });
        assert_eq!(end(accepted(Some("7"))), End::Placed("7".to_owned()));
        for nothing in [Outcome::NotSent, Outcome::NotExecuted, Outcome::Rejected] {
            assert_eq!(end(Some(nothing)), End::PlacedNothing);
        }
        assert_eq!(end(accepted(None)), End::InDoubt);
        assert_eq!(end(None), End::InDoubt);
    }
}
