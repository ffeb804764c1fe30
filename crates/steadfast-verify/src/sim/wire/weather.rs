use std::time::Duration;

use crate::sim::{
    axes::{Axes, Axis},
    chooser::{Chooser, Site},
    wire::{
        Day, Ending,
        fault::{FORMS, Fault, Kind, Way, catalogue, drawn},
    },
};

/// The faults of one seed's wire and gateway: its own subset of all faults, each at its own rate.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    place: Vec<u32>,
    list: Vec<u32>,
    cancel: Vec<u32>,
    /// How every list is written.
    form: Fault,
    /// The cache that answers in the gateway's place when a list is requested, if any.
    cache: Option<Fault>,
    law: u32,
    /// Whether lists take long, so that orders sent meanwhile are in some of them.
    slow_lists: bool,
    /// Whether answers to orders take long, so that lists show orders before their callers know.
    slow_acks: bool,
    /// Whether late orders are as late as possible.
    latest: bool,
    day: Day,
    /// Whether only the first send of an order meets a fault, and only a fault that a list can resolve.
    mild: bool,
    /// Whether every list is complete.
    pub(crate) lists_are_whole: bool,
    /// Whether no list shows the orders of another login session.
    sessions_list_apart: bool,
    /// How the client's connections end.
    pub(crate) ending: Ending,
    /// How long a client waits for an answer.
    patience: Duration,
    pub(crate) lateness: Lateness,
    /// The age of a stale list.
    pub(crate) list_lag: Duration,
}

/// How much later than its arrival an order may come to exist and be listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lateness {
    /// The bound, after the last moment at which the gateway can have passed an order on.
    pub(crate) bound: Duration,
    /// How long the gateway may work on an abandoned request.
    pub(crate) gateway: Duration,
}

impl Lateness {
    /// Returns after how long an unlisted acknowledged order is a contradiction, with a margin.
    pub(crate) fn noticed_after(self) -> Duration {
        self.bound + Duration::from_secs(5)
    }
}

/// The rates of a fault within its seed, in percent; half of them are off.
pub(super) const RATES: [u32; 8] = [0, 0, 0, 0, 5, 30, 80, 100];
/// The shares of attempts in doubt, in thousandths, and the weights of seeds with each share.
const DOUBT: [u32; 5] = [0, 50, 300, 800, 1_000];
const DOUBT_WEIGHTS: [u32; 5] = [4, 10, 66, 15, 5];
/// The shares of reads that fail or are stale.
const READS: [u32; 5] = [0, 50, 300, 800, 1_000];
const READ_WEIGHTS: [u32; 5] = [30, 25, 30, 10, 5];
/// The shares of certain refusals.
const REFUSED: [u32; 5] = [0, 20, 100, 300, 800];

/// How long a kernel tries to deliver what was written to a connection that was closed gracefully.
const ORPHANED: Duration = Duration::from_secs(120);
const LONGEST_LATENCY: u32 = 3_000;
/// The most that slow lists and slow answers take, on each of their legs.
const SLOW: u32 = 2_500;

impl Weather {
    /// Returns the weather of a seed. `may_log_in`: the client survives the death of its token.
    pub(crate) fn of(
        chooser: &Chooser,
        lateness: Lateness,
        patience: Duration,
        may_log_in: bool,
        axes: Axes,
    ) -> Self {
        let share =
            |what, shares: &[u32], weights: &[u32]| shares[chooser.weigh(Site::new(what), weights) as usize];
        let enabled = |what: &'static str, faults: &[Fault], on: &dyn Fn(&Fault) -> bool| -> Vec<u32> {
            (0..)
                .zip(faults)
                .map(|(index, fault)| {
                    let rate = RATES[chooser.choose(Site::new(what).of(index), 8) as usize];
                    if !fault.name.is_empty() && axes.admit(fault.axis) && on(fault) { rate } else { 0 }
                })
                .collect()
        };
        let logs_in = |fault: &Fault| may_log_in || !matches!(fault.name, "auth.token-revoked" | "list.401");
        let doubt = enabled("swarm.place", drawn(Kind::Place, axes), &|fault| fault.in_doubt);
        let refused =
            enabled("swarm.refused", drawn(Kind::Place, axes), &|fault| !fault.in_doubt && logs_in(fault));
        let list = enabled("swarm.list", drawn(Kind::List, axes), &logs_in);
        let cancel = enabled("swarm.cancel", drawn(Kind::Cancel, axes), &|_| true);
        let doubt_share = share("swarm.doubt", &DOUBT, &DOUBT_WEIGHTS);
        let refused_share =
            share("swarm.refused-share", &REFUSED, &[45, 20, 18, 10, 7]).min(1_000 - doubt_share);
        let list_lag = chooser.choose(Site::new("list.lag"), 1_001);
        Self {
            place: mixture(&[(&doubt, doubt_share), (&refused, refused_share)]),
            list: mixture(&[(&list, share("swarm.reads", &READS, &READ_WEIGHTS))]),
            cancel: mixture(&[(&cancel, share("swarm.cancels", &REFUSED, &[40, 20, 18, 16, 6]))]),
            form: FORMS[chooser.weigh(Site::new("list.form"), &[60, 5, 5, 14, 5, 4, 4, 3]) as usize],
            cache: cache(chooser, axes),
            law: chooser.weigh(Site::new("latency"), &[30, 40, 20, 10]),
            slow_lists: chooser.weigh(Site::new("latency.lists"), &[75, 25]) == 1,
            slow_acks: chooser.weigh(Site::new("latency.acks"), &[75, 25]) == 1,
            latest: chooser.weigh(Site::new("late.latest"), &[60, 40]) == 1,
            day: Day::of(chooser),
            mild: false,
            lists_are_whole: false,
            sessions_list_apart: false,
            ending: Ending::of(chooser, axes),
            patience,
            lateness,
            list_lag: Duration::from_millis(u64::from(list_lag)),
        }
    }

    /// Removes lists that lack orders: at the start of a new day a client has nothing left to notice it by.
    pub(crate) fn list_all_orders(&mut self) {
        self.lists_are_whole = true;
    }

    /// Removes refusals of a token that has placed an order: after a login, no list would show that order.
    pub(crate) fn list_sessions_apart(&mut self) {
        self.sessions_list_apart = true;
    }

    /// Removes the one form of list in which an order is suspected but not recognised.
    pub(crate) fn list_terms_as_they_are(&mut self) {
        if self.form.name == "list.market-as-limit" {
            self.form = Fault::NONE;
        }
    }

    /// Removes identifiers as numbers: one with leading zeros would become another one.
    pub(crate) fn list_ids_as_they_are(&mut self) {
        if self.form.name == "list.numeric-ids" {
            self.form = Fault::NONE;
        }
    }

    /// Spares repeated sends, removes the one answer after which an absent order stays in doubt, and gives every cancel
    /// an answer: without one it holds, for half a minute, a slot that the lists need.
    pub(crate) fn spare_what_could_be_resolved(&mut self) {
        self.mild = true;
    }

    /// Returns the fault of this request.
    pub(crate) fn fault(&self, chooser: &Chooser, kind: Kind, of: u64, nth: u64) -> Fault {
        let (what, weights) = match kind {
            Kind::Place => ("place.fault", &self.place),
            Kind::List => ("list.fault", &self.list),
            Kind::Cancel => ("cancel.fault", &self.cancel),
            Kind::Other => return Fault::NONE,
        };
        if kind == Kind::Place && self.day.spares(of) {
            return Fault::NONE;
        }
        if kind == Kind::List
            && let Some(siege) = self.day.siege(of)
        {
            return siege;
        }
        let fault = catalogue(kind)[chooser.weigh(Site::new(what).of(of).nth(nth), weights) as usize];
        if self.mild && kind == Kind::Place && (nth > 1 || fault.name == "placement.200-error") {
            return Fault::NONE;
        }
        if self.sessions_list_apart && fault.name == "placement.401-applied" {
            return Fault::NONE;
        }
        if self.mild && kind == Kind::Cancel && fault.name.starts_with("wire.") {
            return Fault::NONE;
        }
        if kind == Kind::List && fault == Fault::NONE { self.cache.unwrap_or(self.form) } else { fault }
    }

    pub(crate) fn up(&self, chooser: &Chooser, kind: Kind, of: u64, nth: u64) -> Duration {
        let what = match kind {
            Kind::Place => "place.up",
            Kind::List => "list.up",
            Kind::Cancel => "cancel.up",
            Kind::Other => return Duration::from_millis(10),
        };
        if kind == Kind::List && self.slow_lists && !self.mild {
            return slow(chooser, Site::new(what).of(of));
        }
        self.latency(chooser, Site::new(what).of(of).nth(nth))
    }

    pub(crate) fn down(&self, chooser: &Chooser, kind: Kind, of: u64, nth: u64) -> Duration {
        let what = match kind {
            Kind::Place => "place.down",
            Kind::List => "list.down",
            Kind::Cancel => "cancel.down",
            Kind::Other => return Duration::from_millis(10),
        };
        let is_slow = self.slow_lists && kind == Kind::List || self.slow_acks && kind == Kind::Place;
        if is_slow && !self.mild {
            return slow(chooser, Site::new(what).of(of).nth(nth));
        }
        self.latency(chooser, Site::new(what).of(of).nth(nth))
    }

    /// True if an order that met `fault` is in doubt; a slow one is only if it outlasts the client's patience.
    pub(crate) fn doubts(&self, chooser: &Chooser, fault: Fault, of: u64, nth: u64) -> bool {
        fault.in_doubt && (fault.way != Way::Slow || self.slow_by(chooser, of, nth) >= self.patience)
    }

    /// Returns how much later a slow request arrives: at the latest when the gateway gives up on it, or, for
    /// connections closed gracefully, when the client's kernel does.
    pub(crate) fn slow_by(&self, chooser: &Chooser, of: u64, nth: u64) -> Duration {
        let longest = if self.ending.is_abortive() { self.lateness.gateway } else { ORPHANED };
        let most = millis(longest).saturating_sub(LONGEST_LATENCY).max(1);
        Duration::from_millis(u64::from(chooser.choose(Site::new("place.slow").of(of).nth(nth), most)))
    }

    /// Returns how much later an order that `fault` makes late comes to exist, in milliseconds, so that it is visible
    /// within the bound.
    pub(crate) fn late_by(&self, chooser: &Chooser, fault: Fault, of: u64, nth: u64) -> u64 {
        let answered = self.lateness.bound.saturating_sub(self.list_lag);
        if fault.axis == Some(Axis::Intermediaries) {
            // The proxy's answer may come at once, while the gateway still works for as long as it may.
            let most = millis(self.lateness.gateway).saturating_sub(LONGEST_LATENCY).max(1);
            return u64::from(chooser.choose(Site::new("place.late").of(of).nth(nth), most));
        }
        let most = match fault.name {
            // There was no answer: the gateway may first work on it for all of its patience.
            "reset-late" => millis(answered + self.lateness.gateway).saturating_sub(LONGEST_LATENCY),
            _ => millis(answered),
        };
        let site = Site::new("place.late").of(of).nth(nth);
        if self.latest {
            return u64::from(most - chooser.choose(site, most / 16 + 1));
        }
        u64::from(chooser.choose(site, most.saturating_add(1)))
    }

    fn latency(&self, chooser: &Chooser, site: Site) -> Duration {
        let millis = match self.law {
            // If every order must be resolvable, the day's first list has to come within the second that it is given.
            2 if self.mild => 30,
            0 => 20,
            1 => 5 + chooser.choose(site, 146),
            // One in sixteen takes up to three seconds.
            2 => match chooser.choose(site, 16 * LONGEST_LATENCY) {
                long @ 0..LONGEST_LATENCY => long,
                _ => 30,
            },
            _ => 1,
        };
        Duration::from_millis(u64::from(millis))
    }
}

/// Returns a cache that stands before the gateway all day.
fn cache(chooser: &Chooser, axes: Axes) -> Option<Fault> {
    if !axes.has(Axis::CachedLists) {
        return None;
    }
    let names = ["list.cached-age", "list.cached-hit", "list.cached-unless-asked"];
    let which = chooser.weigh(Site::new("list.cache"), &[55, 10, 20, 15]).checked_sub(1)?;
    catalogue(Kind::List).iter().copied().find(|fault| fault.name == names[which as usize])
}

fn slow(chooser: &Chooser, site: Site) -> Duration {
    Duration::from_millis(u64::from(chooser.choose(site, SLOW)))
}

/// Returns weights of no fault and of each fault, so that each group has its share in thousandths.
pub(super) fn mixture(groups: &[(&[u32], u32)]) -> Vec<u32> {
    let mut weights: Vec<u32> = vec![0; groups.first().map_or(1, |(rates, _)| rates.len())];
    let mut rest = SCALE;
    for (rates, share) in groups {
        let total: u32 = rates.iter().sum();
        if total == 0 {
            continue;
        }
        for (weight, rate) in weights.iter_mut().zip(*rates) {
            let part = u64::from(SCALE) * u64::from(*share) * u64::from(*rate) / (1_000 * u64::from(total));
            let part = u32::try_from(part).unwrap_or_default();
            *weight += part;
            rest = rest.saturating_sub(part);
        }
    }
    if let Some(none) = weights.first_mut() {
        *none = rest;
    }
    weights
}

const SCALE: u32 = 1_000_000;

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_gives_each_group_its_share() {
        assert_eq!(mixture(&[(&[0, 30, 0], 300), (&[0, 0, 5], 100)]), [600_000, 300_000, 100_000]);
        assert_eq!(mixture(&[(&[0, 0, 0], 300)]), [SCALE, 0, 0]);
    }

    #[test]
    fn nothing_is_wrong_on_an_empty_tape() {
        let chooser = Chooser::tape(crate::sim::chooser::Tape::default());
        let lateness = Lateness { bound: Duration::from_secs(15), gateway: Duration::from_secs(30) };
        let weather = Weather::of(&chooser, lateness, Duration::from_secs(30), true, Axes::ALL);
        for kind in [Kind::Place, Kind::List, Kind::Cancel] {
            assert_eq!(weather.fault(&chooser, kind, 1, 1), Fault::NONE);
        }
        assert_eq!(weather.up(&chooser, Kind::Place, 1, 1), Duration::from_millis(20));
    }
}
