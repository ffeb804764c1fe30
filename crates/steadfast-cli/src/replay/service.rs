use std::path::PathBuf;

use secrecy::ExposeSecret;
use steadfast::Client;

use super::target::Target;
use crate::{
    account::Whose, arena::Arena, client, exit::Failed, resends::Resends, secret::find, sends::Sends,
};

/// The destination of the orders.
pub(super) struct Service {
    pub(super) client: Client,
    /// The sends so far, if there is a journal.
    pub(super) sends: Sends,
    /// The user, if known.
    pub(super) user: Option<String>,
    /// The embedded sandbox, if it is one.
    pub(super) arena: Option<Arena>,
}

impl Service {
    /// Checks that the journal belongs to this run, and that the service can be reached.
    pub(super) async fn open(
        target: &Target,
        store: Option<PathBuf>,
        journal: Option<PathBuf>,
        resends: Resends,
    ) -> Result<Self, Failed> {
        let sends = Sends::default();
        let Target::Service { base, peer, .. } = target else {
            return Self::sandbox(journal, resends, sends).await;
        };
        let user = find("CLIENT_ID").await?.map(|user| user.expose_secret().to_owned());
        let whose = Whose { base_url: base.clone(), store };
        let client = client::open(whose, journal, resends, &sends, peer).await?;
        Ok(Self { client, sends, user, arena: None })
    }

    async fn sandbox(journal: Option<PathBuf>, resends: Resends, sends: Sends) -> Result<Self, Failed> {
        let sandbox = steadfast_sandbox::Sandbox::builder().build().map_err(Failed::error)?;
        let arena = Arena::serve(sandbox).await?;
        let (_, client) = client::rehearse(&arena, journal, resends, &sends)?;
        Ok(Self { client, sends, user: None, arena: Some(arena) })
    }
}
