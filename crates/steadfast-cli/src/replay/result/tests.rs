use steadfast::dedup::Resolution;

use super::*;

#[test]
fn results_are_csv_with_the_columns_of_the_contract() {
    let mut text = Vec::new();
    let mut results = Results::new(&mut text, false).unwrap();
    let recovered = Resolution::Recovered { order_id: "7".to_owned(), status: None };
    let placed = Placement::Placed {
        order_id: "7".to_owned(),
        msg: "a, \"b\"".to_owned(),
        resolution: Some(recovered),
    };
    results.ended(2, &placed, false).unwrap();
    results.ended(3, &Placement::unresolved("of a later version", None), false).unwrap();
    let counts = results.counts;
    drop(results);
    let lines = "line,status,orderId,resolution,msg\n2,placed,7,recovered,\"a, \"\"b\"\"\"\n3,unresolved,,,of a later version\n";
    assert_eq!(String::from_utf8(text).unwrap(), lines);
    assert_eq!((counts.rows, counts.placed, counts.unresolved), (2, 1, 1));
}

#[test]
fn x01_what_the_service_says_is_no_formula_and_moves_no_cursor() {
    let mut text = Vec::new();
    let mut results = Results::new(&mut text, false).unwrap();
    let (order_id, msg) = ("=HYPERLINK(1)".to_owned(), "@x\x1b[2J".to_owned());
    results.ended(2, &Placement::Placed { order_id, msg, resolution: None }, false).unwrap();
    drop(results);
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().last(), Some("2,placed,'=HYPERLINK(1),,'@x\\u{1b}[2J"));
}

#[test]
fn c01_each_row_of_a_rehearsal_says_so() {
    let mut text = Vec::new();
    let mut results = Results::new(&mut text, true).unwrap();
    let placed = Placement::Placed { order_id: "7".to_owned(), msg: "ok".to_owned(), resolution: None };
    results.ended(2, &placed, false).unwrap();
    let not_sent = Placement::NotSent { why: Hindrance::Interrupted, msg: String::new() };
    results.ended(3, &not_sent, false).unwrap();
    drop(results);
    let text = String::from_utf8(text).unwrap();
    assert!(text.lines().skip(1).all(|line| line.contains("REHEARSAL: ")), "{text}");
}

#[test]
fn c03_an_event_stands_by_the_row_whose_order_it_names() {
    let mut text = Vec::new();
    let mut results = Results::new(&mut text, false).unwrap();
    let placed = Placement::Placed { order_id: "7".to_owned(), msg: String::new(), resolution: None };
    results.ended(2, &placed, false).unwrap();
    let seen = |name: Option<&str>, id: &str| Seen {
        at: 0,
        event: "late_order".to_owned(),
        name: name.map(str::to_owned),
        intent: None,
        order_id: Some(id.to_owned()),
        msg: "m".to_owned(),
        other: false,
    };
    results.event(&seen(None, "7")).unwrap();
    results.event(&seen(Some("line-9-again"), "8")).unwrap();
    results.event(&seen(None, "9")).unwrap();
    drop(results);
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.ends_with("2,event: late order,7,,m\n9,event: late order,8,,m\n,event: late order,9,,m\n"),
        "{text}"
    );
}

#[test]
fn c03_a_row_agrees_with_the_latest_event_about_it() {
    let mut text = Vec::new();
    let mut results = Results::new(&mut text, false).unwrap();
    let placed = Placement::Placed { order_id: "7".to_owned(), msg: String::new(), resolution: None };
    for line in 2..=4 {
        results.ended(line, &placed, line == 2).unwrap();
    }
    results.ended(5, &Placement::Refused { msg: "403".to_owned() }, false).unwrap();
    let seen = |event: &str, line: u64, id: Option<&str>, other| Seen {
        at: 0,
        event: event.to_owned(),
        name: Some(format!("line-{line}")),
        intent: None,
        order_id: id.map(str::to_owned),
        msg: "m".to_owned(),
        other,
    };
    results.event(&seen("conflict", 3, Some("7"), true)).unwrap();
    results.event(&seen("corrected", 2, None, false)).unwrap();
    results.event(&seen("corrected", 3, Some("8"), false)).unwrap();
    results.event(&seen("corrected", 5, Some("9"), false)).unwrap();
    let counts = results.counts;
    assert_eq!((counts.placed, counts.placed_before, counts.refused, counts.unresolved), (3, 0, 0, 1));
    results.leave_contradicted().unwrap();
    results.leave_contradicted().unwrap();
    let counts = results.counts;
    assert_eq!((counts.rows, counts.placed, counts.unresolved), (4, 2, 2));
    drop(results);
    let text = String::from_utf8(text).unwrap();
    let last = |line: &str| {
        let mut rows = text.lines().filter(|row| row.starts_with(line) && !row.contains(",event: "));
        rows.next_back().unwrap().to_owned()
    };
    // Regression: the id of its answer stood in the event alone.
    assert_eq!(last("2,"), "2,unresolved,,,m; its answer named 7");
    assert_eq!(last("3,"), "3,placed,8,recovered,m");
    assert!(last("4,").starts_with("4,unresolved,,,\"interrupted: "), "{text}");
    assert_eq!(last("5,"), "5,placed,9,recovered,m");
}

#[test]
fn c09_every_reason_of_the_library_has_a_sentence() {
    for reason in steadfast::dedup::Reason::ALL {
        assert!(told(reason.as_str()).starts_with(&format!("{reason}: ")), "{reason}");
    }
}

#[test]
fn c03_what_the_service_says_of_an_order_in_doubt_stands_in_its_row() {
    let mut text = Vec::new();
    let mut results = Results::new(&mut text, false).unwrap();
    let said = Some("200 Order queued".to_owned());
    results.ended(2, &Placement::unresolved("budget", said.clone()), false).unwrap();
    results.ended(3, &Placement::NotObserved { said }, false).unwrap();
    drop(results);
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains(
            "2,unresolved,,,budget: the order was not found in the time that a search may take; the service said: 200 Order queued\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("3,not observed,,,looked for and not there; the service said: 200 Order queued\n"),
        "{text}"
    );
}

#[test]
fn c03_a_row_in_doubt_names_the_orders_that_it_may_be() {
    let mut text = Vec::new();
    let mut results = Results::new(&mut text, false).unwrap();
    let candidates = vec!["260000000001".to_owned(), "260000000002".to_owned()];
    let said = Some("504".to_owned());
    let placement = Placement::Unresolved { reason: "no_baseline", candidates, why: None, said };
    results.ended(2, &placement, false).unwrap();
    drop(results);
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("; it may be 260000000001, 260000000002; once you have found it"), "{text}");
    assert!(text.ends_with("; the service said: 504\"\n"), "{text}");
}

#[test]
fn c03_a_row_that_is_in_doubt_after_all_is_counted_as_such() {
    let mut text = Vec::new();
    let mut results = Results::new(&mut text, false).unwrap();
    results.ended(2, &Placement::Refused { msg: "400".to_owned() }, false).unwrap();
    assert_eq!(results.not_placed().collect::<Vec<_>>(), [2]);
    results.in_doubt_after_all(2, "near_match", &["7".to_owned()]).unwrap();
    results.in_doubt_after_all(2, "near_match", &[]).unwrap();
    assert_eq!((results.counts.rows, results.counts.refused, results.counts.unresolved), (1, 0, 1));
    drop(results);
    assert!(
        String::from_utf8(text)
            .unwrap()
            .lines()
            .last()
            .unwrap()
            .contains("2,unresolved,,,\"near_match: the list holds an order that is like this one, but not equal; it may be 7; ")
    );
}

/// Regression: it was told that the service had refused it, which had never seen it.
#[test]
fn a_row_that_was_not_sent_keeps_its_cause_when_the_journal_has_no_end_of_it() {
    let mut text = Vec::new();
    let mut results = Results::new(&mut text, false).unwrap();
    let unsent = Placement::NotSent { why: Hindrance::Here, msg: "no space".to_owned() };
    let refused = Placement::NotExecuted { why: Hindrance::RateLimited, msg: "too many".to_owned() };
    results.ended(2, &unsent, false).unwrap();
    results.ended(3, &refused, false).unwrap();
    assert_eq!((results.was_unsent(2), results.was_unsent(3), results.was_unsent(4)), (true, false, false));
    results.in_doubt_after_all(2, "unwritten", &[]).unwrap();
    assert_eq!((results.counts.not_sent, results.counts.unresolved), (0, 1));
    drop(results);
    let text = String::from_utf8(text).unwrap();
    let last = text.lines().last().unwrap();
    assert!(last.contains("this run has sent nothing of the order") && last.contains("; no space"), "{last}");
}
