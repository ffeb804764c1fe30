use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use metrics::{Key, Recorder};
use steadfast_auth::{TokenPhase, TokenSource};
use steadfast_call::Lane;
use steadfast_dedup::{Cause, Confidence, OrderTracker, Reason, TagEcho, Tally};
use steadfast_limit::{Snapshot, ZoneLimiter};
use steadfast_spec::Zone;

use super::{
    catalog::{self, LAG_EDGES},
    keys::{METADATA, key},
};
use crate::{client::Client, stack::Stack};

/// Publishes the counts and states of a [`Client`] or a [`Stack`] at this moment.
///
/// Counters are set to the total since the start of the process, so calling this again counts nothing twice. Where a
/// process has several clients, use [`record_all`], which adds them up; separate calls would overwrite each other.
///
/// It locks each tracker and each limiter while it copies. Call it as often as the exporter is scraped, not for each
/// request.
pub fn record(source: impl Into<Reading>) {
    record_all([source]);
}

/// Publishes the sum of several clients or stacks. A tracker or limiter that several of them share is counted for each,
/// so name only one of those.
pub fn record_all<R: Into<Reading>>(sources: impl IntoIterator<Item = R>) {
    let mut sources = sources.into_iter().map(Into::into);
    let Some(mut sum) = sources.next() else { return };
    sources.for_each(|reading| sum.add(reading));
    sum.publish();
}

/// The counts and states of one or several clients at one moment.
#[derive(Clone, Debug)]
#[must_use = "a reading is nothing to an exporter until it is published"]
pub struct Reading {
    tally: Tally,
    in_doubt: usize,
    windows: BTreeMap<(Zone, Duration), Slots>,
    zones: BTreeMap<Zone, Load>,
    skew_ms: Option<i64>,
    usable: bool,
    latched: bool,
    sessions: usize,
}

/// The slots of a window, for its fullest key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slots {
    used: usize,
    limit: usize,
}

impl Slots {
    fn free(self) -> usize {
        self.limit.saturating_sub(self.used)
    }
}

#[derive(Clone, Debug, Default)]
struct Load {
    in_flight: u32,
    waiting: BTreeMap<Lane, u32>,
    paused: Duration,
    /// The lowest learned limit of each lane that has one.
    learned: BTreeMap<Lane, u32>,
}

impl Reading {
    /// Reads the current values of these three.
    pub fn new(tracker: &OrderTracker, limiter: &ZoneLimiter, tokens: &TokenSource) -> Self {
        let status = tokens.status();
        let mut reading = Self {
            tally: tracker.tally(),
            // Also those that are not looked for any more: nobody but a person finds them.
            in_doubt: tracker.in_doubt() + tracker.unresolved().len(),
            windows: BTreeMap::new(),
            zones: BTreeMap::new(),
            skew_ms: status.clock_offset_ms,
            usable: matches!(status.phase, TokenPhase::Valid | TokenPhase::Advisory | TokenPhase::Mandatory),
            latched: status.latched,
            sessions: status.sessions,
        };
        reading.read(&limiter.snapshot());
        reading
    }

    fn read(&mut self, snapshot: &Snapshot) {
        for zone in &snapshot.zones {
            for window in &zone.windows {
                let slots = Slots { used: window.used, limit: window.limit as usize };
                self.fill((zone.zone, window.period), slots);
            }
            let load = Load {
                in_flight: zone.in_flight,
                waiting: zone.lanes.iter().map(|lane| (lane.lane, lane.waiting)).collect(),
                paused: zone.paused_for.unwrap_or_default(),
                learned: zone
                    .lanes
                    .iter()
                    .filter_map(|lane| lane.learned.map(|limit| (lane.lane, limit)))
                    .collect(),
            };
            self.load(zone.zone, load);
        }
    }

    fn fill(&mut self, window: (Zone, Duration), slots: Slots) {
        let fullest = self.windows.entry(window).or_insert(slots);
        if slots.free() < fullest.free() {
            *fullest = slots;
        }
    }

    fn load(&mut self, zone: Zone, load: Load) {
        let sum = self.zones.entry(zone).or_default();
        sum.in_flight += load.in_flight;
        sum.paused = sum.paused.max(load.paused);
        for (lane, waiting) in load.waiting {
            *sum.waiting.entry(lane).or_default() += waiting;
        }
        for (lane, limit) in load.learned {
            sum.learned.entry(lane).and_modify(|lowest| *lowest = limit.min(*lowest)).or_insert(limit);
        }
    }

    /// Adds the values of another client. Values that cannot be added take the worst of both.
    pub fn add(&mut self, other: Self) {
        self.tally.add(&other.tally);
        self.in_doubt += other.in_doubt;
        for (window, slots) in other.windows {
            self.fill(window, slots);
        }
        for (zone, load) in other.zones {
            self.load(zone, load);
        }
        let skews = self.skew_ms.into_iter().chain(other.skew_ms);
        self.skew_ms = skews.max_by_key(|skew| skew.unsigned_abs());
        self.usable &= other.usable;
        self.latched |= other.latched;
        self.sessions = self.sessions.max(other.sessions);
    }

    /// Passes all values to the recorder.
    pub fn publish(&self) {
        metrics::with_recorder(|recorder| {
            let to = To(recorder);
            self.publish_orders(&to);
            self.publish_zones(&to);
            to.gauge(&key(catalog::TOKEN_USABLE, []), f64::from(u8::from(self.usable)));
            to.gauge(&key(catalog::LOGINS_LATCHED, []), f64::from(u8::from(self.latched)));
            to.gauge(&key(catalog::SESSIONS, []), float(self.sessions));
            if let Some(skew) = self.skew_ms {
                #[expect(clippy::cast_precision_loss, reason = "a skew of more than 15 digits is none")]
                to.gauge(&key(catalog::CLOCK_SKEW, []), skew as f64 / 1_000.0);
            }
        });
    }

    fn publish_orders(&self, to: &To<'_>) {
        let tally = &self.tally;
        to.gauge(&key(catalog::ORDERS_IN_DOUBT, []), float(self.in_doubt));
        for cause in Cause::ALL {
            to.counter(&key(catalog::AMBIGUOUS, [("cause", cause.as_str())]), tally.ambiguous(cause));
        }
        for confidence in Confidence::ALL {
            let key = key(catalog::RECOVERED, [("confidence", confidence.as_str())]);
            to.counter(&key, tally.recovered(confidence));
        }
        for reason in Reason::ALL {
            to.counter(&key(catalog::UNRESOLVED, [("reason", reason.as_str())]), tally.unresolved(reason));
        }
        let uncertain = tally.unresolved_total() - tally.not_observed();
        let verdicts = [tally.recovered_total(), tally.resent, tally.not_observed(), uncertain];
        for (verdict, count) in catalog::VERDICTS.into_iter().zip(verdicts) {
            to.counter(&key(catalog::VERIFICATIONS, [("verdict", verdict)]), count);
        }
        for (name, count) in [
            (catalog::NOT_OBSERVED, tally.not_observed()),
            (catalog::RESENT, tally.resent),
            (catalog::LATE_DUPLICATE, tally.late_duplicate),
            (catalog::REFUSED_BUT_PLACED, tally.refused_but_placed),
            (catalog::EXCESS, tally.excess),
            (catalog::CONFLICT, tally.conflict),
            (catalog::NOT_LISTED, tally.not_listed),
            (catalog::ACK_UNCONFIRMED, tally.ack_unconfirmed),
            (catalog::INCOMPLETE_LISTS, tally.incomplete_lists),
            (catalog::UNCALIBRATED, tally.uncalibrated),
        ] {
            to.counter(&key(name, []), count);
        }
        for echo in TagEcho::ALL {
            to.counter(&key(catalog::TAG_ECHOES, [("echo", echo.as_str())]), tally.tag_echoes(echo));
        }
        let mut seen = 0;
        for (edge, count) in LAG_EDGES.into_iter().zip(tally.visibility_lag.counts()) {
            seen += count;
            to.counter(&key(catalog::VISIBILITY_LAG, [("le", edge)]), seen);
        }
        let longest = tally.visibility_lag.longest().as_secs_f64();
        to.gauge(&key(catalog::VISIBILITY_LAG_MAX, []), longest);
    }

    /// Also publishes zones that the limiter has forgotten; otherwise an exporter would show their last value for
    /// ever.
    fn publish_zones(&self, to: &To<'_>) {
        static SHOWN: Mutex<BTreeMap<(Zone, Duration), usize>> = Mutex::new(BTreeMap::new());
        // An insertion cannot panic half-way, so a poisoned map is still valid.
        let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        shown.extend(self.windows.iter().map(|(window, slots)| (*window, slots.limit)));
        let idle = Load::default();
        for ((zone, period), limit) in &*shown {
            let slots = self.windows.get(&(*zone, *period)).copied();
            let slots = slots.unwrap_or(Slots { used: 0, limit: *limit });
            let labels = [("zone", zone.as_str().to_owned()), ("window", seconds(*period))];
            to.gauge(&Key::from_parts(catalog::ZONE_USED, &labels), float(slots.used));
            to.gauge(&Key::from_parts(catalog::ZONE_FREE, &labels), float(slots.free()));

            let load = self.zones.get(zone).unwrap_or(&idle);
            let zone = ("zone", zone.as_str());
            to.gauge(&key(catalog::ZONE_IN_FLIGHT, [zone]), f64::from(load.in_flight));
            to.gauge(&key(catalog::ZONE_PAUSED, [zone]), load.paused.as_secs_f64());
            for lane in Lane::ALL {
                let waiting = load.waiting.get(&lane).copied().unwrap_or_default();
                let lane_of_zone = [zone, ("lane", lane.as_str())];
                to.gauge(&key(catalog::ZONE_WAITING, lane_of_zone), f64::from(waiting));
                let learned = load.learned.get(&lane).copied().unwrap_or_default();
                to.gauge(&key(catalog::ZONE_LEARNED, lane_of_zone), f64::from(learned));
            }
        }
    }
}

impl From<&Client> for Reading {
    fn from(client: &Client) -> Self {
        Self::new(client.tracker(), client.limiter(), client.tokens())
    }
}

impl From<&Stack> for Reading {
    fn from(stack: &Stack) -> Self {
        Self::new(stack.known_orders(), stack.rate_limits(), stack.tokens())
    }
}

/// The destination of a reading.
struct To<'a>(&'a dyn Recorder);

impl To<'_> {
    fn counter(&self, key: &Key, count: u64) {
        self.0.register_counter(key, &METADATA).absolute(count);
    }

    fn gauge(&self, key: &Key, value: f64) {
        self.0.register_gauge(key, &METADATA).set(value);
    }
}

fn float(count: usize) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

/// The label of a window.
fn seconds(period: Duration) -> String {
    format!("{}s", period.as_secs_f64())
}
