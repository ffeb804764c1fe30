//! When an order is sent a second time, for the verbs that place orders.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use steadfast::{
    BaseUrl, BoxError, Transport,
    dedup::{ResendPolicy, Settings},
};
use tokio::time::timeout;
use tower::ServiceExt;

use crate::exit::print_note;

/// How long a sidecar on this machine may take to answer.
const AT_ONCE: Duration = Duration::from_secs(2);

/// The options of the verbs that place orders.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Resends {
    /// Send no order in doubt a second time. Without it one is sent again that no list shows 15 s after it could last
    /// arrive; it exists twice if the service lists it later than that, or if a program on this side of the service, such as a
    /// service mesh, goes on sending it.
    #[arg(long)]
    pub(crate) never_resend: bool,
    /// How many seconds after an answer 401 or 429 the order list is read, before the order that it turned away is sent
    /// again; 15 if the service may have placed the order all the same and lists it late.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=15))]
    pub(crate) refusal_lag: u64,
}

impl Resends {
    /// For verbs that place nothing.
    pub(crate) const NONE: Self = Self { never_resend: true, refusal_lag: 1 };

    /// The same for orders that go to this address: if it is a sidecar's, which sends orders again by itself, this side sends
    /// none. Two that do so can place one twice, because the sidecar goes on with an order after the connection has ended.
    pub(crate) async fn to(self, base: &BaseUrl) -> Self {
        if self.never_resend {
            return self;
        }
        let Some(why) = may_resend(base).await else { return self };
        print_note(format_args!(
            "{base} {why} sends orders in doubt again by itself: this run sends none again, as with --never-resend"
        ));
        Self { never_resend: true, ..self }
    }

    pub(crate) fn settings(self) -> Settings {
        let resends = if self.never_resend { ResendPolicy::Never } else { ResendPolicy::AtMost(1) };
        Settings::default().resend(resends).refusal_lag(Duration::from_secs(self.refusal_lag))
    }
}

/// Says why a sidecar may be at this address. Only one on this machine is asked, so that no service is.
async fn may_resend(base: &BaseUrl) -> Option<&'static str> {
    let asked = async {
        let uri = base.uri();
        let (scheme, at) =
            (uri.scheme_str().unwrap_or_default(), uri.authority().map_or("", |at| at.as_str()));
        // It answers that by itself, and without a token by a refusal that names it.
        let request = Request::get(format!("{scheme}://{at}/openapi.json")).body(Full::<Bytes>::default())?;
        let answer = Transport::new().to(base)?.oneshot(request).await?;
        let told = answer.headers().get("proxy-status").and_then(|told| told.to_str().ok());
        Ok::<_, BoxError>(told.is_some_and(|told| told.starts_with("steadfast;")))
    };
    if !base.is_loopback() {
        return None;
    }
    match timeout(AT_ONCE, asked).await {
        Ok(answer) => answer.unwrap_or(false).then_some("is a sidecar of steadfast, which"),
        // One that is busy or stopped looks like this.
        Err(_) => Some("does not answer, and may be a sidecar of steadfast, which"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    #[tokio::test]
    async fn to_a_sidecar_nothing_is_sent_again_and_to_a_service_as_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base: BaseUrl = format!("http://{}/v2", listener.local_addr().unwrap()).parse().unwrap();
        for (told, is_sidecar) in [
            ("Proxy-Status: steadfast; error=http_request_denied; details=\"x\"\r\n", true),
            ("Proxy-Status: other; error=http_request_denied\r\n", false),
            ("", false),
        ] {
            let answers = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = vec![0; 4_096];
                let length = stream.read(&mut asked).await.unwrap();
                let asked = String::from_utf8_lossy(&asked[..length]).to_lowercase();
                assert!(!asked.contains("authorization"), "{asked}");
                let answer =
                    format!("HTTP/1.1 401 X\r\n{told}Content-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            };
            let asked = Resends { never_resend: false, refusal_lag: 7 };
            let (resends, ()) = tokio::join!(asked.to(&base), answers);
            assert_eq!((resends.never_resend, resends.refusal_lag), (is_sidecar, 7), "{told}");
        }
    }

    /// Regression: a sidecar that was stopped for three seconds was taken for a service.
    #[tokio::test(start_paused = true)]
    async fn to_an_address_that_does_not_answer_nothing_is_sent_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base: BaseUrl = format!("http://{}/v2", listener.local_addr().unwrap()).parse().unwrap();
        assert!(Resends { never_resend: false, refusal_lag: 1 }.to(&base).await.never_resend);
    }
}
