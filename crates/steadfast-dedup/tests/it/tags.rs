//! S73 and S74: orders that carry a tag of their own.

use std::time::Duration;

use serde_json::{Map, Value, json};
use steadfast_dedup::{AccountMode, Confidence, OrderEvent, OrderTag, OrdersScope, Settings, TagEcho};
use steadfast_spec::Tag;
use tokio::time::sleep;

use crate::{
    gateway::{Place, Reply, ack, documented, gw504},
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn tagged(mode: AccountMode) -> Rig {
    Rig::with(Settings::default().account_mode(mode).tag(OrderTag::field("remarks").max_len(10)))
}

fn shared() -> Rig {
    tagged(AccountMode::Shared)
}

/// A stranger's order, which carries this remark.
fn remarked(form: &str, remark: &str) -> String {
    format!("{form}&remarks={remark}")
}

fn strangers_tag() -> String {
    Tag::from_draw(0x5eed).to_string()
}

/// Returns what the gateway shows of an order's remark.
fn remark(rig: &Rig, id: &str) -> String {
    kept(rig, id, "remarks")
}

fn kept(rig: &Rig, id: &str, field: &str) -> String {
    let book = rig.gateway.0.lock();
    let order = book.orders.iter().find(|order| order.id == id).unwrap();
    order.record().get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Leaves the remark out of what is shown, and keeps it under another name.
fn hidden(record: &mut Map<String, Value>) {
    let remark = record.remove("remarks").unwrap();
    record.insert("kept".into(), remark);
}

/// Places an order that lists show before the next one is searched for.
async fn acknowledged(rig: &Rig, name: &str, edit: fn(&mut Map<String, Value>)) {
    rig.gateway.will([ack().edit(edit)]);
    assert!(matches!(rig.place(name, &order(7)).await, Told::Placed(_)));
}

/// Loses an order while a stranger places another one.
async fn lost_beside(rig: &Rig, place: Place, stranger: &str) -> Told {
    rig.gateway.will([place.answered_after(s(1))]);
    let call = rig.start("a", ORDER);
    sleep(Duration::from_millis(500)).await;
    rig.gateway.foreign(stranger, |_| {});
    call.await.unwrap()
}

fn echoes(rig: &Rig) -> Vec<TagEcho> {
    let echoes = rig.events().into_iter().filter_map(|event| match event {
        OrderEvent::TagEcho { echo, .. } => Some(echo),
        _ => None,
    });
    echoes.collect()
}

fn ambiguous(ids: &[&str]) -> Told {
    Told::Unresolved("ambiguous_owner", ids.iter().map(ToString::to_string).collect(), 504)
}

fn near(ids: &[&str]) -> Told {
    Told::Unresolved("near_match", ids.iter().map(ToString::to_string).collect(), 504)
}

#[tokio::test(start_paused = true)]
async fn s73_an_order_is_found_by_its_tag_beside_a_strangers_twin() {
    for twin in [ORDER.to_owned(), remarked(ORDER, "mine"), remarked(ORDER, &strangers_tag())] {
        let rig = shared();
        acknowledged(&rig, "first", |_| {}).await;
        let told = lost_beside(&rig, gw504().placed(), &twin).await;
        assert_eq!(told, Told::Recovered("o2".into()), "{twin}");
        assert_eq!((rig.gateway.posts(), echoes(&rig)), (2, vec![TagEcho::Whole]));
        assert_eq!(rig.tracker.tally().recovered(Confidence::Tagged), 1);
        assert_eq!(rig.tracker.tally().tag_echoes(TagEcho::Whole), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn s73_a_strangers_tag_is_no_reason_to_doubt_an_absence() {
    let rig = shared();
    acknowledged(&rig, "first", |_| {}).await;
    let told = lost_beside(&rig, gw504(), &remarked(ORDER, &strangers_tag())).await;
    assert_eq!(told, Told::Resent("o3".into()));
    assert_eq!(rig.gateway.posts(), 3);
    assert!(rig.flagged().is_empty(), "the stranger's order is no late one of ours: {:?}", rig.flagged());
}

/// A tag brings no order that is late.
#[tokio::test(start_paused = true)]
async fn s73_an_absence_takes_as_long_with_a_tag() {
    let rig = shared();
    acknowledged(&rig, "first", |_| {}).await;
    let late = gw504().placed_after(s(14));
    let told = lost_beside(&rig, late, &remarked(ORDER, &strangers_tag())).await;
    assert_eq!(told, Told::Recovered("o2".into()));
    assert_eq!(rig.gateway.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_order_without_a_tag_is_a_strangers_once_three_of_its_class_have_shown_theirs() {
    let same_class = |rig: Rig, acknowledged_before: usize| async move {
        for n in 0..acknowledged_before {
            acknowledged(&rig, &format!("before-{n}"), |_| {}).await;
        }
        (lost_beside(&rig, gw504(), ORDER).await, rig)
    };
    let (told, _) = same_class(shared(), 2).await;
    assert_eq!(told, ambiguous(&["o3"]));
    let (told, rig) = same_class(shared(), 3).await;
    assert_eq!((told, rig.gateway.posts()), (Told::Resent("o5".into()), 5));
    // One of the class without its tag is enough.
    let rig = shared();
    acknowledged(&rig, "bare", |record| drop(record.remove("remarks"))).await;
    let (told, rig) = same_class(rig, 3).await;
    assert_eq!(told, ambiguous(&["o5"]));
    assert_eq!(echoes(&rig), [TagEcho::Missing, TagEcho::Whole]);
}

/// Places an order whose tag only a later list shows: it is found by that list, and not sent again.
async fn is_found_by_a_later_tag(place: Place) {
    let rig = shared();
    for n in 0..3 {
        acknowledged(&rig, &format!("before-{n}"), |_| {}).await;
    }
    rig.gateway.will([place.placed().edit(hidden)]);
    let call = rig.start("a", ORDER);
    sleep(s(5)).await;
    rig.gateway.set("o4", "remarks", json!(kept(&rig, "o4", "kept")));
    assert_eq!(call.await.unwrap(), Told::Recovered("o4".into()));
    assert_eq!(rig.gateway.posts(), 4);
}

/// A service may fill the field in after it has listed the order.
#[tokio::test(start_paused = true)]
async fn a_tag_counts_that_only_a_later_list_shows() {
    is_found_by_a_later_tag(gw504()).await;
}

/// The list that is to confirm a refusal is the only one before the order is sent again.
#[tokio::test(start_paused = true)]
async fn an_order_without_a_tag_confirms_no_refusal() {
    is_found_by_a_later_tag(documented(429)).await;
}

#[tokio::test(start_paused = true)]
async fn s74_lists_that_cease_to_show_tags_tell_nothing_by_their_absence() {
    for scope in [OrdersScope::Session, OrdersScope::Account] {
        let settings = Settings::default().account_mode(AccountMode::Shared).orders_scope(scope);
        let rig = Rig::with(settings.tag(OrderTag::field("remarks")));
        for n in 0..3 {
            acknowledged(&rig, &format!("before-{n}"), |_| {}).await;
        }
        rig.gateway.will([gw504().placed()]);
        assert_eq!(rig.place("found", &order(3)).await, Told::Recovered("o4".into()));
        for id in ["o1", "o2", "o3", "o4"] {
            rig.gateway.set(id, "remarks", Value::Null);
        }
        // The next login's lists are the same account's.
        if scope == OrdersScope::Account {
            rig.between.token(1);
        }
        rig.gateway.will([gw504().placed().edit(hidden)]);
        assert_eq!(rig.place("a", ORDER).await, ambiguous(&["o5"]), "{scope:?}");
        assert_eq!((rig.gateway.posts(), echoes(&rig)), (5, vec![TagEcho::Whole, TagEcho::Missing]));
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_was_found_without_its_tag_tells_that_its_class_may_lack_them() {
    let rig = tagged(AccountMode::Exclusive);
    for n in 0..2 {
        acknowledged(&rig, &format!("before-{n}"), |_| {}).await;
    }
    rig.gateway.will([gw504().placed().edit(hidden)]);
    assert_eq!(rig.place("found", &order(3)).await, Told::Recovered("o3".into()));
    acknowledged(&rig, "third", |_| {}).await;
    rig.gateway.will([gw504().placed().edit(hidden)]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o5".into()));
    assert_eq!(rig.gateway.posts(), 5);
}

/// A user repeats the order by hand in another form, and the service copies its remark.
#[tokio::test(start_paused = true)]
async fn a_copy_of_an_order_that_is_listed_without_its_tag_is_not_that_order() {
    let rig = shared();
    acknowledged(&rig, "first", |_| {}).await;
    rig.gateway.will([gw504().placed().edit(hidden)]);
    let call = rig.start("a", &ORDER.replace("delivery", "intraday"));
    sleep(s(5)).await;
    rig.gateway.foreign(&remarked(ORDER, &kept(&rig, "o2", "kept")), |_| {});
    assert_eq!(call.await.unwrap(), near(&["o2", "o3"]));
    assert_eq!(rig.gateway.posts(), 2);
}

/// The service may have made slices of our order, and copied no remark to them.
#[tokio::test(start_paused = true)]
async fn a_smaller_order_without_a_tag_may_be_a_slice() {
    let rig = shared();
    for n in 0..3 {
        acknowledged(&rig, &format!("before-{n}"), |_| {}).await;
    }
    assert_eq!(lost_beside(&rig, gw504(), &order(4)).await, near(&["o4"]));
    assert_eq!(rig.gateway.posts(), 4);
}

#[tokio::test(start_paused = true)]
async fn s74_a_tag_that_is_not_shown_decides_nothing() {
    let rig = shared();
    acknowledged(&rig, "first", |record| drop(record.remove("remarks"))).await;
    let lost = gw504().placed().edit(|record| drop(record.remove("remarks")));
    assert_eq!(lost_beside(&rig, lost, &remarked(ORDER, &strangers_tag())).await, ambiguous(&["o2", "o3"]));
    assert_eq!(echoes(&rig), [TagEcho::Missing]);
}

#[tokio::test(start_paused = true)]
async fn s74_before_an_acknowledged_order_has_shown_its_tag_no_tag_decides() {
    let rig = shared();
    let told = lost_beside(&rig, gw504().placed(), ORDER).await;
    assert_eq!(told, ambiguous(&["o1", "o2"]));
    // Nor does a stranger's.
    let rig = shared();
    let told = lost_beside(&rig, gw504(), &remarked(ORDER, &strangers_tag())).await;
    assert_eq!((told, rig.gateway.posts()), (ambiguous(&["o1"]), 1));
}

#[tokio::test(start_paused = true)]
async fn s74_one_altered_tag_ends_what_tags_decide() {
    let rig = shared();
    acknowledged(&rig, "first", |_| {}).await;
    acknowledged(&rig, "altered", |record| drop(record.insert("remarks".into(), json!("k0000000x1")))).await;
    let told = lost_beside(&rig, gw504().placed(), ORDER).await;
    assert_eq!(told, ambiguous(&["o3", "o4"]));
    assert_eq!(echoes(&rig), [TagEcho::Whole, TagEcho::Altered]);
}

#[tokio::test(start_paused = true)]
async fn a_session_proves_its_own_lists_alone() {
    let rig = shared();
    rig.gateway.0.lock().by_session = false;
    acknowledged(&rig, "first", |_| {}).await;
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("found", &order(3)).await, Told::Recovered("o2".into()));
    rig.between.token(1);
    let told = lost_beside(&rig, gw504().placed(), ORDER).await;
    assert!(matches!(told, Told::Unresolved(..)), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn tags_are_read_in_any_case() {
    fn upper(record: &mut Map<String, Value>) {
        let shown = record["remarks"].as_str().unwrap().to_uppercase();
        record.insert("remarks".into(), json!(shown));
    }
    let rig = shared();
    acknowledged(&rig, "first", upper).await;
    assert_eq!(lost_beside(&rig, gw504().placed().edit(upper), ORDER).await, Told::Recovered("o2".into()));
}

#[tokio::test(start_paused = true)]
async fn the_beginning_of_a_tag_finds_only_what_is_exactly_as_asked() {
    fn cut(record: &mut Map<String, Value>) {
        let shown = record["remarks"].as_str().unwrap()[..6].to_owned();
        record.insert("remarks".into(), json!(shown));
    }
    fn cut_and_changed(record: &mut Map<String, Value>) {
        cut(record);
        record.insert("limitPrice".into(), json!("101"));
    }
    let rig = shared();
    acknowledged(&rig, "first", cut).await;
    assert_eq!(lost_beside(&rig, gw504().placed().edit(cut), ORDER).await, Told::Recovered("o2".into()));
    assert_eq!(echoes(&rig), [TagEcho::Cut]);

    let rig = shared();
    acknowledged(&rig, "first", cut).await;
    let lost = gw504().placed().edit(cut_and_changed);
    assert_eq!(lost_beside(&rig, lost, &order(3)).await, near(&["o2", "o3"]));
}

#[tokio::test(start_paused = true)]
async fn an_order_is_found_by_its_tag_in_whatever_form_it_is_listed() {
    let changes: [fn(&mut Map<String, Value>); 4] = [
        |record| drop(record.insert("limitPrice".into(), json!("101"))),
        |record| drop(record.insert("qty".into(), json!("20"))),
        |record| drop(record.insert("symId".into(), json!("INFY-EQ"))),
        |record| drop(record.remove("symId")),
    ];
    for mode in [AccountMode::Shared, AccountMode::Exclusive] {
        for change in changes {
            let rig = tagged(mode);
            acknowledged(&rig, "first", |_| {}).await;
            rig.gateway.will([gw504().placed().edit(change)]);
            assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o2".into()), "{mode:?}");
            assert_eq!(rig.gateway.posts(), 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tag_on_the_other_side_claims_nothing_and_bars_an_absence() {
    let rig = shared();
    acknowledged(&rig, "first", |_| {}).await;
    rig.gateway.will([gw504().placed().edit(|record| drop(record.insert("side".into(), json!("sell"))))]);
    assert_eq!(rig.place("a", ORDER).await, near(&["o2"]));
    assert_eq!(rig.gateway.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn slices_with_one_tag_are_candidates() {
    let mut rig = shared();
    // The slices are one order of three.
    rig.unchecked = true;
    acknowledged(&rig, "first", |_| {}).await;
    rig.gateway.will([Place {
        copies: 3,
        ..gw504().placed().edit(|record| drop(record.insert("qty".into(), json!("4"))))
    }]);
    assert_eq!(rig.place("a", ORDER).await, near(&["o2", "o3", "o4"]));
    assert_eq!(rig.gateway.posts(), 2);
}

/// A service that applies one request twice keeps the tag with both.
#[tokio::test(start_paused = true)]
async fn two_exact_orders_with_one_tag_are_a_certain_duplicate() {
    for mode in [AccountMode::Shared, AccountMode::Exclusive] {
        let rig = tagged(mode);
        acknowledged(&rig, "first", |_| {}).await;
        rig.gateway.will([Place { copies: 2, ..gw504().placed() }]);
        assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o2".into()));
        assert_eq!(rig.flagged(), ["o3"], "{mode:?}");
    }
}

/// Its answer named another order, which no list shows.
#[tokio::test(start_paused = true)]
async fn an_order_with_its_own_tag_is_not_one_too_many() {
    let rig = shared();
    acknowledged(&rig, "first", |_| {}).await;
    rig.gateway.will([ack().reply(Reply::AckId("o9")), gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o9".into()));
    assert_eq!(rig.place("b", &order(3)).await, Told::Recovered("o3".into()));
    assert!(rig.flagged().is_empty(), "{:?}", rig.flagged());
    sleep(s(60)).await;
    assert!(rig.flagged().is_empty(), "{:?}", rig.flagged());
}

#[tokio::test(start_paused = true)]
async fn equal_orders_get_their_own() {
    let rig = shared();
    acknowledged(&rig, "first", |_| {}).await;
    rig.gateway.will([gw504().placed_after(s(3)), gw504().placed(), gw504()]);
    let calls = [rig.start("a", ORDER), rig.start("b", ORDER), rig.start("c", ORDER)];
    let [a, b, c] = calls.map(|call| async move { call.await.unwrap() });
    let told = (a.await, b.await, c.await);
    assert_eq!(told, (Told::Recovered("o2".into()), Told::Recovered("o3".into()), Told::Resent("o4".into())));
    let owner = |id: &str| {
        let book = rig.gateway.0.lock();
        book.orders.iter().find(|order| order.id == id).unwrap().owner.clone()
    };
    assert_eq!(["o2", "o3", "o4"].map(owner), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_another_orders_tag_bars_an_absence() {
    let rig = shared();
    acknowledged(&rig, "first", |_| {}).await;
    let copied = remark(&rig, "o1");
    let told = lost_beside(&rig, gw504(), &remarked(ORDER, &copied)).await;
    assert!(matches!(told, Told::Unresolved(..)), "{told:?}");
    assert_eq!(rig.gateway.posts(), 2);
}

/// Regression: the first order was told under the second one's identifier, and the second one as not observed.
#[tokio::test(start_paused = true)]
async fn tags_that_move_from_one_order_to_the_next_tell_nothing() {
    let rig = shared();
    acknowledged(&rig, "first", |_| {}).await;
    rig.gateway.will([gw504().placed().answered_after(s(1)), gw504().placed().answered_after(s(1))]);
    let calls = [rig.start("a", ORDER), rig.start("b", ORDER)];
    sleep(Duration::from_millis(500)).await;
    let [first, second] = ["o1", "o2"].map(|id| remark(&rig, id));
    rig.gateway.set("o2", "remarks", json!(first));
    rig.gateway.set("o3", "remarks", json!(second));
    let [a, b] = calls.map(|call| async move { call.await.unwrap() });
    let told = (a.await, b.await);
    assert_eq!(told, (near(&["o3", "o2"]), near(&["o2", "o3"])));
    assert_eq!(rig.gateway.posts(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_callers_own_remark_is_sent_as_it_is() {
    let rig = shared();
    acknowledged(&rig, "first", |_| {}).await;
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", &remarked(ORDER, "mine")).await, ambiguous(&["o2"]));
    assert_eq!(remark(&rig, "o2"), "mine");
    // An empty one is none.
    assert_eq!(rig.place("b", &remarked(&order(3), "")).await, Told::Placed("o3".into()));
    assert!(remark(&rig, "o3").parse::<Tag>().is_ok());
}

/// The service has applied the first one twice.
#[tokio::test(start_paused = true)]
async fn an_order_with_its_callers_own_remark_takes_none_with_a_tag() {
    let rig = tagged(AccountMode::Exclusive);
    acknowledged(&rig, "first", |_| {}).await;
    rig.gateway.will([Place { copies: 2, ..ack() }, gw504()]);
    assert_eq!(rig.place("twice", ORDER).await, Told::Placed("o2".into()));
    assert_eq!(rig.place("own", &remarked(ORDER, "mine")).await, near(&["o3"]));
    assert_eq!(rig.gateway.posts(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_length_that_a_caller_gives_its_form_cuts_no_tag_off() {
    let rig = shared();
    let mut request = rig.request("a", ORDER);
    request.headers_mut().insert(http::header::CONTENT_LENGTH, ORDER.len().into());
    assert_eq!(rig.send(request).await, Told::Placed("o1".into()));
    assert!(remark(&rig, "o1").parse::<Tag>().is_ok());
}

#[tokio::test(start_paused = true)]
async fn all_sends_of_an_order_carry_one_tag_and_no_two_orders_share_one() {
    let rig = tagged(AccountMode::Exclusive);
    acknowledged(&rig, "first", |_| {}).await;
    // The first send of it appears after it was given up.
    rig.gateway.will([gw504().placed_after(s(60))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o3".into()));
    sleep(s(61)).await;
    assert_eq!(remark(&rig, "o2"), remark(&rig, "o3"));
    assert_ne!(remark(&rig, "o1"), remark(&rig, "o2"));
}

/// The name of a finished order stands for it, whatever was sent with it.
#[tokio::test(start_paused = true)]
async fn a_tag_is_no_part_of_what_was_asked_for() {
    let rig = shared();
    let named = || {
        let mut request = rig.request("a", ORDER);
        steadfast_call::Call::of_mut(request.extensions_mut())
            .set_intent(steadfast_call::ext::IntentId::new("n"));
        request
    };
    assert_eq!(rig.send(named()).await, Told::Placed("o1".into()));
    assert_eq!(rig.send(named()).await, Told::Attached("o1".into()));
    assert_eq!(rig.gateway.posts(), 1);
}
