use parking_lot::Mutex;

use super::{clock::Clock, engine::Engine};
use crate::wire::Hub;

/// The state that the gateway's services share. Its `Debug` shows none of the secrets in it.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) engine: Mutex<Engine>,
    /// Every connection that is open.
    pub(crate) hub: Hub,
    pub(crate) tokens: Mutex<[String; 2]>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
