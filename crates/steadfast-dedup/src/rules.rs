/// The rules of the protocol that can be taken out, one by one, to show that each is needed.
///
/// Nothing outside the crate's own model can build anything but [`Rules::PROTOCOL`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) owner_wait: bool,
    pub(crate) cohort: bool,
    pub(crate) oldest_first: bool,
    pub(crate) seen_at_completion: bool,
    pub(crate) evidence_at_start: bool,
    pub(crate) session_first: bool,
    pub(crate) told_apart: bool,
    pub(crate) negatives: u8,
    /// How many decided intents are remembered within an epoch.
    pub(crate) remembered: usize,
}

impl Rules {
    pub(crate) const PROTOCOL: Self = Self {
        owner_wait: true,
        cohort: true,
        oldest_first: true,
        seen_at_completion: true,
        evidence_at_start: true,
        session_first: true,
        told_apart: true,
        negatives: 2,
        remembered: 100_000,
    };
}
