use bytes::Bytes;
use http::{Request, Response};
use steadfast_call::BoxError;
use tower::{Layer, Service};

use super::{BoxedStack, RequestBody, Stack};

/// The stack as one layer of a larger one.
///
/// Put queues, such as a concurrency limit or a buffer, around the transport and not outside of the stack: outside, a
/// cancel would wait behind polls.
///
/// # Example
///
/// ```
/// use steadfast::{Stack, auth::{ApiKey, TokenSource}};
/// use steadfast_sandbox::Sandbox;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), steadfast::BoxError> {
/// let sandbox = Sandbox::builder().build()?;
/// let account = sandbox.credentials();
/// let tokens = TokenSource::fixed(ApiKey::new(account.api_key)?, account.access_token)?;
/// let service = ServiceBuilder::new()
///     .layer(Stack::new(account.base_url.parse()?, tokens))
///     .concurrency_limit(64)
///     .service(sandbox.gateway());
///
/// let list = http::Request::get("http://localhost/v2/api/oms/orders").body(Default::default())?;
/// assert_eq!(service.oneshot(list).await?.status(), 200);
/// # Ok(())
/// # }
/// ```
impl<S, B> Layer<S> for Stack
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send,
{
    type Service = BoxedStack<B>;

    fn layer(&self, inner: S) -> BoxedStack<B> {
        self.boxed(inner)
    }
}
