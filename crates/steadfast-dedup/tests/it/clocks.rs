//! Tests clocks that are set, and machines that sleep.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::Request;
use steadfast_call::{BootClock, Call, Route, WallClock, ext};
use steadfast_dedup::{IntentNo, OrderEvent, OrderWithheld, Ruling, Settings};
use steadfast_spec::Endpoint;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::{
    gateway::{Body, Gateway, ReadReply, ack, documented, gw504, read},
    rig::{ORDER, Rig, Told, market, order, tell},
};

const DAY: u64 = 86_400;

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The clocks of one machine. They move on with tokio's clock, and can be changed.
#[derive(Clone)]
pub(crate) struct Clockwork {
    start: Instant,
    since: Duration,
    slept: Arc<AtomicU64>,
    set: Arc<AtomicI64>,
}

impl Clockwork {
    /// Returns clocks that show this time since 1970.
    pub(crate) fn at(since: Duration) -> Self {
        Self { start: Instant::now(), since, slept: Arc::default(), set: Arc::default() }
    }

    /// Returns clocks that show this long before midnight.
    pub(crate) fn before_midnight(left: Duration) -> Self {
        Self::at(s(100 * DAY) - left)
    }

    /// Suspends the machine for this time, while tokio's clock stands still.
    pub(crate) fn suspend(&self, length: Duration) {
        self.slept.fetch_add(length.as_secs(), Ordering::SeqCst);
    }

    /// Sets the wall clock so many seconds ahead of the true time.
    pub(crate) fn set_wall(&self, ahead: i64) {
        self.set.store(ahead, Ordering::SeqCst);
    }

    fn passed(&self) -> Duration {
        self.start.elapsed() + s(self.slept.load(Ordering::SeqCst))
    }

    /// Returns the true time.
    pub(crate) fn truth(&self) -> SystemTime {
        UNIX_EPOCH + self.since + self.passed()
    }

    /// Returns the true day of this instant, of a machine that did not sleep.
    pub(crate) fn true_day(&self, at: Instant) -> u64 {
        (self.since + (at - self.start)).as_secs() / DAY
    }

    pub(crate) fn wall(&self) -> WallClock {
        let clocks = self.clone();
        WallClock::new(move || {
            let set = clocks.set.load(Ordering::SeqCst);
            let by = s(set.unsigned_abs());
            if set < 0 { clocks.truth() - by } else { clocks.truth() + by }
        })
    }

    pub(crate) fn settings(&self) -> Settings {
        let clocks = self.clone();
        let boot = BootClock::new(move || Some(s(1_000) + clocks.passed()));
        Settings::default().trading_day(self.wall(), 0).boot_clock(boot)
    }

    /// Returns a gateway with the true time in its answers, and a list that starts empty at the true midnight.
    pub(crate) fn gateway(&self) -> Gateway {
        let (gateway, clocks) = (Gateway::default(), self.clone());
        gateway.0.lock().date = Some(WallClock::new(move || clocks.truth()));
        gateway
    }
}

fn named(rig: &Rig, name: &str, form: &str) -> Request<Body> {
    let mut request = rig.request(name, form);
    Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new(name));
    request
}

pub(crate) async fn place_as(rig: &Rig, name: &str, form: &str) -> Told {
    tell(rig.service.clone().oneshot(named(rig, name, form)).await).await
}

/// Places another order under the same name on another day.
async fn place_anew(rig: &Rig, name: &str, form: &str) -> Told {
    let mut request = rig.request("anew", form);
    Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new(name));
    tell(rig.service.clone().oneshot(request).await).await
}

fn stepped(rig: &Rig) -> usize {
    rig.events().iter().filter(|event| matches!(event, OrderEvent::ClockStepped { .. })).count()
}

/// One order for each name on each of two days.
#[tokio::test(start_paused = true)]
async fn o03_a_clock_a_day_off_and_back_gives_one_order_on_each_day() {
    for (off, dated) in [(1, false), (1, true), (-1, false), (-1, true)] {
        let clocks = Clockwork::before_midnight(s(DAY / 2));
        let gateway = if dated { clocks.gateway() } else { Gateway::default() };
        let rig = Rig::over(gateway, clocks.settings());
        assert_eq!(place_as(&rig, "first", &order(3)).await, Told::Placed("o1".into()));
        sleep(s(60)).await;
        clocks.set_wall(off * 86_400);
        assert_eq!(place_as(&rig, "n", ORDER).await, Told::Placed("o2".into()));
        assert_eq!(stepped(&rig), 1, "it is told once");
        sleep(s(3_600)).await;
        clocks.set_wall(0);
        assert_eq!(place_as(&rig, "n", ORDER).await, Told::Attached("o2".into()), "{off} {dated}");
        sleep(s(DAY)).await;
        assert_eq!(place_anew(&rig, "n", ORDER).await, Told::Placed("o3".into()), "{off} {dated}");
        assert_eq!((rig.gateway.posts(), stepped(&rig)), (3, 1));
    }
}

/// The wall clock is 4 s before or after midnight, and then set right.
#[tokio::test(start_paused = true)]
async fn o03_a_clock_a_moment_off_at_midnight_takes_no_order_for_another() {
    for off in [4, -4] {
        let clocks = Clockwork::before_midnight(s(30));
        let rig = Rig::over(clocks.gateway(), clocks.settings());
        rig.gateway.0.lock().midnight = Some(Instant::now() + s(30));
        assert_eq!(place_as(&rig, "n", ORDER).await, Told::Placed("o1".into()));
        sleep(s(28)).await;
        clocks.set_wall(off);
        assert_eq!(place_as(&rig, "n", ORDER).await, Told::Attached("o1".into()));
        // An equal order is lost, on either day.
        rig.gateway.will([gw504()]);
        let lost = rig.start("m", ORDER);
        sleep(s(1)).await;
        clocks.set_wall(0);
        sleep(s(4)).await;
        assert_eq!(
            place_as(&rig, "n", ORDER).await,
            Told::Attached("o1".into()),
            "no second order of a name"
        );
        let told = lost.await.unwrap();
        assert!(matches!(told, Told::Unresolved(..)), "{off}: {told:?}");
        assert_eq!(rig.gateway.posts(), 2, "{off}");
    }
}

/// Our midnight comes first: an order placed after it is gone from the list at the service's midnight.
#[tokio::test(start_paused = true)]
async fn o03_what_is_lost_near_midnight_is_never_sent_again() {
    let clocks = Clockwork::before_midnight(s(30));
    let rig = Rig::over(clocks.gateway(), clocks.settings());
    rig.gateway.0.lock().midnight = Some(Instant::now() + s(30));
    clocks.set_wall(4);
    sleep(s(27)).await;
    rig.gateway.will([gw504().placed()]);
    // The first read after the order, half a second later, fails: only the new day's lists are read.
    rig.gateway.reads([read(ReadReply::List), read(ReadReply::Http(500)), read(ReadReply::Http(500))]);
    let told = rig.place("a", ORDER).await;
    assert!(matches!(told, Told::Unresolved("not_observed", ..)), "{told:?}");
    assert_eq!(rig.gateway.posts(), 1);
}

/// Regression: the service's clock was ahead of ours, so that its list of the next day confirmed the refusal of an order that
/// it had placed, and a second one was sent.
#[tokio::test(start_paused = true)]
async fn o03_what_is_refused_near_midnight_is_not_repeated() {
    for status in [429, 401] {
        let clocks = Clockwork::before_midnight(s(30));
        let rig = Rig::on(clocks.settings());
        rig.between.repeats_everything();
        rig.gateway.will([documented(status).placed()]);
        rig.gateway.0.lock().midnight = Some(Instant::now() + Duration::from_millis(500));
        let told = rig.place("a", ORDER).await;
        assert!(matches!(told, Told::Unresolved(..)), "{status}: {told:?}");
        assert_eq!(rig.gateway.posts(), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn o03_a_name_and_its_order_outlive_midnight_by_ten_minutes() {
    let clocks = Clockwork::before_midnight(s(1));
    let rig = Rig::on(clocks.settings());
    assert_eq!(place_as(&rig, "n", ORDER).await, Told::Placed("o1".into()));
    sleep(s(10)).await;
    assert_eq!(place_as(&rig, "n", ORDER).await, Told::Attached("o1".into()));
    // The list is a moment behind, and then shows yesterday's order, which is not today's.
    rig.gateway.reads([read(ReadReply::Without(vec!["o1"]))]);
    rig.gateway.will([gw504()]);
    let told = rig.place("m", ORDER).await;
    assert!(matches!(told, Told::Unresolved(..)), "{told:?}");
    sleep(s(600)).await;
    assert_eq!(place_anew(&rig, "n", ORDER).await, Told::Placed("o2".into()), "it is another day's");
}

/// Regression: it was sent again on the next day, while the first one was in doubt.
#[tokio::test(start_paused = true)]
async fn o03_a_name_in_doubt_is_sent_on_the_next_day_only_after_a_ruling() {
    let clocks = Clockwork::before_midnight(s(3_600));
    let rig = Rig::on(clocks.settings());
    rig.gateway.0.lock().always = Some(read(ReadReply::Http(504)));
    rig.gateway.will([gw504()]);
    assert!(matches!(place_as(&rig, "n", ORDER).await, Told::Unresolved(..)));
    sleep(s(DAY / 2)).await;
    rig.gateway.0.lock().always = None;
    assert!(matches!(place_as(&rig, "n", ORDER).await, Told::Unresolved(..)));
    assert_eq!(rig.gateway.posts(), 1);
    rig.tracker.resolve(None, IntentNo(0), Ruling::NotPlaced).unwrap();
    assert_eq!(place_anew(&rig, "n", ORDER).await, Told::Placed("o1".into()));
}

/// Regression: a day without trading in between freed its name, and it was sent again.
#[tokio::test(start_paused = true)]
async fn o03_a_name_in_doubt_is_not_free_after_a_weekend() {
    let clocks = Clockwork::before_midnight(s(3_600));
    let rig = Rig::on(clocks.settings());
    rig.gateway.0.lock().always = Some(read(ReadReply::Http(504)));
    rig.gateway.will([gw504()]);
    assert!(matches!(place_as(&rig, "n", ORDER).await, Told::Unresolved(..)));
    for saturday in 1..3 {
        sleep(s(DAY)).await;
        assert!(matches!(place_as(&rig, &format!("m{saturday}"), &order(3)).await, Told::Placed(_)));
    }
    assert!(matches!(place_as(&rig, "n", ORDER).await, Told::Unresolved(..)));
    assert_eq!(rig.gateway.posts(), 3);
    rig.tracker.resolve(None, IntentNo(0), Ruling::NotPlaced).unwrap();
    assert_eq!(place_anew(&rig, "n", ORDER).await, Told::Placed("o3".into()));
}

/// The wall clock was wrong when the process began; the first list corrects it.
#[tokio::test(start_paused = true)]
async fn o03_a_clock_that_was_a_day_ahead_from_the_start_pins_no_day() {
    let clocks = Clockwork::before_midnight(s(DAY / 2));
    clocks.set_wall(86_400);
    let rig = Rig::over(clocks.gateway(), clocks.settings());
    assert_eq!(place_as(&rig, "n", ORDER).await, Told::Placed("o1".into()));
    assert_eq!(stepped(&rig), 1);
    clocks.set_wall(0);
    sleep(s(DAY)).await;
    assert_eq!(place_anew(&rig, "n", ORDER).await, Told::Placed("o2".into()));
}

/// Returns a rig at noon whose service tells dates so many days off, where that withholds orders, and the days.
fn dated_days_off(days: i64) -> (Rig, Arc<AtomicI64>) {
    let clocks = Clockwork::before_midnight(s(DAY / 2));
    let (gateway, service) = (Gateway::default(), clocks.clone());
    let off = Arc::new(AtomicI64::new(days));
    let days_off = off.clone();
    gateway.0.lock().date = Some(WallClock::new(move || {
        let by = days_off.load(Ordering::SeqCst);
        let day = s(DAY * by.unsigned_abs());
        if by < 0 { service.truth() - day } else { service.truth() + day }
    }));
    (Rig::over(gateway, clocks.settings().refuse_disputed_day(true)), off)
}

/// Regression: the service's first date was of another day, and orders were withheld until the process was started again.
#[tokio::test(start_paused = true)]
async fn o03_a_first_date_of_another_day_withholds_orders_only_until_the_service_is_right() {
    for wrong in [-1_i64, 1] {
        let (rig, off) = dated_days_off(wrong);
        for _ in 0..3 {
            let withheld = place_as(&rig, "n", ORDER).await;
            assert!(matches!(&withheld, Told::NotSent(why) if why.contains("trading day")), "{withheld:?}");
            assert!(matches!(rig.tracker.withholds_all(), Some(OrderWithheld::DayDisputed)));
            sleep(s(5)).await;
        }
        off.store(0, Ordering::SeqCst);
        // Any answer tells the date.
        let list = Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
        rig.service.clone().oneshot(list).await.unwrap();
        assert!(rig.tracker.withholds_all().is_none(), "{wrong}");
        assert_eq!(place_as(&rig, "n", ORDER).await, Told::Placed("o1".into()));
        assert_eq!(place_as(&rig, "n", ORDER).await, Told::Attached("o1".into()));
        sleep(s(DAY)).await;
        assert_eq!(
            place_anew(&rig, "n", ORDER).await,
            Told::Placed("o2".into()),
            "the next day began in time"
        );
    }
}

/// Regression: a machine that had stood still over midnight sent on, and the next process, on the right day, sent the same names
/// again.
#[tokio::test(start_paused = true)]
async fn o03_a_later_date_of_another_day_withholds_orders_until_the_service_is_right() {
    for wrong in [-1_i64, 1] {
        let (rig, off) = dated_days_off(0);
        let list =
            || Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
        assert_eq!(place_as(&rig, "n", ORDER).await, Told::Placed("o1".into()));
        off.store(wrong, Ordering::SeqCst);
        // A date was heard a moment ago.
        rig.service.clone().oneshot(list()).await.unwrap();
        assert!(matches!(rig.tracker.withholds_all(), Some(OrderWithheld::DayDisputed)), "{wrong}");
        for _ in 0..3 {
            let withheld = place_as(&rig, "m", ORDER).await;
            assert!(matches!(&withheld, Told::NotSent(why) if why.contains("trading day")), "{withheld:?}");
            sleep(s(5)).await;
        }
        off.store(0, Ordering::SeqCst);
        rig.service.clone().oneshot(list()).await.unwrap();
        assert!(rig.tracker.withholds_all().is_none(), "{wrong}");
        assert_eq!(place_as(&rig, "m", ORDER).await, Told::Placed("o2".into()));
        assert_eq!(place_as(&rig, "n", ORDER).await, Told::Attached("o1".into()), "the day went on");
        assert_eq!(rig.gateway.posts(), 2);
    }
}

/// The first list corrects the day while the name's order waits to leave; the name stands for that order afterwards.
#[tokio::test(start_paused = true)]
async fn o03_a_clock_that_was_a_day_behind_from_the_start_gives_one_order_for_a_name() {
    let clocks = Clockwork::before_midnight(s(DAY / 2));
    clocks.set_wall(-86_400);
    let rig = Rig::over(clocks.gateway(), clocks.settings());
    assert_eq!(place_as(&rig, "n", ORDER).await, Told::Placed("o1".into()));
    clocks.set_wall(0);
    assert_eq!(place_as(&rig, "n", ORDER).await, Told::Attached("o1".into()));
    assert_eq!(rig.gateway.posts(), 1);
    sleep(s(DAY)).await;
    assert_eq!(place_anew(&rig, "n", ORDER).await, Told::Placed("o2".into()));
}

/// Neither a granted resend nor a waiting order leaves when the machine wakes.
#[tokio::test(start_paused = true)]
async fn o04_nothing_is_sent_again_after_three_hours_of_sleep() {
    for form in [ORDER.to_owned(), market()] {
        for asleep_at in [s(2), s(16)] {
            let clocks = Clockwork::at(s(1_000_000));
            let rig = Rig::on(clocks.settings());
            // Suspended before the verdict, and between the verdict and the send.
            rig.between.queue(Duration::ZERO, s(2));
            rig.gateway.will([gw504()]);
            let call = rig.start("a", &form);
            sleep(asleep_at).await;
            clocks.suspend(s(3 * 3_600));
            assert_eq!(call.await.unwrap(), Told::Unresolved("not_observed", vec![], 504), "{asleep_at:?}");
            assert_eq!(rig.gateway.posts(), 1);
            rig.audit();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn o04_an_order_that_slept_past_its_send_by_or_deadline_does_not_leave() {
    type Stamp = fn(&mut http::Extensions, Instant);
    let send_by: Stamp = |extensions, at| {
        Call::of_mut(extensions).set_send_by(at.into_std());
    };
    let deadline: Stamp = |extensions, at| {
        Call::of_mut(extensions).set_deadline(at.into_std());
    };
    for (stamp, within) in [(send_by, s(15)), (deadline, s(120))] {
        let clocks = Clockwork::at(s(1_000_000));
        let rig = Rig::on(clocks.settings());
        rig.between.queue(s(5), Duration::ZERO);
        let mut request = rig.request("a", &market());
        stamp(request.extensions_mut(), Instant::now() + within);
        let call = tokio::spawn(rig.service.clone().oneshot(request));
        sleep(s(2)).await;
        clocks.suspend(s(3 * 3_600));
        let told = tell(call.await.unwrap()).await;
        assert_eq!(told, Told::NotSent("time to send the order has passed".into()));
        assert_eq!(rig.gateway.posts(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn o04_a_change_that_slept_past_its_deadline_does_not_leave() {
    let clocks = Clockwork::at(s(1_000_000));
    let rig = Rig::on(clocks.settings());
    let mut request = rig.request("a", "orderId=o1&qty=5");
    Call::of_mut(request.extensions_mut()).set_route(Arc::new(Route::new(Endpoint::ModifyOrder)));
    Call::of_mut(request.extensions_mut()).set_deadline((Instant::now() + s(120)).into_std());
    rig.between.queue(s(5), Duration::ZERO);
    let call = tokio::spawn(rig.service.clone().oneshot(request));
    sleep(s(2)).await;
    clocks.suspend(s(3 * 3_600));
    let told = tell(call.await.unwrap()).await;
    assert_eq!(told, Told::NotSent("time to send the order has passed".into()));
    assert_eq!(rig.gateway.posts(), 0);
}

/// Regression: a virtual machine was paused while an order waited to leave, and the order left an hour late. Only the wall
/// clock, set right at once, shows it.
#[tokio::test(start_paused = true)]
async fn o04_an_order_that_is_too_old_by_the_wall_clock_does_not_leave() {
    let clocks = Clockwork::at(s(1_000_000));
    let rig = Rig::on(clocks.settings());
    rig.between.queue(s(5), Duration::ZERO);
    let mut request = rig.request("a", ORDER);
    Call::of_mut(request.extensions_mut()).set_send_by((Instant::now() + s(15)).into_std());
    Call::of_mut(request.extensions_mut()).set_deadline((Instant::now() + s(120)).into_std());
    let call = tokio::spawn(rig.service.clone().oneshot(request));
    sleep(s(2)).await;
    clocks.set_wall(3_600);
    assert_eq!(tell(call.await.unwrap()).await, Told::NotSent("time to send the order has passed".into()));
    assert_eq!(rig.gateway.posts(), 0);
}

/// Regression: the same, while an order was in doubt: it was sent again an hour after its call.
#[tokio::test(start_paused = true)]
async fn o04_nothing_is_sent_again_that_is_too_old_by_the_wall_clock() {
    for form in [ORDER.to_owned(), market()] {
        let clocks = Clockwork::at(s(1_000_000));
        let rig = Rig::on(clocks.settings());
        rig.gateway.will([gw504()]);
        let call = rig.start("a", &form);
        sleep(s(3)).await;
        clocks.set_wall(3_600);
        assert_eq!(call.await.unwrap(), Told::Unresolved("not_observed", vec![], 504));
        assert_eq!(rig.gateway.posts(), 1);
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn o04_without_a_boot_clock_orders_age_by_the_wall_clock() {
    let clocks = Clockwork::at(s(1_000_000));
    let none = |settings: Settings| settings.boot_clock(BootClock::new(|| None));
    let rig = Rig::on(none(clocks.settings()));
    rig.gateway.will([gw504()]);
    let call = rig.start("a", ORDER);
    sleep(s(2)).await;
    clocks.suspend(s(3 * 3_600));
    assert_eq!(call.await.unwrap(), Told::Unresolved("not_observed", vec![], 504));

    rig.between.queue(s(5), Duration::ZERO);
    let mut request = rig.request("b", &ORDER.replace("INFY", "TCS"));
    Call::of_mut(request.extensions_mut()).set_deadline((Instant::now() + s(120)).into_std());
    rig.gateway.will([ack()]);
    let call = tokio::spawn(rig.service.clone().oneshot(request));
    sleep(s(2)).await;
    clocks.set_wall(3_600);
    let told = tell(call.await.unwrap()).await;
    assert_eq!(told, Told::NotSent("time to send the order has passed".into()));
}

/// The first read fails; the second succeeds.
#[tokio::test(start_paused = true)]
async fn o10_one_failed_first_list_is_not_the_end_of_all_baselines() {
    let rig = Rig::new();
    rig.gateway.reads([read(ReadReply::Http(500))]);
    assert_eq!(rig.place("a", &order(3)).await, Told::Placed("o1".into()));
    sleep(s(5)).await;
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("b", ORDER).await, Told::Recovered("o2".into()));
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

/// Orders that wait for their permit meanwhile leave with a baseline.
#[tokio::test(start_paused = true)]
async fn o10_a_baseline_is_tried_again_while_orders_wait_to_leave() {
    let rig = Rig::new();
    rig.between.queue(s(4), Duration::ZERO);
    rig.gateway.reads([read(ReadReply::Http(500)), read(ReadReply::Http(500))]);
    rig.gateway.will([gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    rig.audit();
}

/// A list that always fails is read ever more rarely.
#[tokio::test(start_paused = true)]
async fn o10_a_list_that_is_never_to_be_had_is_asked_for_rarely() {
    let rig = Rig::new();
    rig.gateway.always(read(ReadReply::Http(500)));
    for n in 0..300 {
        let told = rig.place(&format!("n{n}"), &order(n + 1)).await;
        assert!(matches!(told, Told::Placed(_)));
        sleep(s(1)).await;
    }
    assert!((5..=20).contains(&rig.gateway.gets()), "{}", rig.gateway.gets());
}

/// An order is lost for good just before midnight: its key is free again when lists show nothing of it.
#[tokio::test(start_paused = true)]
async fn o13_what_was_lost_before_midnight_bars_nobody_for_a_whole_day() {
    let clocks = Clockwork::before_midnight(s(2));
    let rig = Rig::over(clocks.gateway(), clocks.settings());
    rig.gateway.0.lock().midnight = Some(Instant::now() + s(2));
    sleep(Duration::from_millis(1_500)).await;
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Unresolved("epoch_changed", vec![], 504));
    // At first, nothing can be concluded about the next one.
    rig.gateway.will([gw504().placed()]);
    let told = rig.place("b", ORDER).await;
    assert_eq!(told, Told::Unresolved("tainted", vec!["o1".into()], 504));
    sleep(s(1_200)).await;
    // By now the other order's owner is known, so it bars no other.
    rig.gateway.will([gw504().placed()]);
    let sell = ORDER.replace("INFY", "TCS");
    assert_eq!(rig.place("c", &sell).await, Told::Recovered("o2".into()));

    let clocks = Clockwork::before_midnight(s(2));
    let rig = Rig::over(clocks.gateway(), clocks.settings());
    sleep(Duration::from_millis(1_500)).await;
    rig.gateway.will([gw504()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Unresolved("epoch_changed", vec![], 504));
    sleep(s(1_200)).await;
    rig.gateway.will([gw504().placed()]);
    assert_eq!(
        rig.place("b", ORDER).await,
        Told::Recovered("o1".into()),
        "two lists have shown nothing of it"
    );
    rig.audit();
}

/// It appears on the next day, too late to be claimed: it is reported, and still bars others.
#[tokio::test(start_paused = true)]
async fn o13_an_order_that_appears_after_midnight_is_told_of() {
    let clocks = Clockwork::before_midnight(s(2));
    let rig = Rig::over(clocks.gateway(), clocks.settings());
    sleep(Duration::from_millis(1_500)).await;
    rig.gateway.will([gw504().placed_after(s(20))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Unresolved("epoch_changed", vec![], 504));
    sleep(s(1_200)).await;
    assert_eq!(rig.flagged(), ["o1"]);
    rig.gateway.will([gw504().placed()]);
    let told = rig.place("b", ORDER).await;
    assert!(matches!(told, Told::Unresolved("tainted", ..)), "{told:?}");
    rig.audit();
}
