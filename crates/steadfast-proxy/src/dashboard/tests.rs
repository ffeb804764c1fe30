//! The model: what goes in, and what the page gets.

use steadfast::{
    dedup::{IntentNo, OrderEvent},
    ext::IntentId,
    limit::TrustStep,
    spec::{Form, OrderRequest},
};

use super::{
    board::{Board, Now},
    calls::{Call, End},
    orders::End as OrderEnd,
    reading::{Reading, WindowReading, ZoneReading},
    state::{SCHEMA_VERSION, State, Token, Word},
    strips::SAMPLES,
};

fn second(number: u64) -> Now {
    Now { at: 1_000 + number * 1_000, ran: number * 1_000 }
}

fn zone(used: u32) -> ZoneReading {
    let windows = vec![WindowReading { period_ms: 1_000, limit: 10, reserved: 1, used }];
    ZoneReading {
        zone: "general",
        step: TrustStep::OwnProfile,
        lost: 0,
        in_flight: used / 2,
        paused_ms: None,
        learned: None,
        windows,
        waiting: [0, 0, 3, 0, 1],
        next_free_ms: [0, 0, 250, 400, 900],
    }
}

fn reading() -> Reading {
    let token = Token {
        phase: Word::Borrowed("valid"),
        ends_at: Some(90_000),
        latched: false,
        sessions: 1,
        clock_offset_ms: None,
        trouble: None,
    };
    Reading {
        in_doubt: 0,
        unresolved: 0,
        unruled: Vec::new(),
        in_flight: 1,
        waiting: 2,
        trading: "trading",
        withheld: None,
        token,
        zones: vec![zone(4)],
        sharing: None,
        left: Vec::new(),
    }
}

fn order() -> OrderRequest {
    let form =
        b"symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&limitPrice=100&product=delivery&validity=day";
    OrderRequest::from_fields(Form::parse(form).unwrap().iter()).unwrap()
}

fn name() -> Option<IntentId> {
    Some(IntentId::new("n"))
}

fn words(state: &State) -> Vec<&str> {
    state.log.iter().map(|line| line.words.as_str()).collect()
}

fn begun() -> Board {
    Board::new("https://api.example/v2".to_owned(), second(0), reading())
}

#[test]
fn the_head_is_that_of_the_last_reading() {
    let state = begun().state(second(0), false);
    assert_eq!((state.schema_version, state.at, state.may_trade), (SCHEMA_VERSION, 1_000, false));
    assert_eq!((state.head.in_doubt, state.head.unresolved, state.head.waiting), (0, 0, 2));
    assert_eq!(state.head.trading, "trading");
    assert_eq!(state.head.gateway, "https://api.example/v2");
    assert!(!state.absent.is_empty(), "it names what it cannot tell");
}

#[test]
fn a_strip_holds_two_minutes_the_newest_last() {
    let mut board = begun();
    for number in 0..=SAMPLES as u64 + 4 {
        let used = u32::from(number > SAMPLES as u64) * 7;
        board.sample(second(number), Reading { zones: vec![zone(used)], ..reading() });
    }
    let state = board.state(second(200), true);
    let window = &state.zones[0].windows[0];
    assert_eq!((window.used.len(), window.limit, window.reserved), (SAMPLES, 10, 1));
    assert_eq!(window.used[SAMPLES - 5..], [0, 7, 7, 7, 7]);
    assert_eq!(state.zones[0].in_flight[SAMPLES - 1], 3);
    let early = begun().state(second(0), true);
    assert_eq!(early.zones[0].windows[0].used[SAMPLES - 2..], [0, 4], "nothing is known of before");
}

#[test]
fn a_lane_counts_those_who_wait_in_all_zones() {
    let mut board = begun();
    board.sample(
        second(0),
        Reading { zones: vec![zone(1), ZoneReading { zone: "data", ..zone(1) }], ..reading() },
    );
    let lanes = board.state(second(0), true).lanes;
    let lane = |name| lanes.iter().find(|lane| lane.lane == name).unwrap();
    assert_eq!((lane("trading").waiting[SAMPLES - 1], lane("trading").next_free_ms), (6, 250));
    assert_eq!((lane("bulk").waiting[SAMPLES - 1], lane("bulk").next_free_ms), (2, 900));
    assert_eq!((lane("normal").waiting[SAMPLES - 1], lane("normal").next_free_ms), (0, 0), "none waits");
}

#[test]
fn calls_are_counted_by_their_end_for_two_minutes() {
    let mut board = begun();
    let call = |end, took_us| Call { endpoint: "orders", end, is_repeated: end == End::Unknown, took_us };
    for took_us in 1..=98 {
        board.call_ended(second(10), call(End::Accepted, took_us * 10));
    }
    board.call_ended(second(10), call(End::Unknown, 5_000));
    board.call_ended(second(11), call(End::Rejected, 6_000));
    board.refused("host is no name of this proxy");
    let calls = board.state(second(11), true).calls;
    assert_eq!((calls.all[SAMPLES - 2], calls.failed[SAMPLES - 2]), (99, 1));
    assert_eq!((calls.all[SAMPLES - 1], calls.failed[SAMPLES - 1]), (1, 1));
    let orders = &calls.endpoints[0];
    assert_eq!((orders.count, orders.accepted, orders.unknown, orders.rejected), (100, 98, 1, 1));
    assert_eq!((orders.repeated, orders.p50_us, orders.p99_us), (1, 500, 5_000));
    assert_eq!((calls.refused[0].count, calls.span_ms), (1, 11_000));
    board.sample(second(131), reading());
    let calls = board.state(second(131), true).calls;
    assert!(calls.endpoints.is_empty() && calls.all.iter().all(|count| *count == 0));
}

#[test]
fn an_order_that_is_answered_at_once_is_never_shown() {
    let mut board = begun();
    board.order_asked(second(1), "n", &order());
    assert!(board.state(second(1), true).doubts.is_empty(), "it may be answered the next moment");
    let waits = board.state(second(3), true).doubts;
    assert_eq!((waits[0].stage.as_ref(), waits[0].side.as_ref()), ("waiting", "buy"));
    assert_eq!(waits[0].what, "10 EQT_INFY_EQ_NSE limit 100 delivery day");
    board.order_ended(second(4), "n", OrderEnd::Acknowledged);
    let state = board.state(second(5), true);
    assert!(state.doubts.is_empty() && state.resolved.is_empty());
}

#[test]
fn an_order_in_doubt_stays_until_it_is_found() {
    let mut board = begun();
    board.order_asked(second(1), "n", &order());
    board.order_ended(second(11), "n", OrderEnd::InDoubt(None));
    assert_eq!(board.state(second(12), true).doubts[0].stage, "in_doubt");
    let found = OrderEvent::Recovered { intent: IntentNo(1), name: name(), order_id: "7".to_owned() };
    board.order_event(second(20), &found);
    let state = board.state(second(20), true);
    assert!(state.doubts.is_empty());
    let order = &state.resolved[0];
    assert_eq!((order.stage.as_ref(), order.order_id.as_deref()), ("recovered", Some("7")));
    assert_eq!((order.asked_at, order.ended_at, order.steps.len()), (2_000, Some(21_000), 3));
    assert_eq!(state.log[0].order.as_deref(), Some("n"));
}

#[test]
fn a_caller_that_leaves_leaves_its_order_in_sight() {
    let mut board = begun();
    board.order_asked(second(1), "n", &order());
    board.order_ended(second(2), "n", OrderEnd::CallerLeft);
    assert_eq!(board.state(second(2), true).doubts[0].stage, "unheard");
    board.order_ended(second(9), "n", OrderEnd::NotPlaced("no time left".to_owned()));
    let state = board.state(second(9), true);
    assert_eq!((state.doubts.len(), state.resolved[0].stage.as_ref()), (0, "not_placed"));
}

#[test]
fn the_log_says_what_changed_between_two_readings() {
    let mut board = begun();
    board.read(second(1), reading());
    assert_eq!(words(&board.state(second(1), true)), ["dashboard began; trading"]);
    let paused = ZoneReading { paused_ms: Some(6_040), learned: Some(8), ..zone(10) };
    let mut changed = Reading { trading: "halted", in_doubt: 2, zones: vec![paused], ..reading() };
    changed.token.phase = Word::Borrowed("expired");
    board.read(second(2), changed);
    let state = board.state(second(2), true);
    assert_eq!(
        words(&state)[..5],
        [
            "zone general has learned a lower limit: 8",
            "zone general was answered 429 and pauses for 6.0 s",
            "orders in doubt: 2",
            "session has ended: the token has expired",
            "halted: no order and no change leaves",
        ]
    );
    board.events_missed(second(3), 4);
    board.read(second(4), reading());
    let state = board.state(second(4), true);
    let told = words(&state);
    assert!(told.contains(&"no order is looked for any more") && told.contains(&"trading again"), "{told:?}");
    assert!(told.contains(&"4 events about orders were missed: compare the order list"), "{told:?}");
}

#[test]
fn old_lines_and_old_orders_give_way() {
    let mut board = begun();
    for number in 0..300 {
        let name = format!("n{number}");
        board.order_asked(second(number), &name, &order());
        board.order_ended(second(number), &name, OrderEnd::InDoubt(None));
        let found = OrderEvent::Recovered {
            intent: IntentNo(number),
            name: Some(IntentId::new(name)),
            order_id: number.to_string(),
        };
        board.order_event(second(number), &found);
    }
    let state = board.state(second(300), true);
    assert_eq!((state.resolved.len(), state.log.len()), (200, 200));
    assert_eq!(state.resolved[0].order_id.as_deref(), Some("299"), "the newest first");
}
