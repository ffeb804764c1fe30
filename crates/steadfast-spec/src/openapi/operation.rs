use serde_json::{Map, Value, json};

use super::{
    API_KEY, FULL, OpenApi,
    fields::{self, Field},
    schemas,
};
use crate::{AuthKind, ERRORS, Endpoint, ErrorRow, OrderType};

impl OpenApi<'_> {
    /// Describes one endpoint.
    pub(super) fn operation(&self, endpoint: Endpoint, path: &str) -> Value {
        let zones: Vec<&str> = endpoint.zones().iter().map(|zone| zone.as_str()).collect();
        let mut operation = json!({
            "operationId": endpoint.as_str(),
            "summary": summary(endpoint),
            "tags": [tag(endpoint)],
            "responses": self.responses(endpoint),
            "security": match endpoint.auth() {
                AuthKind::Full => json!([{FULL: []}]),
                AuthKind::ApiKey => json!([{API_KEY: []}]),
                AuthKind::None => json!([]),
            },
            "x-zones": zones,
        });
        if endpoint.moves_money() {
            operation["description"] = MOVES_MONEY.into();
        }
        let parameters = self.parameters(endpoint, path);
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        let form = fields::form(endpoint);
        if !form.is_empty() {
            let required = form.iter().any(|field| field.needed);
            let content =
                json!({"application/x-www-form-urlencoded": {"schema": form_schema(endpoint, &form)}});
            operation["requestBody"] = json!({"required": required, "content": content});
        }
        operation
    }

    fn parameters(&self, endpoint: Endpoint, path: &str) -> Vec<Value> {
        let in_path = path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
        let in_path = in_path.map(|name| {
            let schema = if name == "kind" {
                json!({"type": "string", "enum": ["gtt", "oco", "bo", "co"]})
            } else {
                json!({"type": "string", "examples": ["NSE_EQ"]})
            };
            json!({"name": name, "in": "path", "required": true, "schema": schema})
        });
        let in_query = fields::query(endpoint).into_iter().map(|field| {
            json!({"name": field.name, "in": "query", "required": field.needed, "schema": field.schema()})
        });
        let headers = self.headers.iter().filter(|header| (header.of)(endpoint)).map(|header| {
            let schema = json!({"type": "string"});
            json!({"name": header.name.as_str(), "in": "header", "description": header.text, "schema": schema})
        });
        in_path.chain(in_query).chain(headers).collect()
    }

    /// Returns the answers: the good one, the rows of §7, and those of the server that describes itself.
    fn responses(&self, endpoint: Endpoint) -> Map<String, Value> {
        let mut responses = Map::new();
        responses.insert("200".to_owned(), schemas::success(endpoint));
        for row in ERRORS.iter().filter(|row| can_meet(endpoint, row)) {
            add(&mut responses, row.status.as_u16(), &meaning(row));
        }
        for answer in self.answers.iter().filter(|answer| (answer.of)(endpoint)) {
            add(&mut responses, answer.status.as_u16(), &answer.text);
        }
        responses
    }
}

const MOVES_MONEY: &str = "It moves money, and a lost answer does not say whether it was executed. After a 5xx, a 504 above \
     all, or a broken connection, look into the order list before you send it again.";

/// True if a request to the endpoint can be answered with this error.
fn can_meet(endpoint: Endpoint, row: &ErrorRow) -> bool {
    // Only requests with a body can have the wrong type of it.
    row.status != http::StatusCode::UNSUPPORTED_MEDIA_TYPE
        || matches!(endpoint.method(), http::Method::POST | http::Method::PUT)
}

fn meaning(row: &ErrorRow) -> String {
    let repeat = if row.retry { "may be repeated later" } else { "not to be repeated" };
    match row.msg {
        Some(msg) => format!("`{msg}` ({repeat})"),
        None => format!("text not shown ({repeat})"),
    }
}

/// Adds an error, beside others of the same status.
fn add(responses: &mut Map<String, Value>, status: u16, text: &str) {
    match responses.get_mut(&status.to_string()) {
        Some(known) => {
            let both = format!("{}; or {text}", known["description"].as_str().unwrap_or_default());
            known["description"] = both.into();
        }
        None => {
            let schema = json!({"$ref": "#/components/schemas/Error"});
            let mut answer =
                json!({"description": text, "content": {"application/json": {"schema": schema}}});
            if status == 429 {
                let wait = "How long to wait, in seconds or as a date; not shown in the specification.";
                answer["headers"] =
                    json!({"Retry-After": {"description": wait, "schema": {"type": "string"}}});
            }
            responses.insert(status.to_string(), answer);
        }
    }
}

fn form_schema(endpoint: Endpoint, form: &[Field]) -> Value {
    let needed: Vec<&str> = form.iter().filter(|field| field.needed).map(|field| field.name).collect();
    let properties: Map<String, Value> =
        form.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
    let mut schema = json!({"type": "object", "properties": properties, "required": needed});
    // §4.4: a price that the type needs.
    if matches!(endpoint, Endpoint::PlaceOrder | Endpoint::OrderMargin) {
        let needs = |price: &str, needs: fn(OrderType) -> bool| {
            let types: Vec<&str> =
                { OrderType::ALL.iter() }.filter(|kind| needs(**kind)).map(|kind| kind.as_str()).collect();
            json!({"if": {"properties": {"type": {"enum": types}}}, "then": {"required": [price]}})
        };
        schema["allOf"] = json!([
            needs("limitPrice", OrderType::needs_limit_price),
            needs("trigPrice", OrderType::needs_trig_price),
        ]);
    }
    schema
}

fn tag(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Authorize | Endpoint::Token | Endpoint::IndividualToken | Endpoint::Logout => "login",
        Endpoint::SymbolStore
        | Endpoint::ScripMaster
        | Endpoint::Quotes
        | Endpoint::Positions
        | Endpoint::Holdings
        | Endpoint::Funds
        | Endpoint::AccountDetails
        | Endpoint::SymbolGroups
        | Endpoint::IntervalData => "data",
        _ => "orders",
    }
}

fn summary(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Authorize => "Starts the login flow in a browser",
        Endpoint::Token => "Exchanges an authorization code for an access token",
        Endpoint::IndividualToken => "Returns an access token for a two-factor code",
        Endpoint::PlaceOrder => "Places an order",
        Endpoint::ModifyOrder => "Changes an open order",
        Endpoint::CancelOrder => "Cancels an order",
        Endpoint::Orders => "Lists the session's orders",
        Endpoint::History => "Returns the order history",
        Endpoint::BasketMargin => "Returns the margin for several orders",
        Endpoint::OrderMargin => "Returns the margin for one order",
        Endpoint::SymbolStore => "Lists the instruments of a group",
        Endpoint::ScripMaster => "Lists all instruments",
        Endpoint::Quotes => "Returns an instrument's price",
        Endpoint::Positions => "Lists the positions",
        Endpoint::Holdings => "Lists the holdings",
        Endpoint::Funds => "Returns the funds",
        Endpoint::PlaceSpecial => "Places an order of a special kind",
        Endpoint::ModifySpecial => "Changes an order of a special kind",
        Endpoint::CancelSpecial => "Cancels an order of a special kind",
        Endpoint::SpecialOrders => "Lists the orders of a special kind",
        Endpoint::ExitOrder => "Leaves the position of a bracket or cover order",
        Endpoint::ConvertPosition => "Converts a position to another product",
        Endpoint::Trades => "Lists the trades",
        Endpoint::AccountDetails => "Returns the account's details",
        Endpoint::Logout => "Ends the session",
        Endpoint::SymbolGroups => "Lists the groups of instruments",
        Endpoint::IntervalData => "Returns the prices of a past interval",
    }
}
