use std::time::Duration;

/// The rules of the protocol, each of which can be taken out to show that it is needed.
///
/// Only the crate's own model uses anything but [`Rules::PROTOCOL`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A claim waits while another send, sent before the order was seen, has no answer yet.
    pub(crate) owner_wait: bool,
    /// No intent is absent before all attempts in doubt of its key are settled.
    pub(crate) cohort: bool,
    /// An intent takes the oldest order that it can own.
    pub(crate) oldest_first: bool,
    /// Of equal intents, those that cannot be sent again take an order first.
    pub(crate) worst_alternative_first: bool,
    /// An order is new from the moment at which the first list with it was complete, not from the start of its read.
    pub(crate) seen_at_completion: bool,
    /// A list shows an absence from the start of its read, not from its end.
    pub(crate) evidence_at_start: bool,
    /// An order that a session's list shows first belongs first to intents of that session.
    pub(crate) session_first: bool,
    /// A record that equals two different orders of ours is neither's.
    pub(crate) told_apart: bool,
    /// How many valid lists must lack an order before it is absent.
    pub(crate) negatives: u8,
    /// A repeat after a 401 or 429 waits for a list.
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
        worst_alternative_first: true,
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
