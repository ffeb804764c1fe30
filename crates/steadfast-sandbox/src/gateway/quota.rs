use std::{collections::BTreeMap, time::Duration};

use steadfast_spec::{Scope, Zone, zones};

use crate::{
    enforce::{Enforcer, GatewayClock, Kind, Window, decide},
    gateway::{settings::Settings, spec_reading::Refused},
};

/// The holder for which a request counts; one of these for each of its zones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) zone: Zone,
    pub(crate) holder: String,
}

/// The five zones, counted for each holder.
#[derive(Debug)]
pub(crate) struct Quotas {
    kinds: BTreeMap<Zone, Kind>,
    /// How zones without a kind of their own count.
    other: Kind,
    refused: Refused,
    clock: GatewayClock,
    /// How much later than its arrival a request is counted, if that is known on arrival.
    lag: Option<Duration>,
    strictness: Strictness,
    held: BTreeMap<Key, Held>,
    /// How many holders may exist before silent ones are removed.
    sweep_above: usize,
}

/// How a gateway's limits compare to its documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strictness {
    Documented,
    Halved,
    OneEachSecond,
}

#[derive(Debug)]
struct Held {
    windows: Vec<Enforcer>,
    /// With accounting lag: the instants at which admitted requests will be counted.
    uncounted: Vec<Duration>,
    last: Duration,
}

/// A refused request: the zone that refused it, and when a request would be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverQuota {
    pub(crate) zone: Zone,
    pub(crate) retry_after: Duration,
}

/// A holder silent for longer than any window has an empty state.
const FORGET_AFTER: Duration = Duration::from_secs(180);
/// Up to this many holders no search for silent ones is made.
const SWEEP_ABOVE: usize = 4_096;

impl Quotas {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            kinds: settings.enforcers.clone(),
            other: settings.interpretation.counting.kind(),
            refused: settings.interpretation.refused,
            clock: settings.clock,
            lag: settings.counted_after_answer.is_none().then_some(settings.accounting_lag),
            strictness: Strictness::Documented,
            held: BTreeMap::new(),
            sweep_above: SWEEP_ABOVE,
        }
    }

    /// Halves every limit from now on: a gateway that is stricter than its documentation.
    pub(crate) fn halve(&mut self) {
        self.become_strict(Strictness::Halved);
    }

    /// Admits one request a second from now on, wherever a zone counts seconds.
    pub(crate) fn lower(&mut self) {
        self.become_strict(Strictness::OneEachSecond);
    }

    fn become_strict(&mut self, strictness: Strictness) {
        if self.strictness < strictness {
            self.strictness = strictness;
            self.held.clear();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.strictness = Strictness::Documented;
        self.held.clear();
    }

    /// Returns the scope of a zone of §8.
    pub(crate) fn scope(zone: Zone) -> Scope {
        zones().into_iter().find(|spec| spec.zone == zone).map_or(Scope::AuthToken, |spec| spec.scope)
    }

    /// Admits a request to all its zones, or to none.
    pub(crate) fn admit(&mut self, keys: &[Key], now: Duration) -> Result<(), OverQuota> {
        self.sweep(now);
        for key in keys {
            self.hold(key, now);
        }
        // All keys are distinct zones, so each is taken out, decided with the others, and put back.
        let mut taken: Vec<(Key, Held)> =
            keys.iter().filter_map(|key| self.held.remove(key).map(|held| (key.clone(), held))).collect();
        let owners: Vec<Zone> =
            taken.iter().flat_map(|(key, held)| held.windows.iter().map(|_| key.zone)).collect();
        let verdict = {
            let mut windows: Vec<&mut Enforcer> =
                taken.iter_mut().flat_map(|(_, held)| &mut held.windows).collect();
            if self.lag == Some(Duration::ZERO) {
                decide(&mut windows, now)
            } else {
                Self::decide_on_stale_counts(&mut windows, now)
            }
        };
        let verdict = verdict.map_err(|refusal| OverQuota {
            zone: owners.get(refusal.window).copied().unwrap_or(Zone::GENERAL),
            retry_after: refusal.retry_after,
        });
        for (key, mut held) in taken {
            if verdict.is_ok()
                && let Some(lag) = self.lag.filter(|lag| !lag.is_zero())
            {
                held.uncounted.push(now.saturating_add(lag));
            }
            self.held.insert(key, held);
        }
        verdict
    }

    /// Counts a request that was admitted before, at a later instant.
    pub(crate) fn count_later(&mut self, keys: &[Key], at: Duration) {
        for key in keys {
            if let Some(held) = self.held.get_mut(key) {
                held.uncounted.push(at);
            }
        }
    }

    /// Counts another program's request on the same holder. It is never refused.
    pub(crate) fn count_foreign(&mut self, keys: &[Key], now: Duration) {
        for key in keys {
            self.hold(key, now);
            if let Some(held) = self.held.get_mut(key) {
                let admits = held.windows.iter().all(|window| window.admits(now));
                for window in &mut held.windows {
                    if admits { window.commit(now) } else { window.reject(now) }
                }
            }
        }
    }

    fn hold(&mut self, key: &Key, now: Duration) {
        let (kinds, clock, strictness, refused) = (&self.kinds, self.clock, self.strictness, self.refused);
        let held = self.held.entry(key.clone()).or_insert_with(|| {
            let kind = kinds.get(&key.zone).copied().unwrap_or(self.other);
            Held {
                windows: enforcers(key.zone, kind, clock, strictness, refused),
                uncounted: Vec::new(),
                last: now,
            }
        });
        held.last = held.last.max(now);
        // Requests that have become due are counted at their due instants.
        let mut due: Vec<Duration> = held.uncounted.extract_if(.., |at| *at <= now).collect();
        due.sort_unstable();
        for at in due {
            for window in &mut held.windows {
                window.commit(at);
            }
        }
    }

    fn decide_on_stale_counts(
        windows: &mut [&mut Enforcer],
        now: Duration,
    ) -> Result<(), crate::enforce::Refusal> {
        let Some(window) = windows.iter().position(|window| !window.admits(now)) else { return Ok(()) };
        let retry_after = windows[window].retry_after(now);
        for window in windows.iter_mut() {
            window.reject(now);
        }
        Err(crate::enforce::Refusal { window, retry_after })
    }

    fn sweep(&mut self, now: Duration) {
        if self.held.len() > self.sweep_above {
            self.held.retain(|_, held| now < held.last.saturating_add(FORGET_AFTER));
            // The cost of each search is spread over as many new holders.
            self.sweep_above = SWEEP_ABOVE.max(2 * self.held.len());
        }
    }
}

fn enforcers(
    zone: Zone,
    kind: Kind,
    clock: GatewayClock,
    strictness: Strictness,
    refused: Refused,
) -> Vec<Enforcer> {
    let spec = zones().into_iter().find(|spec| spec.zone == zone);
    let windows = spec.map(|spec| spec.windows).unwrap_or_default();
    windows
        .into_iter()
        .filter_map(|window| {
            let limit = match strictness {
                Strictness::Documented => window.limit().get(),
                Strictness::Halved => window.limit().get() / 2,
                Strictness::OneEachSecond if window.period() <= Duration::from_secs(1) => 1,
                Strictness::OneEachSecond => window.limit().get(),
            };
            // Proof: §8's limits are at least 3 and its periods above zero, so a window is always valid.
            Window::new(limit.max(1), window.period()).ok()
        })
        .map(|window| Enforcer::new(kind, window).clock(clock))
        .map(|enforcer| match refused {
            Refused::Free => enforcer,
            Refused::Counted => enforcer.counting_rejects(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(zone: Zone, holder: &str) -> Key {
        Key { zone, holder: holder.to_owned() }
    }

    #[test]
    fn a_request_counts_in_all_its_zones_or_in_none() {
        let mut quotas = Quotas::new(&Settings::default());
        let both = [key(Zone::OTP, "ip"), key(Zone::API_KEY, "k")];
        for _ in 0..3 {
            assert_eq!(quotas.admit(&both, Duration::ZERO), Ok(()));
        }
        assert_eq!(quotas.admit(&both, Duration::ZERO).map_err(|over| over.zone), Err(Zone::OTP));
        // The refused request left the other zone untouched: 97 of 100 are still free.
        let alone = [key(Zone::API_KEY, "k")];
        let admitted = (0..200).filter(|_| quotas.admit(&alone, Duration::ZERO).is_ok()).count();
        assert_eq!(admitted, 97);
    }

    #[test]
    fn late_accounting_lets_a_burst_through_and_counts_it_later() {
        let settings = Settings { accounting_lag: Duration::from_millis(100), ..Settings::default() };
        let mut quotas = Quotas::new(&settings);
        let keys = [key(Zone::PLACE_ORDER, "t")];
        assert!((0..15).all(|_| quotas.admit(&keys, Duration::ZERO).is_ok()));
        assert!(quotas.admit(&keys, Duration::from_millis(100)).is_err());
    }

    #[test]
    fn halved_limits_refuse_the_sixth_order() {
        let mut quotas = Quotas::new(&Settings::default());
        quotas.halve();
        let keys = [key(Zone::PLACE_ORDER, "t")];
        assert_eq!((0..10).filter(|_| quotas.admit(&keys, Duration::ZERO).is_ok()).count(), 5);
    }

    #[test]
    fn a_lowered_limit_refuses_the_second_order_of_a_second() {
        let mut quotas = Quotas::new(&Settings::default());
        let keys = [key(Zone::PLACE_ORDER, "t")];
        let admitted = |quotas: &mut Quotas, at| {
            (0..10).filter(|_| quotas.admit(&keys, Duration::from_secs(at)).is_ok()).count()
        };
        quotas.lower();
        quotas.halve();
        assert_eq!([admitted(&mut quotas, 0), admitted(&mut quotas, 1), admitted(&mut quotas, 2)], [1; 3]);
    }

    #[test]
    fn silent_holders_are_forgotten() {
        let mut quotas = Quotas::new(&Settings::default());
        for i in 0..=SWEEP_ABOVE {
            assert_eq!(quotas.admit(&[key(Zone::DATA, &i.to_string())], Duration::ZERO), Ok(()));
        }
        assert_eq!(quotas.admit(&[key(Zone::DATA, "new")], FORGET_AFTER), Ok(()));
        assert_eq!(quotas.held.len(), 1);
    }

    #[test]
    fn a_flood_of_holders_is_not_looked_through_for_each_of_them() {
        let mut quotas = Quotas::new(&Settings::default());
        for i in 0..=SWEEP_ABOVE + 1 {
            assert_eq!(quotas.admit(&[key(Zone::DATA, &i.to_string())], Duration::ZERO), Ok(()));
        }
        assert_eq!(quotas.sweep_above, 2 * (SWEEP_ABOVE + 1));
    }
}
