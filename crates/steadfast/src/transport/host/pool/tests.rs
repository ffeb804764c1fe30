use std::{collections::BTreeMap, num::NonZeroUsize, time::Duration};

use proptest::prelude::*;
use tokio::time::Instant;

use super::{Choice, Limits, Need, Pool};

const LIMITS: Limits = Limits {
    idle: Duration::from_secs(60),
    order_idle: Duration::from_secs(2),
    connections: NonZeroUsize::new(3).unwrap(),
};

const ORDER: Need = Need { is_order: true, is_urgent: false };
const READ: Need = Need { is_order: false, is_urgent: false };

#[derive(Clone, Copy, Debug)]
enum Event {
    Send {
        is_order: bool,
        is_urgent: bool,
    },
    /// The nth dialled connection is made, or not.
    Made,
    Failed,
    /// The nth connection in use is given back, or ends.
    Given(usize),
    Ended(usize),
    /// The nth unused connection ends.
    EndedUnused(usize),
    Passes {
        millis: u64,
    },
    Expire,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(is_order, is_urgent)| Event::Send { is_order, is_urgent }),
        3 => Just(Event::Made),
        1 => Just(Event::Failed),
        3 => (0_usize..4).prop_map(Event::Given),
        1 => (0_usize..4).prop_map(Event::Ended),
        1 => (0_usize..4).prop_map(Event::EndedUnused),
        2 => (0_u64..3_000).prop_map(|millis| Event::Passes { millis }),
        1 => (50_000_u64..70_000).prop_map(|millis| Event::Passes { millis }),
        1 => Just(Event::Expire),
    ]
}

/// The pool with a plain account of what it was told. Sends and connections are numbers.
struct World {
    pool: Pool<u32, Need>,
    now: Instant,
    next: u32,
    unused: BTreeMap<u32, Instant>,
    in_use: Vec<u32>,
    dialing: usize,
    waiting: usize,
    /// Of these, the urgent ones.
    urgent: usize,
    /// Connections beyond the bound, which only urgent sends may cause.
    beyond: usize,
}

impl World {
    fn new() -> Self {
        Self {
            pool: Pool::new(LIMITS),
            now: Instant::now(),
            next: 0,
            unused: BTreeMap::new(),
            in_use: Vec::new(),
            dialing: 0,
            waiting: 0,
            urgent: 0,
            beyond: 0,
        }
    }

    fn open(&self) -> usize {
        self.unused.len() + self.in_use.len() + self.dialing
    }

    fn send(&mut self, need: Need) {
        match self.pool.choose(self.now, need) {
            Choice::Take(connection) => {
                let since = self.unused.remove(&connection).expect("an unused connection");
                let longest = if need.is_order { LIMITS.order_idle } else { LIMITS.idle };
                assert!(self.now - since <= longest, "unused for too long");
                self.in_use.push(connection);
                return;
            }
            Choice::Dial { closes } => {
                if let Some(closed) = closes {
                    assert!(self.unused.remove(&closed).is_some(), "only an unused one is closed");
                    self.pool.ended(|_| true);
                } else if self.open() >= LIMITS.connections.get() {
                    assert!(need.is_urgent, "more connections than allowed");
                    self.beyond += 1;
                }
                self.dialing += 1;
            }
            Choice::Wait => {
                assert!(!need.is_urgent && self.open() >= LIMITS.connections.get(), "waits for nothing");
                assert!(self.unused.is_empty(), "waits beside an unused connection");
            }
        }
        self.pool.wait(need, need);
        self.waiting += 1;
        self.urgent += usize::from(need.is_urgent);
    }

    fn give(&mut self, connection: u32) {
        match self.pool.give(connection, self.now) {
            Some((need, same)) => {
                assert_eq!(same, connection);
                assert!(need.is_urgent || self.urgent == 0, "a read goes before a cancel");
                self.urgent -= usize::from(need.is_urgent);
                self.waiting -= 1;
                self.in_use.push(connection);
            }
            None => {
                assert_eq!(self.waiting, 0, "it goes to a send that waits");
                self.unused.insert(connection, self.now);
            }
        }
    }

    fn ended(&mut self, connection: u32) {
        self.pool.ended(|other| *other != connection);
        self.beyond = self.beyond.saturating_sub(1);
        self.make_others();
    }

    fn make_others(&mut self) {
        while self.pool.needs_another() {
            assert!(self.open() < LIMITS.connections.get());
            self.dialing += 1;
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Send { is_order, is_urgent } => self.send(Need { is_order, is_urgent }),
            Event::Made if self.dialing > 0 => {
                self.dialing -= 1;
                self.pool.dialed();
                self.next += 1;
                self.give(self.next);
                self.make_others();
            }
            Event::Failed if self.dialing > 0 => {
                self.dialing -= 1;
                self.pool.ended(|_| true);
                self.beyond = self.beyond.saturating_sub(1);
                self.pool.dialed();
                if let Some(need) = self.pool.refuse() {
                    self.urgent -= usize::from(need.is_urgent);
                    self.waiting -= 1;
                }
                self.make_others();
            }
            Event::Given(nth) if nth < self.in_use.len() => {
                let connection = self.in_use.remove(nth);
                self.give(connection);
            }
            Event::Ended(nth) if nth < self.in_use.len() => {
                let connection = self.in_use.remove(nth);
                self.ended(connection);
            }
            Event::EndedUnused(nth) => {
                if let Some(&connection) = self.unused.keys().nth(nth) {
                    self.unused.remove(&connection);
                    self.ended(connection);
                }
            }
            Event::Passes { millis } => self.now += Duration::from_millis(millis),
            Event::Expire => {
                let is_open = self.open() > 0;
                let (old, next) = self.pool.expire(self.now);
                for connection in old {
                    let since = self.unused.remove(&connection).expect("an unused connection");
                    assert!(self.now - since >= LIMITS.idle);
                    self.ended(connection);
                }
                // One in use may be unused from now on.
                let oldest = self.unused.values().min().copied().or(is_open.then_some(self.now));
                assert_eq!(next, oldest.map(|since| since + LIMITS.idle));
            }
            _ => {}
        }
    }

    /// Everything that waits has something to wait for.
    fn check(&self) {
        assert!(self.open() <= LIMITS.connections.get() + self.beyond, "{} connections", self.open());
        if self.waiting > 0 {
            assert!(self.dialing > 0 || !self.in_use.is_empty(), "{} wait for nothing", self.waiting);
        }
    }
}

proptest! {
    #[test]
    fn any_events_keep_bound_and_ages_and_leave_no_send_waiting_for_nothing(
        events in prop::collection::vec(event(), 0..120),
    ) {
        let mut world = World::new();
        for event in events {
            world.happens(event);
            world.check();
        }
        // In the end every send is served or refused.
        while world.dialing > 0 || !world.in_use.is_empty() {
            if world.in_use.is_empty() { world.happens(Event::Failed) } else { world.happens(Event::Ended(0)) }
            world.check();
        }
        prop_assert_eq!(world.waiting, 0);
    }
}

#[test]
fn connection_used_last_is_used_next() {
    let (mut pool, now) = (Pool::<_, Need>::new(LIMITS), Instant::now());
    assert_eq!(pool.choose(now, READ), Choice::Dial { closes: None });
    assert_eq!(pool.choose(now, READ), Choice::Dial { closes: None });
    assert_eq!(pool.give(1, now), None);
    assert_eq!(pool.give(2, now + Duration::from_secs(1)), None);
    assert_eq!(pool.choose(now + Duration::from_secs(1), READ), Choice::Take(2));
    assert_eq!(pool.choose(now + Duration::from_secs(3), ORDER), Choice::Dial { closes: None });
    assert_eq!(pool.choose(now + Duration::from_secs(3), READ), Choice::Take(1));
}
