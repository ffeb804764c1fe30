use std::collections::BTreeMap;

use steadfast_call::Lane;

use self::{key_clock::KeyClock, opens::Filled};
use crate::rule::{Micros, Rule};

mod key_clock;
mod opens;

pub use self::key_clock::Reading;

/// How long after its turn a caller that was refused keeps its place.
pub(crate) const GRACE: Micros = 100_000;

/// The windows of one key, shared by all processes: the rule that the store's script applies.
///
/// A plain value. Instants and events go in, decisions come out. It is held against the script itself, on a real
/// server with the same history, so what is proved of one holds for the other.
///
/// 1. A request has a stamp for as long as it may fill a slot of a window: the instant of its answer by the store's
///    clock. Until then the stamp is the latest instant at which the gateway may count it. So a process that dies
///    with a request on its way leaves the right stamp behind.
/// 2. A request is granted if the windows have room, with those on their way counted as answered now.
/// 3. Cancels and verification wait 3 s for those on their way, and no longer.
/// 4. A caller may ask for several requests at once. They are decided one after the other, up to the first one that is refused.
/// 5. A slot that is [lent](Self::lend) to a process is taken from the limit, and not from what other lanes leave to
///    cancels.
/// 6. The memory belongs to one run of the store. After another run, or when the memory is gone, all windows count
///    as full until what had been granted before cannot matter any more. Cancels keep their reserve.
/// 7. The store's clock may be set, and a store with another one may take its place. The memory has a
///    [clock](Self::read) of its own, which goes on meanwhile.
///
/// # Example
///
/// ```
/// use steadfast_limit::{Lane, Quota, SECOND, Scope, Zone, ZoneLimiter};
/// use steadfast_redis::{Ask, Decision, Rule, SharedWindows};
///
/// # fn main() -> Result<(), steadfast_limit::InvalidLimiter> {
/// let orders = Quota::new(Zone::PLACE_ORDER, Scope::AuthToken).limit(2, SECOND);
/// let limiter = ZoneLimiter::builder().zone(orders).build()?;
/// let mut windows = SharedWindows::new(Rule::new(&limiter.settings()[0]));
///
/// let now = 1_700_000_000_000_000;
/// let ask = |id| Ask::new(id, Lane::Trading).first_use();
/// for id in ["a", "b"] {
///     assert_eq!(windows.acquire("run", &ask(id), now), Decision::Granted);
///     windows.settle(id, now);
/// }
/// // Which half of a gateway's window the two were counted in is unknown.
/// let Decision::Refused { earliest } = windows.acquire("run", &ask("c"), now) else { panic!() };
/// assert_eq!(earliest - now, 1_503_750);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SharedWindows {
    rule: Rule,
    clock: KeyClock,
    memory: Option<Memory>,
    stamps: BTreeMap<String, Micros>,
    /// The callers that were refused, each with the instant at which it was told to ask again.
    waiters: BTreeMap<String, Micros>,
}

/// The server's run that the windows are of, and until when they count as full.
#[derive(Clone, Debug)]
struct Memory {
    run: String,
    full_until: Micros,
}

/// A request for a permit.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub(crate) id: &'a str,
    pub(crate) lane: Lane,
    pub(crate) first_use: bool,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request may be sent.
    Granted,
    /// It may not.
    Refused {
        /// When to ask again: the earliest instant for the caller's place among those who wait.
        earliest: Micros,
    },
}

impl<'a> Ask<'a> {
    /// Asks for a request of `lane`. `id` is its own, the same each time that it asks.
    #[must_use]
    pub fn new(id: &'a str, lane: Lane) -> Self {
        Self { id, lane, first_use: false }
    }

    /// Says that nothing can have been counted yet if the store has no memory at all, as when this process has just
    /// made the account's token.
    #[must_use]
    pub fn first_use(mut self) -> Self {
        self.first_use = true;
        self
    }
}

impl SharedWindows {
    /// Makes windows without any memory.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        Self {
            rule,
            clock: KeyClock::default(),
            memory: None,
            stamps: BTreeMap::new(),
            waiters: BTreeMap::new(),
        }
    }

    /// Reads the clock of the key at `time` of the store, for a caller of which the own clock allows `latest`. A caller that
    /// knows nothing yet says `None`, and no time passes for it.
    pub fn read(&mut self, time: Micros, latest: Option<Micros>) -> Reading {
        self.clock.read(time, latest)
    }

    /// Decides about a request at `now`. `run` names the run of the store.
    pub fn acquire(&mut self, run: &str, ask: &Ask<'_>, now: Micros) -> Decision {
        let full_until = self.recognise(run, ask.first_use, now);
        self.forget(now);
        let ahead = self.ahead(ask);
        let opens = self.opens(ask.lane, 0, full_until, now);
        if opens <= now {
            self.waiters.remove(ask.id);
            self.stamps.insert(ask.id.to_owned(), self.rule.stamp_on_its_way(now));
            return Decision::Granted;
        }
        let earliest = if ahead == 0 { opens } else { self.opens(ask.lane, ahead, full_until, now) };
        self.waiters.insert(ask.id.to_owned(), earliest);
        Decision::Refused { earliest }
    }

    /// Records the answer to a request. A second one changes nothing. A request that the store has forgotten is
    /// remembered again.
    pub fn settle(&mut self, id: &str, now: Micros) {
        let answered = self.rule.stamp_answered(now);
        let stamp = self.stamps.entry(id.to_owned()).or_insert(answered);
        *stamp = answered.min(*stamp);
    }

    /// Lends the slot of a granted request to its process for `life`, or for longer if it is lent already. False if too
    /// many are lent, or the store does not know of it any more.
    ///
    /// A slot in each window: the process may use it when it cannot reach the store.
    pub fn lend(&mut self, id: &str, life: Micros, now: Micros) -> bool {
        let (lent, from) = (self.lent(now), self.rule.lent_from(now));
        let Some(stamp) = self.stamps.get_mut(id).filter(|stamp| **stamp > now) else { return false };
        if *stamp <= from && lent >= self.rule.most_lent() as usize {
            return false;
        }
        // Even, as of an answer: no lane gives it up.
        *stamp = now + life + ((now + life) & 1);
        true
    }

    /// Returns how many slots are lent.
    fn lent(&self, now: Micros) -> usize {
        let from = self.rule.lent_from(now);
        self.stamps.values().filter(|stamp| **stamp > from).count()
    }

    /// Records that a request never left, or that its caller waits no longer.
    pub fn refund(&mut self, id: &str) {
        self.stamps.remove(id);
        self.waiters.remove(id);
    }

    /// Forgets everything, as a store does that is emptied.
    pub fn flush(&mut self) {
        *self = Self::new(self.rule.clone());
    }

    /// Returns until when the windows count as full.
    fn recognise(&mut self, run: &str, first_use: bool, now: Micros) -> Micros {
        let full = now + self.rule.full_after_loss();
        let full_until = match &self.memory {
            Some(memory) if memory.run == run => return memory.full_until,
            Some(memory) => full.max(memory.full_until),
            None if first_use && self.stamps.is_empty() => 0,
            None => full,
        };
        self.memory = Some(Memory { run: run.to_owned(), full_until });
        full_until
    }

    fn forget(&mut self, now: Micros) {
        let kept = self.rule.kept();
        self.stamps.retain(|_, stamp| *stamp + kept > now);
        self.waiters.retain(|_, turn| *turn + GRACE > now);
    }

    /// Returns how many callers have their turn before this one. A cancel stands before all.
    fn ahead(&self, ask: &Ask<'_>) -> usize {
        if ask.lane == Lane::Critical {
            return 0;
        }
        let own = self.waiters.get(ask.id);
        self.waiters.values().filter(|turn| own.is_none_or(|own| *turn < own)).count()
    }

    /// Returns the first instant from `now` on at which a request of `lane` fits behind `ahead` others.
    fn opens(&self, lane: Lane, ahead: usize, full_until: Micros, now: Micros) -> Micros {
        let is_full = full_until > now;
        if is_full && lane != Lane::Critical {
            return full_until;
        }
        let mut stamps: Vec<_> = self.stamps.values().map(|stamp| self.counted(*stamp, lane, now)).collect();
        stamps.sort_unstable();
        stamps.extend(std::iter::repeat_n(now, ahead));
        let lent = self.lent(now);
        let windows = self.rule.windows().iter().map(|window| {
            // Lent slots are slots of their own, as far as the limit has them.
            let most = (window.most(lane, is_full) as usize + lent).min(window.limit() as usize);
            let interpolates = self.rule.interpolates();
            Filled { stamps: &stamps, most, period: window.period, interpolates }.opens(now)
        });
        windows.fold(now, Micros::max)
    }

    /// Returns the instant at which a request counts as answered for a request of `lane`.
    fn counted(&self, stamp: Micros, lane: Lane, now: Micros) -> Micros {
        let is_on_its_way = stamp > now && stamp & 1 == 1;
        now.min(if is_on_its_way { stamp - self.rule.given_up_earlier(lane) } else { stamp })
    }
}
