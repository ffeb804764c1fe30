//! A day of many orders of one account: how long its list holds the account's lock, and how much memory its orders take.

use std::{alloc::System, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use stats_alloc::{Region, StatsAlloc};
use steadfast::{
    BoxError, Outcome, Stack,
    auth::{ApiKey, TokenSource},
    call::Resend,
    dedup::{
        Answer, AttemptNo, Event, IntentNo, OrderProtocol, Purpose, ReadNo, Session, Settings, TradingDay,
    },
    spec::{FieldNames, OrderRecord, OrderRequest, parse_order_list},
};
use tokio::{runtime::Builder, time::Instant};
use tower::{ServiceExt, service_fn};

use crate::{BASE, unbounded};

/// The orders in doubt, all of the list's instrument and side.
const IN_DOUBT: u64 = 50;
/// The rows that the poller passes on at once. It gives other tasks a turn in between, and holds no lock.
const SLICE: usize = 256;
/// The orders whose memory is counted.
const ORDERS: u32 = 10_000;
const INSTRUMENTS: u32 = 100;

/// Returns the microseconds of the longest step that takes in a list of so many rows, with the plan of the next read
/// that follows each step under the same lock. Each step counts with the least that it took in so many turns.
pub(crate) fn longest_step(rows: u32, turns: usize) -> Result<f64, BoxError> {
    let list = list(rows)?;
    let mut least = steps(&list)?;
    for _ in 1..turns {
        for (least, took) in least.iter_mut().zip(steps(&list)?) {
            *least = (*least).min(took);
        }
    }
    let longest = least.into_iter().max().unwrap_or_default();
    Ok(longest.as_nanos() as f64 / 1e3)
}

fn steps(list: &[OrderRecord]) -> Result<Vec<Duration>, BoxError> {
    let mut protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay(0));
    let mut at = Duration::ZERO;
    let mut steps = Vec::new();
    for number in 0..IN_DOUBT {
        lose(&mut protocol, number, at)?;
    }
    // The second list shows nothing new, as most do.
    for read in [1, 2].map(ReadNo) {
        at += Duration::from_secs(5);
        protocol.step(at, Event::ReadOpened { read, purpose: Purpose::Verification });
        protocol.step(at, Event::ReadStarted { read, session: Session::default() });
        let mut slices: Vec<Vec<OrderRecord>> = list.chunks(SLICE).map(<[_]>::to_vec).collect();
        let last = slices.pop().unwrap_or_default();
        let parts = slices.into_iter().map(|records| Event::ReadPart { read, records });
        for event in parts.chain([Event::ReadEnded { read, list: Ok(last) }]) {
            let start = Instant::now();
            protocol.step(at, event);
            std::hint::black_box(protocol.next_wake());
            steps.push(start.elapsed());
        }
    }
    Ok(steps)
}

/// Sends an order and loses its answer.
fn lose(protocol: &mut OrderProtocol, number: u64, at: Duration) -> Result<(), BoxError> {
    let qty = (number + 1).to_string();
    let fields = [
        ("symId", "EQT_INFY_EQ_NSE"),
        ("qty", &*qty),
        ("side", "buy"),
        ("type", "market"),
        ("product", "intraday"),
        ("validity", "day"),
    ];
    let (intent, order) = (IntentNo(number), Arc::new(OrderRequest::from_fields(fields)?));
    let attempt = AttemptNo { intent, index: 0 };
    protocol.step(at, Event::Opened { intent, order, name: None });
    protocol.step(at, Event::Begun { attempt, session: Session::default() });
    protocol.step(at, Event::Sent(attempt));
    let outcome = Outcome::Unknown { resend: Resend::AfterAbsence };
    protocol.step(at, Event::Closed { attempt, outcome, answer: Answer::Status(504) });
    Ok(())
}

/// Returns a list of strangers' orders, each of another quantity than ours.
fn list(rows: u32) -> Result<Vec<OrderRecord>, BoxError> {
    let row = |number: u32| {
        let qty = 1_000 + number;
        format!(
            r#"{{"orderId":"{:012}","symId":"EQT_INFY_EQ_NSE","qty":{qty},"side":"buy","type":"market",
                "product":"intraday","validity":"day","status":"open"}}"#,
            260_000_000 + u64::from(number)
        )
    };
    let rows: Vec<_> = (0..rows).map(row).collect();
    let body = format!(r#"{{"s":"ok","d":[{}]}}"#, rows.join(","));
    Ok(parse_order_list(body.as_bytes(), &FieldNames::default())?)
}

/// Returns the live heap that ten thousand acknowledged orders add, in MB.
pub(crate) fn memory(heap: &StatsAlloc<System>) -> Result<f64, BoxError> {
    // In virtual time: no wait is measured here.
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let tokens = TokenSource::fixed(ApiKey::new("key")?, "token")?;
        let service = Stack::new(BASE.parse()?, tokens).limiter(unbounded()?).service(service_fn(gateway));
        // The first order allocates what is made only once, so it is not counted.
        place(&service, ORDERS + 1).await?;
        let region = Region::new(heap);
        for number in 1..=ORDERS {
            place(&service, number).await?;
        }
        let change = region.change();
        Ok(change.bytes_allocated.saturating_sub(change.bytes_deallocated) as f64 / 1e6)
    })
}

async fn place<S, B>(service: &S, number: u32) -> Result<(), BoxError>
where
    S: tower::Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError> + Clone,
{
    let form = format!(
        "symId=EQT_{}_EQ_NSE&qty={number}&side=buy&type=market&product=intraday&validity=day",
        1_000 + number % INSTRUMENTS
    );
    let request = Request::post(format!("{BASE}/api/oms/place-order")).body(Full::from(form))?;
    service.clone().oneshot(request).await?;
    Ok(())
}

/// Acknowledges orders, and answers no list.
async fn gateway<B: Body<Data = Bytes, Error: Into<BoxError>>>(
    request: Request<B>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    if request.method() == Method::GET {
        return std::future::pending().await;
    }
    let form = request.into_body().collect().await.map_err(Into::into)?.to_bytes();
    let number = std::str::from_utf8(&form)?.split(['=', '&']).nth(3).unwrap_or_default();
    let answer = format!(r#"{{"s":"ok","d":{{"orderId":"{number:0>12}","msg":"placed"}}}}"#);
    Ok(Response::new(Full::from(answer)))
}
