mod account;
mod fields;
mod operation;
mod schemas;

use http::{HeaderName, StatusCode};
use serde_json::{Map, Value, json};

use crate::{Endpoint, Paths, ZoneSpec, zones};

/// Describes the service as an OpenAPI 3.1 document: the endpoints that have a path, their fields and answers, the errors
/// of §7 and the zones of §8.
///
/// A server that stands in for the service, such as a sandbox or a sidecar, serves it at `/openapi.json`, so that programs
/// in any language can be generated from it. Such a server adds the headers that it reads and the answers that it gives by
/// itself.
///
/// Fields and answers that the specification does not show are described as such, and other fields are allowed
/// beside them.
///
/// # Example
///
/// ```
/// use http::{HeaderName, StatusCode};
/// use steadfast_spec::{Endpoint, OpenApi, Paths};
///
/// let paths = Paths::public();
/// let document = OpenApi::new(&paths)
///     .server("http://127.0.0.1:8080/v2")
///     .header(HeaderName::from_static("x-lane"), "how urgent the request is", |_| true)
///     .answer(StatusCode::CONFLICT, "an equal order is unresolved", |endpoint| endpoint == Endpoint::PlaceOrder)
///     .document();
/// let place = &document["paths"]["/api/oms/place-order"]["post"];
/// assert_eq!(place["operationId"], "place-order");
/// assert!(place["responses"]["409"].is_object());
/// assert!(document["paths"]["/api/oms/orders"]["get"]["responses"]["409"].is_null());
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenApi<'a> {
    paths: &'a Paths,
    servers: Vec<String>,
    headers: Vec<Header>,
    answers: Vec<Answer>,
    bearer: Option<(String, String)>,
    serves: fn(Endpoint) -> bool,
}

/// A header that a server in the service's place reads.
#[derive(Clone, Debug)]
struct Header {
    name: HeaderName,
    text: String,
    of: fn(Endpoint) -> bool,
}

/// An answer that a server gives in the service's place.
#[derive(Clone, Debug)]
struct Answer {
    status: StatusCode,
    text: String,
    of: fn(Endpoint) -> bool,
}

impl<'a> OpenApi<'a> {
    /// Describes the endpoints of §4.1 and those for which `paths` has a path.
    pub fn new(paths: &'a Paths) -> Self {
        let (servers, headers, answers) = (Vec::new(), Vec::new(), Vec::new());
        Self { paths, servers, headers, answers, bearer: None, serves: |_| true }
    }

    /// Adds a base address, which ends with `/v2` (§9).
    pub fn server(mut self, base_url: impl Into<String>) -> Self {
        self.servers.push(base_url.into());
        self
    }

    /// Leaves out the endpoints for which `serves` is false.
    pub fn only(mut self, serves: fn(Endpoint) -> bool) -> Self {
        self.serves = serves;
        self
    }

    /// Describes the content of `Authorization` of a server that has tokens of its own: what stands behind `Bearer `, and
    /// what it is.
    pub fn bearer(mut self, format: impl Into<String>, text: impl Into<String>) -> Self {
        self.bearer = Some((format.into(), text.into()));
        self
    }

    /// Adds an optional request header of the endpoints for which `of` is true; `text` says what it does.
    pub fn header(mut self, name: HeaderName, text: impl Into<String>, of: fn(Endpoint) -> bool) -> Self {
        self.headers.push(Header { name, text: text.into(), of });
        self
    }

    /// Adds an answer, in the service's error envelope, of the endpoints for which `of` is true; `text` says what it means.
    /// If the service has the status too, the text stands beside the service's own.
    pub fn answer(mut self, status: StatusCode, text: impl Into<String>, of: fn(Endpoint) -> bool) -> Self {
        self.answers.push(Answer { status, text: text.into(), of });
        self
    }

    /// Writes the document.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut paths: Map<String, Value> = Map::new();
        let has = |endpoint| (self.serves)(endpoint) && self.paths.of(endpoint).is_some();
        for endpoint in Endpoint::all().filter(|endpoint| has(*endpoint)) {
            let Some(path) = self.paths.of(endpoint) else { continue };
            let method = endpoint.method().as_str().to_ascii_lowercase();
            let item = paths.entry(path.to_owned()).or_insert_with(|| json!({}));
            item[method] = self.operation(endpoint, path);
        }
        let mut document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Trading REST service",
                "version": "2",
                "summary": "Orders, market data and logins over HTTP",
                "description": DESCRIPTION,
            },
            "paths": paths,
            "components": {
                "schemas": schemas::all(has),
                "securitySchemes": {
                    FULL: {
                        "type": "http",
                        "scheme": "bearer",
                        "bearerFormat": "<api_key>:<access_token>",
                        "description": "Both parts, joined by a colon, behind `Bearer ` (§5).",
                    },
                    API_KEY: {
                        "type": "http",
                        "scheme": "bearer",
                        "bearerFormat": "<api_key>",
                        "description": "The API key alone, behind `Bearer ` (§5).",
                    },
                },
            },
            "tags": [
                {"name": "login", "description": "How to get an access token"},
                {"name": "orders", "description": "Orders and what follows from them"},
                {"name": "data", "description": "Market data and account data"},
            ],
            "x-zones": limits(),
        });
        if let Some((format, text)) = &self.bearer {
            let scheme = &mut document["components"]["securitySchemes"][FULL];
            scheme["bearerFormat"] = format.as_str().into();
            scheme["description"] = text.as_str().into();
        }
        if !self.servers.is_empty() {
            document["servers"] = self.servers.iter().map(|url| json!({"url": url})).collect();
        }
        document
    }
}

const DESCRIPTION: &str = "Paths are relative to a base address that ends with `/v2`. POST and PUT take forms \
     (`application/x-www-form-urlencoded`), never JSON. Every JSON answer but that of the token exchange is an envelope: \
     `s` is `ok` with a payload in `d`, or `error` or `no-data` with a text in `msg`. A request that a rate limit refuses \
     is answered with 429; `x-zones` has the limits, and each operation names its zones. A 504 does not say that an order \
     was not placed.";

/// The names of the security schemes.
const FULL: &str = "token";
const API_KEY: &str = "apiKey";

/// Returns the zone table of §8.
fn limits() -> Map<String, Value> {
    let zone = |spec: &ZoneSpec| {
        let windows: Vec<Value> = { spec.windows.iter() }
            .map(|window| json!({"limit": window.limit(), "seconds": window.period().as_secs()}))
            .collect();
        (spec.zone.as_str().to_owned(), json!({"scope": spec.scope.as_str(), "windows": windows}))
    };
    zones().iter().map(zone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_with_a_path_is_described_under_its_method_and_no_other() {
        let mut described = Vec::new();
        for paths in [Paths::default(), Paths::public(), Paths::published_client()] {
            let document = OpenApi::new(&paths).document();
            let items = document["paths"].as_object().unwrap();
            let operations: usize = items.values().map(|item| item.as_object().unwrap().len()).sum();
            let with_path: Vec<Endpoint> =
                Endpoint::all().filter(|endpoint| paths.of(*endpoint).is_some()).collect();
            assert_eq!(operations, with_path.len());
            for &endpoint in &with_path {
                let method = endpoint.method().as_str().to_ascii_lowercase();
                let operation = &document["paths"][paths.of(endpoint).unwrap()][method];
                assert_eq!(operation["operationId"], endpoint.as_str());
                let zones: Vec<&str> = endpoint.zones().iter().map(|zone| zone.as_str()).collect();
                assert_eq!(operation["x-zones"], json!(zones));
            }
            described.extend(with_path);
        }
        assert!(Endpoint::all().all(|endpoint| described.contains(&endpoint)), "in one of the three");
    }

    #[test]
    fn the_limits_are_those_of_the_zone_table() {
        let document = OpenApi::new(&Paths::default()).document();
        let general = json!({
            "scope": "auth_token",
            "windows": [{"limit": 10, "seconds": 1}, {"limit": 400, "seconds": 60}],
        });
        assert_eq!(document["x-zones"]["general"], general);
        assert_eq!(document["x-zones"].as_object().unwrap().len(), crate::Zone::ALL.len());
    }

    #[test]
    fn what_a_server_adds_stands_beside_what_the_service_has() {
        let paths = Paths::default();
        let only = |endpoint| endpoint == Endpoint::PlaceOrder;
        let document = OpenApi::new(&paths)
            .header(HeaderName::from_static("idempotency-key"), "a name for the order", only)
            .answer(StatusCode::GATEWAY_TIMEOUT, "the order's fate is unknown", only)
            .answer(StatusCode::UNPROCESSABLE_ENTITY, "the key names another order", only)
            .document();
        let (place, list) = (
            &document["paths"]["/api/oms/place-order"]["post"],
            &document["paths"]["/api/oms/orders"]["get"],
        );
        let timeout = place["responses"]["504"]["description"].as_str().unwrap();
        assert!(timeout.contains("`Gateway timedout`") && timeout.contains("fate is unknown"), "{timeout}");
        assert!(place["responses"]["422"].is_object() && list["responses"]["422"].is_null());
        assert_eq!(place["parameters"][0]["name"], "idempotency-key");
        assert!(!list["parameters"].to_string().contains("idempotency-key"));
    }
}
