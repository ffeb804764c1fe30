use std::convert::Infallible;

use http::{HeaderValue, Request, Response, header::AUTHORIZATION};
use steadfast::auth::{ApiKey, AuthHeaderLayer, TokenSource};
use tower::{ServiceBuilder, ServiceExt, service_fn};

/// Makes a header of an API key and a token, which the input separates by a NUL.
///
/// # Panics
///
/// If the header is not exactly `Bearer <api_key>:<access_token>` and sensitive, or if a refusal shows what it refuses.
pub fn header(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some((key, token)) = text.split_once('\0') else { return };
    let source = match ApiKey::new(key).map(|key| TokenSource::fixed(key, token)) {
        Ok(Ok(source)) => source,
        Ok(Err(refusal)) => return tells_nothing(&refusal, &[key, token]),
        Err(refusal) => return tells_nothing(&refusal, &[key, token]),
    };
    tells_nothing(&source, &[token]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let echo = service_fn(async |request: Request<()>| {
        Ok::<_, Infallible>(Response::new(request.headers().get(AUTHORIZATION).cloned()))
    });
    let service = ServiceBuilder::new().layer(AuthHeaderLayer::new(source)).service(echo);
    let request = Request::get("http://localhost/v2/api/oms/orders").body(()).expect("a request");
    match runtime.expect("a runtime").block_on(service.oneshot(request)) {
        Ok(response) => {
            let sent = response.into_body().expect("a header");
            assert_eq!(sent, HeaderValue::from_str(&format!("Bearer {key}:{token}")).expect("a value"));
            assert!(sent.is_sensitive());
        }
        Err(refusal) => tells_nothing(&refusal, &[key, token]),
    }
}

/// Short texts appear by chance.
fn tells_nothing(shown: &impl std::fmt::Debug, secrets: &[&str]) {
    let shown = format!("{shown:?}");
    for secret in secrets.iter().filter(|secret| secret.len() > 12) {
        assert!(!shown.contains(*secret), "a secret shows: {shown}");
    }
}
