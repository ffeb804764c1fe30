use std::{future::poll_fn, mem, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use steadfast_call::{
    BoxError, Failure, Fate, Outcome, Resend, Spare,
    ext::{self, Stamp},
    find_cause,
};
use steadfast_spec::{Form, OrderRequest};
use tokio::time::Instant;
use tower_service::Service;

use crate::{
    error::{InDoubt, NotRepeated, OrderRefused},
    guard::send_guard::outcome_of_order,
    numbers::IntentNo,
    place::body::ResponseBody,
    protocol::resolution::{RESOLUTION_HEADER, Reason, Resolution, Unresolved, Verdict},
    tracker::{
        account::{Account, Opening},
        halt::HaltEpoch,
        poller::{Template, starter},
        ticket::{AnySession, Ticket},
    },
};

/// No order's form is longer.
const BODY_CAP: usize = 64 * 1024;

/// One call with an order, from its form to its answer.
pub(crate) struct PlaceCall<S, B> {
    /// Also tells the call's future which intent to abandon when it is dropped.
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) service: S,
    pub(crate) request: Request<B>,
    pub(crate) list_route: Option<ext::Route>,
}

type Answer<RB> = Result<Response<RB>, BoxError>;
pub(crate) type Answered<RB> = Result<Response<ResponseBody<RB>>, BoxError>;

impl<S, B, RB> PlaceCall<S, B>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + From<Bytes> + Default + Send + 'static,
    B::Error: Into<BoxError>,
    RB: Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
{
    /// Runs the call, which was made in `run`.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async function holds its arguments twice: all services below"
    )]
    pub(crate) fn run(mut self, run: HaltEpoch) -> impl Future<Output = Answered<RB>> + Send {
        async move {
            let account = &self.ticket.account;
            account.authorize(self.request.headers().get(header::AUTHORIZATION));
            let started = account.start_with(|| {
                let way = Template::beside(&self.request, self.list_route.take())?;
                Some(starter::<S, B, RB>(&self.service, way))
            });
            if !started {
                return Err(Failure::refused(OrderRefused::UnknownPath).into());
            }
            let body = mem::take(self.request.body_mut());
            let form = read_form(body).await.map_err(Failure::refused)?;
            let order = Arc::new(read_order(&form).map_err(Failure::refused)?);
            // An empty name would join the orders of all callers that forgot to set one.
            let named = |name: &&ext::IntentId| !name.as_str().is_empty();
            let name = self.request.extensions().get::<ext::IntentId>().filter(named).cloned();
            if name.is_none() {
                account.orphaned_twin(&order).await.map_err(Failure::refused)?;
            }
            if let Some(name) = &name
                && !account.settle_day(name, deadline(self.request.extensions())).await
            {
                // It may be the order that an earlier call asked for by this name.
                let candidates = account.placed_before(name).into_iter().collect();
                return attached(Verdict::Unresolved(Unresolved::new(Reason::EpochChanged, candidates)));
            }
            loop {
                match account.open(&order, name.clone()).map_err(Failure::refused)? {
                    Opening::New(intent) => {
                        self.ticket.set_intent(intent);
                        let _forget = Forget { account, intent };
                        let (ticket, service) = (&self.ticket, &mut self.service);
                        return PlaceLoop { ticket, service, form, intent, run }.place(self.request).await;
                    }
                    Opening::Attached(number, refused) => {
                        let deadline = deadline(self.request.extensions());
                        match within(deadline, account.ended(number)).await.unwrap_or(Verdict::Pending) {
                            // All calls with one name get one outcome.
                            Verdict::NotPlaced if refused.is_certain() => {
                                return Err(Failure::refused(OrderRefused::IntentRefused).into());
                            }
                            // It placed nothing: this call is the first one now.
                            Verdict::NotPlaced => {}
                            verdict => return joined(account, verdict).await,
                        }
                    }
                }
            }
        }
    }
}

/// Sends one intent, as often as it may be sent.
struct PlaceLoop<'a, S> {
    ticket: &'a Arc<Ticket>,
    service: &'a mut S,
    form: Bytes,
    intent: IntentNo,
    run: HaltEpoch,
}

impl<S> PlaceLoop<'_, S> {
    async fn place<B, RB>(&mut self, request: Request<B>) -> Answered<RB>
    where
        S: Service<Request<B>, Response = Response<RB>>,
        S::Error: Into<BoxError>,
        B: From<Bytes> + Default,
    {
        let deadline = deadline(request.extensions());
        let ticket = self.ticket;
        let account = &ticket.account;
        if within(deadline, account.turn(self.intent)).await.is_none() {
            // An earlier call may have sent it under the same name.
            let verdict = account.conclude(self.intent, false);
            return self.unsent(Failure::refused(OrderRefused::KeyBusy).into(), verdict);
        }
        account.baseline().await;
        self.checked(deadline).await;
        if let Some(verdict) = account.displaced(self.intent) {
            return joined(account, verdict).await;
        }
        let spare = Spare::of(&request);
        let mut answer = self.send(request, SendKind::First).await;
        // The token was renewed on the way: read the new session's list before the order leaves in it.
        if let Err(error) = &answer
            && matches!(find_cause(&**error), Some(OrderRefused::NewSession))
        {
            account.baseline().await;
            self.checked(deadline).await;
            answer = self.send(spare.clone().with(B::default()), SendKind::InNewSession).await;
        }
        // A list has shown it while it waited to leave.
        if answer.is_err()
            && let Some(verdict) = account.displaced(self.intent)
        {
            return joined(account, verdict).await;
        }
        // The usual end. Anything else needs the verdict.
        if is_success(&answer) && account.conclude_acknowledged(self.intent) {
            return answer.map(|response| response.map(ResponseBody::service));
        }
        // Its repeat did not leave. The caller is told of the refusal before it once a list agrees.
        if answer.is_err() {
            self.checked(deadline).await;
        }
        let (mut resent, mut doubted) = (false, false);
        let mut verdict = account.conclude(self.intent, is_refused(&answer));
        loop {
            verdict = match verdict {
                Verdict::Pending => {
                    doubted = true;
                    self.wait(deadline).await
                }
                // An unused grant lapses.
                Verdict::Resend if !account.halt.permits(self.run) => account.conclude(self.intent, false),
                Verdict::Resend => {
                    let next = self.send(spare.clone().with(B::default()), SendKind::Again).await;
                    let verdict = account.conclude(self.intent, false);
                    // A resend that certainly placed nothing does not settle the send before it: unless the resend
                    // was acknowledged, keep the first answer.
                    if matches!(verdict, Verdict::Acknowledged { .. }) {
                        answer = next;
                        resent = true;
                    }
                    verdict
                }
                Verdict::Recovered { order_id, status } => {
                    account.written().await;
                    return Ok(synthesized(
                        &order_id.clone(),
                        "recovered",
                        Resolution::Recovered { order_id, status },
                    ));
                }
                Verdict::Unresolved(unresolved) => return in_doubt(answer, unresolved),
                // An order that was in doubt and is forgotten may still exist.
                Verdict::NotPlaced if doubted && !account.is_refused(self.intent) => {
                    Verdict::Unresolved(Unresolved::new(Reason::EpochChanged, Vec::new()))
                }
                // A layer below withheld the answer.
                Verdict::Acknowledged { order_id } if !is_success(&answer) => {
                    let resolution = Resolution::Recovered { order_id: order_id.clone(), status: None };
                    return Ok(synthesized(&order_id, "recovered", resolution));
                }
                Verdict::Acknowledged { .. } | Verdict::NotPlaced => {
                    let answer = match answer {
                        Err(error) => return self.unsent(error, verdict),
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

    /// Returns the error of a call whose last send did not leave. An earlier send that the service refused did leave.
    fn unsent<RB>(&self, error: BoxError, verdict: Verdict) -> Answered<RB> {
        Err(match (self.ticket.account.refusal(self.intent), verdict) {
            (_, Verdict::Pending | Verdict::Resend) => {
                self.ticket.account.abandon(self.intent);
                return in_doubt(Err(error), Unresolved::new(Reason::Deadline, Vec::new()));
            }
            (_, Verdict::Unresolved(unresolved)) => return in_doubt(Err(error), unresolved),
            (Some((_, false)), _) => {
                return in_doubt(Err(error), Unresolved::new(Reason::Deadline, Vec::new()));
            }
            (Some((status, true)), _) => Failure::unexecuted(NotRepeated::new(status, error)).into(),
            (None, _) => error,
        })
    }

    /// Waits, without a permit, for the list that confirms a refusal. `SendGuard` holds back a send that comes too
    /// early.
    async fn checked(&mut self, deadline: Option<Instant>) {
        if let Some(checked) = self.ticket.account.check(self.intent) {
            within(deadline, checked).await;
        }
    }

    /// Waits for a verdict or the caller's deadline. After the deadline the search goes on without the caller.
    async fn wait(&mut self, deadline: Option<Instant>) -> Verdict {
        if let Some(verdict) = within(deadline, self.ticket.account.decided(self.intent)).await {
            return verdict;
        }
        self.ticket.account.abandon(self.intent);
        Verdict::Unresolved(Unresolved::new(Reason::Deadline, self.ticket.account.candidates(self.intent)))
    }

    fn send<B, RB>(
        &mut self,
        mut request: Request<B>,
        send: SendKind,
    ) -> impl Future<Output = Answer<RB>> + use<'_, S, B, RB>
    where
        S: Service<Request<B>, Response = Response<RB>>,
        S::Error: Into<BoxError>,
        B: From<Bytes>,
    {
        *request.body_mut() = B::from(self.form.clone());
        let extensions = request.extensions_mut();
        ext::Ticket::new(self.ticket.clone()).put(extensions);
        if send != SendKind::First {
            extensions.insert(AnySession);
        }
        if send == SendKind::Again {
            extensions.insert(ext::HeadOfLane);
        }
        let service = &mut *self.service;
        async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            service.call(request).await.map_err(Into::into)
        }
    }
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

/// Forgets an intent that is dropped before anything of it was sent.
struct Forget<'a> {
    account: &'a Arc<Account>,
    intent: IntentNo,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        // A concluded intent does not change.
        self.account.forget(self.intent);
    }
}

async fn read_form<B>(body: B) -> Result<Bytes, OrderRefused>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = std::pin::pin!(Limited::new(body, BODY_CAP));
    let first = match body.as_mut().frame().await {
        Some(frame) => frame.map_err(|_| OrderRefused::UnreadableBody)?.into_data().unwrap_or_default(),
        None => return Ok(Bytes::new()),
    };
    // Most forms come in one piece, which is passed on as it is.
    if body.is_end_stream() {
        return Ok(first);
    }
    let rest = body.collect().await.map_err(|_| OrderRefused::UnreadableBody)?.to_bytes();
    Ok(if rest.is_empty() { first } else { [first, rest].concat().into() })
}

/// Reads an order from its form. An order that could not be recognised in the list is refused.
fn read_order(form: &[u8]) -> Result<OrderRequest, OrderRefused> {
    if let Some(fields) = plain_fields(form) {
        return OrderRequest::from_fields(fields).map_err(OrderRefused::InvalidOrder);
    }
    let form = Form::parse(form).map_err(OrderRefused::MalformedForm)?;
    OrderRequest::from_fields(form.iter()).map_err(OrderRefused::InvalidOrder)
}

/// Returns the fields of a form without escapes, without copying; `None` if the full parser must decide.
fn plain_fields(form: &[u8]) -> Option<impl Iterator<Item = (&str, &str)>> {
    let plain = form.iter().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'%' | b'+'));
    let text = std::str::from_utf8(form).ok().filter(|_| plain)?;
    let named = |pair: &str| pair.split_once('=').is_some_and(|(name, _)| !name.is_empty());
    let whole = text.split('&').all(named);
    whole.then(|| text.split('&').filter_map(|pair| pair.split_once('=')))
}

fn deadline(extensions: &http::Extensions) -> Option<Instant> {
    ext::Deadline::of(extensions).map(|deadline| Instant::from_std(deadline.0))
}

/// Returns the future's result; `None` if the deadline comes first.
async fn within<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

fn is_success<RB>(answer: &Answer<RB>) -> bool {
    answer.as_ref().is_ok_and(|response| response.status().is_success())
}

fn is_refused<RB>(answer: &Answer<RB>) -> bool {
    answer.as_ref().is_ok_and(|response| outcome_of_order(response) == Outcome::Rejected)
}

/// Answers a call that joined another one, once the found order is durable.
async fn joined<RB>(account: &Account, verdict: Verdict) -> Answered<RB> {
    if matches!(verdict, Verdict::Recovered { .. }) {
        account.written().await;
    }
    attached(verdict)
}

/// Answers a call that joined another one.
fn attached<RB>(verdict: Verdict) -> Answered<RB> {
    let unresolved = match verdict {
        Verdict::Acknowledged { order_id } | Verdict::Recovered { order_id, .. } => {
            return Ok(synthesized(&order_id.clone(), "attached", Resolution::Attached { order_id }));
        }
        Verdict::Unresolved(unresolved) => unresolved,
        Verdict::NotPlaced | Verdict::Pending | Verdict::Resend => {
            Unresolved::new(Reason::Deadline, Vec::new())
        }
    };
    Err(InDoubt::new(unresolved, OrderRefused::IntentInDoubt.into()).into())
}

/// Returns the original answer with its body, and adds what is known of the order.
fn in_doubt<RB>(answer: Answer<RB>, unresolved: Unresolved) -> Answered<RB> {
    match answer {
        Ok(mut response) => {
            let extensions = response.extensions_mut();
            // A definite outcome, such as a lower layer's for its own repeat, proves nothing about earlier sends.
            if !Outcome::of(extensions).is_some_and(Outcome::is_unknown) {
                Outcome::Unknown { resend: Resend::Never }.put(extensions);
            }
            extensions.insert(unresolved);
            extensions.insert(ext::DoNotRetry);
            Ok(response.map(ResponseBody::service))
        }
        // A refused repeat proves nothing about earlier sends.
        Err(error) if !Failure::outcome_of(&*error).is_unknown() => {
            Err(InDoubt::new(unresolved, Failure::new(Fate::Lost { ended: None }, error).into()).into())
        }
        Err(error) => Err(InDoubt::new(unresolved, error).into()),
    }
}

/// Makes the answer that the service would have given.
fn synthesized<RB>(order_id: &str, how: &'static str, resolution: Resolution) -> Response<ResponseBody<RB>> {
    let body = format!(r#"{{"s":"ok","d":{{"orderId":{},"msg":"{how}"}}}}"#, json_string(order_id));
    let mut response = Response::new(ResponseBody::made(Bytes::from(body)));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static(RESOLUTION_HEADER), HeaderValue::from_static(how));
    let outcome = Outcome::Accepted { order_id: Some(order_id.into()) };
    outcome.put(response.extensions_mut());
    response.extensions_mut().insert(resolution);
    response
}

/// Returns an identifier as a JSON string; it came from JSON and may hold any character.
fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c.is_control() => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use steadfast_spec::PlacedOrder;

    use super::*;

    #[tokio::test]
    async fn a_made_answer_reads_like_the_services_own() {
        for order_id in ["240101000000001", "a\"b\\c\n\u{7f}"] {
            let resolution = Resolution::Attached { order_id: order_id.to_owned() };
            let response = synthesized::<http_body_util::Empty<Bytes>>(order_id, "recovered", resolution);
            assert!(!response.body().is_end_stream(), "there is a body to read");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(PlacedOrder::parse(&body).unwrap().order_id, order_id);
        }
    }

    /// A body in given frames.
    struct Pieces(std::collections::VecDeque<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
            std::task::Poll::Ready(self.0.pop_front().map(|piece| Ok(http_body::Frame::data(piece))))
        }
    }

    #[tokio::test]
    async fn a_form_in_pieces_is_one_form() {
        for cut in [0, 1, 4, 9] {
            let (first, second) = b"qty=1&a=b".split_at(cut);
            let pieces = Pieces([first, second].map(Bytes::from_static).into());
            assert_eq!(read_form(pieces).await.unwrap(), "qty=1&a=b");
        }
        let long = http_body_util::Full::from(vec![b'x'; BODY_CAP + 1]);
        assert!(read_form(long).await.is_err());
        assert_eq!(read_form(http_body_util::Empty::new()).await.unwrap(), "");
    }

    #[test]
    fn the_short_way_reads_what_the_careful_way_reads() {
        let order = "symId=S&qty=1&side=buy&type=limit&limitPrice=5&product=delivery&validity=day";
        for form in [
            order.to_owned(),
            order.replace("symId=S", "symId=S%20T"),
            order.replace("symId=S", "symId=S+T"),
            order.replace("symId=S", "symId=S=T"),
            format!("{order}&tag=x"),
            format!("{order}&qty=2"),
            format!("{order}&&"),
            format!("{order}&=x"),
            format!("{order}&lonely"),
            format!("{order}&tag="),
            String::new(),
        ] {
            let careful = Form::parse(form.as_bytes())
                .map_err(|error| error.to_string())
                .and_then(|form| OrderRequest::from_fields(form.iter()).map_err(|error| error.to_string()));
            let read = read_order(form.as_bytes()).map_err(|error| match error {
                OrderRefused::MalformedForm(error) => error.to_string(),
                OrderRefused::InvalidOrder(error) => error.to_string(),
                other => other.to_string(),
            });
            assert_eq!(read, careful, "{form}");
        }
    }

    #[test]
    fn an_order_in_doubt_never_carries_a_definite_outcome() {
        let never = Outcome::Unknown { resend: Resend::Never };
        let open = Outcome::Unknown { resend: Resend::AfterAbsence };
        for (found, told) in [
            (Some(Outcome::Rejected), never.clone()),
            (Some(Outcome::NotExecuted), never.clone()),
            (None, never),
            (Some(open.clone()), open),
        ] {
            let mut response = Response::new(http_body_util::Empty::<Bytes>::new());
            if let Some(outcome) = found {
                response.extensions_mut().insert(outcome);
            }
            let answer = in_doubt(Ok(response), Unresolved::new(Reason::Budget, Vec::new())).unwrap();
            assert_eq!(Outcome::of(answer.extensions()), Some(&told));
        }
    }
}
