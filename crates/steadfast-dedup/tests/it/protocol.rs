//! Tests the protocol alone, driven by hand.

use std::{sync::Arc, time::Duration};

use steadfast_call::{Outcome, Resend};
use steadfast_dedup::{
    Answer, AttemptNo, Effect, Event, IntentNo, OrderEvent, OrderProtocol, Purpose, ReadNo, Session,
    Settings, TradingDay, Verdict, Wake,
};
use steadfast_spec::{FieldNames, OrderRecord, OrderRequest, parse_order_list};

const UNKNOWN: Outcome = Outcome::Unknown { resend: Resend::AfterAbsence };

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A protocol, with the clock and the counters of a driver.
struct Driver {
    protocol: OrderProtocol,
    now: Duration,
    intents: u64,
    reads: u64,
    reports: Vec<OrderEvent>,
}

impl Driver {
    /// Returns one that knows an empty list.
    fn new() -> Self {
        let protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay(0));
        let mut driver = Self { protocol, now: Duration::ZERO, intents: 0, reads: 0, reports: Vec::new() };
        driver.list(&[]);
        driver
    }

    fn step(&mut self, event: Event) {
        for effect in self.protocol.step(self.now, event) {
            if let Effect::Report(report) = effect {
                self.reports.push(report);
            }
        }
    }

    fn at(&mut self, now: Duration) {
        self.now = now;
        self.step(Event::Tick);
    }

    fn open(&mut self) -> IntentNo {
        let fields = [
            ("symId", "S"),
            ("qty", "1"),
            ("side", "buy"),
            ("type", "limit"),
            ("limitPrice", "5"),
            ("product", "delivery"),
            ("validity", "day"),
        ];
        let order = Arc::new(OrderRequest::from_fields(fields).unwrap());
        let intent = IntentNo(self.intents);
        self.intents += 1;
        self.step(Event::Opened { intent, order, name: None });
        intent
    }

    fn send(&mut self, intent: IntentNo) -> Option<AttemptNo> {
        let attempt = self.protocol.next_attempt(intent, Session::default())?;
        self.step(Event::Begun { attempt, session: Session::default() });
        let wanted = self.protocol.may_send(attempt);
        self.step(if wanted { Event::Sent(attempt) } else { Event::Withheld(attempt) });
        wanted.then_some(attempt)
    }

    fn close(&mut self, attempt: AttemptNo, outcome: Outcome, answer: Answer) {
        self.step(Event::Closed { attempt, outcome, answer });
    }

    fn read(&mut self) -> ReadNo {
        let read = ReadNo(self.reads);
        self.reads += 1;
        self.step(Event::ReadOpened { read, purpose: Purpose::Verification });
        self.step(Event::ReadStarted { read, session: Session::default() });
        read
    }

    fn list(&mut self, ids: &[&str]) {
        let read = self.read();
        self.step(Event::ReadEnded { read, list: Ok(records(ids)) });
    }
}

fn records(ids: &[&str]) -> Vec<OrderRecord> {
    let record = |id: &&str| format!(r#"{{"orderId":"{id}","symId":"S","side":"buy","qty":1}}"#);
    let list: Vec<_> = ids.iter().map(record).collect();
    let body = format!(r#"{{"s":"ok","d":[{}]}}"#, list.join(","));
    parse_order_list(body.as_bytes(), &FieldNames::default()).unwrap()
}

/// Two equal orders, the first still in flight when the token is renewed; a list asked for before the renewal shows
/// both. The first can own only one of them, so the second is not absent.
#[test]
fn a_list_from_before_a_renewal_does_not_make_the_later_twin_absent() {
    let mut driver = Driver::new();
    let first = driver.open();
    driver.send(first).unwrap();
    let before = driver.read();
    let renewed = Session::hashed(1);
    driver.step(Event::SessionMet(renewed));
    let second = driver.open();
    let attempt = driver.protocol.next_attempt(second, renewed).unwrap();
    driver.step(Event::Begun { attempt, session: renewed });
    driver.step(Event::Sent(attempt));
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    driver.step(Event::ReadEnded { read: before, list: Ok(records(&["o0", "o1"])) });
    for seconds in [16, 21, 26] {
        driver.at(ms(seconds * 1_000));
        let read = ReadNo(driver.reads);
        driver.reads += 1;
        driver.step(Event::ReadOpened { read, purpose: Purpose::Verification });
        driver.step(Event::ReadStarted { read, session: renewed });
        driver.step(Event::ReadEnded { read, list: Ok(records(&["o0", "o1"])) });
        assert_ne!(driver.protocol.verdict(second), Verdict::Resend, "after {seconds} s");
    }
    let Verdict::Unresolved(unresolved) = driver.protocol.verdict(second) else {
        panic!("one of them is its own")
    };
    assert_eq!(unresolved.candidates, ["o0", "o1"]);
}

/// Makes reads with an empty list when the protocol asks for them, until it decides.
fn reads_until_decided(driver: &mut Driver, intent: IntentNo) -> Vec<Duration> {
    let mut reads = Vec::new();
    while driver.protocol.verdict(intent) == Verdict::Pending {
        match driver.protocol.next_wake() {
            Some(Wake::Read(at, _)) => {
                driver.at(at);
                reads.push(at);
                driver.list(&[]);
            }
            Some(Wake::Tick(at)) => driver.at(at),
            None => panic!("nothing will ever decide"),
        }
    }
    reads
}

#[test]
fn where_the_gateway_answered_the_bound_runs_from_its_answer() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    driver.at(ms(10_000));
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    let reads = reads_until_decided(&mut driver, intent);
    assert_eq!(driver.protocol.verdict(intent), Verdict::Resend);
    assert_eq!(reads, [10_500, 11_500, 13_500, 17_000, 25_000].map(ms));
}

#[test]
fn where_it_did_not_the_bound_runs_from_the_longest_it_may_work() {
    for (given_up, settles) in [(10_000, 55_000), (40_000, 85_000)] {
        for answer in [Answer::Ended, Answer::None, Answer::Cut] {
            let mut driver = Driver::new();
            let intent = driver.open();
            let attempt = driver.send(intent).unwrap();
            driver.at(ms(given_up));
            driver.close(attempt, UNKNOWN, answer);
            let reads = reads_until_decided(&mut driver, intent);
            assert_eq!(reads.last(), Some(&ms(settles)), "given up at {given_up}");
            let resent = driver.protocol.verdict(intent) == Verdict::Resend;
            assert_eq!(resent, answer == Answer::Ended && given_up == 10_000, "{answer:?}");
        }
    }
}

#[test]
fn a_read_that_started_before_the_settle_instant_is_no_last_word() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    driver.list(&[]);
    driver.at(ms(14_999));
    let read = driver.read();
    driver.at(ms(16_000));
    driver.step(Event::ReadEnded { read, list: Ok(vec![]) });
    assert_eq!(driver.protocol.verdict(intent), Verdict::Pending);
    driver.list(&[]);
    assert_eq!(driver.protocol.verdict(intent), Verdict::Resend);
}

#[test]
fn one_read_after_the_settle_instant_is_not_enough() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    driver.at(ms(15_000));
    driver.list(&[]);
    assert_eq!(driver.protocol.verdict(intent), Verdict::Pending);
    driver.list(&[]);
    assert_eq!(driver.protocol.verdict(intent), Verdict::Resend);
}

#[test]
fn a_read_that_never_reached_the_wire_proves_no_absence() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    driver.at(ms(20_000));
    for number in 100..110 {
        driver.step(Event::ReadOpened { read: ReadNo(number), purpose: Purpose::Verification });
        driver.step(Event::ReadEnded { read: ReadNo(number), list: Ok(vec![]) });
    }
    assert_eq!(driver.protocol.verdict(intent), Verdict::Pending);
    // Its contents count.
    driver.step(Event::ReadOpened { read: ReadNo(200), purpose: Purpose::Verification });
    driver.step(Event::ReadEnded { read: ReadNo(200), list: Ok(records(&["x"])) });
    assert!(matches!(driver.protocol.verdict(intent), Verdict::Recovered { .. }));
}

#[test]
fn nothing_is_sent_while_it_is_in_doubt() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    assert_eq!(driver.send(intent), None, "in flight");
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    assert_eq!(driver.send(intent), None, "in doubt");
}

#[test]
fn an_answer_that_comes_twice_counts_once() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    driver.close(attempt, Outcome::NotExecuted, Answer::Status(429));
    assert_eq!(driver.protocol.in_doubt(), 1, "closed is closed");
}

#[test]
fn a_body_polled_after_its_attempt_was_given_up_does_not_leave() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.protocol.next_attempt(intent, Session::default()).unwrap();
    driver.step(Event::Begun { attempt, session: Session::default() });
    driver.close(attempt, Outcome::NotSent, Answer::None);
    assert!(!driver.protocol.may_send(attempt));
    assert!(driver.send(intent).is_some(), "the next attempt is its own");
}

#[test]
fn another_order_in_doubt_holds_a_granted_resend_back() {
    let mut driver = Driver::new();
    let (a, b) = (driver.open(), driver.open());
    let first = driver.send(a).unwrap();
    driver.close(first, UNKNOWN, Answer::Status(504));
    reads_until_decided(&mut driver, a);
    assert_eq!(driver.protocol.verdict(a), Verdict::Resend);
    // While it waits for its permit, a twin falls into doubt, and may own an order that appears.
    let second = driver.send(b).unwrap();
    driver.close(second, UNKNOWN, Answer::Status(504));
    assert_eq!(driver.send(a), None);
    assert_eq!(driver.protocol.verdict(a), Verdict::Pending, "looked for again, and not lost");
    driver.list(&["x"]);
    assert!(matches!(driver.protocol.verdict(a), Verdict::Recovered { .. }), "the older one takes it");
    assert_eq!(driver.protocol.verdict(b), Verdict::Pending);
}

#[test]
fn nothing_of_a_session_that_ended_is_sent_again() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    reads_until_decided(&mut driver, intent);
    let renewed = Session::new(Some(steadfast_call::ext::TokenGeneration(1)));
    assert_eq!(driver.protocol.next_attempt(intent, renewed), None);
    driver.step(Event::Concluded(intent));
    let verdict = driver.protocol.verdict(intent);
    assert!(
        matches!(verdict, Verdict::Unresolved(ref u) if u.reason.as_str() == "not_observed"),
        "{verdict:?}"
    );
}

#[test]
fn a_late_order_finds_the_intent_that_was_given_up() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    driver.step(Event::Abandoned(intent));
    reads_until_decided(&mut driver, intent);
    driver.at(ms(60_000));
    driver.reports.clear();
    driver.list(&["x"]);
    driver.list(&["x"]);
    let kept = None;
    let late = OrderEvent::LateDuplicate { intent, name: None, order_id: "x".into(), kept };
    assert_eq!(driver.reports, [late], "once");
}

#[test]
fn the_watch_goes_on_after_an_unresolved_order_and_not_after_a_clean_one() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    driver.close(attempt, Outcome::Accepted { order_id: Some("x".into()) }, Answer::Status(200));
    assert_eq!(driver.protocol.next_wake(), Some(Wake::Read(ms(16_000), Purpose::Audit)));
    driver.list(&["x"]);
    assert_eq!(driver.protocol.next_wake(), None);
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    driver.step(Event::Abandoned(intent));
    driver.at(ms(200_000));
    assert_eq!(driver.protocol.next_wake(), Some(Wake::Read(ms(230_000), Purpose::Watch)));
}

#[test]
fn time_never_runs_backwards() {
    let mut driver = Driver::new();
    let intent = driver.open();
    let attempt = driver.send(intent).unwrap();
    driver.at(ms(5_000));
    driver.now = ms(1_000);
    driver.close(attempt, UNKNOWN, Answer::Status(504));
    let reads = reads_until_decided(&mut driver, intent);
    assert_eq!(reads.last(), Some(&ms(20_000)));
}
