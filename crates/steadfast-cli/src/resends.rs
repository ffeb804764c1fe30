//! When an order is sent a second time, for the verbs that place orders.

use std::time::Duration;

use steadfast::dedup::{ResendPolicy, Settings};

/// The options of the verbs that place orders.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Resends {
    /// Send no order in doubt a second time. Without it one is sent again that no list shows 15 s after it could last
    /// arrive; it exists twice if the service lists it later than that, or if a program on this side of the service, such as a
    /// service mesh, goes on sending it.
    #[arg(long)]
    pub(crate) never_resend: bool,
    /// How many seconds after an answer 401 or 429 the order list is read, before the order that it turned away is sent
    /// again; 15 if the service may have placed the order all the same and lists it late.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=15))]
    pub(crate) refusal_lag: u64,
}

impl Resends {
    /// For verbs that place nothing.
    pub(crate) const NONE: Self = Self { never_resend: true, refusal_lag: 1 };

    pub(crate) fn settings(self) -> Settings {
        let resends = if self.never_resend { ResendPolicy::Never } else { ResendPolicy::AtMost(1) };
        Settings::default().resend(resends).refusal_lag(Duration::from_secs(self.refusal_lag))
    }
}
