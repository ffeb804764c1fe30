//! The document at `/openapi.json` is true of the sandbox that serves it: every request that it describes is understood,
//! a field that it requires is required, and every answer has the form that it gives.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use steadfast_sandbox::Sandbox;

use crate::{
    client::{Answer, Call},
    wire::Server,
    world::{LIMIT, MARKET, World},
};

/// A sandbox and its own description.
struct Described {
    world: World,
    document: Value,
}

/// One operation of the document.
#[derive(Clone)]
struct Operation {
    method: Method,
    path: String,
    described: Value,
}

impl Described {
    async fn new(published: bool) -> Self {
        let builder = Sandbox::builder().seed(7);
        let world = World::of(if published { builder.published_client() } else { builder });
        let server = Server::gateway(&world.sandbox).await;
        let document = server.ask("GET /openapi.json HTTP/1.1\r\nhost: sandbox\r\n\r\n").await.json();
        server.stop().await;
        // The examples name the first order of each kind, which must still be open, and convert what the second has bought.
        world.place(LIMIT).await;
        world.place(MARKET).await;
        Self { world, document }
    }

    /// Returns the operations, cancels last.
    fn operations(&self) -> Vec<Operation> {
        let paths = self.document["paths"].as_object().expect("paths");
        let mut operations: Vec<Operation> = { paths.iter() }
            .flat_map(|(path, item)| item.as_object().expect("an item").iter().map(move |it| (path, it)))
            .map(|(path, (method, described))| Operation {
                method: method.to_ascii_uppercase().parse().expect("a method"),
                path: path.clone(),
                described: described.clone(),
            })
            .collect();
        let order = |it: &Operation| match it.described["operationId"].as_str().expect("an id") {
            "place-special" => 0,
            "cancel-order" | "cancel-special" => 2,
            "logout" => 3,
            _ => 1,
        };
        operations.sort_by_key(order);
        operations
    }

    fn validator(&self, schema: &Value) -> Validator {
        let mut schema = schema.clone();
        schema["components"] = self.document["components"].clone();
        jsonschema::draft202012::new(&schema).expect("a valid schema")
    }

    #[track_caller]
    fn check(&self, operation: &Operation, answer: &Answer) {
        let described = &operation.described["responses"][answer.status().to_string()];
        let schema = &described["content"]["application/json"]["schema"];
        let (path, method) = (&operation.path, &operation.method);
        if !schema.is_null() {
            let found = self.validator(schema).validate(&answer.json()).map_err(|error| error.to_string());
            assert_eq!(found, Ok(()), "{method} {path}: {answer}");
        }
        assert!(described.is_object(), "{method} {path} is not described to answer {answer}");
    }

    /// Sends what the document gives as an example, but for the fields of `without`.
    async fn send(&self, operation: &Operation, kind: &str, without: &str) -> Answer {
        let parameters = operation.described["parameters"].as_array().cloned().unwrap_or_default();
        let mut query: Vec<String> = Vec::new();
        for parameter in parameters.iter().filter(|it| it["in"] == "query" && it["name"] != without) {
            query.push(pair(parameter["name"].as_str().expect("a name"), &parameter["schema"]));
        }
        let fields = fields(operation);
        let form: Vec<String> =
            { fields.iter() }.filter(|(name, _)| *name != without).map(|(name, it)| pair(name, it)).collect();
        let path = operation.path.replace("{kind}", kind).replace("{scripGroup}", "NSE_EQ");
        let path = format!("{path}?{}", query.join("&"));
        // The General zone counts ten a second.
        self.world.pass(Duration::from_secs(1));
        let mut call = self.world.call(operation.method.clone(), &path);
        if operation.described["security"] == json!([]) {
            call = Call::new(self.world.sandbox.gateway(), operation.method.clone(), &path);
        }
        if !fields.is_empty() || matches!(operation.method, Method::POST | Method::PUT) {
            call = call.form(form.join("&"));
        }
        call.send().await
    }
}

fn form_schema(operation: &Operation) -> &Value {
    &operation.described["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]
}

fn fields(operation: &Operation) -> Map<String, Value> {
    form_schema(operation)["properties"].as_object().cloned().unwrap_or_default()
}

fn pair(name: &str, schema: &Value) -> String {
    let example = match &schema["examples"][0] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("{name}={example}")
}

fn is_login(operation: &Operation) -> bool {
    operation.path.starts_with("/api-gw/")
}

#[tokio::test]
async fn every_described_request_is_understood_and_answered_as_described() {
    for published in [false, true] {
        let sandbox = Described::new(published).await;
        let mut statuses: BTreeMap<String, u16> = BTreeMap::new();
        for operation in sandbox.operations() {
            let kinds: &[&str] =
                if operation.path.contains("{kind}") { &["gtt", "oco", "bo", "co"] } else { &[""] };
            for kind in kinds {
                let answer = sandbox.send(&operation, kind, "").await;
                sandbox.check(&operation, &answer);
                let name = format!("{} {} {kind}", operation.method, operation.path);
                statuses.insert(name, answer.status());
            }
        }
        // Logins need secrets. The numbers of special orders follow one another, and the examples name the first.
        let first_only = |name: &str| {
            [" oco", " bo", " co", "/exit-order "].iter().any(|end| name.ends_with(end))
                && !name.starts_with("POST /api/oms/place-order")
                && !name.starts_with("GET")
        };
        let refused: Vec<_> = { statuses.iter() }
            .filter(|(name, status)| **status != 200 && !name.contains("/api-gw/") && !first_only(name))
            .collect();
        assert_eq!(refused, [], "published: {published}");
        assert!(statuses.len() >= 16);
    }
}

#[tokio::test]
async fn a_request_without_a_field_that_is_required_is_refused() {
    let mut checked = 0;
    for published in [false, true] {
        let sandbox = Described::new(published).await;
        // Each request is refused before it does anything.
        for operation in sandbox.operations().into_iter().filter(|it| !is_login(it)) {
            let in_query = operation.described["parameters"].as_array().cloned().unwrap_or_default();
            let in_query = in_query.iter().filter(|it| it["in"] == "query" && it["required"] == true);
            let in_form = form_schema(&operation)["required"].as_array().cloned().unwrap_or_default();
            let names: Vec<Value> = in_query.map(|it| it["name"].clone()).chain(in_form).collect();
            for name in names {
                let answer = sandbox.send(&operation, "gtt", name.as_str().expect("a name")).await;
                let described = format!("{} {} without {name}: {answer}", operation.method, operation.path);
                assert!(matches!(answer.status(), 400 | 405), "{described}");
                sandbox.check(&operation, &answer);
                checked += 1;
            }
        }
    }
    assert!(checked >= 30, "{checked}");
}

#[tokio::test]
async fn a_price_is_required_by_the_types_that_need_it() {
    let sandbox = Described::new(false).await;
    let operations = sandbox.operations();
    let place = operations.iter().find(|it| it.path == "/api/oms/place-order").expect("place-order");
    let validator = sandbox.validator(form_schema(place));
    let order = |kind: &str, prices: &[&str]| {
        let mut order = json!({"symId": "EQT_INFY_EQ_NSE", "qty": 1, "side": "buy", "type": kind});
        (order["product"], order["validity"]) = ("delivery".into(), "day".into());
        for price in prices {
            order[*price] = 1.into();
        }
        order
    };
    for kind in ["limit", "market", "stoplimit", "stopmarket", "LIMIT"] {
        for prices in [&[][..], &["limitPrice"], &["trigPrice"], &["limitPrice", "trigPrice"]] {
            let order = order(kind, prices);
            let fields = order.as_object().expect("an object").iter();
            let form: Vec<String> =
                fields.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or("1"))).collect();
            sandbox.world.pass(Duration::from_secs(1));
            let taken = sandbox.world.place(&form.join("&")).await.status() == 200;
            assert_eq!(validator.is_valid(&order), taken, "{order}");
        }
    }
}

#[tokio::test]
async fn lists_and_logins_have_the_form_that_is_described() {
    let sandbox = Described::new(false).await;
    for _ in 0..4 {
        sandbox.world.place(MARKET).await;
    }
    let operations = sandbox.operations();
    let find = |path: &str| operations.iter().find(|it| it.path == path).expect("described").clone();
    let list = sandbox.world.list().await;
    assert_eq!(list.records().len(), 6);
    sandbox.check(&find("/api/oms/orders"), &list);
    let login = sandbox.world.login().send().await;
    assert_eq!(login.status(), 200);
    sandbox.check(&find("/api-gw/oauth/individual-token-v2"), &login);

    sandbox
        .world
        .place("symId=EQT_SBIN_EQ_NSE&qty=3&side=buy&type=market&product=delivery&validity=day")
        .await;
    for (hours, path, records) in [(0, "positions", 2), (0, "funds", 0), (20, "holdings", 1)] {
        sandbox.world.pass(Duration::from_secs(hours * 3600));
        let path = format!("/api/account/{path}");
        let answer = sandbox.world.get(&path).send().await;
        sandbox.check(&find(&path), &answer);
        assert!(answer.json()["d"].as_array().map_or(0, Vec::len) >= records, "{path}: {answer}");
    }

    // The check can fail.
    let orders = find("/api/oms/orders");
    let validator =
        sandbox.validator(&orders.described["responses"]["200"]["content"]["application/json"]["schema"]);
    for wrong in [
        json!({"s": "ok", "d": [{"symId": "EQT_INFY_EQ_NSE"}]}),
        json!({"s": "ok", "d": [{"orderId": "1", "side": "BUY"}]}),
        json!({"s": "ok"}),
        json!({"s": "error", "msg": "x"}),
        json!({"d": []}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}
