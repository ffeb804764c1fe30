//! Short runs over real TCP; `steadfast demo` itself is the long one.

use std::time::Duration;

use super::{timetable::Timetable, *};

/// One second of orders and cancels, without a night.
fn brief(seed: u64, orders: usize) -> Scenario {
    let mut scenario = Scenario::with(seed, &Timetable::brief(orders));
    // A resend takes 15 s, longer than these tests.
    scenario.faults.retain(|_, misfortune| misfortune.fault.as_str().ends_with("-applied"));
    scenario.faults.retain(|_, misfortune| !misfortune.fault.as_str().ends_with("-not-applied"));
    scenario
}

async fn run<C: Contender>(contender: C, arena: &Arena, scenario: &Scenario) -> Session {
    let (_stop, stopped) = watch::channel(false);
    trade(Arc::new(contender), arena, scenario, Instant::now(), &Arc::default(), stopped).await
}

#[tokio::test]
async fn every_order_that_is_applied_behind_an_error_is_found_and_none_is_placed_twice() {
    let scenario = brief(11, 30);
    let arena = Arena::serve(scenario.gateway(11).unwrap()).await.unwrap();
    let session = run(Stack::with_token(&arena).unwrap(), &arena, &scenario).await;
    let tally = Tally::of(&session, Doubts::Resolves);
    assert_eq!(
        tally.broken_promises(10),
        Vec::<String>::new(),
        "{:?}",
        session.unsettled().collect::<Vec<_>>()
    );
    assert_eq!(tally.orders.went_in_doubt, scenario.faults.len());
    assert!(tally.orders.recovered >= 10, "{:?}", tally.orders);
}

/// Runs the three clients side by side: all of `steadfast demo` with `STEADFAST_DEEP=1`, otherwise one second of it.
///
/// That second has no order that is late or was not applied, so only the whole run says something about the client
/// that checks once.
#[tokio::test(flavor = "multi_thread")]
async fn demo_keeps_its_promises_and_the_others_do_not() {
    let deep = std::env::var_os("STEADFAST_DEEP").is_some();
    let scenario = if deep { Scenario::new(11, STANDARD) } else { brief(11, 30) };
    let sessions = side_by_side(11, &scenario, true).await.unwrap();
    let least = if deep { LEAST_RECOVERED } else { 10 };
    let unsettled = sessions[0].unsettled().collect::<Vec<_>>();
    let [steadfast, checks_once, naive] = tallies(&sessions);
    assert_eq!(steadfast.broken_promises(least), Vec::<String>::new(), "{unsettled:?}");
    assert!(steadfast.orders.recovered >= least, "{:?}", steadfast.orders);
    assert_eq!(steadfast.orders.asked, scenario.orders.len());
    assert!(naive.orders.duplicated >= 10, "{:?}", naive.orders);
    assert!(naive.http_429 > 0, "more orders are asked for at once than the quota holds");
    assert!(!deep || checks_once.orders.duplicated >= 1, "{:?}", checks_once.orders);
}

#[tokio::test]
async fn a_blind_retry_places_again_what_was_applied() {
    let scenario = brief(11, 30);
    let arena = Arena::serve(scenario.gateway(11).unwrap()).await.unwrap();
    let session = run(Naive::new(Wire::new(&arena)), &arena, &scenario).await;
    let tally = Tally::of(&session, Doubts::Never);
    assert!(tally.orders.duplicated >= 10, "{:?}", tally.orders);
    assert!(tally.http_429 > 0, "twenty orders in the first second are ten too many");
}

#[tokio::test]
async fn the_rivals_log_in_again_when_their_token_dies() {
    let scenario = brief(12, 4);
    let arena = Arena::serve(scenario.gateway(12).unwrap()).await.unwrap();
    let wire = Wire::new(&arena);
    arena.sandbox.revoke(None);
    assert_eq!(wire.list("list").await, Some(Vec::new()));
    assert_eq!(arena.sandbox.state().logins.succeeded, 1);
}

#[tokio::test]
async fn the_report_needs_nothing_else_and_tells_no_secret() {
    let scenario = brief(13, 12);
    let arena = Arena::serve(scenario.gateway(13).unwrap()).await.unwrap();
    let session = run(Stack::with_token(&arena).unwrap(), &arena, &scenario).await;
    let tallies = [Tally::of(&session, Doubts::Resolves)];
    let sessions = [session];
    let page =
        Report::new(13, Duration::from_secs(2), &scenario, &["steadfast"], &sessions, &tallies).to_string();
    for outside in ["http://", "https://", "//", "src=", "href=", "url(", "@import", "<script"] {
        // An empty closing comment: the style sheet has none.
        assert!(!page.contains(outside), "{outside}");
    }
    let credentials = &arena.credentials;
    for secret in [
        &credentials.api_key,
        &credentials.access_token,
        &credentials.password,
        &credentials.totp_secret,
        &credentials.client_secret,
    ] {
        assert!(!page.contains(secret.as_str()));
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    // C10: on a narrow page it must scroll in its frame. It was scaled to letters of 2.9 pixels.
    let frame = page.find("<div class=\"scroll\"><svg").unwrap();
    assert!(
        page[frame..].starts_with("<div class=\"scroll\"><svg viewBox=\"0 0 1212 "),
        "not the plot of doubts"
    );
    let struck = Scenario::intent(*scenario.faults.keys().next().unwrap());
    assert!(page.contains(&struck), "{struck} has no row");
}

/// Returns a property of a selector in the style sheet, in pixels.
fn pixels(style: &str, selector: &str, property: &str) -> f64 {
    let (_, rule) = style.split_once(&format!("\n{selector} {{")).unwrap();
    let (_, value) = rule.split('}').next().unwrap().split_once(&format!("{property}: ")).unwrap();
    value.split("px").next().unwrap().parse().unwrap()
}

#[test]
fn c10_the_plot_of_doubts_keeps_letters_that_can_be_read() {
    let style = include_str!("report/page.css");
    let least = pixels(style, ".scroll svg", "min-width");
    let letters = pixels(style, "svg text", "font-size") * least / 1_212.0;
    assert!(letters >= 9.0, "letters of {letters:.1} pixels");
    assert!(style.contains("\n.scroll { overflow-x: auto; }"), "the frame does not scroll");
    let heads = style.lines().find(|line| line.starts_with("thead th {")).unwrap();
    assert!(heads.contains("overflow-wrap: anywhere"), "heads collide: {heads}");
}

#[test]
fn the_json_object_has_the_fields_of_the_contract_and_no_more() {
    let tally = Tally {
        orders: tally::Orders::default(),
        http_429: 0,
        wire_requests: 0,
        quota_used_pct: quota::Share::default(),
        cancel_wait_ms: tally::Quantiles::default(),
        cancel_admitted_ms: tally::Quantiles::default(),
    };
    let output = Output {
        schema_version: 1,
        seed: 7,
        elapsed_s: 0.5,
        steadfast: &tally,
        checks_once: &tally,
        naive: &tally,
    };
    let expected = include_str!("sample.json").trim_end();
    assert_eq!(serde_json::to_string(&output).unwrap(), expected);
}
