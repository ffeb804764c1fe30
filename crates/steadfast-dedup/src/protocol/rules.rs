use std::time::Duration;

/// The rules of the protocol, each of which can be taken out to show that it is needed.
///
/// Only the crate's own model uses anything but [`Rules::PROTOCOL`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) owner_wait: bool,
    pub(crate) cohort: bool,
    pub(crate) oldest_first: bool,
    pub(crate) neediest_first: bool,
    pub(crate) seen_at_completion: bool,
    pub(crate) evidence_at_start: bool,
    pub(crate) session_first: bool,
    pub(crate) told_apart: bool,
    pub(crate) negatives: u8,
    pub(crate) refusals_checked: bool,
    /// How long after a refusal a list must be read to confirm it, if not as the settings say.
    pub(crate) refusal_lag: Option<Duration>,
    /// How many decided intents are remembered within a day.
    pub(crate) remembered: usize,
}

impl Rules {
    pub(crate) const PROTOCOL: Self = Self {
        owner_wait: true,
        cohort: true,
        oldest_first: true,
        neediest_first: true,
        seen_at_completion: true,
        evidence_at_start: true,
        session_first: true,
        told_apart: true,
        negatives: 2,
        refusals_checked: true,
        refusal_lag: None,
        remembered: 100_000,
    };
}
