use steadfast_spec::BaseUrl;
use tower_layer::Layer;

use super::AuthHeader;
use crate::{destination::Only, token::TokenSource};

/// Puts the current token on every request.
///
/// It reads the token and never waits for one; [`RefreshLayer`](crate::RefreshLayer) does the waiting. The content of
/// the header follows from the route (its [`Call`](steadfast_call::Call), or the paths shown in §4.1):
///
/// | route needs | header |
/// |---|---|
/// | full | `Bearer <api_key>:<access_token>` |
/// | API key | `Bearer <api_key>` |
/// | none | none |
///
/// Rules, in this order; a refusal means that nothing was sent:
///
/// 1. Credentials travel by https, or by http to this machine, and to no other host than that of
///    [`only_to`](AuthHeaderLayer::only_to) if it is set.
/// 2. A caller's own `Authorization` is replaced, or removed, unless [`CallersHeader::Respect`] is set.
/// 3. Without a usable token the request is refused with [`RefusedHeader::NoToken`](crate::RefusedHeader).
/// 4. The service's time is learned from the `Date` of a success, once a minute.
/// 5. The token's [`TokenGeneration`](steadfast_call::ext::TokenGeneration) goes into the extensions of the request
///    and of its response.
///
/// # Example
///
/// ```
/// use http::{Request, Response, header::AUTHORIZATION};
/// use steadfast_auth::{ApiKey, AuthHeaderLayer, TokenSource};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let source = TokenSource::fixed(ApiKey::new("key")?, "token")?;
///
/// let echo = tower::service_fn(|request: Request<()>| async move {
///     Ok::<_, std::convert::Infallible>(Response::new(request.headers()[AUTHORIZATION].clone()))
/// });
/// let service = ServiceBuilder::new().layer(AuthHeaderLayer::new(source)).service(echo);
///
/// let request = Request::get("https://api.example/v2/api/oms/orders").body(())?;
/// let header = service.oneshot(request).await?.into_body();
/// assert_eq!(header, "Bearer key:token");
/// assert!(header.is_sensitive());
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Inside everything that waits or repeats, so that each send carries the token current at that moment. A header
/// attached further out would be stale after a renewal. A debug build panics at a wrong
/// [order](steadfast_call::ext::Place).
///
/// # Clone
///
/// Clones read the same source.
///
/// # Cost
///
/// About 2,000 instructions and five allocations for a successful call (`cargo xtask bench overhead`): two for the
/// request's header map and three for the response's stamps, which the surrounding layers share.
///
/// # Cancellation
///
/// The layer does not wait. Dropping the future drops the call below it.
#[derive(Clone, Debug)]
#[must_use]
pub struct AuthHeaderLayer {
    source: TokenSource,
    rules: Rules,
}

/// How an `Authorization` header set by the caller is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallersHeader {
    /// It is replaced, or removed if the route needs none.
    #[default]
    Replace,
    /// It is left as it is. [`RefreshLayer`](crate::RefreshLayer) does not know of it and still waits for a token.
    Respect,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) callers: CallersHeader,
    pub(crate) only_to: Option<Only>,
}

impl AuthHeaderLayer {
    /// Attaches the tokens of `source`.
    pub fn new(source: TokenSource) -> Self {
        Self { source, rules: Rules::default() }
    }

    /// Sets how a caller's own `Authorization` is treated; the default is to replace it.
    pub fn callers_header(mut self, callers: CallersHeader) -> Self {
        self.rules.callers = callers;
        self
    }

    /// Refuses requests to any other host and port than that of `base`.
    pub fn only_to(mut self, base: &BaseUrl) -> Self {
        self.rules.only_to = Some(Only::new(base.uri().clone()));
        self
    }
}

impl<S> Layer<S> for AuthHeaderLayer {
    type Service = AuthHeader<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AuthHeader::new(inner, self.source.clone(), self.rules.clone())
    }
}
