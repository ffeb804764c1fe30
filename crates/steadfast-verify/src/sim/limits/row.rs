use std::fmt;

use steadfast_sandbox::enforce::Kind;
use steadfast_spec::Zone;

use super::{contender::Contender, load::Load};
use crate::sim::network::Network;

/// One cell of the matrix: a client, its load, a line, and a gateway's way of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row {
    /// The zone that is used up.
    pub(super) zone: Zone,
    /// The client.
    pub(super) contender: Contender,
    /// How the gateway counts; its phase is drawn for every session.
    pub(super) gateway: Kind,
    /// The line between them.
    pub(super) network: Network,
    /// The requests and events of the session.
    pub(super) load: Load,
}

impl Row {
    /// True if no 429 may occur.
    ///
    /// This follows from the row alone, before it is run. A profile promises nothing for gateways that it is not made
    /// for. No client promises anything after a restart without the stamps, or if the gateway counts later than
    /// configured. After lost answers, cancels are let through.
    #[must_use]
    pub(super) fn promises_zero(&self) -> bool {
        self.contender.keeps(self.zone, self.gateway) && self.load.can_be_kept(self.network)
    }

    /// Names everything that is drawn except the client: rows that differ only in the client meet the same gateway and
    /// demand.
    pub(super) fn surroundings(&self) -> String {
        format!("{} {} {} {}", self.zone, self.gateway, self.network.name(), self.load)
    }
}

/// Prints the row's name, by which it can be run again.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { zone, contender, gateway, network, load } = self;
        let client = [contender.client(), contender.profile()].map(in_one_word);
        let client = client.join(":");
        let load = in_one_word(&load.to_string());
        write!(f, "{zone}/{}/{gateway}/{}/{load}", client.trim_end_matches(':'), network.name())
    }
}

fn in_one_word(words: &str) -> String {
    words.replace(", ", "-").replace(' ', "-")
}
