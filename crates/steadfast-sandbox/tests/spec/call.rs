//! One request to the gateway, built like a sentence: `world.get(ORDERS).bearer(&session).send().await`.

use std::net::IpAddr;

use bytes::Bytes;
use http::{
    Method, Request,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full};
use steadfast_sandbox::{Gateway, PeerIp};
use tower::ServiceExt;

use crate::{
    answer::Answer,
    form::{Form, percent_encoded},
    world::Session,
};

pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

#[derive(Clone)]
pub(crate) struct Call {
    gateway: Gateway,
    method: Method,
    url: String,
    query: Vec<String>,
    authorization: Option<String>,
    content_type: Option<String>,
    body: Bytes,
    peer: Option<IpAddr>,
}

impl Call {
    pub(crate) fn new(gateway: Gateway, method: Method, url: String) -> Self {
        Self {
            gateway,
            method,
            url,
            query: Vec::new(),
            authorization: None,
            content_type: None,
            body: Bytes::new(),
            peer: None,
        }
    }

    pub(crate) fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// Sets the full header of §5: `Bearer <api_key>:<access_token>`.
    pub(crate) fn bearer(self, session: &Session) -> Self {
        self.authorization(&format!("Bearer {}:{}", session.api_key, session.token))
    }

    pub(crate) fn authorization(mut self, header: &str) -> Self {
        self.authorization = Some(header.to_owned());
        self
    }

    pub(crate) fn without_authorization(mut self) -> Self {
        self.authorization = None;
        self
    }

    /// Adds a query parameter whose value is percent-encoded byte by byte.
    pub(crate) fn query(self, name: &str, value: &str) -> Self {
        self.raw_query(&format!("{name}={}", percent_encoded(value)))
    }

    pub(crate) fn raw_query(mut self, pair: &str) -> Self {
        self.query.push(pair.to_owned());
        self
    }

    pub(crate) fn form(self, form: &Form) -> Self {
        self.content_type(FORM).body(form.encoded())
    }

    pub(crate) fn content_type(mut self, value: &str) -> Self {
        self.content_type = Some(value.to_owned());
        self
    }

    pub(crate) fn without_content_type(mut self) -> Self {
        self.content_type = None;
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn peer(mut self, peer: IpAddr) -> Self {
        self.peer = Some(peer);
        self
    }

    pub(crate) async fn send(&self) -> Answer {
        let mut url = self.url.clone();
        if !self.query.is_empty() {
            url = format!("{url}?{}", self.query.join("&"));
        }
        let described = format!("{} {url}", self.method);
        let mut request = Request::builder().method(self.method.clone()).uri(url);
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(value) = &self.content_type {
            request = request.header(CONTENT_TYPE, value);
        }
        if let Some(peer) = self.peer {
            request = request.extension(PeerIp(peer));
        }
        let request = request.body(Full::new(self.body.clone())).expect("a well-formed request");
        let response = self.gateway.clone().oneshot(request).await.expect("an answer");
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        Answer { request: described, status: head.status, headers: head.headers, body }
    }
}
