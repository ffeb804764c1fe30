//! The client of an account, for every verb that places or looks for orders.

use std::path::{Path, PathBuf};

use steadfast::{
    Access, BaseUrl, Client, ClientBuilder, InvalidClient, Paths,
    call::Routes,
    dedup::{
        OrderTracker,
        journal::{FileJournal, Journal, JournalError},
    },
    limit::{self, ColdStart, InvalidLimiter, ZoneLimiter},
};

use crate::{
    account::{Account, Whose},
    arena::Arena,
    exit::{Failed, print_note},
    journal::{
        REHEARSAL, beside, in_use, refuse_other_account, refuse_without_lock, user, with_advice, with_source,
    },
    limits::{Limits, zones},
    peer::Peer,
    reach::reach,
    readable::hide_tokens_of,
    resends::Resends,
    sends::{NotingJournal, Sends},
};

/// A journal for a client's orders.
pub(crate) struct OrderJournal {
    path: PathBuf,
    /// Where the sends are noted.
    sends: Sends,
    open: fn(&Path) -> Result<FileJournal, JournalError>,
}

impl OrderJournal {
    pub(crate) fn new(path: PathBuf, sends: &Sends) -> Self {
        Self { path, sends: sends.clone(), open: |path| FileJournal::open(path) }
    }

    /// Lets a client begin on a full disk: its cancels and reads get out, and no order leaves until there is room.
    pub(crate) fn even_if_full(self) -> Self {
        Self { open: |path| FileJournal::open_even_if_full(path), ..self }
    }

    fn open(self) -> Result<NotingJournal, Failed> {
        let journal = (self.open)(&self.path).map_err(|error| Failed::usage(with_advice(&error)))?;
        if let Some(full) = journal.failure() {
            print_note(format_args!(
                "steadfast: WARNING: the disk is full ({}): no order leaves until there is room; cancels and reads pass",
                with_source(&full)
            ));
        }
        Ok(NotingJournal::new(journal, self.sends))
    }
}

/// Creates a client of an account, with the credentials of all verbs, and checks that the service answers.
///
/// The sends of its orders are noted in `sends`, if it has a journal. `peer` is what answers at its address.
pub(crate) async fn open(
    whose: Whose,
    journal: Option<PathBuf>,
    resends: Resends,
    sends: &Sends,
    peer: &Peer,
) -> Result<Client, Failed> {
    let account = Account::read(whose).await?;
    let access = account.access().await?;
    let base = account.base.clone();
    let of_orders = match &journal {
        Some(journal) => peer.account_in(&base, journal)?,
        None => peer.account(&base),
    };
    journal.as_deref().map(|journal| user::claim(journal, &account.identity())).transpose()?;
    let limits = Limits::of(&account).begin();
    let journal = journal.map(|path| OrderJournal::new(path, sends));
    let client = create_of(of_orders, base, access, journal, limits, resends)?;
    hide_tokens_of(client.tokens());
    reach(&account.base).await?;
    Ok(client)
}

/// Creates a client. A journal belongs to one service, so that of another one is refused. Without `limits` it begins
/// with what the last run with the journal has spent.
pub(crate) fn create(
    base: BaseUrl,
    access: Access,
    journal: Option<OrderJournal>,
    limits: Option<ZoneLimiter>,
    resends: Resends,
) -> Result<Client, Failed> {
    let account = limit::Account::new(base.to_string());
    create_of(account, base, access, journal, limits, resends)
}

/// Creates a client of a sandbox of this command's own. Its journal names it as a rehearsal's: no run with real orders goes on
/// with it, and no other rehearsal, because the orders end with their sandbox.
pub(crate) fn rehearse(
    arena: &Arena,
    journal: Option<PathBuf>,
    resends: Resends,
    sends: &Sends,
) -> Result<(BaseUrl, Client), Failed> {
    let own = arena.credentials.clone();
    let access = Access::token(own.api_key, own.access_token).map_err(Failed::error)?;
    let base: BaseUrl = own.base_url.parse().map_err(Failed::error)?;
    let account = limit::Account::new(format!("{REHEARSAL}{base}"));
    let journal = journal.map(|path| OrderJournal::new(path, sends));
    let client = create_of(account, base.clone(), access, journal, None, resends)?;
    Ok((base, client))
}

fn create_of(
    account: limit::Account,
    base: BaseUrl,
    access: Access,
    journal: Option<OrderJournal>,
    limits: Option<ZoneLimiter>,
    resends: Resends,
) -> Result<Client, Failed> {
    // A run's record is of one trading day, and the next run goes by the machine's clock.
    let safety = resends.settings().refuse_disputed_day(true);
    let builder = begin(base, access, account.clone());
    let builder = match journal {
        Some(journal) => {
            refuse_without_lock(&journal.path)?;
            refuse_other_account(&journal.path, &account)?;
            let limiter = match limits {
                Some(limiter) => limiter,
                None => limiter(&journal.path)?,
            };
            builder.limiter(limiter).tracker(OrderTracker::journaled(safety, journal.open()?))
        }
        None => {
            let limiter = match limits {
                Some(limiter) => limiter,
                None => zones().build().map_err(|error| Failed::usage(with_source(&error)))?,
            };
            builder.limiter(limiter).order_safety(safety)
        }
    };
    build(builder)
}

/// The orders of an account that several processes share, as one of them has them.
#[cfg(feature = "redis")]
pub(crate) enum Book {
    /// This process places them.
    Own(steadfast::redis::Orders),
    /// Another one does.
    OfOthers(steadfast::redis::OrdersWatch),
}

/// Creates a client that shares its account, its limits and its orders with other machines.
#[cfg(feature = "redis")]
pub(crate) fn create_sharing(
    base: BaseUrl,
    access: Access,
    account: limit::Account,
    limits: ZoneLimiter,
    resends: Resends,
    book: Book,
) -> Result<Client, Failed> {
    let safety = resends.settings().refuse_disputed_day(true);
    let builder = begin(base, access, account).limiter(limits);
    build(match book {
        Book::Own(orders) => builder.order_safety(safety).shared_orders(orders),
        Book::OfOthers(watch) => builder.tracker(OrderTracker::journaled(safety, watch)),
    })
}

fn begin(base: BaseUrl, access: Access, account: limit::Account) -> ClientBuilder {
    let builder = Client::builder(base, access).paths(Paths::public());
    // The proxy passes on requests of others; no other verb has one to an unknown path.
    builder.routes(Routes::new(&Paths::public()).guard_unknown()).account(account)
}

fn build(builder: ClientBuilder) -> Result<Client, Failed> {
    builder.build().map_err(|error: InvalidClient| {
        Failed::usage(format_args!("{}; nothing was sent", with_source(&error)))
    })
}

/// Returns limits that begin with what an earlier run with this journal has spent.
fn limiter(journal: &Path) -> Result<ZoneLimiter, Failed> {
    let kept = ColdStart::Journal(beside(journal, ".limits"));
    zones().ends_with_process().cold_start(kept).build().map_err(|error| match error {
        InvalidLimiter::JournalInUse(_) => Failed::usage(in_use(journal)),
        error => Failed::usage(with_source(&error)),
    })
}
