use std::time::Duration;

use steadfast::dedup::{AccountMode, Settings};

use crate::sim::{
    axes::Axes,
    chooser::{Chooser, Site},
    orders::{canary::Canary, ours::Medium, remarks::Echo},
};

/// The settings of all seeds of a campaign.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The stack's settings.
    pub(crate) settings: Settings,
    pub(crate) expected: Expected,
    pub(crate) medium: Medium,
    /// True if no event makes an order unresolvable.
    pub(crate) plain: bool,
    /// True if the stack's process dies once and another one takes its place.
    pub(crate) crashes: bool,
    /// True if tasks that outlive the client are counted at the end.
    pub(crate) aftermath: bool,
    /// True if the tracker keeps its history, and the invariants are checked over it.
    pub(crate) traced: bool,
    /// The axes that are added to the world.
    pub(crate) axes: Axes,
    /// True if connections end gracefully although the transport claims that nothing arrives afterwards.
    pub(crate) orderly_close: bool,
    /// The client's planted mistake.
    pub(crate) canary: Option<Canary>,
    /// The form in which all lists show the remarks of orders, if that is not drawn.
    pub(crate) echo: Option<Echo>,
    /// How late an order may really be.
    pub(crate) lateness: Duration,
    /// How long the stack is watched after the faults ended.
    pub(crate) watched: Duration,
}

/// How late orders may be in a campaign, which decides what its clients promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// No order is placed twice.
    WithinTheBound,
    /// Every duplicate is reported.
    Later,
}

/// The longest that an order may take beyond the client's assumption, if lateness has no bound.
const UNBOUNDED: Duration = Duration::from_secs(600);
/// The longest time between two reads for orders that ended without certainty.
const WATCH_INTERVAL: Duration = Duration::from_secs(1_800);
const SPARE: Duration = Duration::from_secs(120);

impl World {
    /// Creates a world as late as `settings` assume, or without a bound.
    pub(crate) fn of(settings: Settings, expected: Expected) -> Self {
        let (lateness, watched) = match expected {
            // If the client assumes too little, the world keeps the true bound.
            Expected::WithinTheBound => {
                let bound = settings.lateness_bound().max(Settings::new().lateness_bound());
                (bound, bound)
            }
            Expected::Later => (UNBOUNDED, UNBOUNDED + WATCH_INTERVAL),
        };
        Self {
            settings,
            expected,
            medium: Medium::Direct,
            plain: false,
            crashes: false,
            aftermath: false,
            traced: true,
            axes: Axes::DEFAULT,
            orderly_close: false,
            canary: None,
            echo: None,
            lateness,
            watched: watched + SPARE,
        }
    }

    /// True if, beside the faults on the wire, only events that keep an order resolvable may happen.
    pub(crate) fn is_strict(&self) -> bool {
        self.plain || self.canary.is_some() || self.expected == Expected::Later
    }

    pub(crate) fn dies(&self, chooser: &Chooser) -> bool {
        let chosen = chooser.weigh(Site::new("crash"), &[92, 8]) == 1;
        self.crashes || (chosen && !self.is_strict())
    }

    pub(crate) fn writes(&self, chooser: &Chooser) -> bool {
        chooser.weigh(Site::new("journal"), &[70, 30]) == 1 && self.canary.is_none()
    }

    pub(crate) fn meets_others(&self) -> bool {
        !self.is_strict() || self.plain && self.is_shared()
    }

    /// True if the client expects others in the account.
    pub(crate) fn is_shared(&self) -> bool {
        self.settings.mode() == AccountMode::Shared
    }
}
