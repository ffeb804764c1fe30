//! The sandbox's own pages, beside the service's paths: they are counted in no zone, and no fault of a request
//! strikes them.

pub(crate) mod cors;

use std::{fmt::Write, sync::Arc};

use http::{Method, Request, Response, StatusCode, header::HeaderName};
use serde_json::{Value, json};
use steadfast_spec::{Endpoint, OpenApi, Paths};

use crate::{
    gateway::{engine::BASE_PATH, service::response, shared::Shared},
    wire::{Answer, Body, page::Page},
};

/// The header with a test's name for its order.
const INTENT: HeaderName = HeaderName::from_static("x-test-intent");

/// Pages at a gateway's address, beside the service.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    shared: Arc<Shared>,
}

impl Site {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Answers a request for a page of the sandbox's own, or a browser's question before a request.
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        if let Some(origin) = &self.shared.front.origin
            && let Some(allowed) = origin.preflight(request)
        {
            return Some(allowed.map(|()| Body::new(Page::plain(String::new()).content)));
        }
        // A target that names a host is meant for a proxy, which this is not.
        let is_asked_here = request.uri().authority().is_none();
        if !is_asked_here || !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let page = match request.uri().path() {
            "/" => Page::plain(self.index()),
            "/livez" => Page::plain("ok\n".to_owned()),
            "/faults" => Page::json(StatusCode::OK, &self.faults()),
            "/openapi.json" => Page::json(StatusCode::OK, &self.openapi()),
            _ => return None,
        };
        let wall = self.shared.engine.lock().wall(self.shared.clock.now());
        Some(response(page, wall))
    }

    /// Lets the page of an allowed origin read an answer to `asked`. An answer that a fault writes is left as it is: a
    /// browser sees none.
    pub(crate) fn share(&self, asked: Option<&cors::Asked>, answer: Answer<Body>) -> Answer<Body> {
        match (&self.shared.front.origin, asked, answer) {
            (Some(origin), Some(asked), Answer::Response(mut response)) => {
                origin.share(asked, response.headers_mut());
                Answer::Response(response)
            }
            (.., answer) => answer,
        }
    }

    /// Returns the origin that a request names, if its pages may read the answer.
    pub(crate) fn asked<B>(&self, request: &Request<B>) -> Option<cors::Asked> {
        self.shared.front.origin.as_ref()?.asked(request)
    }

    fn index(&self) -> String {
        let engine = self.shared.engine.lock();
        let mut index = INDEX.to_owned();
        for (endpoint, path) in endpoints(&engine.settings.paths) {
            // A text takes any line.
            let _ = writeln!(index, "  {:<7} {BASE_PATH}{path}", endpoint.method().as_str());
        }
        index
    }

    /// Returns the faults that are planned, and how often each has struck.
    fn faults(&self) -> Value {
        let engine = self.shared.engine.lock();
        json!({
            "planned": engine.plan.entries(),
            "struck": engine.record.faults,
            "requests": engine.record.requests,
        })
    }

    fn openapi(&self) -> Value {
        let paths = self.shared.engine.lock().settings.paths.clone();
        OpenApi::new(&paths)
            .server(BASE_PATH)
            .header(INTENT, "The test's own name for the order, for faults and for the ground truth.", |of| {
                of == Endpoint::PlaceOrder
            })
            .document()
    }
}

fn endpoints(paths: &Paths) -> impl Iterator<Item = (Endpoint, &str)> {
    Endpoint::all().filter_map(|endpoint| Some((endpoint, paths.of(endpoint)?)))
}

const INDEX: &str = "\
steadfast sandbox: a gateway that enforces the rules of the trading REST service, and misbehaves on demand

  GET     /openapi.json   paths, fields, answers and limits, as OpenAPI 3.1
  GET     /faults         the faults that are planned, and how often each has struck
  GET     /livez          ok

The service's own paths:

";
