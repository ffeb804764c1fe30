//! Runs the shared protocol, and the shell around it, under every order of threads that a model checker tries.
//!
//! This file tests the shared protocol alone, with mistakes that the checker must find; `shell` tests the whole layer. A
//! waiter that is never woken blocks its thread for good, which the checker reports as a deadlock.

mod mistakes;
mod shell;

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    task::Poll,
};

use shuttle::{future, thread};
use steadfast_call::{Outcome, Resend};
use steadfast_spec::{Form, OrderRecord, OrderRequest, parse_order_list};

use self::mistakes::Mistake;
use super::*;
use crate::{
    numbers::{AttemptNo, IntentNo, ReadNo, Session},
    protocol::{
        event::{Answer, Event},
        resolution::Verdict,
    },
    settings::Settings,
    tracker::{
        sync::{from_zero, pass_time},
        timekeeper::Timekeeper,
    },
};

/// How many schedules each test runs; ten times as many with `STEADFAST_DEEP=1`.
const SCHEDULES: usize = 4_000;

const FORM: &str = "symId=S&qty=1&side=buy&type=limit&limitPrice=5&product=delivery&validity=day";

/// Runs half of the schedules at random, and half with a few well-placed changes of thread.
fn explore(times: usize, schedule: impl Fn() + Send + Sync + Clone + 'static) {
    let times = if std::env::var_os("STEADFAST_DEEP").is_some() { 10 * times } else { times };
    let schedule = move || from_zero(&schedule);
    shuttle::check_random(schedule.clone(), times / 2);
    shuttle::check_pct(schedule, times / 2, 3);
    eprintln!("figures: schedules={times} models=1");
}

/// The shared state of the threads of one schedule: a shared protocol, and a list that holds every order that was sent.
struct World {
    mistake: Mistake,
    shared: SharedProtocol,
    list: Vec<OrderRecord>,
    reading: AtomicBool,
    verdicts: AtomicU32,
    told: AtomicU32,
}

const CALLERS: u32 = 2;

impl World {
    fn new(mistake: Mistake) -> Arc<Self> {
        let settings = Arc::new(Settings::default());
        let time = Timekeeper::new(&settings);
        let mut shared = SharedProtocol::new(OrderProtocol::new(settings.clone(), settings.today()), time);
        // The world starts the poller itself.
        if mistake != Mistake::StartsByHearsay {
            shared.get_mut().allow_poller();
        }
        let record = |id: u32| {
            format!(r#"{{"orderId":"o{id}","symId":"S","qty":1,"side":"buy","type":"limit","limitPrice":5}}"#)
        };
        let records: Vec<_> = (0..CALLERS).map(record).collect();
        let list = format!(r#"{{"s":"ok","d":[{}]}}"#, records.join(","));
        let list = parse_order_list(list.as_bytes(), settings.record_names()).unwrap();
        let (reading, verdicts, told) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
        Arc::new(Self { mistake, shared, list, reading, verdicts, told })
    }

    fn step(self: &Arc<Self>, event: Event) {
        let after = match self.mistake {
            Mistake::WakesBeforeItSteps => self.step_after_waking(event),
            Mistake::StartsByHearsay => self.step_and_start_later(event),
            _ => self.shared.enter(|state, now, out| self.take(state, now, event, out)).1,
        };
        if after.starts_poller {
            drop(future::spawn(Arc::clone(self).poll_list()));
        }
    }

    /// Steps the protocol once and counts the verdicts.
    fn take(&self, state: &mut State, now: Duration, event: Event, out: &mut Effects) {
        let effects = state.protocol.step(now, event);
        let is_verdict = |effect: &&Effect| {
            matches!(effect, Effect::Report(OrderEvent::Recovered { .. } | OrderEvent::Unresolved { .. }))
        };
        let verdicts = effects.iter().filter(is_verdict).count();
        self.verdicts.fetch_add(u32::try_from(verdicts).unwrap(), SeqCst);
        out.extend(effects);
    }

    /// Acts as the poller, with the list at hand.
    async fn poll_list(self: Arc<Self>) {
        loop {
            if self.mistake == Mistake::EndsByHearsay
                && self.shared.look(|state| state.protocol.next_wake()).is_none()
            {
                self.shared.poller_gone();
                return;
            }
            match self.shared.plan(|_| Duration::from_secs(3_600)) {
                Plan::Read(purpose) => self.read(purpose).await,
                Plan::Tick => self.step(Event::Tick),
                Plan::SleepUntil(at) if self.mistake == Mistake::SleepsByAnOldPlan => {
                    self.shared.clock.until(at, self.wait_blindly(About::Plan)).await;
                }
                Plan::SleepUntil(at) => self.shared.sleep_until(at).await,
                Plan::End => return,
            }
        }
    }

    async fn read(self: &Arc<Self>, purpose: Purpose) {
        assert!(!self.reading.swap(true, SeqCst), "two pollers");
        let read = self.shared.look(|state| {
            state.next_read += 1;
            ReadNo(state.next_read)
        });
        self.step(Event::ReadOpened { read, purpose });
        self.step(Event::ReadStarted { read, session: Session::default() });
        future::yield_now().await;
        self.reading.store(false, SeqCst);
        self.step(Event::ReadEnded { read, list: Ok(self.list.clone()) });
    }

    /// Leaves a waker without checking whether there is anything to wait for.
    async fn wait_blindly(&self, about: About) {
        let mut looked = false;
        let blind = |_: &mut State| std::mem::replace(&mut looked, true).then_some(());
        self.shared.wait(about, blind).await;
    }

    /// A call whose order was sent, and whose answer was lost.
    fn call(self: &Arc<Self>, number: u32) {
        let intent = IntentNo(u64::from(number));
        let attempt = AttemptNo { intent, index: 0 };
        let order = OrderRequest::from_fields(Form::parse(FORM.as_bytes()).unwrap().iter()).unwrap();
        self.step(Event::Opened { intent, order: Arc::new(order), name: None });
        self.step(Event::Begun { attempt, session: Session::default() });
        self.step(Event::Sent(attempt));
        let outcome = Outcome::Unknown { resend: Resend::Never };
        self.step(Event::Closed { attempt, outcome, answer: Answer::Status(504) });
        let decided =
            |state: &mut State| Some(state.protocol.verdict(intent)).filter(|v| *v != Verdict::Pending);
        future::block_on(async {
            if self.mistake == Mistake::LooksBeforeItWaits {
                while self.shared.look(decided).is_none() {
                    self.wait_blindly(About::Intent(intent)).await;
                }
            }
            self.shared.wait(About::Intent(intent), decided).await
        });
        self.step(Event::Concluded(intent));
        self.told.fetch_add(1, SeqCst);
    }

    /// Checks what holds whenever the lock is free.
    fn check(&self) {
        self.shared.look(|state| {
            let next = state.protocol.next_wake();
            let sleeps = state.waiters.subjects().any(|about| *about == About::Plan);
            match state.poller {
                PollerState::Absent => assert_eq!(next, None, "work, and nobody to do it"),
                PollerState::Awake => assert!(!sleeps, "the poller sleeps by an old plan"),
                PollerState::Asleep(until) => assert_eq!(next, Some(until), "the poller sleeps with work"),
            }
        });
    }
}

/// Runs callers, the poller that they start, and time, which passes while a call waits for an answer.
fn storm(mistake: Mistake) {
    let world = World::new(mistake);
    let call = |number| {
        let world = Arc::clone(&world);
        thread::spawn(move || world.call(number))
    };
    let callers: Vec<_> = (0..CALLERS).map(call).collect();
    for _ in 0..1_000 {
        if world.told.load(SeqCst) == CALLERS {
            break;
        }
        if mistake != Mistake::StartsByHearsay {
            world.check();
        }
        // Only while an order is in doubt: later events, such as a watch or a question for the day's end, would wake
        // a forgotten waiter.
        if world.shared.look(|state| state.protocol.in_doubt() > 0) {
            pass_time(Duration::MAX);
        }
        thread::yield_now();
    }
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    assert_eq!(world.verdicts.load(SeqCst), CALLERS, "one verdict for each order");
    let left = world.shared.look(|state| state.waiters.subjects().any(|about| *about != About::Plan));
    assert!(!left || mistake != Mistake::None, "nobody waits any more");
}

#[test]
fn every_verdict_reaches_its_waiter_and_one_poller_never_sleeps_with_work() {
    explore(5 * SCHEDULES, || storm(Mistake::None));
}

/// A wait that is dropped at any moment leaves nothing, and takes no wake-up with it.
#[test]
fn a_dropped_wait_leaves_nothing() {
    explore(SCHEDULES, || {
        let world = World::new(Mistake::None);
        let patient = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.call(0))
        };
        let impatient = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let mut wait = world.shared.wait(About::Intent(IntentNo(0)), |_: &mut State| None::<()>);
                future::block_on(poll_fn(|cx| {
                    assert!(Pin::new(&mut wait).poll(cx).is_pending());
                    Poll::Ready(())
                }));
            })
        };
        while world.told.load(SeqCst) == 0 {
            pass_time(Duration::MAX);
            thread::yield_now();
        }
        patient.join().unwrap();
        impatient.join().unwrap();
        assert!(world.shared.look(|state| state.waiters.subjects().all(|about| *about == About::Plan)));
    });
}
