//! Combines two events that are harmless alone.

use std::time::Duration;

use http::Request;
use steadfast_call::{Call, ext};
use steadfast_dedup::Settings;
use tokio::time::{advance, sleep};
use tower::ServiceExt;

use crate::{
    gateway::{Body, Read, ReadReply, ack, gw504, read},
    rig::{ORDER, Rig, Told, order},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A caller's own read of the list, in the background.
pub(crate) fn look(rig: &Rig) -> tokio::task::JoinHandle<()> {
    let request = Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
    let service = rig.service.clone();
    tokio::spawn(async move {
        let response = service.oneshot(request).await.unwrap();
        drop(http_body_util::BodyExt::collect(response.into_body()).await);
    })
}

/// A sleeping machine makes every timer end at once, including that of a read in progress.
#[tokio::test(start_paused = true)]
async fn a_machine_that_sleeps_while_an_order_is_looked_for_sends_nothing_when_it_wakes() {
    for (at, placed, slow) in
        [(3, None, false), (3, Some(300), false), (14, None, true), (14, Some(595), true), (15, None, false)]
    {
        let mut rig = Rig::new();
        // With a sleep, the search may take longer than I20 allows.
        rig.unchecked = true;
        let fate = placed.map_or_else(gw504, |after| gw504().placed_after(s(after)));
        rig.gateway.will([fate]);
        if slow {
            let after = s(10);
            rig.gateway.always(Read { before: Duration::ZERO, after, reply: ReadReply::List });
        }
        let call = rig.start("a", ORDER);
        sleep(s(at)).await;
        sleep(Duration::from_millis(40)).await;
        advance(s(600)).await;
        let told = call.await.unwrap();
        sleep(s(60)).await;
        let found = told == Told::Recovered("o1".into());
        // The search may be over before the next read: then later reads find the order.
        let in_doubt =
            matches!(told, Told::Unresolved(..)) && rig.flagged().len() == usize::from(placed.is_some());
        assert!(found && placed.is_some() || in_doubt, "asleep at {at} s: {told:?}, {:?}", rig.flagged());
        assert_eq!(rig.gateway.posts(), 1, "asleep at {at} s");
    }
}

/// A list that was requested before an order, and came after one that showed it, contradicts nothing.
#[tokio::test(start_paused = true)]
async fn a_callers_list_that_another_one_has_overtaken_takes_no_resend_away() {
    let rig = Rig::new();
    assert_eq!(rig.place("first", &order(1)).await, Told::Placed("o1".into()));
    rig.gateway.reads([Read { before: Duration::ZERO, after: s(8), reply: ReadReply::List }]);
    let slow = look(&rig);
    sleep(Duration::from_millis(100)).await;
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o2".into()));
    slow.await.unwrap();
    rig.gateway.will([gw504(), ack()]);
    assert_eq!(rig.place("b", &order(3)).await, Told::Resent("o3".into()));
    rig.audit();
}

/// The same, where only the overtaken list ever shows an order: its contents count.
#[tokio::test(start_paused = true)]
async fn a_callers_list_that_is_late_and_full_still_finds_what_own_lists_cannot() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed()]);
    rig.gateway.reads([read(ReadReply::List)]);
    rig.gateway.always(read(ReadReply::Http(504)));
    let call = rig.start("a", ORDER);
    sleep(s(2)).await;
    rig.gateway.reads([Read { before: Duration::ZERO, after: s(20), reply: ReadReply::List }]);
    look(&rig).await.unwrap();
    assert_eq!(call.await.unwrap(), Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 1);
    rig.audit();
}

/// A name belongs to an account: in another account it stands for another order, even during a doubt.
#[tokio::test(start_paused = true)]
async fn one_name_in_two_accounts_is_two_orders_even_while_one_is_in_doubt() {
    let rig = Rig::with(Settings::default());
    rig.gateway.will([gw504().placed_after(s(9)), ack()]);
    // The rig's gateway keeps one book, so the other account's order is one that cannot match here.
    let sell = ORDER.replace("buy", "sell");
    let request = |intent: &str, account: &str, form: &str| {
        let mut request = rig.request(intent, form);
        Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("x"));
        Call::of_mut(request.extensions_mut()).set_account(ext::Account::new(account));
        request
    };
    let later = async {
        sleep(s(1)).await;
        rig.send(request("b", "two", &sell)).await
    };
    let (one, two) = tokio::join!(rig.send(request("a", "one", ORDER)), later);
    assert_eq!((one, two), (Told::Recovered("o1".into()), Told::Placed("o2".into())));
    assert_eq!(rig.gateway.posts(), 2);
}

/// Many calls repeat the name of an order in doubt, the list fails in every way in turn, and half of the calls give
/// up: one order, one send.
#[tokio::test(start_paused = true)]
async fn a_crowd_under_one_name_behind_a_failing_list_is_one_send() {
    let rig = Rig::new();
    rig.gateway.will([gw504().placed_after(s(13))]);
    let kinds = [ReadReply::Http(429), ReadReply::Lost, ReadReply::Raw("{".into()), ReadReply::Aged];
    rig.gateway.reads([read(ReadReply::List)]);
    let slow = |reply| Read { before: Duration::ZERO, after: s(1), reply };
    rig.gateway.reads(kinds.into_iter().cycle().take(12).map(slow));
    let mut crowd = Vec::new();
    for number in 0..20_u64 {
        let mut request = rig.request("a", ORDER);
        Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("x"));
        let service = rig.service.clone();
        let call = tokio::spawn(async move { crate::rig::tell(service.oneshot(request).await).await });
        sleep(Duration::from_millis(350 + 7 * number)).await;
        if number % 2 == 1 {
            call.abort();
        } else {
            crowd.push(call);
        }
    }
    for call in crowd {
        let told = call.await.unwrap();
        assert!(matches!(&told, Told::Recovered(id) | Told::Attached(id) if id == "o1"), "{told:?}");
    }
    assert_eq!(rig.gateway.posts(), 1);
}
