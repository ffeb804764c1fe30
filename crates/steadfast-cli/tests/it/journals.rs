//! Journals as an earlier run left them.

use std::sync::Arc;

use steadfast::{
    OrderRequest,
    dedup::{
        AttemptNo, IntentNo, Session, TradingDay,
        journal::{Entry, FileJournal, Journal, Record},
    },
    ext::{Account, IntentId},
};

use crate::own_gateway::OwnGateway;

/// Writes the journal of a run that was killed before its orders were answered: their names and days.
pub(crate) async fn left_in_doubt(gateway: &OwnGateway, path: &str, sent: &[(Option<&str>, TradingDay)]) {
    let journal = FileJournal::open(path).unwrap();
    for (number, &(name, day)) in (0..).zip(sent) {
        let order = OrderRequest::from_fields([
            ("symId", "EQT_INFY_EQ_NSE"),
            ("qty", "1"),
            ("side", "buy"),
            ("type", "market"),
            ("product", "intraday"),
            ("validity", "day"),
        ]);
        let attempt = AttemptNo { intent: IntentNo(number), index: 0 };
        let (session, name) = (Session::default(), name.map(IntentId::new));
        let record =
            Record::Begun { attempt, session, day, name, order: Arc::new(order.unwrap()), tag: None };
        let account = Account::new(gateway.base_url.clone());
        journal.append_durably(Entry { account, record }).await.unwrap();
    }
}
