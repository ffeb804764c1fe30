//! A sandbox with a stack around it, and queries of the ground truth.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use steadfast::{
    BoxError, Operation, OrderRequest, Paths, ResponseBody, Stack, TotpCredentials,
    auth::{ApiKey, TokenSource},
    call::Routes,
};
use steadfast_sandbox::{Sandbox, SandboxBuilder};
use steadfast_verify::noon;
use tower::{ServiceExt, util::BoxCloneSyncService};

type Service = BoxCloneSyncService<Request<Full<Bytes>>, Response<Full<Bytes>>, BoxError>;

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) stack: Stack,
    service: Service,
}

impl World {
    pub(crate) fn new(sandbox: SandboxBuilder) -> Self {
        Self::with(sandbox, |stack| stack)
    }

    pub(crate) fn with(sandbox: SandboxBuilder, settings: impl FnOnce(Stack) -> Stack) -> Self {
        let sandbox = sandbox.build().unwrap();
        let facts = sandbox.credentials();
        let tokens = TokenSource::fixed(ApiKey::new(facts.api_key).unwrap(), facts.access_token).unwrap();
        let stack = Stack::new(facts.base_url.parse().unwrap(), tokens)
            .routes(Routes::new(&Paths::public()))
            .tracker(noon::tracker());
        Self::around(sandbox, settings(stack))
    }

    pub(crate) fn around(sandbox: Sandbox, stack: Stack) -> Self {
        let service = stack.service(sandbox.gateway());
        let service =
            service.and_then(|response: Response<ResponseBody<steadfast_sandbox::Body>>| async move {
                let (parts, body) = response.into_parts();
                // The stamps beside an answer are kept even if its body breaks off.
                let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                Ok(Response::from_parts(parts, Full::from(body)))
            });
        Self { sandbox, stack, service: BoxCloneSyncService::new(service) }
    }

    pub(crate) async fn call(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Full<Bytes>>, BoxError> {
        self.service.clone().oneshot(request).await
    }

    pub(crate) async fn send(
        &self,
        operation: &Operation,
        intent: Option<&str>,
    ) -> Result<Response<Full<Bytes>>, BoxError> {
        let target = operation.target(&Paths::public()).unwrap();
        let mut request = Request::builder()
            .method(operation.method())
            .uri(format!("{}{target}", self.sandbox.credentials().base_url));
        if let Some(intent) = intent {
            request = request.header("x-test-intent", intent);
        }
        self.call(request.body(Full::from(operation.body().unwrap_or_default())).unwrap()).await
    }

    /// Places an order for `intent`, and returns its id if the answer is a success.
    pub(crate) async fn place(&self, intent: &str) -> Result<Option<String>, BoxError> {
        self.place_order(&order("EQT_INFY_EQ_NSE"), intent).await
    }

    pub(crate) async fn place_order(
        &self,
        order: &OrderRequest,
        intent: &str,
    ) -> Result<Option<String>, BoxError> {
        let response = self.send(&Operation::place_order(order), Some(intent)).await?;
        let body = response.into_body().collect().await?.to_bytes();
        Ok(steadfast::spec::PlacedOrder::parse(&body).ok().map(|placed| placed.order_id))
    }

    /// Returns the orders that exist for each intent.
    pub(crate) fn placed(&self) -> BTreeMap<String, Vec<String>> {
        let mut placed: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for order in self.sandbox.state().orders {
            placed.entry(order.intent.unwrap_or_default()).or_default().push(order.order_id);
        }
        placed
    }

    pub(crate) fn refused(&self) -> u64 {
        self.sandbox.state().refusals.values().sum()
    }
}

pub(crate) fn order(sym_id: &str) -> OrderRequest {
    OrderRequest::from_fields([
        ("symId", sym_id),
        ("qty", "10"),
        ("side", "buy"),
        ("type", "limit"),
        ("limitPrice", "100.05"),
        ("product", "delivery"),
        ("validity", "day"),
    ])
    .unwrap()
}

pub(crate) fn script(toml: &str) -> SandboxBuilder {
    Sandbox::builder().seed(3).script(toml).unwrap()
}

/// Returns an API key, a client id, a password and an authenticator's secret as credentials.
pub(crate) fn credentials([api_key, client_id, password, totp_secret]: [&str; 4]) -> TotpCredentials {
    TotpCredentials {
        api_key: api_key.into(),
        client_id: client_id.into(),
        password: password.into(),
        totp_secret: totp_secret.into(),
    }
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);
