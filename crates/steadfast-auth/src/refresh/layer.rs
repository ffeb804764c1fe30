use tower_layer::Layer;

use super::Refresh;
use crate::token::TokenSource;

/// Keeps a usable token under every request, and sends a request again if its token was refused.
///
/// Requests whose route needs no access token pass untouched. For the others:
///
/// 1. **Before the call** it waits until there is a usable token, but not beyond the request's
///    [time to send](steadfast_call::Call::send_by) or [deadline](steadfast_call::Call::deadline). All waiting requests
///    share one login, its success and its failure.
/// 2. **After a 401** (not executed, whatever the request was) it reads from the response's extensions the generation
///    *g* that the request was sent with, and compares it with the current one, *c*:
///    * *c* is newer: send again with *c*;
///    * *c* is *g* and has expired: join the one login, then send again;
///    * *c* is *g*, young, and has worked: *suspect*. One login in 15 minutes, then send again;
///    * *c* is *g* and has never worked: send again once after 2 s, because it may not be known everywhere yet. If it
///      is refused again, a breaker opens: no login, requests fail at once with
///      [`Rejected`](crate::AuthErrorKind::Rejected) and ranked causes, and one request in 30 s tests whether anything
///      has changed.
/// 3. A request whose refusal cannot be checked in a list
///    ([`Route::is_unverifiable`](steadfast_call::Route::is_unverifiable)) is not sent again. Its 401 is returned, and
///    the token is treated as in 2, for other requests.
/// 4. A second 401 of the same request starts no login. If its token is new, the service may not know it everywhere
///    yet: the request is sent again two seconds after that token was first refused, within its deadline, and at most
///    four times in all. This also holds for a token that another process has stored within 30 seconds. Any other 401
///    is returned, with [`Unrenewed`](crate::Unrenewed) and [`DoNotRetry`](steadfast_call::ext::DoNotRetry) in its
///    extensions.
/// 5. A 403 never causes a login.
///
/// # Example
///
/// ```
/// use http::{Request, Response};
/// use steadfast_auth::{ApiKey, AuthHeaderLayer, RefreshLayer, TokenSource};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let source = TokenSource::fixed(ApiKey::new("key")?, "token")?;
/// let service = ServiceBuilder::new()
///     .layer(RefreshLayer::new(source.clone())) // waits for a token, and may send again
///     .layer(AuthHeaderLayer::new(source)) // reads the token of the moment, once for each send
///     .service(tower::service_fn(|_: Request<String>| async {
///         Ok::<_, std::convert::Infallible>(Response::new("orders"))
///     }));
///
/// let request = Request::get("https://api.example/v2/api/oms/orders").body(String::new())?;
/// assert_eq!(service.oneshot(request).await?.into_body(), "orders");
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Outside the rate limiter, because a resend takes its own permits. Outside
/// [`AuthHeaderLayer`](crate::AuthHeaderLayer) of the same source, so that a resend carries the new token. Inside
/// retry. The login's own requests never pass through it. A debug build panics at a wrong
/// [order](steadfast_call::ext::Place).
///
/// # Clone
///
/// Clones share the source. The layer is always ready: its wait depends on the request, and the service below is polled
/// ready after the wait.
///
/// # Cost
///
/// About 960 instructions and no allocation for a successful call (`cargo xtask bench overhead`).
///
/// # Cancellation
///
/// If dropped while it waits, the request leaves nothing behind, and the login goes on for others. If dropped later,
/// the call below is dropped.
#[derive(Clone, Debug)]
#[must_use]
pub struct RefreshLayer {
    source: TokenSource,
}

impl RefreshLayer {
    /// Keeps the tokens of `source` usable.
    pub fn new(source: TokenSource) -> Self {
        Self { source }
    }
}

impl<S> Layer<S> for RefreshLayer {
    type Service = Refresh<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Refresh::new(inner, self.source.clone())
    }
}
