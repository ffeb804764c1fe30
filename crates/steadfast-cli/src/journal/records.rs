//! Records of a journal, for tests.

use std::sync::Arc;

use steadfast::{
    OrderRequest,
    dedup::{
        AttemptNo, IntentNo, Session, TradingDay,
        journal::{Entry, Record},
    },
    ext::{Account, IntentId},
};

/// Returns the entry of a record, of the account without a name.
pub(crate) fn entry(record: Record) -> Entry {
    Entry { account: Account::default(), record }
}

/// Returns the number of an order's first send.
pub(crate) fn first(intent: u64) -> AttemptNo {
    AttemptNo { intent: IntentNo(intent), index: 0 }
}

/// Returns the entry of the first send of an order.
pub(crate) fn begun(intent: u64, name: &str) -> Entry {
    let order = OrderRequest::from_fields([
        ("symId", "EQT_INFY_EQ_NSE"),
        ("qty", "1"),
        ("side", "buy"),
        ("type", "market"),
        ("product", "intraday"),
        ("validity", "day"),
    ]);
    entry(Record::Begun {
        attempt: first(intent),
        session: Session::default(),
        day: TradingDay(0),
        name: Some(IntentId::new(name)),
        order: Arc::new(order.unwrap()),
        tag: None,
    })
}
