//! Runs random sessions: many orders on few keys, every kind of answer, late orders within the bound, lagging and
//! failing lists, callers that leave at any moment. In all of them: no duplicate and no invented order; and where
//! orders come later than the bound allows, no unreported duplicate.

use std::time::Duration;

use proptest::prelude::*;
use tokio::time::sleep;

use crate::{
    gateway::{Place, Read, ReadReply, Reply, ack, http, read},
    rig::{ORDER, Rig, Told},
};

/// Whether every order appears within the lateness bound.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Kept,
    Broken,
}

/// One order of a session.
#[derive(Clone, Debug)]
struct Asked {
    pause: u64,
    twin: usize,
    answer: usize,
    /// Milliseconds to the answer, and from there to the order's appearance; `None` if it never appears.
    answered: u64,
    late: Option<u64>,
    leaves: Option<u64>,
}

/// Generates an order that appears at most so many milliseconds late.
fn asked(most_late: u64) -> impl Strategy<Value = Asked> {
    let late = prop::option::of(prop_oneof![Just(0_u64), 0_u64..1_000, 0_u64..most_late]);
    let leaves = prop::option::weighted(0.2, 0_u64..30_000);
    (0_u64..4_000, 0_usize..3, 0_usize..9, 0_u64..3_000, late, leaves).prop_map(
        |(pause, twin, answer, answered, late, leaves)| Asked { pause, twin, answer, answered, late, leaves },
    )
}

fn read_script() -> impl Strategy<Value = Read> {
    let reply = prop_oneof![
        6 => Just(ReadReply::List),
        1 => Just(ReadReply::Http(504)),
        1 => Just(ReadReply::Http(429)),
        1 => Just(ReadReply::Lost),
        1 => Just(ReadReply::Raw("<html>".into())),
    ];
    (0_u64..1_500, 0_u64..1_500, reply).prop_map(|(before, after, reply)| Read {
        before: Duration::from_millis(before),
        after: Duration::from_millis(after),
        reply,
    })
}

impl Asked {
    fn script(&self) -> Place {
        let answered = Duration::from_millis(self.answered);
        let place = match self.answer {
            0 | 1 => ack(),
            2 => ack().reply(Reply::Cut),
            3 => http(403, "Forbidden"),
            4 => http(429, "Too many requests"),
            5 => http(504, "Gateway timedout"),
            6 => http(400, "timed out, check the order book"),
            7 => ack().reply(Reply::Ended),
            _ => ack().reply(Reply::NotPolled),
        };
        let place = Place { apply: None, ..place }.answered_after(answered);
        match (self.answer, self.late) {
            // An acknowledged order is there at its acknowledgement; a refused one never appears.
            (0 | 1, _) => place.placed(),
            (3 | 4 | 8, _) | (_, None) => place,
            (_, Some(late)) => place.placed_after(answered + Duration::from_millis(late)),
        }
    }
}

async fn session(orders: Vec<Asked>, reads: Vec<Read>, bound: Bound) {
    let rig = Rig::new();
    rig.gateway.reads(std::iter::once(read(ReadReply::List)).chain(reads));
    let mut calls = Vec::new();
    for (n, asked) in orders.iter().enumerate() {
        sleep(Duration::from_millis(asked.pause)).await;
        rig.gateway.will([asked.script()]);
        let form = match asked.twin {
            0 => ORDER.to_owned(),
            1 => ORDER.replace("qty=10", "qty=20"),
            _ => ORDER.replace("buy", "sell"),
        };
        let call = rig.start(&format!("i{n}"), &form);
        let leaves = asked.leaves;
        calls.push(tokio::spawn(async move {
            match leaves {
                Some(after) => {
                    sleep(Duration::from_millis(after)).await;
                    call.abort();
                    None
                }
                None => Some(call.await.unwrap()),
            }
        }));
    }
    let mut told = Vec::new();
    for call in calls {
        told.push(call.await.unwrap());
    }
    rig.tracker.shutdown().await;
    assert_eq!(rig.tracker.in_doubt(), 0, "I20: everything ends");
    if bound == Bound::Broken {
        // The watch still runs: every order that came too late is noticed, which the audit checks.
        sleep(Duration::from_secs(7_200)).await;
        return rig.audit();
    }
    rig.audit();
    let book = rig.gateway.0.lock();
    // Twins are interchangeable: only their number counts.
    let kind = |owner: &str| orders[owner[1..].parse::<usize>().unwrap()].twin;
    for twin in 0..3 {
        let placed = book.orders.iter().filter(|order| kind(&order.owner) == twin).count();
        let mut asked: Vec<_> = book.posts.iter().map(|(_, owner)| owner).collect();
        asked.retain(|owner| kind(owner) == twin);
        asked.sort();
        asked.dedup();
        assert!(placed <= asked.len(), "I3: {placed} orders for {} intents of kind {twin}", asked.len());
        let named = told.iter().enumerate().filter(|(n, told)| {
            orders[*n].twin == twin
                && matches!(told, Some(Told::Placed(_) | Told::Recovered(_) | Told::Resent(_)))
        });
        assert!(named.count() <= placed, "somebody was told of an order that is not there");
    }
}

/// Returns three hundred, or more if `PROPTEST_CASES` asks for it.
fn cases() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(300), ..default }
}

proptest! {
    #![proptest_config(cases())]
    #[test]
    fn no_session_places_an_order_twice(
        orders in prop::collection::vec(asked(14_500), 1..8),
        reads in prop::collection::vec(read_script(), 0..12),
    ) {
        run(session(orders, reads, Bound::Kept));
    }

    #[test]
    fn beyond_the_bound_every_duplicate_is_flagged(
        orders in prop::collection::vec(asked(180_000), 1..8),
        reads in prop::collection::vec(read_script(), 0..12),
    ) {
        run(session(orders, reads, Bound::Broken));
    }
}

fn run(session: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(session);
}
