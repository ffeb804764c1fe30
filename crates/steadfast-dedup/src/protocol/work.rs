//! Counts the work of a step, in tests and debug builds: a step runs under the account's lock, and a count is the same on
//! every machine.

use std::cell::Cell;

thread_local! {
    static DONE: Cell<u64> = const { Cell::new(0) };
}

/// Counts a look at one intent, or a comparison of one record with one order.
pub(crate) fn count() {
    if cfg!(any(test, debug_assertions)) {
        DONE.set(DONE.get() + 1);
    }
}

/// Returns the result of a check that is no part of the work.
pub(crate) fn uncounted<T>(check: impl FnOnce() -> T) -> T {
    let done = DONE.get();
    let result = check();
    DONE.set(done);
    result
}

/// Returns what this thread has counted since it was last asked.
#[cfg(test)]
pub(crate) fn take() -> u64 {
    DONE.take()
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write as _, sync::Arc, time::Duration};

    use steadfast_call::{Outcome, Resend};
    use steadfast_spec::{FieldNames, OrderRecord, OrderRequest, parse_order_list};

    use super::*;
    use crate::{
        numbers::{AttemptNo, IntentNo, ReadNo, Session, TradingDay},
        protocol::{
            event::{Answer, Event},
            order_protocol::OrderProtocol,
            resolution::Verdict,
            wake::Purpose,
        },
        settings::Settings,
    };

    /// About 30 ns each in a release build, under the lock that other callers wait for. Before quantities were looked up,
    /// these lists took up to 905,000, and 14 million beside 500 acknowledged orders. Before each order that is one too many
    /// was judged beside orders found once, they took up to 320,000.
    const MOST: u64 = 100_000;

    const ORDERS: u64 = 50;
    /// More than are kept for a key.
    const ROWS: usize = 300;
    /// How many records the poller takes in at a time.
    const SLICE: usize = 256;

    const ROW: &str = r#""symId":"EQT_INFY_EQ_NSE","side":"buy""#;

    /// An account, and the most work of one step.
    struct Account {
        protocol: OrderProtocol,
        now: Duration,
        most: u64,
    }

    impl Account {
        fn step(&mut self, event: Event) {
            take();
            self.protocol.step(self.now, event);
            self.most = self.most.max(take());
        }

        /// Sends an order of this quantity.
        fn send(&mut self, intent: u64, qty: u64) -> AttemptNo {
            let qty = qty.to_string();
            let fields = [
                ("symId", "EQT_INFY_EQ_NSE"),
                ("qty", &qty),
                ("side", "buy"),
                ("type", "limit"),
                ("limitPrice", "100"),
                ("product", "delivery"),
                ("validity", "day"),
            ];
            let order = Arc::new(OrderRequest::from_fields(fields).unwrap());
            let attempt = AttemptNo { intent: IntentNo(intent), index: 0 };
            self.step(Event::Opened { intent: attempt.intent, order, name: None });
            self.step(Event::Begun { attempt, session: Session::default() });
            self.step(Event::Sent(attempt));
            attempt
        }

        fn list(&mut self, number: u64, records: Vec<OrderRecord>) {
            let read = ReadNo(number);
            self.now += Duration::from_secs(1);
            self.step(Event::ReadOpened { read, purpose: Purpose::Verification });
            self.step(Event::ReadStarted { read, session: Session::default() });
            let mut slices = records.chunks(SLICE).map(<[_]>::to_vec).collect::<Vec<_>>();
            let last = slices.pop().unwrap_or_default();
            for records in slices {
                self.step(Event::ReadPart { read, records });
            }
            self.step(Event::ReadEnded { read, list: Ok(last) });
        }
    }

    fn rows(first: usize, fields: &str) -> String {
        (first..first + ROWS).fold(String::new(), |mut rows, n| {
            write!(rows, r#",{{"orderId":"x{n}"{fields}}}"#).unwrap();
            rows
        })
    }

    fn parsed(rows: &str) -> Vec<OrderRecord> {
        parse_order_list(format!(r#"{{"s":"ok","d":[{}]}}"#, &rows[1..]).as_bytes(), &FieldNames::default())
            .unwrap()
    }

    /// Returns the most work of a step while fifty orders are in doubt beside a list of many rows, after so many were
    /// acknowledged.
    fn most_work(fields: &str, acknowledged: u64, lists: usize) -> u64 {
        let settings = Settings::default()
            .gateway_timeout(Duration::from_secs(30))
            .lateness(Duration::from_millis(50))
            .verification_budget(Duration::from_secs(10));
        let protocol = OrderProtocol::new(Arc::new(settings), TradingDay(0));
        let mut account = Account { protocol, now: Duration::ZERO, most: 0 };
        account.list(0, Vec::new());
        let mut own = String::new();
        for n in 0..acknowledged {
            let attempt = account.send(ORDERS + n, 1_000 + n);
            let outcome = Outcome::Accepted { order_id: Some(format!("o{n}").into()) };
            account.step(Event::Closed { attempt, outcome, answer: Answer::Status(200) });
            write!(own, r#",{{"orderId":"o{n}",{ROW},"qty":{}}}"#, 1_000 + n).unwrap();
        }
        if acknowledged > 0 {
            account.list(1, parsed(&own));
        }
        for n in 0..ORDERS {
            let attempt = account.send(n, n + 1);
            let outcome = Outcome::Unknown { resend: Resend::AfterAbsence };
            account.step(Event::Closed { attempt, outcome, answer: Answer::Status(504) });
        }
        for n in 2..16 {
            let rows = rows(n as usize % lists * ROWS, fields);
            account.list(n, parsed(&(own.clone() + &rows)));
        }
        for n in 0..ORDERS {
            assert_ne!(account.protocol.verdict(IntentNo(n)), Verdict::Pending, "{fields}: {n}");
        }
        account.most
    }

    /// Regression: each candidate of each order was compared with all that had ended before.
    #[test]
    fn f26_fifty_doubts_beside_a_crowded_list_end_in_a_short_step() {
        let mut most = Vec::new();
        let near = |qty| format!(r#",{ROW},"qty":{qty}"#);
        for acknowledged in [0, 200] {
            for (what, fields, lists) in [
                ("bare", String::new(), 1),
                ("near", near(99), 1),
                ("like one in doubt", near(7), 1),
                ("like one acknowledged", near(1_001), 1),
                ("new each time", near(99), 8),
            ] {
                most.push((most_work(&fields, acknowledged, lists), what, acknowledged));
            }
        }
        assert!(most.iter().all(|(most, ..)| *most <= MOST), "{most:?}");
    }
}
