//! Calls, waits and permits given up at any point, in any order. Nothing is left behind, no request is stuck, and
//! exactly the transport's sends were spent.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
    time::Duration,
};

use http::{Request, Response, StatusCode};
use proptest::prelude::*;
use steadfast_call::{Call, Failure, Fate};
use steadfast_limit::{
    Account, Acquire, Answer, BoxError, Lane, Loss, Permit, Profile, Quota, SECOND, Scope, Snapshot, Zone,
    ZoneLimiter,
};
use tokio::time::{Instant, sleep, timeout};
use tokio_test::task::{Spawn, spawn};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::{drive::per_second, wire::Dice};

const TIGHT: Zone = Zone::new("tight");
const OTHER: Zone = Zone::new("other");
/// Nothing leaves its window during a test, so it counts all spent slots.
const TOTAL: Zone = Zone::new("total");

fn limiter() -> ZoneLimiter {
    let total = Quota::new(TOTAL, Scope::AuthToken).limit(10_000, Duration::from_secs(7_200));
    let zones = ZoneLimiter::builder()
        .zone(per_second(TIGHT, 3))
        .zone(per_second(OTHER, 2).profile(Profile::Universal));
    zones.zone(total.profile(Profile::WindowLog)).build().unwrap()
}

fn on_their_way(snapshot: &Snapshot) -> u32 {
    snapshot.zones.iter().map(|zone| zone.in_flight).sum()
}

fn waiting(snapshot: &Snapshot) -> u32 {
    snapshot.zones.iter().flat_map(|zone| &zone.lanes).map(|lane| lane.waiting).sum()
}

/// Returns how many slots were spent since the start.
fn spent(limiter: &ZoneLimiter) -> usize {
    let zones = limiter.snapshot().zones;
    zones.iter().filter(|zone| zone.zone == TOTAL).map(|zone| zone.windows[0].used).sum()
}

/// How many calls a transport got, and for how many it proves that nothing left.
#[derive(Default)]
struct Sends {
    asked: AtomicUsize,
    never_left: AtomicUsize,
}

async fn storm(seed: u64, calls: u64) {
    let (limiter, sends) = (limiter(), Arc::new(Sends::default()));
    let transport = {
        let sends = sends.clone();
        service_fn(move |request: Request<u64>| {
            let (sends, mut dice) = (sends.clone(), Dice::new(*request.body()));
            sends.asked.fetch_add(1, SeqCst);
            async move {
                for _ in 0..dice.below(4) {
                    sleep(Duration::from_millis(dice.below(80))).await;
                }
                match dice.below(8) {
                    0 => {
                        sends.never_left.fetch_add(1, SeqCst);
                        Err(BoxError::from(Failure::new(Fate::NeverLeft, "connect")))
                    }
                    1 => Err(Failure::new(Fate::Lost { ended: None }, "reset").into()),
                    2 => Err("nobody vouches for it".into()),
                    3 => Ok(Response::builder().status(StatusCode::TOO_MANY_REQUESTS).body(()).unwrap()),
                    _ => Ok(Response::new(())),
                }
            }
        })
    };
    let layer = limiter.layer().zones_of(|request: &Request<u64>| match request.body() % 3 {
        0 => vec![TIGHT, TOTAL],
        1 => vec![OTHER, TOTAL],
        _ => vec![OTHER, TIGHT, TOTAL],
    });
    let service = ServiceBuilder::new().layer(layer).service(transport);
    let mut dice = Dice::new(seed);
    let mut running = Vec::new();
    for n in 0..calls {
        let mut request = Request::new(seed ^ n);
        Call::of_mut(request.extensions_mut()).set_lane(Lane::ALL[dice.below(5) as usize]);
        if dice.below(3) == 0 {
            let by = Instant::now() + Duration::from_millis(dice.below(3_000));
            Call::of_mut(request.extensions_mut()).set_send_by(by.into_std());
        }
        if dice.below(5) == 0 {
            Call::of_mut(request.extensions_mut()).put_at_head_of_lane();
        }
        // Some are dropped before they are polled, some after any number of polls, some not at all.
        let most = if dice.below(4) == 0 { u64::MAX } else { dice.below(9) };
        let lasts = Duration::from_millis(if dice.below(2) == 0 { dice.below(2_000) } else { 600_000 });
        let mut call: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(service.clone().oneshot(request));
        running.push(tokio::spawn(async move {
            let mut polls = 0;
            let some_polls = poll_fn(|cx| {
                polls += 1;
                if polls > most {
                    Poll::Ready(())
                } else {
                    call.as_mut().poll(cx).map(|_: Result<Response<()>, BoxError>| ())
                }
            });
            let _ = timeout(lasts, some_polls).await;
        }));
        if dice.below(3) == 0 {
            sleep(Duration::from_millis(dice.below(300))).await;
        }
    }
    for call in running {
        call.await.unwrap();
    }
    let end = limiter.snapshot();
    assert_eq!((on_their_way(&end), waiting(&end)), (0, 0), "seed {seed}: {end:?}");
    // A call dropped inside the transport never learns that nothing had left.
    let (asked, never_left) = (sends.asked.load(SeqCst), sends.never_left.load(SeqCst));
    assert_eq!(spent(&limiter), asked - never_left, "seed {seed}: permits not refunded are sends");
    let keys = limiter.keys("", &Account::default());
    for zone in [TIGHT, OTHER] {
        let probe = limiter.acquire(&[zone], keys, Lane::Bulk);
        assert!(timeout(200 * SECOND, probe).await.is_ok(), "seed {seed}: {zone} is stuck");
    }
}

/// Returns how many runs a test makes: `deep` with `STEADFAST_DEEP=1`, else `plain`.
fn runs(plain: u64, deep: u64) -> u64 {
    if std::env::var_os("STEADFAST_DEEP").is_some() { deep } else { plain }
}

#[test]
fn calls_dropped_at_any_point_leave_what_they_sent_and_nothing_else() {
    for seed in 0..runs(20, 5_000) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(storm(seed, 60));
    }
}

/// An action on the waiters or holders.
#[derive(Clone, Debug)]
enum Step {
    Ask { lane: usize, zones: usize, head: bool },
    Poll(usize),
    Leave(usize),
    Send(usize),
    Settle(usize, bool),
    Refund(usize),
    Lose(usize, bool),
    Drop(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = 0..64_usize;
    let step = prop_oneof![
        4 => (0..5_usize, 0..3_usize, any::<bool>()).prop_map(|(lane, zones, head)| Step::Ask { lane, zones, head }),
        5 => which.clone().prop_map(Step::Poll),
        2 => which.clone().prop_map(Step::Leave),
        2 => which.clone().prop_map(Step::Send),
        2 => (which.clone(), proptest::bool::weighted(0.1)).prop_map(|(n, refused)| Step::Settle(n, refused)),
        1 => which.clone().prop_map(Step::Refund),
        1 => (which.clone(), any::<bool>()).prop_map(|(n, reset)| Step::Lose(n, reset)),
        1 => which.prop_map(Step::Drop),
        2 => (0..1_500_u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..120)
}

/// The waiting futures and the permits held.
#[derive(Default)]
struct Crowd {
    waiting: Vec<Spawn<Acquire>>,
    holding: Vec<Permit>,
}

impl Crowd {
    fn poll(&mut self, n: usize) {
        if let Poll::Ready(permit) = self.waiting[n].poll() {
            drop(self.waiting.swap_remove(n));
            self.holding.push(permit.unwrap());
        }
    }

    fn hold(&mut self, n: usize) -> Option<Permit> {
        (!self.holding.is_empty()).then(|| self.holding.swap_remove(n % self.holding.len()))
    }
}

async fn play(steps: Vec<Step>) {
    let zones = ZoneLimiter::builder().zone(per_second(TIGHT, 2)).zone(per_second(OTHER, 1));
    // With strict critical lanes, no request passes those on their way.
    let limiter = zones.strict_critical().build().unwrap();
    let keys = limiter.keys("", &Account::default());
    let mut crowd = Crowd::default();
    for step in steps {
        match step {
            Step::Ask { lane, zones, head } => {
                // All of them fall under the first zone, which therefore counts all.
                let zones: &[Zone] = [&[TIGHT][..], &[TIGHT, OTHER], &[OTHER, TIGHT]][zones];
                let ask = limiter.acquire(zones, keys, Lane::ALL[lane]);
                crowd.waiting.push(spawn(if head { ask.at_head_of_lane() } else { ask }));
                crowd.poll(crowd.waiting.len() - 1);
            }
            Step::Poll(n) if !crowd.waiting.is_empty() => crowd.poll(n % crowd.waiting.len()),
            Step::Leave(n) if !crowd.waiting.is_empty() => {
                drop(crowd.waiting.swap_remove(n % crowd.waiting.len()));
            }
            Step::Poll(_) | Step::Leave(_) => {}
            Step::Send(n) => {
                let permit = crowd.hold(n);
                crowd.holding.extend(permit.map(|mut permit| {
                    permit.sent();
                    permit
                }));
            }
            Step::Settle(n, refused) => {
                let refusal = Answer::TooManyRequests { retry_after: None };
                let answer = if refused { refusal } else { Answer::Accepted };
                crowd.hold(n).into_iter().for_each(|permit| permit.settle(answer));
            }
            Step::Refund(n) => crowd.hold(n).into_iter().for_each(Permit::refund),
            Step::Lose(n, reset) => {
                let loss = if reset { Loss::Reset } else { Loss::GivenUp };
                crowd.hold(n).into_iter().for_each(|permit| permit.lose(loss));
            }
            Step::Drop(n) => drop(crowd.hold(n)),
            Step::Wait(ms) => sleep(Duration::from_millis(ms)).await,
        }
        let zones = limiter.snapshot().zones;
        let tight = zones.iter().find(|zone| zone.zone == TIGHT);
        let counted = tight.map_or(0, |zone| {
            assert!(zone.in_flight <= 2, "more permits than there are");
            zone.in_flight + zone.lanes.iter().map(|lane| lane.waiting).sum::<u32>()
        });
        // A waiter that has not collected its permit for a second has none until it is polled again.
        assert!(counted as usize <= crowd.waiting.len() + crowd.holding.len(), "nobody has two places");
        assert!(counted as usize >= crowd.holding.len(), "whoever holds a permit has one");
    }
    crowd.holding.clear();
    // The rest of the waiters are served, however the others have left.
    drop(crowd.waiting.drain(..crowd.waiting.len() / 2));
    for _ in 0..2_000 {
        for n in (0..crowd.waiting.len()).rev() {
            if crowd.waiting[n].is_woken() {
                crowd.poll(n);
            }
        }
        crowd.holding.clear();
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(crowd.waiting.len(), 0, "nobody is stuck");
    sleep(1_000 * SECOND).await;
    assert_eq!(limiter.snapshot(), Snapshot::default(), "nothing is left");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: runs(40, 20_000) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_waits_or_holds_has_one_place_until_it_is_gone(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(steps));
    }
}
