//! The calls of a published client of a service with the same paths (its shape, by our own client).

use steadfast::{
    Access, Client, ErrorKind, Operation, OrderRequest, Paths,
    spec::{Endpoint, Form},
};
use steadfast_sandbox::{Sandbox, SandboxBuilder};

use crate::world::{order, script};

fn client(builder: SandboxBuilder) -> (Sandbox, Client) {
    let sandbox = builder.published_client().build().unwrap();
    let facts = sandbox.credentials();
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let builder = Client::builder(facts.base_url.parse().unwrap(), access).paths(Paths::published_client());
    (sandbox.clone(), builder.build_over(sandbox.gateway()).unwrap())
}

fn form(fields: &[(&'static str, &str)]) -> Form {
    fields.iter().fold(Form::new(), |form, (name, value)| form.with(*name, *value))
}

const SYMBOL: (&str, &str) = ("symId", "EQT_INFY_EQ_NSE");
const BRACKET: [(&str, &str); 7] = [
    SYMBOL,
    ("qty", "1"),
    ("side", "buy"),
    ("type", "limit"),
    ("limitPrice", "100"),
    ("stopTrigPrice", "95"),
    ("targetPrice", "110"),
];

#[tokio::test(start_paused = true)]
async fn the_published_clients_calls_are_all_understood() {
    let (_sandbox, client) = client(Sandbox::builder());
    let trigger = form(&[
        SYMBOL,
        ("type", "limit"),
        ("side", "buy"),
        ("product", "delivery"),
        ("trigPrice", "99"),
        ("qty", "1"),
        ("limitPrice", "100"),
    ]);
    let pair =
        form(&[SYMBOL, ("side", "sell"), ("targetPrice", "110"), ("targetQty", "1"), ("stopQty", "1")]);
    for (kind, form) in [("gtt", trigger), ("oco", pair), ("bo", form(&BRACKET)), ("co", form(&BRACKET))] {
        let id = client.place_special(kind, form).await.unwrap().text_of("orderId").unwrap();
        let change = Operation::special(Endpoint::ModifySpecial, kind);
        let changed = client.call(&change.form(self::form(&[("orderId", &id), ("qty", "2")]))).await.unwrap();
        assert_eq!(changed.unwrap()["orderId"], *id);
        let listed = client.call(&Operation::special(Endpoint::SpecialOrders, kind)).await.unwrap().unwrap();
        assert_eq!((&listed[0]["orderId"], &listed[0]["qty"]), (&id.clone().into(), &"2".into()), "{kind}");
        let end = match kind {
            "gtt" | "oco" => Operation::special(Endpoint::CancelSpecial, kind).query("orderNo", &*id),
            _ => Operation::new(Endpoint::ExitOrder)
                .form(self::form(&[("orderId", &id), ("product", "bracket")])),
        };
        client.call(&end).await.unwrap();
        assert_eq!(client.call(&end).await.unwrap_err().kind(), ErrorKind::Rejected, "it has ended");
    }

    let placed = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    client.cancel(&placed.order_id).await.unwrap();
    let market = [SYMBOL, ("qty", "1"), ("side", "buy"), ("type", "market"), ("validity", "day")];
    let market = OrderRequest::from_fields(market.into_iter().chain([("product", "intraday")])).unwrap();
    let filled = client.place_order(&market).await.unwrap();
    let convert =
        [SYMBOL, ("qty", "1"), ("fromProduct", "intraday"), ("toProduct", "delivery"), ("side", "buy")];
    client.call(&Operation::new(Endpoint::ConvertPosition).form(form(&convert))).await.unwrap();
    assert_eq!(client.positions().await.unwrap().len(), 2);
    assert!(client.holdings().await.unwrap().is_empty());
    assert_eq!(client.trades().await.unwrap()[0].order_id, filled.order_id);
    assert_eq!(client.history().await.unwrap().len(), 2);
    assert!(client.history_of(&filled.order_id).await.unwrap().is_some());
    assert!(client.funds().await.unwrap().avail_margin.is_sign_positive());
    for endpoint in [Endpoint::AccountDetails, Endpoint::SymbolGroups] {
        assert!(client.call(&Operation::new(endpoint)).await.unwrap().is_some(), "{endpoint:?}");
    }
    let bars = [("from", "1"), ("to", "2"), ("interval", "1"), ("id", SYMBOL.1)];
    let bars = bars
        .into_iter()
        .fold(Operation::new(Endpoint::IntervalData), |bars, (name, value)| bars.query(name, value));
    assert!(client.call(&bars).await.unwrap().is_some());
    client.call(&Operation::new(Endpoint::Logout)).await.unwrap();
    assert_eq!(client.orders().await.unwrap_err().kind(), ErrorKind::Unauthorized);
}

#[tokio::test(start_paused = true)]
async fn a_special_order_in_doubt_is_not_sent_again_and_said_to_be_in_doubt() {
    let (sandbox, client) = client(script("[[fault]]\nname = 'answer.html-502'\nnth = 1"));
    let error = client.place_special("bo", form(&BRACKET)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InDoubt, "{error}");
    assert!(!error.is_retryable());
    let sends = sandbox.state().requests;
    assert_eq!(sends, 1);
}

#[tokio::test(start_paused = true)]
async fn a_halt_stops_special_orders_exits_and_conversions_and_lets_cancels_through() {
    let (_sandbox, client) = client(Sandbox::builder());
    let id = client.place_special("bo", form(&BRACKET)).await.unwrap().text_of("orderId").unwrap();
    client.halt();
    for operation in [
        Operation::special(Endpoint::PlaceSpecial, "bo").form(form(&BRACKET)),
        Operation::special(Endpoint::ModifySpecial, "bo").form(form(&[("orderId", &id), ("qty", "9")])),
        Operation::new(Endpoint::ExitOrder).form(form(&[("orderId", &id)])),
        Operation::new(Endpoint::ConvertPosition).form(form(&[SYMBOL])),
    ] {
        assert_eq!(client.call(&operation).await.unwrap_err().kind(), ErrorKind::Halted);
    }
    let cancel = Operation::special(Endpoint::CancelSpecial, "bo").query("orderNo", &*id);
    client.call(&cancel).await.unwrap();
}
