use std::time::UNIX_EPOCH;

use steadfast::{
    Client,
    auth::TokenPhase,
    call::Lane,
    dedup::RecoveredOrder,
    limit::{Snapshot, TrustStep, ZoneSettings, ZoneSnapshot},
};

use super::state::{NextFree, SharingState, Token, Unruled, Word};
use crate::{token_health, withheld};

/// The number of lanes.
const LANES: usize = Lane::ALL.len();

/// All that the client tells at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) in_doubt: usize,
    pub(crate) unresolved: usize,
    /// Those that a person has to rule on, but not all if there are many.
    pub(crate) unruled: Vec<Unruled>,
    pub(crate) in_flight: usize,
    pub(crate) waiting: usize,
    pub(crate) trading: &'static str,
    /// Why no order leaves, although nobody has halted.
    pub(crate) withheld: Option<String>,
    pub(crate) token: Token,
    pub(crate) zones: Vec<ZoneReading>,
    /// The owner of the orders, where several sidecars share them.
    pub(crate) sharing: Option<SharingState>,
    /// The orders that earlier processes left in doubt.
    pub(crate) left: Vec<RecoveredOrder>,
}

/// One zone, where it is fullest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZoneReading {
    pub(crate) zone: &'static str,
    pub(crate) step: TrustStep,
    pub(crate) lost: usize,
    pub(crate) in_flight: u32,
    pub(crate) paused_ms: Option<u64>,
    pub(crate) learned: Option<u32>,
    pub(crate) windows: Vec<WindowReading>,
    /// In the order of [`Lane::ALL`].
    pub(crate) waiting: [u32; LANES],
    pub(crate) next_free_ms: [u64; LANES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowReading {
    pub(crate) period_ms: u64,
    pub(crate) limit: u32,
    pub(crate) reserved: u32,
    pub(crate) used: u32,
}

impl Reading {
    pub(crate) fn of(client: &Client, waiting: usize, is_running: bool) -> Self {
        let trading = match (is_running, client.is_halted()) {
            (false, _) => "ending",
            (true, true) => "halted",
            (true, false) => "trading",
        };
        let (limiter, unresolved) = (client.limiter(), client.tracker().unresolved());
        Self {
            in_doubt: client.in_doubt(),
            unresolved: unresolved.len(),
            unruled: Unruled::first(&unresolved),
            in_flight: client.in_flight(),
            waiting,
            trading,
            withheld: withheld::trouble(client),
            token: token(client),
            zones: zones(&limiter.settings(), &limiter.snapshot()),
            sharing: None,
            // Without a journal there are none.
            left: client.recovered().unwrap_or_default(),
        }
    }
}

impl ZoneReading {
    fn idle(settings: &ZoneSettings) -> Self {
        let windows = settings.windows.iter().map(|window| {
            // The lane after the cancels' has the next widest ceiling.
            let next = window.ceilings.get(1).copied().unwrap_or(window.limit);
            let period_ms = millis(window.period);
            WindowReading {
                period_ms,
                limit: window.limit,
                reserved: window.limit.saturating_sub(next),
                used: 0,
            }
        });
        Self {
            zone: settings.zone.as_str(),
            step: TrustStep::default(),
            lost: 0,
            in_flight: 0,
            paused_ms: None,
            learned: None,
            windows: windows.collect(),
            waiting: [0; LANES],
            next_free_ms: [0; LANES],
        }
    }

    /// Adds one key. Where keys cannot be added, the fullest counts.
    fn add(&mut self, key: &ZoneSnapshot) {
        self.step = self.step.max(key.step);
        self.lost += key.lost;
        self.in_flight += key.in_flight;
        self.paused_ms = self.paused_ms.max(key.paused_for.map(millis));
        for (window, seen) in self.windows.iter_mut().zip(&key.windows) {
            window.used = window.used.max(u32::try_from(seen.used).unwrap_or(u32::MAX));
        }
        for (at, lane) in key.lanes.iter().enumerate() {
            self.waiting[at] += lane.waiting;
            self.next_free_ms[at] = self.next_free_ms[at].max(millis(lane.next_free));
            if lane.lane != Lane::Critical {
                self.learned = [self.learned, lane.learned].into_iter().flatten().min();
            }
        }
    }

    pub(crate) fn next_free(&self) -> NextFree {
        let of = |lane| Lane::ALL.iter().position(|its| *its == lane).map_or(0, |at| self.next_free_ms[at]);
        NextFree { read: of(Lane::Normal), order: of(Lane::Trading), cancel: of(Lane::Critical) }
    }
}

/// Joins settings and state, so that zones without a request are there too.
fn zones(settings: &[ZoneSettings], snapshot: &Snapshot) -> Vec<ZoneReading> {
    let mut zones: Vec<_> = settings.iter().map(ZoneReading::idle).collect();
    for key in &snapshot.zones {
        if let Some(zone) = zones.iter_mut().find(|zone| zone.zone == key.zone.as_str()) {
            zone.add(key);
        }
    }
    zones
}

fn token(client: &Client) -> Token {
    let status = client.tokens().status();
    let ends_at = status.expires_at.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).map(millis);
    Token {
        phase: phase(status.phase),
        ends_at,
        trouble: token_health::trouble(&status),
        latched: status.latched,
        sessions: status.sessions,
        clock_offset_ms: status.clock_offset_ms,
    }
}

fn phase(phase: TokenPhase) -> Word {
    Word::Borrowed(match phase {
        TokenPhase::None => "none",
        TokenPhase::Valid => "valid",
        TokenPhase::Advisory => "advisory",
        TokenPhase::Mandatory => "mandatory",
        TokenPhase::Expired => "expired",
        TokenPhase::NeedsHuman => "needs_human",
        TokenPhase::Latched => "latched",
        TokenPhase::Suspect => "suspect",
        _ => "unknown",
    })
}

pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
