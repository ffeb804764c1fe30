//! Runs each checker over a sound run, and over the same run with a planted violation.

use std::{sync::Arc, time::Duration};

use steadfast_call::{Call, Outcome, ext};
use steadfast_dedup::{
    AttemptNo, Effect, Event, IntentNo, OrderEvent, Purpose, ReadFault, Session, Settings, Step, TradingDay,
};
use steadfast_spec::OrderRequest;
use steadfast_verify::invariants::{ALL, Answer, Order, Run, violations};
use tokio::time::sleep;

use crate::{
    gateway::{ack, gw504},
    rig::{ORDER, Rig, Told, order},
};

/// The intents of the sound run.
const ACKED: IntentNo = IntentNo(0);
const FOUND: IntentNo = IntentNo(1);
const RESENT: IntentNo = IntentNo(2);

/// A run with an acknowledged order, a found one, an absent one that was sent again and appears late from its first
/// attempt, and one that could not be told from a similar one.
async fn sound() -> Run {
    let rig = Rig::with(Settings::default());
    let alike = |record: &mut serde_json::Map<_, _>| drop(record.insert("qty".into(), 99.into()));
    let late = gw504().placed_after(Duration::from_secs(40));
    rig.gateway.will([ack(), gw504().placed(), late, ack(), gw504().placed().edit(alike)]);
    let mut named = rig.request("a", &order(3));
    Call::of_mut(named.extensions_mut()).set_intent(ext::IntentId::new("a"));
    assert_eq!(rig.send(named).await, Told::Placed("o1".into()));
    assert_eq!(rig.place("b", ORDER).await, Told::Recovered("o2".into()));
    assert_eq!(rig.place("c", &order(5)).await, Told::Resent("o4".into()));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.flagged(), ["o3"]);
    let last = rig.place("d", &ORDER.replace("buy", "sell")).await;
    assert_eq!(last, Told::Unresolved("near_match", vec!["o5".into()], 504));
    rig.tracker.shutdown().await;
    let run = rig.run();
    assert_eq!(violations(&run), Vec::<String>::new());
    run
}

/// Checks that an invariant's checker finds nothing in the sound run and something in the changed one.
async fn finds(name: &str, doctor: impl FnOnce(&mut Run)) {
    let mut run = sound().await;
    let (_, check) = ALL.iter().find(|(other, _)| *other == name).unwrap();
    check(&run).unwrap();
    doctor(&mut run);
    let found = check(&run);
    assert!(found.is_err(), "{name} did not find the planted violation");
}

fn steps(run: &mut Run) -> &mut Vec<Step> {
    &mut run.accounts[0]
}

fn position(run: &mut Run, wanted: impl Fn(&Step) -> bool) -> usize {
    steps(run).iter().position(wanted).unwrap()
}

fn absent(run: &mut Run) -> usize {
    position(run, |step| {
        step.effects.iter().any(|effect| matches!(effect, Effect::Report(OrderEvent::Absent { .. })))
    })
}

fn found(run: &mut Run) -> usize {
    position(run, |step| {
        step.effects.iter().any(|effect| matches!(effect, Effect::Report(OrderEvent::Recovered { .. })))
    })
}

/// Inserts a step after another one, at the same time.
fn insert(run: &mut Run, after: usize, event: Event) {
    let mut step = steps(run)[after].clone();
    (step.event, step.effects) = (event, Vec::new());
    steps(run).insert(after + 1, step);
}

fn report(run: &mut Run, at: usize, event: OrderEvent) {
    steps(run)[at].effects.push(Effect::Report(event));
}

/// Returns the order of an intent of the first account.
fn order_of(run: &Run, intent: IntentNo) -> Arc<OrderRequest> {
    let mut orders = run.accounts[0].iter().filter_map(|step| match &step.event {
        Event::Opened { intent: other, order, .. } if *other == intent => Some(order.clone()),
        _ => None,
    });
    orders.next_back().unwrap()
}

fn attempt(intent: IntentNo, index: usize) -> AttemptNo {
    AttemptNo { intent, index }
}

#[tokio::test(start_paused = true)]
async fn i01_a_send_without_its_record_is_found() {
    finds("I1", |run| {
        let begun = position(run, |step| matches!(step.event, Event::Begun { .. }));
        steps(run).remove(begun);
    })
    .await;
    finds("I1", |run| run.posts.push("unrecorded".into())).await;
}

#[tokio::test(start_paused = true)]
async fn i02_an_order_with_two_owners_is_found() {
    finds("I2", |run| {
        let at = found(run);
        let order_id = "o1".into();
        report(run, at, OrderEvent::Recovered { intent: FOUND, name: None, order_id });
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i03_an_order_too_many_is_found() {
    finds("I3", |run| {
        for id in ["o8", "o9"] {
            run.orders.push(Order { id: id.into(), owner: "b".into() });
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i04_a_resend_without_a_verdict_or_a_caller_is_found() {
    finds("I4", |run| {
        let at = absent(run);
        steps(run)[at].effects.clear();
    })
    .await;
    finds("I4", |run| {
        let at = absent(run);
        insert(run, at, Event::Abandoned(RESENT));
    })
    .await;
    // A second send before the first one is answered.
    finds("I4", |run| {
        let sent = position(run, |step| matches!(step.event, Event::Sent(_)));
        insert(run, sent, Event::Begun { attempt: attempt(ACKED, 1), session: Session::default() });
        insert(run, sent + 1, Event::Sent(attempt(ACKED, 1)));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i05_an_absence_too_early_or_against_the_list_is_found() {
    // Only the last of the reads is left.
    finds("I5", |run| {
        let at = absent(run);
        let mut reads: Vec<usize> = (0..at)
            .filter(|&place| matches!(steps(run)[place].event, Event::ReadEnded { list: Ok(_), .. }))
            .collect();
        reads.drain(..2);
        for read in reads {
            if let Event::ReadEnded { list, .. } = &mut steps(run)[read].event {
                *list = Err(ReadFault::Failed);
            }
        }
    })
    .await;
    // The bound is longer than the wait was.
    finds("I5", |run| run.lateness += Duration::from_secs(6)).await;
    // The order was listed all along.
    finds("I5", |run| {
        let at = absent(run);
        let Event::ReadEnded { list: Ok(records), .. } = &mut steps(run)[at].event else { unreachable!() };
        let mut record = records[0].clone();
        (record.order_id, record.qty) = ("o7".into(), Some("5".parse().unwrap()));
        record.limit_price = None;
        records.push(record);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i06_an_order_seen_for_the_first_time_twice_is_found() {
    finds("I6", |run| {
        let at = found(run);
        let seen = Effect::Seen { session: Session::default(), order_ids: vec!["o2".into()], complete: true };
        steps(run)[at].effects.push(seen);
    })
    .await;
    finds("I6", |run| {
        let at = position(run, |step| matches!(step.event, Event::ReadStarted { .. }));
        let seen = Effect::Seen { session: Session::default(), order_ids: vec!["o7".into()], complete: true };
        steps(run)[at].effects.push(seen);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i07_a_wrong_claim_is_found() {
    // With another quantity.
    finds("I7", |run| {
        let at = found(run);
        let Event::ReadEnded { list: Ok(records), .. } = &mut steps(run)[at].event else { unreachable!() };
        for record in records {
            record.qty = Some("11".parse().unwrap());
        }
    })
    .await;
    // Listed before the order was sent.
    finds("I7", |run| {
        let at = found(run);
        let Event::ReadEnded { list: Ok(records), .. } = steps(run)[at].event.clone() else { unreachable!() };
        let first = position(run, |step| matches!(step.event, Event::ReadEnded { .. }));
        if let Event::ReadEnded { list, .. } = &mut steps(run)[first].event {
            *list = Ok(records);
        }
    })
    .await;
    // While another answer could still have named it.
    finds("I7", |run| {
        let lost = position(
            run,
            |step| matches!(&step.event, Event::Closed { attempt, .. } if attempt.intent == FOUND),
        );
        let order = order_of(run, FOUND);
        insert(run, lost, Event::Opened { intent: IntentNo(9), order, name: None });
        insert(run, lost + 1, Event::Begun { attempt: attempt(IntentNo(9), 0), session: Session::default() });
        insert(run, lost + 2, Event::Sent(attempt(IntentNo(9), 0)));
    })
    .await;
    // Not the oldest.
    finds("I7", |run| {
        let at = found(run);
        let Event::ReadEnded { list: Ok(records), .. } = steps(run)[at].event.clone() else { unreachable!() };
        let lost = position(
            run,
            |step| matches!(&step.event, Event::Closed { attempt, .. } if attempt.intent == FOUND),
        );
        let mut older = records.iter().find(|record| record.order_id == "o2").unwrap().clone();
        older.order_id = "o0".into();
        insert(run, lost, Event::CallerList { session: Session::default(), records: vec![older] });
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i08_a_claim_taken_back_is_found() {
    finds("I8", |run| {
        let at = found(run);
        report(run, at + 1, OrderEvent::Absent { intent: FOUND, name: None });
    })
    .await;
    finds("I8", |run| {
        let at = found(run);
        insert(run, at, Event::Begun { attempt: attempt(FOUND, 1), session: Session::default() });
        insert(run, at + 1, Event::Sent(attempt(FOUND, 1)));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i09_an_absence_by_a_failed_read_is_found() {
    finds("I9", |run| {
        let at = absent(run);
        if let Event::ReadEnded { list, .. } = &mut steps(run)[at].event {
            *list = Err(ReadFault::Failed);
        }
    })
    .await;
    finds("I9", |run| {
        let at = absent(run);
        let started =
            steps(run)[..at].iter().rposition(|step| matches!(step.event, Event::ReadStarted { .. }));
        steps(run).remove(started.unwrap());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i10_an_order_that_nobody_was_told_of_is_found() {
    for gone in ["o3", "o2"] {
        finds("I10", |run| {
            for step in steps(run) {
                step.effects.retain(|effect| match effect {
                    Effect::Report(
                        OrderEvent::LateDuplicate { order_id, .. } | OrderEvent::Recovered { order_id, .. },
                    ) => order_id != gone,
                    _ => true,
                });
            }
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn i11_an_order_flagged_twice_is_found() {
    finds("I11", |run| {
        let last = steps(run).len() - 1;
        report(run, last, OrderEvent::Excess { intent: RESENT, order_id: "o3".into() });
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i12_a_cancel_is_found() {
    finds("I12", |run| run.methods.push("DELETE".into())).await;
}

#[tokio::test(start_paused = true)]
async fn i13_a_name_that_stands_for_two_orders_is_found() {
    finds("I13", |run| {
        let last = steps(run).len() - 1;
        let (order, name) = (order_of(run, ACKED), Some(ext::IntentId::new("a")));
        insert(run, last, Event::Opened { intent: IntentNo(9), order, name });
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i14_a_send_for_nobody_and_a_search_that_ends_with_the_caller_are_found() {
    finds("I14", |run| {
        let at = absent(run);
        insert(run, at, Event::Abandoned(RESENT));
    })
    .await;
    finds("I14", |run| {
        let at = found(run);
        steps(run)[at].effects.clear();
        insert(run, at - 1, Event::Abandoned(FOUND));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i15_a_send_by_a_restart_is_found() {
    finds("I15", |run| {
        let at = absent(run);
        insert(run, at, Event::Restarted);
    })
    .await;
    // A repeat of another order, or of this one before the restart, is no reason.
    finds("I15", |run| {
        let at = absent(run);
        insert(run, at, Event::Reopened(FOUND));
        insert(run, at, Event::Restarted);
        insert(run, at, Event::Reopened(RESENT));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i16_a_clock_that_runs_backwards_is_found() {
    finds("I16", |run| {
        let at = absent(run);
        steps(run)[at].now = Duration::ZERO;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i17_an_absence_across_midnight_or_sessions_is_found() {
    finds("I17", |run| {
        let lost = position(
            run,
            |step| matches!(&step.event, Event::Closed { attempt, .. } if attempt.intent == RESENT),
        );
        insert(run, lost, Event::DayBegan(TradingDay(i64::MAX)));
    })
    .await;
    finds("I17", |run| {
        for step in steps(run) {
            if let Event::Begun { session, .. } = &mut step.event {
                *session = Session::hashed(1);
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i18_reads_that_crowd_are_found() {
    finds("I18", |run| {
        let at = position(run, |step| {
            matches!(step.event, Event::ReadOpened { purpose: Purpose::Verification, .. })
        });
        let again = steps(run)[at].event.clone();
        insert(run, at, again);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i19_a_changed_byte_is_found() {
    finds("I19", |run| run.passed.push((b"a\0b".to_vec(), b"a\0c".to_vec()))).await;
}

#[tokio::test(start_paused = true)]
async fn i20_an_order_that_never_ends_or_ends_twice_is_found() {
    finds("I20", |run| {
        let at = found(run);
        steps(run)[at].effects.clear();
    })
    .await;
    finds("I20", |run| {
        let at = found(run);
        let order_id = "o2".into();
        report(run, at, OrderEvent::Recovered { intent: FOUND, name: None, order_id });
    })
    .await;
    finds("I20", |run| {
        let at = found(run);
        for step in &mut steps(run)[at..] {
            step.now += Duration::from_secs(300);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i21_doubt_without_its_marks_is_found() {
    let whole = Answer { unresolved: true, do_not_retry: true, unknown: true, has_original: true };
    for bare in [
        Answer { do_not_retry: false, ..whole },
        Answer { unknown: false, ..whole },
        Answer { has_original: false, ..whole },
    ] {
        finds("I21", |run| run.answers.push(bare)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn i22_knowledge_from_elsewhere_is_found() {
    finds("I22", |run| {
        let at = position(run, |step| {
            matches!(&step.event, Event::Closed { outcome: Outcome::Accepted { .. }, .. })
        });
        insert(
            run,
            at,
            Event::Known { session: Session::default(), order_ids: vec!["o2".into()], complete: false },
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i23_an_unlisted_order_that_nobody_is_told_of_is_found() {
    finds("I23", |run| {
        for step in steps(run) {
            if let Event::ReadEnded { list: Ok(records), .. } | Event::ReadPart { records, .. } =
                &mut step.event
            {
                records.retain(|record| record.order_id != "o1");
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i24_an_order_of_another_quantity_that_nobody_is_told_of_is_found() {
    finds("I24", |run| {
        for step in steps(run) {
            if let Event::ReadEnded { list: Ok(records), .. } | Event::ReadPart { records, .. } =
                &mut step.event
            {
                let its = records.iter_mut().filter(|record| record.order_id == "o1");
                its.for_each(|record| record.qty = Some(7.into()));
            }
        }
    })
    .await;
}
