//! Tests rare sequences of events, one step at a time.

use steadfast_call::{Outcome, Resend};
use steadfast_spec::{FieldNames, OrderRecord, OrderRequest, parse_order_list};

use super::*;
use crate::{
    numbers::ReadNo,
    protocol::{
        attempt::Never,
        event::Answer,
        fidelity::ListFidelity,
        order_event::OrderEvent,
        resolution::{Reason, Verdict},
        wake::Purpose,
    },
};

const LATER: Duration = Duration::from_secs(40);

/// A protocol, and the time that it is given.
struct Books {
    protocol: OrderProtocol,
    now: Duration,
    next_read: u64,
}

fn order(price: &str) -> Arc<OrderRequest> {
    let fields = [
        ("symId", "S"),
        ("qty", "1"),
        ("side", "buy"),
        ("type", "limit"),
        ("limitPrice", price),
        ("product", "delivery"),
        ("validity", "day"),
    ];
    Arc::new(OrderRequest::from_fields(fields).unwrap())
}

fn session(number: u64) -> Session {
    Session::hashed(number)
}

/// Returns the events that are reported.
fn told(effects: Vec<Effect>) -> Vec<OrderEvent> {
    let told = effects.into_iter().filter_map(|effect| match effect {
        Effect::Report(event) => Some(event),
        _ => None,
    });
    told.collect()
}

fn is_unresolved(verdict: &Verdict, why: Reason) -> bool {
    matches!(verdict, Verdict::Unresolved(unresolved) if unresolved.reason == why)
}

/// Returns records with these identifiers, instruments and prices.
fn records(orders: &[(&str, &str, &str)]) -> Vec<OrderRecord> {
    let records = orders.iter().map(|(id, sym_id, price)| {
        format!(r#"{{"orderId":"{id}","symId":"{sym_id}","side":"buy","qty":1,"limitPrice":{price}}}"#)
    });
    let body = format!(r#"{{"s":"ok","d":[{}]}}"#, records.collect::<Vec<_>>().join(","));
    parse_order_list(body.as_bytes(), &FieldNames::default()).unwrap()
}

impl Books {
    fn new() -> Self {
        let protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay(0));
        let mut books = Self { protocol, now: Duration::ZERO, next_read: 0 };
        books.list(&[]);
        books
    }

    fn step(&mut self, event: Event) -> Vec<OrderEvent> {
        told(self.protocol.step(self.now, event))
    }

    /// Opens an order and sends it.
    fn send(&mut self, intent: u64, order: Arc<OrderRequest>) {
        self.step(Event::Opened { intent: IntentNo(intent), order, name: None });
        self.send_again(intent, 0);
    }

    fn send_again(&mut self, intent: u64, index: usize) {
        let attempt = AttemptNo { intent: IntentNo(intent), index };
        self.step(Event::Begun { attempt, session: session(0) });
        self.step(Event::Sent(attempt));
    }

    fn answer(&mut self, intent: u64, index: usize, outcome: Outcome, answer: Answer) -> Vec<OrderEvent> {
        let attempt = AttemptNo { intent: IntentNo(intent), index };
        self.step(Event::Closed { attempt, outcome, answer })
    }

    fn acknowledge(&mut self, intent: u64, index: usize, order_id: &str) -> Vec<OrderEvent> {
        let outcome = Outcome::Accepted { order_id: Some(order_id.into()) };
        self.answer(intent, index, outcome, Answer::Status(200))
    }

    fn lose(&mut self, intent: u64, index: usize) {
        let outcome = Outcome::Unknown { resend: Resend::AfterAbsence };
        self.answer(intent, index, outcome, Answer::Status(504));
    }

    fn open_read(&mut self, purpose: Purpose, session: Session) -> ReadNo {
        let read = ReadNo(self.next_read);
        self.next_read += 1;
        self.step(Event::ReadOpened { read, purpose });
        self.step(Event::ReadStarted { read, session });
        read
    }

    /// Ends a read whose list shows these orders, each with more fields beside identifier, instrument, side and
    /// quantity.
    fn end_read(&mut self, read: ReadNo, orders: &[(&str, &str)]) -> Vec<OrderEvent> {
        let same = r#""symId":"S","side":"buy","qty":1"#;
        let records = orders.iter().map(|(id, more)| format!(r#"{{"orderId":"{id}",{same}{more}}}"#));
        let body = format!(r#"{{"s":"ok","d":[{}]}}"#, records.collect::<Vec<_>>().join(","));
        let list = parse_order_list(body.as_bytes(), &FieldNames::default()).unwrap();
        self.step(Event::ReadEnded { read, list: Ok(list) })
    }

    fn list(&mut self, orders: &[(&str, &str)]) -> Vec<OrderEvent> {
        let read = self.open_read(Purpose::Verification, session(0));
        self.end_read(read, orders)
    }

    /// Reads two lists, the second one when no lost order can appear any more.
    fn look(&mut self, orders: &[(&str, &str)]) -> Vec<OrderEvent> {
        let mut told = self.list(orders);
        self.now += LATER;
        told.extend(self.list(orders));
        told
    }

    /// Reads a list that shows each order under this instrument and with this price.
    fn list_as(&mut self, orders: &[(&str, &str, &str)]) -> Vec<OrderEvent> {
        let read = self.open_read(Purpose::Verification, session(0));
        self.step(Event::ReadEnded { read, list: Ok(records(orders)) })
    }

    fn verdict(&self, intent: u64) -> Verdict {
        self.protocol.verdict(IntentNo(intent))
    }
}

#[test]
fn a_list_that_was_asked_for_on_the_day_before_gives_no_order_to_anybody() {
    let mut books = Books::new();
    let read = books.open_read(Purpose::Verification, session(0));
    books.step(Event::DayBegan(TradingDay(1)));
    books.list(&[]);
    books.send(0, order("5"));
    books.lose(0, 0);
    books.end_read(read, &[("yesterdays", "")]);
    assert_eq!(books.verdict(0), Verdict::Pending);
    books.list(&[("todays", "")]);
    assert!(matches!(books.verdict(0), Verdict::Recovered { order_id, .. } if order_id == "todays"));
}

#[test]
fn the_list_of_a_session_that_is_over_is_not_what_an_order_of_a_new_one_waits_for() {
    let mut books = Books::new();
    books.step(Event::SessionMet(session(1)));
    books.step(Event::BaselineWanted);
    let since = books.protocol.baseline_wanted().unwrap();
    let read = books.open_read(Purpose::OwnSession, session(0));
    books.end_read(read, &[]);
    assert!(!books.protocol.has_tried(since));
    let read = books.open_read(Purpose::Baseline, session(1));
    books.end_read(read, &[]);
    assert!(books.protocol.has_tried(since));
}

#[test]
fn an_order_that_goes_ahead_in_a_new_session_asks_for_its_list() {
    let mut books = Books::new();
    books.send(0, order("5"));
    assert!(!books.protocol.awaits_baseline(), "the list of its session is known");
    let attempt = AttemptNo { intent: IntentNo(1), index: 0 };
    books.step(Event::Opened { intent: attempt.intent, order: order("5"), name: None });
    books.step(Event::Begun { attempt, session: session(1) });
    assert!(books.protocol.awaits_baseline());
}

#[test]
fn an_identifier_that_is_anothers_or_older_than_its_order_is_a_conflict() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.send(1, order("5"));
    assert_eq!(books.acknowledge(0, 0, "o1"), []);
    let conflict = |intent, other: Option<u64>, id: &str| {
        let (intent, other) = (IntentNo(intent), other.map(IntentNo));
        [OrderEvent::Conflict { intent, name: None, other, order_id: id.into() }]
    };
    assert_eq!(books.acknowledge(1, 0, "o1"), conflict(1, Some(0), "o1"));
    books.list(&[("o1", ""), ("o2", ""), ("o3", "")]);
    books.send(2, order("5"));
    assert_eq!(books.acknowledge(2, 0, "o3"), conflict(2, None, "o3"), "it was listed before");
    assert_eq!(books.protocol.tally.conflict, 2);
}

#[test]
fn a_resend_that_comes_back_on_the_next_day_finds_none_of_that_days_orders() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.lose(0, 0);
    books.look(&[]);
    assert_eq!(books.verdict(0), Verdict::Resend);
    books.send_again(0, 1);
    books.step(Event::DayBegan(TradingDay(1)));
    books.answer(0, 1, Outcome::NotExecuted, Answer::Status(429));
    books.list(&[("todays", "")]);
    assert!(!matches!(books.verdict(0), Verdict::Recovered { .. }), "{:?}", books.verdict(0));
}

#[test]
fn an_order_of_yesterday_still_in_flight_may_own_one_of_today() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.step(Event::DayBegan(TradingDay(1)));
    books.list(&[]);
    books.send(1, order("6"));
    books.lose(1, 0);
    // A record without a price may belong to either.
    books.list(&[("o1", "")]);
    assert_eq!(books.verdict(1), Verdict::Pending);
    books.answer(0, 0, Outcome::Rejected, Answer::Status(403));
    assert!(matches!(books.verdict(1), Verdict::Recovered { order_id, .. } if order_id == "o1"));
}

#[test]
fn an_order_that_was_answered_after_midnight_is_nobody_elses_and_proves_no_absence() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.step(Event::DayBegan(TradingDay(1)));
    books.list(&[]);
    books.send(1, order("5"));
    books.lose(1, 0);
    books.acknowledge(0, 0, "o1");
    // It may be the answered order, or one of today with the same identifier.
    books.look(&[("o1", "")]);
    assert!(is_unresolved(&books.verdict(1), Reason::NearMatch), "{:?}", books.verdict(1));
    // It is not one too many either.
    assert_eq!(books.list(&[("o1", "")]), []);

    // A second one can only be its own.
    assert!(matches!(*books.list(&[("o1", ""), ("o2", "")]), [OrderEvent::LateDuplicate { .. }]));
    assert!(matches!(books.verdict(1), Verdict::Recovered { order_id, .. } if order_id == "o2"));
}

#[test]
fn an_order_that_was_answered_after_midnight_is_known_by_another_spelling() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.step(Event::DayBegan(TradingDay(1)));
    books.list(&[]);
    books.send(1, order("5"));
    books.lose(1, 0);
    books.acknowledge(0, 0, "007");
    books.look(&[("7", "")]);
    assert!(is_unresolved(&books.verdict(1), Reason::NearMatch), "{:?}", books.verdict(1));
}

#[test]
fn what_was_lost_just_before_midnight_or_over_it_bars_equal_orders_from_being_reasoned_about() {
    // `before`: the answer is lost before the day begins; `settled`: nothing can appear any more by then.
    for (before, settled) in [(true, false), (true, true), (false, false)] {
        let mut books = Books::new();
        books.send(0, order("5"));
        if before {
            books.lose(0, 0);
        }
        if settled {
            books.now += LATER;
        }
        books.step(Event::DayBegan(TradingDay(1)));
        books.list(&[]);
        if !before {
            books.lose(0, 0);
        }
        assert!(is_unresolved(&books.verdict(0), Reason::EpochChanged), "{:?}", books.verdict(0));
        books.send(1, order("5"));
        books.lose(1, 0);
        books.look(&[("o1", "")]);
        match books.verdict(1) {
            Verdict::Recovered { order_id, .. } if settled => assert_eq!(order_id, "o1"),
            Verdict::Unresolved(unresolved) if !settled => {
                assert_eq!(
                    (unresolved.reason, unresolved.candidates),
                    (Reason::Tainted, vec!["o1".to_owned()])
                );
            }
            other => panic!("{before}, {settled}: {other:?}"),
        }
        // The next day is not affected.
        books.step(Event::DayBegan(TradingDay(2)));
        books.list(&[]);
        books.send(2, order("5"));
        books.lose(2, 0);
        books.look(&[("o2", "")]);
        assert!(matches!(books.verdict(2), Verdict::Recovered { order_id, .. } if order_id == "o2"));
    }
}

/// Regression: the block of an order lost before midnight ended while a kernel could still hold its request. When the order
/// appeared, it was given to another one that differs in its price, which the list did not show.
#[test]
fn o13_an_order_lost_before_midnight_bars_others_while_its_request_may_arrive() {
    let gone = ("its request is gone", None, false);
    let searched = ("searched for at midnight", None, false);
    let crashed = ("searched for before a crash", None, true);
    let absent = ("found absent before midnight", Some((Reason::NotObserved, "")), false);
    let near = ("given up before midnight", Some((Reason::NearMatch, r#","limitPrice":7"#)), false);
    for (what, told, crashes) in [gone, searched, crashed, absent, near] {
        let mut books = Books::new();
        books.send(0, order("5"));
        books.answer(0, 0, Outcome::Unknown { resend: Resend::Never }, Answer::None);
        if let Some((reason, shown)) = told {
            let listed: &[_] = if shown.is_empty() { &[] } else { &[("o0", shown)] };
            books.look(listed);
            books.now += LATER;
            books.list(listed);
            assert!(is_unresolved(&books.verdict(0), reason), "{what}: {:?}", books.verdict(0));
        }
        books.step(Event::DayBegan(TradingDay(1)));
        if crashes {
            books.step(Event::Restarted);
        }
        // By the last of these lists any search for it is over.
        books.list(&[]);
        for _ in 0..3 {
            books.now += LATER;
            books.list(&[]);
        }
        if what == gone.0 {
            books.now += Duration::from_secs(120);
            books.list(&[]);
            books.list(&[]);
        }
        books.send(1, order("6"));
        books.lose(1, 0);
        books.look(&[("o1", "")]);
        let verdict = books.verdict(1);
        if what == gone.0 {
            assert!(matches!(verdict, Verdict::Recovered { order_id, .. } if order_id == "o1"));
        } else {
            assert!(is_unresolved(&verdict, Reason::Tainted), "{what}: {verdict:?}");
        }
    }
}

#[test]
fn a_late_order_that_another_caller_was_told_of_without_its_price_is_reported() {
    let mut books = Books::new();
    books.protocol.settings =
        Arc::new(Settings::default().resend(crate::settings::policy::ResendPolicy::Never));
    books.send(0, order("5"));
    books.lose(0, 0);
    books.look(&[]);
    assert!(is_unresolved(&books.verdict(0), Reason::NotObserved));
    books.send(1, order("6"));
    books.lose(1, 0);
    // It belongs to the first, and looks like the second.
    let told = books.look(&[("o1", "")]);
    assert!(is_unresolved(&books.verdict(1), Reason::NearMatch), "{:?}", books.verdict(1));
    let late =
        |event: &&OrderEvent| matches!(event, OrderEvent::LateDuplicate { intent, .. } if intent.0 == 0);
    assert_eq!(told.iter().filter(late).count(), 1, "{told:?}");
    assert_eq!(books.look(&[("o1", "")]), [], "once");
}

#[test]
fn of_two_decided_twins_a_late_order_is_that_of_the_one_that_was_sent_twice() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.acknowledge(0, 0, "o1");
    books.send(1, order("5"));
    books.lose(1, 0);
    books.look(&[("o1", "")]);
    books.send_again(1, 1);
    books.acknowledge(1, 1, "o2");
    let told = books.list(&[("o1", ""), ("o2", ""), ("o3", "")]);
    let (intent, kept) = (IntentNo(1), Some("o2".to_owned()));
    let late = OrderEvent::LateDuplicate { intent, name: None, order_id: "o3".into(), kept };
    assert_eq!(told, [late]);
    assert_eq!((books.protocol.tally.late_duplicate, books.protocol.tally.excess), (1, 0));
}

#[test]
fn an_order_beside_an_acknowledged_one_is_one_too_many() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.acknowledge(0, 0, "o1");
    let excess = OrderEvent::Excess { intent: IntentNo(0), order_id: "o2".into() };
    assert_eq!(books.list(&[("o1", ""), ("o2", "")]), [excess]);
    assert_eq!((books.protocol.tally.excess, books.protocol.tally.late_duplicate), (1, 0));
}

#[test]
fn a_send_that_showed_itself_late_is_taken_for_dead_no_longer() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.lose(0, 0);
    books.look(&[]);
    books.send_again(0, 1);
    books.lose(0, 1);
    books.list(&[("o1", "")]);
    let is_dead = |books: &Books| books.protocol.intents.get(&IntentNo(0)).unwrap().is_presumed_dead();
    assert!(is_dead(&books), "one of two sends has an order");
    assert!(matches!(*books.list(&[("o1", ""), ("o2", "")]), [OrderEvent::LateDuplicate { .. }]));
    assert!(!is_dead(&books));

    // So a third one is not its own, and may be a later order after a change.
    books.send(1, order("6"));
    books.lose(1, 0);
    books.look(&[("o1", ""), ("o2", ""), ("o3", r#","limitPrice":5"#)]);
    assert!(is_unresolved(&books.verdict(1), Reason::NearMatch), "{:?}", books.verdict(1));
}

#[test]
fn orders_that_no_answer_will_tell_apart_any_more_are_not_waited_for() {
    let mut books = Books::new();
    for (intent, price) in [(0, "5"), (1, "6")] {
        books.send(intent, order(price));
        books.lose(intent, 0);
    }
    // It shows no price.
    books.look(&[("o1", "")]);
    assert!((0..2).all(|intent| is_unresolved(&books.verdict(intent), Reason::NearMatch)));
}

/// Regression: an order counted as rejected only once its call had ended, and what was known was judged before.
#[test]
fn a_record_that_may_be_a_rejected_orders_is_not_anothers_from_the_rejection_on() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.lose(0, 0);
    books.send(1, order("6"));
    // It shows no price, and the answer to the second may say whose it is.
    books.look(&[("o1", "")]);
    assert_eq!(books.verdict(0), Verdict::Pending);
    books.answer(1, 0, Outcome::Rejected, Answer::Status(403));
    books.step(Event::Concluded(IntentNo(1)));
    assert!(is_unresolved(&books.verdict(0), Reason::NearMatch), "{:?}", books.verdict(0));
}

#[test]
fn an_order_that_is_found_after_it_was_given_up_is_its_intents() {
    let mut books = Books::new();
    books.protocol.settings =
        Arc::new(Settings::default().resend(crate::settings::policy::ResendPolicy::Never));
    books.send(0, order("5"));
    books.lose(0, 0);
    books.look(&[]);
    assert!(is_unresolved(&books.verdict(0), Reason::NotObserved));
    assert!(matches!(*books.list(&[("o1", "")]), [OrderEvent::LateDuplicate { .. }]));
    assert!(matches!(books.verdict(0), Verdict::Recovered { order_id, .. } if order_id == "o1"));
}

#[test]
fn an_order_of_which_another_may_appear_is_not_forgotten() {
    let mut books = Books::new();
    books.protocol.rules.remembered = 8;
    books.send(0, order("5"));
    books.lose(0, 0);
    books.list(&[("o1", "")]);
    let others = |books: &mut Books, numbers: std::ops::Range<u64>| {
        for intent in numbers {
            books.send(intent, order("5"));
            books.acknowledge(intent, 0, &format!("a{intent}"));
        }
        books.protocol.intents.get(&IntentNo(0)).is_some()
    };
    assert!(others(&mut books, 1..50));
    books.now += LATER;
    assert!(!others(&mut books, 50..100));
}

/// Regression: only the time of the send counted. If the service's clock is ahead, its list may begin anew between the send
/// and the reads, and then lacks an order that was placed.
#[test]
fn an_order_that_is_absent_near_midnight_is_not_sent_again() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.lose(0, 0);
    books.step(Event::MidnightNear(true));
    books.look(&[]);
    assert!(is_unresolved(&books.verdict(0), Reason::NotObserved), "{:?}", books.verdict(0));
}

#[test]
fn what_a_caller_was_told_of_as_a_candidate_is_not_reported_again() {
    let mut books = Books::new();
    books.protocol.settings =
        Arc::new(Settings::default().account_mode(crate::settings::policy::AccountMode::Shared));
    books.send(0, order("5"));
    books.lose(0, 0);
    books.list(&[("o1", "")]);
    let Verdict::Unresolved(unresolved) = books.verdict(0) else { panic!("{:?}", books.verdict(0)) };
    assert_eq!(unresolved.candidates, ["o1"]);
    assert_eq!(books.look(&[("o1", "")]), []);
}

#[test]
fn a_resend_that_never_left_brings_no_ended_search_back() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.lose(0, 0);
    books.look(&[]);
    let attempt = AttemptNo { intent: IntentNo(0), index: 1 };
    books.step(Event::Begun { attempt, session: session(0) });
    books.list(&[("o1", "")]);
    books.answer(0, 1, Outcome::NotSent, Answer::None);
    assert!(matches!(books.verdict(0), Verdict::Recovered { order_id, .. } if order_id == "o1"));
}

#[test]
fn a_send_that_was_only_begun_before_a_restart_is_looked_for() {
    let mut books = Books::new();
    let attempt = AttemptNo { intent: IntentNo(0), index: 0 };
    books.step(Event::Opened { intent: attempt.intent, order: order("5"), name: None });
    books.step(Event::Begun { attempt, session: session(0) });
    books.step(Event::Restarted);
    let told = books.list(&[("o1", "")]);
    assert!(!told.is_empty() && books.protocol.in_doubt() == 0, "{told:?}, {:?}", books.verdict(0));
}

#[test]
fn after_a_restart_an_answer_that_took_the_order_still_weighs_most() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.lose(0, 0);
    books.look(&[]);
    books.send_again(0, 1);
    books.answer(0, 1, Outcome::Unknown { resend: Resend::Never }, Answer::Status(200));
    books.step(Event::Restarted);
    assert_eq!(books.protocol.intents.get(&IntentNo(0)).unwrap().never(), Some(Never::Success));
}

#[test]
fn how_late_an_order_is_found_is_counted_from_when_it_could_appear() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.lose(0, 0);
    books.now += Duration::from_secs(20);
    books.list(&[("o1", "")]);
    let mut lags = crate::protocol::visibility::LagHistogram::default();
    lags.observe(Duration::from_secs(20));
    assert_eq!(books.protocol.tally.visibility_lag, lags);
}

/// Regression: it counted as listed at once, and the lists as faster than they are.
#[test]
fn how_late_a_rejected_order_is_listed_is_not_counted() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.answer(0, 0, Outcome::Rejected, Answer::Status(400));
    books.step(Event::Concluded(IntentNo(0)));
    books.now += Duration::from_secs(20);
    let told = books.list(&[("o1", "")]);
    assert!(format!("{told:?}").contains("RefusedButPlaced"), "{told:?}");
    assert_eq!(books.protocol.tally.visibility_lag.count(), 0);
}

#[test]
fn only_sends_without_an_answer_are_in_flight() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.send(1, order("5"));
    assert_eq!(books.protocol.in_flight(), 2);
    books.lose(0, 0);
    assert_eq!(books.protocol.in_flight(), 1);
    books.acknowledge(1, 0, "o1");
    assert_eq!(books.protocol.in_flight(), 0);
}

#[test]
fn only_sessions_with_an_order_in_doubt_are_searched() {
    let mut books = Books::new();
    books.send(0, order("5"));
    assert!(!books.protocol.is_searched_in(session(0)), "in flight");
    books.lose(0, 0);
    assert!(books.protocol.is_searched_in(session(0)) && !books.protocol.is_searched_in(session(1)));
}

/// Returns an absent order whose resend is on its way to the transport.
fn about_to_send_again() -> (Books, AttemptNo) {
    let mut books = Books::new();
    books.send(0, order("7"));
    books.acknowledge(0, 0, "o1");
    books.send(1, order("5"));
    books.lose(1, 0);
    books.look(&[("o1", r#","limitPrice":7"#)]);
    assert_eq!(books.verdict(1), Verdict::Resend);
    let attempt = AttemptNo { intent: IntentNo(1), index: 1 };
    books.step(Event::Begun { attempt, session: session(0) });
    assert!(books.protocol.may_send(attempt));
    (books, attempt)
}

#[test]
fn a_granted_resend_stays_where_it_is_once_an_order_of_ours_is_listed_under_another_instrument() {
    let (mut books, attempt) = about_to_send_again();
    books.send(2, order("8"));
    books.acknowledge(2, 0, "o2");
    books.list_as(&[("o1", "S", "7"), ("o2", "ALIAS", "8")]);
    assert!(!books.protocol.may_send(attempt));
    books.step(Event::Withheld(attempt));
    // The order listed under another name is in doubt, too, and may be late.
    assert_eq!(books.verdict(1), Verdict::Pending);
    for _ in 0..4 {
        books.list_as(&[("o1", "S", "7"), ("o2", "ALIAS", "8")]);
        books.now += LATER;
    }
    assert!(matches!(books.verdict(1), Verdict::Unresolved(_)), "{:?}", books.verdict(1));
    assert!(!Reason::Uncalibrated.is_absence(), "no read could have shown it");
}

#[test]
fn each_order_of_ours_that_is_listed_otherwise_is_told_once() {
    let mut books = Books::new();
    let told = |intent, id: &str| OrderEvent::Uncalibrated { intent, name: None, order_id: id.into() };
    books.send(0, order("7"));
    books.acknowledge(0, 0, "o1");
    let mut listed = vec![("o1", "ALIAS", "7")];
    assert_eq!(books.list_as(&listed), [told(IntentNo(0), "o1")], "it may be a spelling");
    assert_eq!(books.list_as(&listed), []);
    books.send(1, order("8"));
    books.acknowledge(1, 0, "o2");
    listed.push(("o2", "S", "9"));
    let other = OrderEvent::AckMismatch { intent: IntentNo(0), name: None, order_id: "o1".into() };
    assert_eq!(
        books.list_as(&listed),
        [other],
        "it is none: the list says S; a price is told only if nothing was"
    );
    books.step(Event::DayBegan(TradingDay(1)));
    assert_eq!(
        books.protocol.fidelity.of_lists(),
        ListFidelity::Unlike,
        "spelling does not change overnight"
    );
}

#[test]
fn an_order_under_another_spelling_of_its_identifier_is_nobodys_surplus() {
    for found in [false, true] {
        let mut books = Books::new();
        books.send(0, order("5"));
        if found {
            books.lose(0, 0);
            books.list(&[("AB-1", "")]);
            assert!(matches!(books.verdict(0), Verdict::Recovered { order_id, .. } if order_id == "AB-1"));
        } else {
            books.acknowledge(0, 0, "AB-1");
        }
        // An order found in a list stays in it.
        let listed: &[_] = if found { &[("AB-1", ""), ("Ab-1", "")] } else { &[("Ab-1", "")] };
        assert_eq!(books.list(listed), [], "{found}");
        books.send(1, order("5"));
        books.lose(1, 0);
        books.look(listed);
        assert!(!matches!(books.verdict(1), Verdict::Recovered { .. }), "{:?}", books.verdict(1));
        let ruling = crate::protocol::ruling::Ruling::Placed { order_id: "aB-1".into() };
        books.now += Duration::from_secs(200);
        books.step(Event::Tick);
        let refused = books.protocol.check_ruling(IntentNo(1), &ruling);
        assert_eq!(refused, Err(crate::protocol::ruling::InvalidRuling::OrderOwned));
    }
}

/// Regression: the answer was forgotten with the wrong day, so its order was reported as one too many under the
/// identifier that lists show.
#[test]
fn an_answer_from_before_a_misnamed_day_still_waits_for_a_list() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.acknowledge(0, 0, "invented");
    // The next process takes the day for a later one, until an answer tells the date.
    books.step(Event::DayBegan(TradingDay(1)));
    books.step(Event::Restarted);
    books.step(Event::DayRenamed(TradingDay(0)));
    assert_eq!(books.list(&[("o1", "")]), [], "it may be the answered order");
    let told = [books.look(&[("o1", "")]), books.look(&[("o1", "")])].concat();
    assert!(matches!(*told, [OrderEvent::AckNotListed { .. }, OrderEvent::Recovered { .. }]), "{told:?}");
    assert!(matches!(books.verdict(0), Verdict::Recovered { order_id, .. } if order_id == "o1"));
}

/// Regression: the record of the older order was dropped with its report, and the younger one was taken before a list
/// showed it again. An equal order in doubt, sent between the two, could not take the older one and was sent again.
#[test]
fn an_order_that_was_reported_is_listed_again_before_a_younger_one_is_taken() {
    let mut books = Books::new();
    books.send(0, order("5"));
    books.acknowledge(0, 0, "o0");
    books.list_as(&[("o0", "S", "5")]);
    books.send(1, order("5"));
    books.acknowledge(1, 0, "anothers");
    let listed = [("o0", "S", "5"), ("anothers", "T", "5"), ("o1", "S", "5"), ("o2", "S", "5")];
    let alike = [listed[0], ("anothers", "S", "5"), listed[2]];
    let told = books.step(Event::CallerList { session: session(0), records: records(&alike) });
    let excess = |told: &[OrderEvent], id: &str| matches!(told, [.., OrderEvent::Excess { order_id, .. }] if order_id == id);
    assert!(excess(&told, "o1"), "{told:?}");
    books.send(2, order("5"));
    let told = books.list_as(&listed);
    assert!(matches!(*told, [OrderEvent::AckMismatch { .. }]), "{told:?}");
    books.lose(2, 0);
    assert_eq!(books.verdict(1), Verdict::Pending);
    books.list_as(&listed);
    let found = |intent| match books.verdict(intent) {
        Verdict::Recovered { order_id, .. } => order_id,
        other => panic!("{other:?}"),
    };
    assert_eq!((found(1), found(2)), ("o1".to_owned(), "o2".to_owned()));
}
