use parking_lot::Mutex;

use super::{clock::Clock, engine::Engine, log::Log};
use crate::{site::cors::Origin, wire::Hub};

/// The state that the gateway's services share. Its `Debug` shows none of the secrets in it.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) engine: Mutex<Engine>,
    /// Every connection that is open.
    pub(crate) hub: Hub,
    pub(crate) tokens: Mutex<[String; 2]>,
    pub(crate) front: Front,
}

/// The things around the gateway, which change none of its answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Front {
    /// Takes a line for each request.
    pub(crate) log: Option<Log>,
    /// The origins whose web pages may read answers.
    pub(crate) origin: Option<Origin>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
