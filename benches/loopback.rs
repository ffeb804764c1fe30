//! The clients for `instructions` and `allocations` when the subject is the loopback: one read over real TCP and
//! back, by ours and by the alternatives.
//!
//! Only the client is counted. The server is a thread that allocates nothing, and callgrind counts only the client's
//! thread. A peer's request has its `Authorization` from the start; ours gets it on the way. Each client has a server of
//! its own, which must see one connection: a read that connects measures the kernel.

use std::{
    future::{Ready, ready},
    io,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::AUTHORIZATION};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use steadfast::{
    BaseUrl, BoxError, HyperTransport, Stack, Transport,
    auth::{ApiKey, Attempt, Grant, Login, LoginFailure, LoginMode, TokenSource},
};
use steadfast_verify::peers::rate_limits;
use tower::{
    Service, ServiceBuilder, ServiceExt as _,
    retry::{Policy, RetryLayer},
    service_fn,
    timeout::TimeoutLayer,
};

use crate::{
    layers::{FourTimes, MINUTE, MOST, Meter, STEADFAST, unbounded},
    upstream::answer_each,
};

/// The whole stack with a token that a login renews, not a fixed one.
const RENEWING: &str = "steadfast, renewing token";

const CASE: &str = "a read over TCP";

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\
    date: Sun, 01 Jun 2025 10:00:00 GMT\r\n\r\n{\"s\":\"ok\",\"d\":[]   }";

/// Passes every client to `meter`.
pub(crate) fn each(meter: &mut impl Meter) -> Result<(), BoxError> {
    let tokens = || Ok::<_, BoxError>(TokenSource::fixed(ApiKey::new("key")?, "token")?);
    over_tcp(meter, STEADFAST, None, |base| {
        let stack = Stack::new(base.clone(), tokens()?).limiter(unbounded()?);
        Ok(whole(stack.service(Transport::new().to(base)?)))
    })?;
    over_tcp(meter, RENEWING, None, |base| {
        let renewing = TokenSource::builder(ApiKey::new("key")?, Granting).build();
        let stack = Stack::new(base.clone(), renewing).limiter(unbounded()?);
        Ok(whole(stack.service(Transport::new().to(base)?)))
    })?;
    over_tcp(meter, "steadfast over hyper-util", None, |base| {
        let stack = Stack::new(base.clone(), tokens()?).limiter(unbounded()?);
        Ok(whole(stack.service(HyperTransport::new(hyper()))))
    })?;

    let header = Some(HeaderValue::from_static("Bearer key:token"));
    over_tcp(meter, "steadfast's transport alone", header.clone(), |base| {
        Ok(whole(Transport::new().to(base)?))
    })?;
    over_tcp(meter, "hyper-util", header.clone(), |_| Ok(whole(hyper())))?;
    over_tcp(meter, "hyper-util + ServiceBuilder", header.clone(), |_| {
        let three = rate_limits(MOST, MOST)
            .layer(RetryLayer::new(FourTimes(4)))
            .layer(TimeoutLayer::new(MINUTE))
            .service(hyper());
        Ok(whole(three))
    })?;
    over_tcp(meter, "reqwest + tower's retry", header, |_| {
        let client = reqwest::Client::builder().timeout(MINUTE).build()?;
        let client = ServiceBuilder::new().layer(RetryLayer::new(FourTimes(4))).service(client);
        Ok(service_fn(move |request: Request<Full<Bytes>>| {
            let client = client.clone();
            async move {
                let request = reqwest::Request::try_from(request.map(|_| reqwest::Body::default()))?;
                client.oneshot(request).await?.bytes().await?;
                Ok::<_, BoxError>(())
            }
        }))
    })
}

/// Measures reads by one client of a server of its own.
fn over_tcp<S>(
    meter: &mut impl Meter,
    who: &'static str,
    authorization: Option<HeaderValue>,
    client: impl FnOnce(&BaseUrl) -> Result<S, BoxError>,
) -> Result<(), BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = (), Error = BoxError>,
{
    let server = Server::start()?;
    let base: BaseUrl = format!("http://{}/v2", server.address).parse()?;
    let read = |_| {
        let mut request =
            Request::get(format!("http://{}/v2/api/oms/orders", server.address)).body(Full::default())?;
        if let Some(authorization) = &authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    };
    meter.measure(CASE, who, &read, client(&base)?)?;
    // None if another process measures.
    let connections = server.connections.load(Ordering::SeqCst);
    if connections > 1 {
        return Err(format!("{who} made {connections} connections for its reads").into());
    }
    Ok(())
}

/// A login that grants a token at once.
struct Granting;

impl Login for Granting {
    fn mode(&self) -> LoginMode {
        LoginMode::Unattended
    }

    async fn attempt(&self, attempt: &Attempt) -> Result<Grant, LoginFailure> {
        Ok(Grant::new("token", attempt.now()))
    }
}

fn hyper<B: http_body::Body<Data: Send> + Send>() -> Client<HttpConnector, B> {
    Client::builder(TokioExecutor::new()).build_http()
}

/// A service that reads the answers of another to their end.
fn whole<S, B>(service: S) -> impl Service<Request<Full<Bytes>>, Response = (), Error = BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error: Into<BoxError>>,
    B: http_body::Body<Error: Into<BoxError>>,
{
    let read = async |answer: Response<B>| {
        answer.into_body().collect().await.map(drop).map_err(Into::<BoxError>::into)
    };
    ServiceBuilder::new().and_then(read).service(service)
}

impl Policy<reqwest::Request, reqwest::Response, reqwest::Error> for FourTimes {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut reqwest::Request,
        result: &mut Result<reqwest::Response, reqwest::Error>,
    ) -> Option<Ready<()>> {
        let again = result.as_ref().is_ok_and(|answer| answer.status().is_server_error());
        self.0 = self.0.checked_sub(1).filter(|_| again)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &reqwest::Request) -> Option<reqwest::Request> {
        request.try_clone()
    }
}

/// A gateway on this machine that gives every request the same answer.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = connections.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                accepted.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || answer_each(stream, ANSWER));
            }
        });
        Ok(Self { address, connections })
    }
}
