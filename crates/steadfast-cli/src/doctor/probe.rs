use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use steadfast::{
    BoxError, Transport,
    auth::{AuthHeaderLayer, SkewEstimator, Stored, TokenSource},
    spec::Endpoint,
};
use tower::{Layer, Service, ServiceExt};

use crate::{
    account::{Account, store_failed},
    exit::Failed,
    login::wall,
};

/// How long one look may take.
const WITHIN: Duration = Duration::from_secs(10);

/// Looks at the service by reading the order list.
pub(super) struct Probe {
    uri: http::Uri,
}

/// What an answer said.
pub(super) struct Probed {
    pub(super) status: u16,
    /// How far the service's clock is ahead.
    pub(super) offset_ms: Option<i64>,
}

impl Probe {
    pub(super) fn new(account: &Account) -> Result<Self, Failed> {
        let path = steadfast::Paths::default().of(Endpoint::Orders).unwrap_or_default().to_owned();
        Ok(Self { uri: account.base.join(&path).map_err(Failed::usage)? })
    }

    pub(super) async fn without_token(&self) -> Result<Probed, BoxError> {
        self.send(Transport::new().leaf::<Full<Bytes>>()?).await
    }

    pub(super) async fn with_token(&self, account: &Account) -> Result<Result<Probed, BoxError>, Failed> {
        let store = account.store()?;
        let login = Stored::new(account.identity());
        let source = TokenSource::builder(account.api_key.clone(), login).store(store).build();
        source.restore().await.map_err(store_failed)?;
        let leaf = Transport::new().leaf::<Full<Bytes>>().map_err(Failed::error)?;
        let layer = AuthHeaderLayer::new(source).only_to(&account.base);
        Ok(self.send(layer.layer(leaf)).await)
    }

    async fn send<S, B>(&self, service: S) -> Result<Probed, BoxError>
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>>,
        S::Error: Into<BoxError>,
    {
        let request = Request::get(self.uri.clone()).body(Full::default())?;
        let sent = wall();
        let answer = tokio::time::timeout(WITHIN, service.oneshot(request));
        let response = answer.await?.map_err(Into::into)?;
        let answered = wall();
        Ok(Probed {
            status: response.status().as_u16(),
            offset_ms: SkewEstimator::of_answer(response.headers(), sent, answered).offset(),
        })
    }
}
