//! The owner's process says of each order what came of it, and this is held against the gateway's book.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    io::Write,
};

use steadfast::{Client, ErrorKind, deadline::DeadlineLayer};
use tokio::task::JoinSet;

use super::{BURST, CALLS_LAST};
use crate::world::{World, name, order};

/// An order's result, as the process that sent it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Placed(String),
    /// It may be there.
    InDoubt,
    /// It was not sent, for this reason.
    Unsent(String),
}

impl Said {
    pub(super) fn of(told: Result<steadfast::Placed, steadfast::Error>) -> Self {
        match told {
            Ok(placed) => Self::Placed(placed.order_id),
            Err(error) if matches!(error.kind(), ErrorKind::InDoubt | ErrorKind::NotObserved) => {
                Self::InDoubt
            }
            Err(error) => Self::Unsent(format!("{:?}", error.kind())),
        }
    }
}

/// Places a burst as the owner, and says of each order what came of it, line by line.
pub(crate) async fn place_and_say(client: &Client, said: &str) {
    let client = client.with_deadline(DeadlineLayer::new(CALLS_LAST));
    let mut calls = JoinSet::new();
    for it in 0..BURST {
        let client = client.clone();
        calls.spawn(async move { (it, Said::of(client.place_order_as(&order(it), name(it)).await)) });
    }
    let mut file = File::create(said).unwrap();
    while let Some(ended) = calls.join_next().await {
        let (it, told) = ended.unwrap();
        let told = match told {
            Said::Placed(id) => format!("{it} placed {id}\n"),
            Said::InDoubt => format!("{it} doubt\n"),
            Said::Unsent(kind) => format!("{it} unsent {kind}\n"),
        };
        file.write_all(told.as_bytes()).unwrap();
    }
}

/// Returns what the owner has said.
pub(super) fn said(world: &World) -> BTreeMap<usize, Said> {
    let text = fs::read_to_string(world.said()).unwrap_or_default();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let told = match words[1..] {
            ["placed", id] => Said::Placed(id.to_owned()),
            ["doubt"] => Said::InDoubt,
            [_, kind] => Said::Unsent(kind.to_owned()),
            _ => panic!("{line}"),
        };
        (words[0].parse().unwrap(), told)
    };
    text.lines().map(line).collect()
}

/// Fails if what was said is not what the gateway has.
pub(super) fn check(world: &World, said: &BTreeMap<usize, Said>) {
    let state = world.sandbox.state();
    let ids: HashMap<&str, &str> =
        state.orders.iter().map(|order| (order.order_id.as_str(), order.qty.as_str())).collect();
    let book = world.book();
    assert!(book.values().all(|count| *count == 1), "placed twice: {book:?}");
    for (it, told) in said {
        let qty = (it + 1).to_string();
        match told {
            Said::Placed(id) => assert_eq!(ids.get(id.as_str()), Some(&&*qty), "order {it} is told as {id}"),
            Said::InDoubt => {}
            Said::Unsent(kind) => assert!(!book.contains_key(&qty), "order {it} is placed, and told {kind}"),
        }
    }
    assert_eq!(state.refusals.values().sum::<u64>(), 0, "answered with 429: {:?}", state.refusals);
}
