//! Steadfast's own transports, for tests that hold over each of them.

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use steadfast::{BoxError, Transport};
use tower::{Service, ServiceExt, util::BoxCloneSyncService};

pub(crate) type Sender =
    BoxCloneSyncService<Request<Full<Bytes>>, Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError>;

/// Returns the transport to the host of `base`, and the one to any host.
pub(crate) fn both(transport: &Transport, base: &str) -> [(&'static str, Sender); 2] {
    let base = base.parse().unwrap();
    [
        ("to one host", boxed(transport.to(&base).unwrap())),
        ("over hyper-util", boxed(transport.service().unwrap())),
    ]
}

fn boxed<S, B>(transport: S) -> Sender
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let answer = |response: Response<B>| response.map(|body| body.map_err(Into::into).boxed_unsync());
    BoxCloneSyncService::new(transport.map_response(answer))
}
