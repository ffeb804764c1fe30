use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use steadfast::{
    BaseUrl, BoxError, Transport,
    auth::{AuthHeaderLayer, SkewEstimator, TokenSource},
    call::Call,
    limit::{self, RateLimitLayer},
    spec::Endpoint,
};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

use crate::{
    account::{Account, store_failed},
    clock::wall,
    exit::Failed,
    limits::{Limits, counted_as},
    peer::is_sidecar,
};

/// How long one probe may take.
const WITHIN: Duration = Duration::from_secs(10);

/// Probes the service by reading the order list.
pub(crate) struct Probe {
    base: BaseUrl,
    uri: http::Uri,
    limits: Limits,
    counted_as: limit::Account,
}

/// The result of a probe.
pub(crate) struct Probed {
    pub(crate) status: u16,
    /// How far the service's clock is ahead.
    pub(crate) offset_ms: Option<i64>,
    /// True if the answer is a sidecar's own, and not of a service behind it.
    pub(crate) is_of_sidecar: bool,
}

impl Probe {
    pub(crate) fn new(account: &Account) -> Result<Self, Failed> {
        let path = steadfast::Paths::default().of(Endpoint::Orders).unwrap_or_default().to_owned();
        let uri = account.base.join(&path).map_err(Failed::usage)?;
        let (limits, counted_as) = (Limits::of(account), counted_as(account));
        Ok(Self { base: account.base.clone(), uri, limits, counted_as })
    }

    pub(crate) async fn without_token(&self) -> Result<Probed, BoxError> {
        self.send(Transport::new().to::<Full<Bytes>>(&self.base)?).await
    }

    /// Sends the token of `source`, and stores what the service says of it. A 403 shows that the token is known (§7).
    pub(crate) async fn with_token(&self, source: &TokenSource) -> Result<Result<Probed, BoxError>, Failed> {
        let transport = Transport::new().to::<Full<Bytes>>(&self.base).map_err(Failed::error)?;
        let layer = AuthHeaderLayer::new(source.clone()).only_to(&self.base);
        let counted = layer.layer(transport);
        // Held for this request alone: a login that follows may take minutes.
        let probed = match self.limits.begin() {
            Some(limiter) => self.send(RateLimitLayer::new(limiter).layer(counted)).await,
            None => self.send(counted).await,
        };
        let noted = match probed.as_ref().map(|probed| probed.status) {
            Ok(200 | 403) => source.note_accepted().await,
            Ok(401) => source.note_refused().await,
            _ => Ok(()),
        };
        noted.map_err(store_failed)?;
        Ok(probed)
    }

    async fn send<S, B>(&self, service: S) -> Result<Probed, BoxError>
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>>,
        S::Error: Into<BoxError>,
    {
        let mut request = Request::get(self.uri.clone()).body(Full::default())?;
        Call::of_mut(request.extensions_mut())
            .set_account(self.counted_as.clone())
            .set_deadline((Instant::now() + WITHIN).into_std());
        let sent = wall();
        let answer = tokio::time::timeout(WITHIN, service.oneshot(request));
        let response = answer.await?.map_err(Into::into)?;
        let answered = wall();
        Ok(Probed {
            status: response.status().as_u16(),
            offset_ms: SkewEstimator::of_answer(response.headers(), sent, answered).offset(),
            is_of_sidecar: is_sidecar(response.headers()),
        })
    }
}
