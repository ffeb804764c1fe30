//! The clients for `instructions` and `allocations` when the subject is the loopback: one read over real TCP and
//! back, by ours and by the alternatives.
//!
//! Only the client is counted. The server is a thread that allocates nothing, and callgrind counts only the client's
//! thread. A peer's request has its `Authorization` from the start; ours gets it on the way.

use std::{
    future::{Ready, ready},
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
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
    BaseUrl, BoxError, HyperTransport, Stack,
    auth::{ApiKey, TokenSource},
};
use steadfast_verify::peers::rate_limits;
use tower::{
    Service, ServiceBuilder, ServiceExt as _,
    retry::{Policy, RetryLayer},
    service_fn,
    timeout::TimeoutLayer,
};

use crate::layers::{FourTimes, MINUTE, MOST, Meter, STEADFAST, unbounded};

/// Passes every client to `meter`.
pub(crate) fn each(meter: &mut impl Meter) -> Result<(), BoxError> {
    const CASE: &str = "a read over TCP";
    let server = serve()?;
    let base: BaseUrl = format!("http://{server}/v2").parse()?;
    let tokens = TokenSource::fixed(ApiKey::new("key")?, "token")?;
    let ours = Stack::new(base, tokens).limiter(unbounded()?).service(HyperTransport::new(hyper()));
    let read = |_| Ok(Request::get(format!("http://{server}/v2/api/oms/orders")).body(Full::default())?);
    meter.measure(CASE, STEADFAST, &read, whole(ours))?;

    let read = |number| {
        let mut request: Request<_> = read(number)?;
        request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static("Bearer key:token"));
        Ok(request)
    };
    meter.measure(CASE, "hyper-util", &read, whole(hyper()))?;
    let three = rate_limits(MOST, MOST)
        .layer(RetryLayer::new(FourTimes(4)))
        .layer(TimeoutLayer::new(MINUTE))
        .service(hyper());
    meter.measure(CASE, "hyper-util + ServiceBuilder", &read, whole(three))?;

    let client = reqwest::Client::builder().timeout(MINUTE).build()?;
    let client = ServiceBuilder::new().layer(RetryLayer::new(FourTimes(4))).service(client);
    let client = service_fn(|request: Request<Full<Bytes>>| {
        let client = client.clone();
        async move {
            let request = reqwest::Request::try_from(request.map(|_| reqwest::Body::default()))?;
            client.oneshot(request).await?.bytes().await?;
            Ok::<_, BoxError>(())
        }
    });
    meter.measure(CASE, "reqwest + tower's retry", &read, client)
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

/// Starts a gateway on this machine that gives every request the same answer.
fn serve() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 19\r\n\
        date: Sun, 01 Jun 2025 10:00:00 GMT\r\n\r\n{\"s\":\"ok\",\"d\":[]   }";
    let mut read = [0; 4_096];
    let mut filled = 0;
    loop {
        let more = stream.read(&mut read[filled..])?;
        if more == 0 {
            return Ok(());
        }
        filled += more;
        if read[..filled].ends_with(b"\r\n\r\n") {
            stream.write_all(ANSWER)?;
            filled = 0;
        }
    }
}
