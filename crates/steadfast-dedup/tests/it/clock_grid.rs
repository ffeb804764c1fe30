//! Clocks that are set, and machines that sleep, at many instants around a lost order. With `STEADFAST_DEEP` the instants are
//! closer together.

use std::time::Duration;

use steadfast_call::{Call, ext::IntentId};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::{
    clocks::Clockwork,
    gateway::{Gateway, gw504},
    rig::{ORDER, Rig, Told, market, order, tell},
};

const DAY: u64 = 86_400;

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Returns the step of a grid.
fn step(plain: usize) -> usize {
    if std::env::var_os("STEADFAST_DEEP").is_some() { 1 } else { plain }
}

/// When a lost order exists after its send, if ever.
const LOST: [Option<Duration>; 3] = [None, Some(Duration::ZERO), Some(s(2))];

fn lose(rig: &Rig, exists: Option<Duration>) {
    rig.gateway.will([match exists {
        Some(after) => gw504().placed_after(after),
        None => gw504(),
    }]);
}

/// Asks for the order of the name `n`; the gateway's books show this call as `n` and its number.
async fn place_n(rig: &Rig, call: u8) -> Told {
    let mut request = rig.request(&format!("n{call}"), ORDER);
    Call::of_mut(request.extensions_mut()).set_intent(IntentId::new("n"));
    tell(rig.service.clone().oneshot(request).await).await
}

/// Counts cases, sends that followed a lost one, and what must not be.
#[derive(Default)]
struct Tally {
    cases: usize,
    resent: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// Judges one case: `asleep` is when the machine slept and for how long, `aged` the greatest age for a resend.
    fn take(
        &mut self,
        what: String,
        rig: &Rig,
        clocks: &Clockwork,
        told: &[(&str, Told)],
        (asleep, aged): (Option<(Instant, Duration)>, Duration),
    ) {
        self.cases += 1;
        let book = rig.gateway.0.lock();
        let mut wrong = Vec::new();
        for (name, told) in told {
            if let Told::Placed(id) | Told::Recovered(id) | Told::Resent(id) | Told::Attached(id) = told
                && !book.orders.iter().any(|order| order.id == *id && order.owner.starts_with(name))
            {
                wrong.push(format!("{name} was given {id}, which is not its own"));
            }
        }
        let slept =
            |at: Instant| asleep.map_or(Duration::ZERO, |(from, by)| if at >= from { by } else { s(0) });
        for name in ["n", "m"] {
            let sends: Vec<_> =
                book.posts.iter().filter(|(_, owner)| owner.starts_with(name)).map(|(at, _)| *at).collect();
            let day = |at: &Instant| clocks.true_day(*at);
            for of_one_day in sends.chunk_by(|one, other| day(one) == day(other)) {
                let [first, rest @ ..] = of_one_day else { continue };
                // Only the lost one may be sent again, once.
                if rest.len() > usize::from(name == "m") {
                    wrong.push(format!("{name} was sent {} times", of_one_day.len()));
                }
                for again in rest {
                    self.resent += 1;
                    let age = (*again - *first) + slept(*again) - slept(*first);
                    if age > aged {
                        wrong.push(format!("{name} was sent again at an age of {age:?}"));
                    }
                }
            }
            let mut days: Vec<_> = book
                .orders
                .iter()
                .filter(|order| order.owner.starts_with(name))
                .map(|order| day(&order.at))
                .collect();
            let orders = days.len();
            days.dedup();
            if days.len() < orders {
                wrong.push(format!("{name} has {orders} orders on {} days", days.len()));
            }
        }
        drop(book);
        self.wrong.extend(wrong.into_iter().map(|wrong| format!("{what}: {wrong}; {told:?}")));
        rig.check();
    }

    #[expect(clippy::print_stdout, reason = "evidence reads figures from the output")]
    fn end(self, name: &str) {
        let Self { cases, resent, wrong } = self;
        println!("figures: {name}_cases={cases} {name}_resent={resent} {name}_wrong={}", wrong.len());
        assert!(
            wrong.is_empty(),
            "{} wrong, such as\n{}",
            wrong.len(),
            wrong[..wrong.len().min(10)].join("\n")
        );
    }
}

/// The wall clock is set by four seconds around midnight, and set right a little later; an equal order is lost in between.
#[tokio::test(start_paused = true)]
async fn o03_a_clock_set_around_midnight_gives_no_wrong_id_and_no_second_order() {
    let mut tally = Tally::default();
    for (off, dated) in [(4, false), (4, true), (-4, false), (-4, true)] {
        for (at, back) in
            (24..=36).step_by(step(3)).flat_map(|at| (1..=8).step_by(step(4)).map(move |back| (at, back)))
        {
            for exists in LOST {
                let clocks = Clockwork::before_midnight(s(30));
                let gateway = if dated { clocks.gateway() } else { Gateway::default() };
                let rig = Rig::over(gateway, clocks.settings());
                rig.gateway.0.lock().midnight = Some(Instant::now() + s(30));
                let first = place_n(&rig, 1).await;
                sleep(s(at)).await;
                clocks.set_wall(off);
                lose(&rig, exists);
                let lost = rig.start("m", ORDER);
                sleep(s(back)).await;
                clocks.set_wall(0);
                let again = place_n(&rig, 2).await;
                let lost = lost.await.unwrap();
                sleep(s(300)).await;
                let what = format!(
                    "by {off} s, {at} s after the first order, for {back} s, dated {dated}, lost {exists:?}"
                );
                tally.take(what, &rig, &clocks, &[("n", first), ("m", lost), ("n", again)], (None, s(60)));
            }
        }
    }
    tally.end("midnight");
}

/// The wall clock is a day off: from the start, from the first order on, or from the lost one on.
#[tokio::test(start_paused = true)]
async fn o03_a_clock_a_day_off_gives_no_wrong_id_and_no_second_order() {
    let mut tally = Tally::default();
    let lasts = [10, 3_600, 10 * 3_600, 13 * 3_600, 30 * 3_600];
    for (off, dated) in [(1, false), (1, true), (-1, false), (-1, true)] {
        for (from, last) in (0..3).flat_map(|from| lasts.map(|last| (from, last))) {
            for exists in LOST {
                let clocks = Clockwork::before_midnight(s(DAY / 2));
                let gateway = if dated { clocks.gateway() } else { Gateway::default() };
                let midnight = Instant::now() + s(DAY / 2);
                let set = |now| {
                    if now == from {
                        clocks.set_wall(off * DAY.cast_signed());
                    }
                };
                set(0);
                let rig = Rig::over(gateway, clocks.settings());
                rig.gateway.0.lock().midnight = Some(midnight);
                let first = place_n(&rig, 1).await;
                sleep(s(60)).await;
                set(1);
                let other = rig.place("x", &order(3)).await;
                lose(&rig, exists);
                let lost = rig.start("m", ORDER);
                sleep(s(2)).await;
                set(2);
                sleep(s(last)).await;
                clocks.set_wall(0);
                let again = place_n(&rig, 2).await;
                let lost = lost.await.unwrap();
                sleep(s(DAY)).await;
                let last_of_all = place_n(&rig, 3).await;
                let what =
                    format!("by {off} days, from {from} on, for {last} s, dated {dated}, lost {exists:?}");
                let told = [("n", first), ("x", other), ("m", lost), ("n", again), ("n", last_of_all)];
                tally.take(what, &rig, &clocks, &told, (None, s(60)));
            }
        }
    }
    tally.end("day");
}

/// The machine sleeps for three hours at any instant of a search, and of the wait of a resend.
#[tokio::test(start_paused = true)]
async fn o04_nothing_is_sent_again_too_old_wherever_the_machine_slept() {
    let mut tally = Tally::default();
    for (form, aged) in [(ORDER.to_owned(), s(60)), (market(), s(20))] {
        for tenths in (0..=250).step_by(step(5)) {
            for exists in LOST {
                let clocks = Clockwork::at(s(1_000_000));
                let rig = Rig::on(clocks.settings());
                rig.between.queue(Duration::ZERO, s(2));
                lose(&rig, exists);
                let lost = rig.start("m", &form);
                sleep(Duration::from_millis(100 * tenths)).await;
                clocks.suspend(s(3 * 3_600));
                let asleep = (Instant::now(), s(3 * 3_600));
                let lost = lost.await.unwrap();
                sleep(s(300)).await;
                let what = format!("{form}, asleep after {} ms, lost {exists:?}", 100 * tenths);
                tally.take(what, &rig, &clocks, &[("m", lost)], (Some(asleep), aged));
            }
        }
    }
    assert!(tally.resent > 0, "some were sent again before the machine slept");
    tally.end("sleep");
}
