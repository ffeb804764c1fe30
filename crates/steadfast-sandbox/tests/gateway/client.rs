//! One request to the in-process gateway, and its answer.

use std::{fmt, net::IpAddr};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use steadfast_sandbox::{Gateway, PeerIp};
use tower::ServiceExt;

#[derive(Clone)]
pub(crate) struct Call {
    gateway: Gateway,
    method: Method,
    path: String,
    authorization: Option<String>,
    intent: Option<String>,
    content_type: Option<String>,
    body: String,
    peer: Option<IpAddr>,
    cache_control: Option<String>,
}

/// The client's view of one answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Response {
        status: u16,
        headers: HeaderMap,
        body: Bytes,
        /// False if the body broke off.
        whole: bool,
    },
    Reset,
}

impl Call {
    pub(crate) fn new(gateway: Gateway, method: Method, path: &str) -> Self {
        let path = path.to_owned();
        Self {
            gateway,
            method,
            path,
            authorization: None,
            intent: None,
            content_type: None,
            body: String::new(),
            peer: None,
            cache_control: None,
        }
    }

    pub(crate) fn bearer(self, api_key: &str, token: &str) -> Self {
        self.authorization(&format!("Bearer {api_key}:{token}"))
    }

    pub(crate) fn authorization(mut self, header: &str) -> Self {
        self.authorization = Some(header.to_owned());
        self
    }

    pub(crate) fn without_authorization(mut self) -> Self {
        self.authorization = None;
        self
    }

    pub(crate) fn form(self, form: impl Into<String>) -> Self {
        self.body("application/x-www-form-urlencoded", form)
    }

    pub(crate) fn body(mut self, content_type: &str, body: impl Into<String>) -> Self {
        self.content_type = Some(content_type.to_owned());
        self.body = body.into();
        self
    }

    pub(crate) fn intent(mut self, intent: &str) -> Self {
        self.intent = Some(intent.to_owned());
        self
    }

    pub(crate) fn peer(mut self, peer: IpAddr) -> Self {
        self.peer = Some(peer);
        self
    }

    pub(crate) fn cache_control(mut self, value: &str) -> Self {
        self.cache_control = Some(value.to_owned());
        self
    }

    pub(crate) async fn send(&self) -> Answer {
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(format!("http://sandbox.local/v2{}", self.path));
        let headers = [
            (header::AUTHORIZATION, &self.authorization),
            (header::HeaderName::from_static("x-test-intent"), &self.intent),
            (header::CONTENT_TYPE, &self.content_type),
            (header::CACHE_CONTROL, &self.cache_control),
        ];
        for (name, value) in headers {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if let Some(peer) = self.peer {
            request = request.extension(PeerIp(peer));
        }
        let body = Full::<Bytes>::from(self.body.clone());
        let request = request.body(body).expect("a well-formed request");
        Answer::read(self.gateway.clone().oneshot(request).await).await
    }
}

impl Answer {
    pub(crate) async fn read<B, E, E2>(answer: Result<http::Response<B>, E>) -> Self
    where
        B: http_body::Body<Data = Bytes, Error = E2>,
    {
        let Ok(response) = answer else { return Self::Reset };
        let (head, body) = response.into_parts();
        let mut body = std::pin::pin!(body);
        let (mut read, mut whole) = (Vec::new(), true);
        while let Some(frame) = body.frame().await {
            match frame.map(http_body::Frame::into_data) {
                Ok(data) => read.extend_from_slice(&data.unwrap_or_default()),
                Err(_) => {
                    whole = false;
                    break;
                }
            }
        }
        Self::Response { status: head.status.as_u16(), headers: head.headers, body: read.into(), whole }
    }

    /// Returns the status; 0 for a reset.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Response { status, .. } => *status,
            Self::Reset => 0,
        }
    }

    pub(crate) fn is_reset(&self) -> bool {
        matches!(self, Self::Reset)
    }

    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::Response { whole: true, .. })
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        match self {
            Self::Response { headers, .. } => headers.get(name).map(|value| value.to_str().expect("a text")),
            Self::Reset => None,
        }
    }

    pub(crate) fn body(&self) -> &[u8] {
        match self {
            Self::Response { body, .. } => body,
            Self::Reset => &[],
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(self.body()).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Returns status and `msg` of an error envelope (§7).
    #[track_caller]
    pub(crate) fn error(&self) -> (u16, String) {
        let json = self.json();
        assert_eq!(json["s"], "error", "{self}");
        assert!(json.get("d").is_none(), "{self}");
        (self.status(), json["msg"].as_str().unwrap_or_else(|| panic!("no msg: {self}")).to_owned())
    }

    /// Returns the id of a placed order.
    #[track_caller]
    pub(crate) fn order_id(&self) -> String {
        let id = self.json()["d"]["orderId"].as_str().map(str::to_owned);
        id.unwrap_or_else(|| panic!("no orderId: {self}"))
    }

    /// Returns the records of a list; none for `no-data`.
    #[track_caller]
    pub(crate) fn records(&self) -> Vec<Value> {
        let json = self.json();
        assert_eq!(self.status(), 200, "{self}");
        match json["s"].as_str() {
            Some("no-data") => Vec::new(),
            _ => json["d"].as_array().unwrap_or_else(|| panic!("no list: {self}")).clone(),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status(), String::from_utf8_lossy(self.body()))
    }
}
