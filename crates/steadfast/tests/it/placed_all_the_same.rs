//! Answers that look like a failure to orders that were placed all the same: a page of a hop in front of the gateway, a 401, a
//! 429. Whole clients, and each case with an order of its own.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt};
use http::Method;
use steadfast::{
    Client, Error, Outcome, Placed,
    dedup::{OrderEvent, Settings},
};
use steadfast_verify::noon::at_noon;
use tokio::time::sleep;

use crate::{
    answers::{Answers, GATEWAY_TIMED_OUT, NO_DATA, list, placed, record, reply},
    token_life::{access_that_logs_in, token},
    world::{SECOND, order},
};

const SYMBOL: &str = "EQT_INFY_EQ_NSE";
const PAGES: [&str; 3] = [
    "",
    "<html><body><h1>502 Bad Gateway</h1></body></html>",
    "upstream connect error or disconnect/reset before headers",
];

/// How the gateway treats the order.
#[derive(Clone, Debug)]
struct Case {
    status: u16,
    body: &'static str,
    /// How long after its first arrival the order exists.
    late: Duration,
    /// How many sends are answered with the status. Those after the first place nothing.
    refused: usize,
    /// How many reads of the list fail after the order's first arrival.
    failed_reads: usize,
}

/// The gateway's books: when each order exists.
#[derive(Clone, Default)]
struct Books(Arc<Mutex<BTreeMap<String, Duration>>>);

impl Books {
    fn place(&self, from: Duration) -> String {
        let mut orders = self.0.lock().unwrap();
        let id = format!("9{:06}", orders.len() + 1);
        orders.insert(id.clone(), from);
        id
    }

    fn shown(&self, at: Duration) -> Vec<String> {
        let orders = self.0.lock().unwrap();
        orders.iter().filter(|(_, from)| **from <= at).map(|(id, _)| id.clone()).collect()
    }
}

impl Case {
    fn gateway(&self, books: &Books) -> Answers {
        let (case, books, failed) = (self.clone(), books.clone(), Mutex::new(0));
        Answers::with(move |arrival, number| match arrival.path.rsplit('/').next() {
            Some("individual-token-v2") => reply(200, token(number)),
            Some("place-order") if number == 1 => {
                books.place(arrival.at + case.late);
                reply(case.status, case.body)
            }
            Some("place-order") if number <= case.refused => reply(case.status, case.body),
            Some("place-order") => reply(200, placed(books.place(arrival.at))),
            _ if arrival.method == Method::GET => {
                let mut failed = failed.lock().unwrap();
                let is_begun = !books.0.lock().unwrap().is_empty();
                if is_begun && *failed < case.failed_reads {
                    *failed += 1;
                    return reply(504, GATEWAY_TIMED_OUT);
                }
                let shown = books.shown(arrival.at);
                let records: Vec<_> = shown.iter().map(|id| record(id, &order(SYMBOL))).collect();
                reply(200, if records.is_empty() { NO_DATA.to_owned() } else { list(&records) })
            }
            _ => reply(404, r#"{"s":"error","msg":"Resource not found"}"#),
        })
    }
}

/// The end of a case: the caller's answer, and the orders at the gateway.
#[derive(Debug)]
struct End {
    told: Result<Placed, Error>,
    orders: Vec<String>,
    /// The orders that were told by an event to exist although they were refused.
    contradicted: Vec<String>,
}

impl End {
    /// Places one order, and waits until everything late has come.
    async fn of(client: Client, books: &Books) -> Self {
        let mut events = client.events();
        let told = client.place_order(&order(SYMBOL)).await;
        sleep(120 * SECOND).await;
        let mut contradicted = Vec::new();
        while let Some(Some(Ok(event))) = events.next().now_or_never() {
            if let OrderEvent::RefusedButPlaced { order_id, .. } = event {
                contradicted.push(order_id);
            }
        }
        Self { told, orders: books.shown(Duration::MAX), contradicted }
    }

    /// True if the caller was told of this order, or that there may be one.
    fn is_true(&self) -> bool {
        match &self.told {
            Ok(placed) => self.orders == [placed.order_id.as_str()],
            Err(error) if matches!(error.outcome(), Outcome::Unknown { .. }) => true,
            Err(_) => self.contradicted == self.orders,
        }
    }
}

/// Counts the cases and those in which something is wrong, by name.
#[derive(Default)]
struct Tally {
    cases: usize,
    recovered: usize,
    in_doubt: usize,
    reported: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn take(&mut self, end: &End, case: &dyn std::fmt::Debug) {
        self.cases += 1;
        match &end.told {
            Ok(_) => self.recovered += 1,
            Err(error) if matches!(error.outcome(), Outcome::Unknown { .. }) => self.in_doubt += 1,
            Err(_) => self.reported += 1,
        }
        if end.orders.len() != 1 || !end.is_true() {
            self.wrong.push(format!("{case:?}: {end:?}"));
        }
    }

    #[expect(clippy::print_stdout, reason = "evidence reads figures from the output")]
    fn end(self, name: &str) {
        let Self { cases, recovered, in_doubt, reported, wrong } = self;
        println!(
            "figures: {name}_cases={cases} {name}_found={recovered} {name}_in_doubt={in_doubt} \
             {name}_reported={reported} {name}_wrong={}",
            wrong.len()
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// The order comes into existence up to 29 s after a hop in front of the gateway has answered: after every whole second with
/// `STEADFAST_DEEP`, otherwise after every seventh.
#[tokio::test(start_paused = true)]
async fn o02_an_order_behind_an_intermediarys_error_is_one_order() {
    let step = if std::env::var_os("STEADFAST_DEEP").is_some() { 1 } else { 7 };
    let mut tally = Tally::default();
    for (status, body) in [502, 503, 504, 520].into_iter().flat_map(|status| PAGES.map(|body| (status, body)))
    {
        for (late, resends) in (1..=29).step_by(step).flat_map(|late| [(late, false), (late, true)]) {
            let case = Case { status, body, late: late * SECOND, refused: 1, failed_reads: 0 };
            let books = Books::default();
            let settings = at_noon(Settings::default()).resend_after_undocumented_error(resends);
            let gateway = case.gateway(&books);
            let client = gateway.builder().order_safety(settings).build_over(gateway).unwrap();
            let end = End::of(client, &books).await;
            assert!(end.told.is_ok(), "{case:?}, with the switch: {resends}: {end:?}");
            tally.take(&end, &(&case, resends));
        }
    }
    tally.end("hop");
}

/// A list shows an order up to a second after the gateway has placed and refused it.
#[tokio::test(start_paused = true)]
async fn o05_an_order_that_was_placed_and_refused_is_one_order_and_never_called_refused_alone() {
    let refusals = [
        (401, r#"{"s":"error","msg":"Unauthorized"}"#),
        (429, r#"{"s":"error","msg":"Too many requests"}"#),
        (401, PAGES[1]),
        (429, PAGES[1]),
    ];
    let mut tally = Tally::default();
    for ((status, body), renews) in
        refusals.into_iter().flat_map(|refusal| [(refusal, false), (refusal, true)])
    {
        for (lag, refused) in
            [0, 300, 600, 900, 999].into_iter().flat_map(|lag| [(lag, 1), (lag, usize::MAX)])
        {
            for failed_reads in [0, 1, 3, 30] {
                let late = Duration::from_millis(lag);
                let case = Case { status, body, late, refused, failed_reads };
                let books = Books::default();
                let gateway = case.gateway(&books);
                let builder = if renews {
                    access_that_logs_in(&gateway).order_safety(at_noon(Settings::default()))
                } else {
                    gateway.builder()
                };
                let end = End::of(builder.build_over(gateway).unwrap(), &books).await;
                tally.take(&end, &(&case, renews));
            }
        }
    }
    tally.end("refused");
}
