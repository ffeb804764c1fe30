//! When an order is sent a second time, for the verbs that place orders.

use std::time::Duration;

use steadfast::{
    BaseUrl,
    dedup::{ResendPolicy, Settings},
};

use crate::{exit::print_note, peer::Peer};

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

    /// The same for orders that go to this address: if it is a sidecar's, which sends orders again by itself, this side sends
    /// none. Two that do so can place one twice, because the sidecar goes on with an order after the connection has ended.
    pub(crate) fn to(self, base: &BaseUrl, peer: &Peer) -> Self {
        if self.never_resend {
            return self;
        }
        let Some(why) = peer.may_be_sidecar() else { return self };
        print_note(format_args!(
            "{base} {why} sends orders in doubt again by itself: this run sends none again, as with --never-resend"
        ));
        Self { never_resend: true, ..self }
    }

    pub(crate) fn settings(self) -> Settings {
        let resends = if self.never_resend { ResendPolicy::Never } else { ResendPolicy::AtMost(1) };
        Settings::default().resend(resends).refusal_lag(Duration::from_secs(self.refusal_lag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_a_sidecar_nothing_is_sent_again_and_to_a_service_as_asked() {
        let base: BaseUrl = "http://127.0.0.1:8090/v2".parse().unwrap();
        for (peer, is_sidecar) in [(Peer::Service, false), (Peer::Silent, true), (Peer::Sidecar(None), true)]
        {
            let asked = Resends { never_resend: false, refusal_lag: 7 };
            let resends = asked.to(&base, &peer);
            assert_eq!((resends.never_resend, resends.refusal_lag), (is_sidecar, 7), "{peer:?}");
        }
    }
}
