use std::time::Duration;

use steadfast::{
    limit::Account,
    redis::{Health, StoreError},
};

use super::finding::Findings;
use crate::redis::{At, Redis};

/// Above this, waiting for the store is what a request waits for most.
const FAR: Duration = Duration::from_millis(20);
/// More than machines of one network differ by.
const ANOTHER_TIME: Duration = Duration::from_secs(1);

const SUBJECT: &str = "shared_store";

/// Looks at the store that the machines of the account share, if its address is given.
pub(super) async fn examine(redis: Redis, findings: &mut Findings) {
    let at = match redis.at().await {
        Ok(Some(at)) => at,
        Ok(None) => return,
        Err(failed) => return findings.bad(SUBJECT, failed),
    };
    match health(&at).await {
        Ok(health) => report(&health, findings),
        Err(error) => findings.bad(SUBJECT, error),
    }
}

async fn health(at: &At) -> Result<Health, StoreError> {
    // The same for all accounts.
    at.connect(&Account::default()).await?.health().await
}

fn report(health: &Health, findings: &mut Findings) {
    let Health { store, version, round_trip, clock_differs, persists, .. } = health;
    let found = format!("{store}, {version}, evicts nothing; a call takes {round_trip:.1?}");
    if *round_trip > FAR {
        findings.doubtful(SUBJECT, format_args!("{found}, which every request waits for"));
    } else {
        findings.fine(SUBJECT, found);
    }
    if *clock_differs > ANOTHER_TIME {
        findings.doubtful(
            SUBJECT,
            format_args!("its clock and this machine's differ by {clock_differs:.0?}; limits do not mind"),
        );
    }
    if !persists {
        findings.doubtful(
            SUBJECT,
            "it keeps no append-only file: a restart costs a login, and failed logins are forgotten",
        );
    }
}
