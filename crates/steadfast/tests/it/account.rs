//! Positions, holdings, funds, trades and histories, over the in-process gateway in both of its shapes. The sandbox works
//! them out from its order book, so that what was traded decides what is read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast::{
    Access, Client, ErrorKind, Operation, OrderRequest, OrderType, Paths, Product, Side, Validity,
    spec::{Decimal, Endpoint, Form, OrderStatus, Position, UnreadableRecord},
};
use steadfast_sandbox::{BookEdit, ExtraFields, Quantity, Sandbox, SpecReading};

struct World {
    sandbox: Sandbox,
    client: Client,
}

/// 26 November 2026, 09:30 where the exchanges are.
fn morning() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_665_600)
}

impl World {
    fn new(published: bool, reading: SpecReading) -> Self {
        let builder = Sandbox::builder().wall_clock(morning()).interpretation(reading);
        let mut paths = Paths::public();
        paths.trades = Some("/api/oms/trades".to_owned());
        paths.convert_position = Some("/api/oms/convert-position".to_owned());
        let (builder, paths) = if published {
            (builder.published_client(), Paths::published_client())
        } else {
            (builder.paths(paths.clone()), paths)
        };
        let sandbox = builder.build().unwrap();
        let facts = sandbox.credentials();
        let access = Access::token(facts.api_key, facts.access_token).unwrap();
        let client = Client::builder(facts.base_url.parse().unwrap(), access).paths(paths);
        Self { client: client.build_over(sandbox.gateway()).unwrap(), sandbox }
    }

    /// Trades at `price`, at once, and returns the order's id.
    async fn trade(&self, side: Side, qty: u32, price: &str, product: Product) -> String {
        let order_id = self.place(side, qty, price, product).await;
        self.sandbox.edit_order(&order_id, BookEdit::Fill).unwrap();
        order_id
    }

    async fn place(&self, side: Side, qty: u32, price: &str, product: Product) -> String {
        let order = OrderRequest::builder()
            .sym_id("EQT_INFY_EQ_NSE".parse().unwrap())
            .side(side)
            .qty(qty)
            .order_type(OrderType::Limit)
            .limit_price(price)
            .product(product)
            .validity(Validity::Day)
            .build()
            .unwrap();
        self.client.place_order(&order).await.unwrap().order_id
    }

    async fn position(&self, product: Product) -> Option<Position> {
        let positions = self.client.positions().await.unwrap();
        let of = |position: &Position| position.product.as_ref().is_some_and(|it| it.is(product));
        positions.into_iter().find(of)
    }

    async fn convert(&self, qty: &str) -> Result<(), ErrorKind> {
        let form = Form::new().with("symId", "EQT_INFY_EQ_NSE").with("qty", qty).with("side", "buy");
        let form = form.with("fromProduct", "intraday").with("toProduct", "delivery");
        let operation = Operation::new(Endpoint::ConvertPosition).form(form);
        self.client.call(&operation).await.map(drop).map_err(|error| error.kind())
    }
}

/// Worlds of both shapes, plain and with quantities as texts and fields that nobody knows.
fn worlds() -> [World; 4] {
    let mut strange = SpecReading::default();
    (strange.quantity, strange.extra_fields) = (Quantity::Decimal, ExtraFields::Present);
    [(false, SpecReading::default()), (true, SpecReading::default()), (false, strange), (true, strange)]
        .map(|(published, reading)| World::new(published, reading))
}

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_account_without_orders_has_cash_and_nothing_else() {
    for world in worlds() {
        let client = &world.client;
        assert_eq!(client.positions().await.unwrap(), []);
        assert_eq!(client.holdings().await.unwrap(), []);
        assert_eq!(client.trades().await.unwrap(), []);
        assert_eq!(client.history().await.unwrap(), []);
        assert_eq!(client.history_of("260000000001").await.unwrap(), None);
        let funds = client.funds().await.unwrap();
        assert_eq!((funds.avail_margin, funds.margin_used), (1_000_000.into(), Some(Decimal::ZERO)));
    }
}

#[tokio::test(start_paused = true)]
async fn positions_are_what_was_traded_and_open_orders_are_none() {
    for world in worlds() {
        world.trade(Side::Buy, 10, "100.00", Product::Intraday).await;
        world.trade(Side::Buy, 10, "101", Product::Intraday).await;
        world.trade(Side::Sell, 5, "103", Product::Intraday).await;
        world.trade(Side::Sell, 3, "99.95", Product::Normal).await;
        let open = world.place(Side::Buy, 100, "90", Product::Intraday).await;
        world.client.cancel(&open).await.unwrap();

        let long = world.position(Product::Intraday).await.unwrap();
        assert_eq!(long.sym_id.as_str(), "EQT_INFY_EQ_NSE");
        assert_eq!((long.qty, long.net_avg_price), (15.into(), Some(decimal("100.5"))));
        assert_eq!((long.buy_qty, long.buy_avg_price), (Some(20.into()), Some(decimal("100.5"))));
        assert_eq!((long.sell_qty, long.sell_avg_price), (Some(5.into()), Some(103.into())));
        assert_eq!(long.realized_pnl, Some(decimal("12.5")));
        let short = world.position(Product::Normal).await.unwrap();
        assert_eq!((short.qty, short.net_avg_price), ((-3).into(), Some(decimal("99.95"))));
        assert_eq!(world.client.positions().await.unwrap().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn trades_and_histories_tell_each_fill() {
    for world in worlds() {
        let filled = world.trade(Side::Buy, 10, "100.05", Product::Delivery).await;
        let rejected = world.place(Side::Sell, 4, "90", Product::Intraday).await;
        world.sandbox.edit_order(&rejected, BookEdit::Reject).unwrap();

        let trades = world.client.trades().await.unwrap();
        assert_eq!(trades.len(), 1, "{trades:?}");
        let trade = &trades[0];
        assert_eq!((&trade.order_id, trade.sym_id.as_str()), (&filled, "EQT_INFY_EQ_NSE"));
        assert!(trade.side.is(Side::Buy));
        assert_eq!((trade.fill_qty, trade.fill_price), (10.into(), decimal("100.05")));
        assert_eq!(trade.time.as_deref(), Some("26-11-2026 09:30:00"));

        let history = world.client.history().await.unwrap();
        assert_eq!(history.iter().map(|it| &it.order_id).collect::<Vec<_>>(), [&filled, &rejected]);
        let one = world.client.history_of(&filled).await.unwrap().unwrap();
        assert_eq!(one, history[0]);
        assert!(one.status.is_some_and(|status| status.is(OrderStatus::Completed)));
        assert_eq!((one.total_fill_qty, one.avg_price), (Some(10.into()), Some(decimal("100.05"))));
        let step = one.history.last().unwrap();
        assert_eq!((&step.fill_id, step.fill_qty), (&trade.fill_id, Some(10.into())));
        let other = world.client.history_of(&rejected).await.unwrap().unwrap();
        assert_eq!((other.total_fill_qty, other.avg_price), (Some(Decimal::ZERO), None));
        assert!(other.reason.is_some());
        assert_eq!(world.client.history_of("nobody's").await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_bought_for_delivery_is_a_holding_from_the_next_day_on() {
    for world in worlds() {
        world.trade(Side::Buy, 10, "100", Product::Delivery).await;
        world.trade(Side::Buy, 10, "100", Product::Intraday).await;
        world.trade(Side::Buy, 10, "100", Product::Normal).await;
        assert_eq!(world.client.holdings().await.unwrap(), []);
        assert_eq!(world.client.positions().await.unwrap().len(), 3);

        // The token is valid until the next morning.
        world.sandbox.advance(Duration::from_secs(23 * 3600));
        let products: Vec<_> =
            { world.client.positions().await.unwrap() }.into_iter().map(|it| it.product).collect();
        assert_eq!(products.len(), 1, "intraday positions end with their day: {products:?}");
        assert!(world.position(Product::Normal).await.is_some());
        world.trade(Side::Sell, 4, "110", Product::Delivery).await;
        let holdings = world.client.holdings().await.unwrap();
        assert_eq!(holdings.len(), 1);
        assert_eq!((holdings[0].qty, holdings[0].avg_price), (10.into(), Some(100.into())));
        assert_eq!(holdings[0].saleable_qty, Some(6.into()), "four are sold today");
        assert_eq!(world.position(Product::Delivery).await.unwrap().qty, (-4).into());
        assert_eq!(world.client.trades().await.unwrap().len(), 1, "trades are those of today");
    }
}

#[tokio::test(start_paused = true)]
async fn funds_pay_for_deliveries_and_hold_margin_for_the_rest() {
    for world in worlds() {
        world.trade(Side::Buy, 10, "100", Product::Delivery).await;
        let funds = world.client.funds().await.unwrap();
        assert_eq!((funds.avail_cash, funds.margin_used), (Some(999_000.into()), Some(Decimal::ZERO)));
        world.trade(Side::Sell, 10, "50", Product::Intraday).await;
        let open = world.place(Side::Buy, 10, "20", Product::Intraday).await;
        let funds = world.client.funds().await.unwrap();
        assert_eq!((funds.margin_used, funds.avail_margin), (Some(140.into()), 998_860.into()));
        world.client.cancel(&open).await.unwrap();
        assert_eq!(world.client.funds().await.unwrap().margin_used, Some(100.into()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversion_moves_what_is_held_and_no_more() {
    for world in worlds() {
        assert_eq!(world.convert("1").await, Err(ErrorKind::Rejected), "there is no position");
        world.trade(Side::Buy, 10, "100", Product::Intraday).await;
        assert_eq!(world.convert("11").await, Err(ErrorKind::Rejected));
        world.convert("4").await.unwrap();
        let quantities = [Product::Intraday, Product::Delivery].map(|product| world.position(product));
        let [left, moved] = quantities;
        let (left, moved) = (left.await.unwrap(), moved.await.unwrap());
        assert_eq!((left.qty, moved.qty), (6.into(), 4.into()));
        assert_eq!((left.net_avg_price, moved.net_avg_price), (Some(100.into()), Some(100.into())));
        assert_eq!(world.convert("7").await, Err(ErrorKind::Rejected));
        world.sandbox.advance(Duration::from_secs(23 * 3600));
        assert_eq!(world.client.holdings().await.unwrap()[0].qty, 4.into());
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_names_record_and_field() {
    let world = World::new(false, SpecReading::default());
    world.trade(Side::Buy, 1, "1", Product::Delivery).await;
    // A list of another kind stands where the trades are expected.
    let mut paths = Paths::public();
    paths.trades = Some("/api/oms/orders".to_owned());
    let facts = world.sandbox.credentials();
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let client = Client::builder(facts.base_url.parse().unwrap(), access).paths(paths);
    let error = client.build_over(world.sandbox.gateway()).unwrap().trades().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedAnswer);
    let source = std::error::Error::source(&error).unwrap().downcast_ref::<UnreadableRecord>().unwrap();
    assert_eq!((source.index(), source.field()), (Some(0), "fillQty"));
    assert!(error.to_string().contains("list of trades cannot be read: field fillQty in d[0]"), "{error}");
}
