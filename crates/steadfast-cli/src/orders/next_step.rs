//! A person's next step for an order in doubt.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, SystemTime},
};

use steadfast::{
    dedup::{
        IntentNo, RecoveredOrder, TradingDay, Verdict,
        journal::{Entry, FileJournal, Record},
    },
    ext::Account,
};

use crate::reason::{is_for_a_person, told};

const DAY: u64 = 86_400;

/// Knows the next step for each order of a journal.
pub(super) struct NextSteps<'a> {
    journal: &'a Path,
    today: TradingDay,
    /// The day of each order's last send.
    days: BTreeMap<(Account, IntentNo), TradingDay>,
    /// True if the order list was just looked at.
    looked: bool,
    /// The operator's address of the sidecar that may have the journal.
    sidecar: Option<String>,
}

impl<'a> NextSteps<'a> {
    /// Reads the orders' days from the journal.
    pub(super) fn of(journal: &'a Path, today: TradingDay) -> Self {
        let entries = FileJournal::read(journal).ok().flatten().unwrap_or_default();
        Self { journal, today, days: days_of(&entries), looked: false, sidecar: None }
    }

    /// The steps after a look at the order list.
    pub(super) fn after_a_look(self) -> Self {
        Self { looked: true, ..self }
    }

    /// The steps while a sidecar with this operator's address may have the journal, so that no other verb can look.
    pub(super) fn beside(self, sidecar: Option<String>) -> Self {
        Self { sidecar, ..self }
    }

    /// Returns true if the order may be in today's list. That of an earlier day is in none any more.
    pub(super) fn may_be_listed(&self, order: &RecoveredOrder) -> bool {
        self.day_before(order).is_none()
    }

    /// Returns how many orders of today are not among `open`, because they were answered or found.
    pub(super) fn answered_today(&self, open: &[RecoveredOrder]) -> usize {
        let is_open = |key: &(Account, IntentNo)| {
            open.iter().any(|order| (&order.account, order.intent) == (&key.0, key.1))
        };
        self.days.iter().filter(|(key, day)| **day == self.today && !is_open(key)).count()
    }

    fn day_before(&self, order: &RecoveredOrder) -> Option<TradingDay> {
        self.days.get(&(order.account.clone(), order.intent)).copied().filter(|day| *day < self.today)
    }

    /// Returns the next step for an order without an end; `None` if it has one.
    pub(super) fn for_order(&self, order: &RecoveredOrder) -> Option<String> {
        let reason = match &order.verdict {
            Verdict::Unresolved(unresolved) => Some(unresolved.reason.as_str()),
            Verdict::Acknowledged { .. } | Verdict::Recovered { .. } | Verdict::NotPlaced => return None,
            _ => None,
        };
        let (journal, name) = (self.journal.display(), name_of(order));
        let rule = format!(
            "`steadfast orders rule --journal {journal} {name}` with --placed ORDER-ID or --not-placed"
        );
        if let Some(day) = self.day_before(order) {
            return Some(format!(
                "it was sent on {}, and the order list holds the orders of today only, so that no list can show it any more: \
                 find out at the service what became of it, then {rule}",
                date_of(day)
            ));
        }
        let by_sidecar = |admin| {
            format!(
                "the sidecar at {admin} looks for it while it runs, and {admin}/-/state tells what it knows; once it has ended, "
            )
        };
        let first = self.sidecar.as_ref().map(by_sidecar).unwrap_or_default();
        let verify = format!("{first}`steadfast orders verify --journal {journal}`");
        Some(match reason {
            None if self.looked => {
                format!(
                    "the look at the order list has not settled it: {verify} looks again, or find it there, then {rule}"
                )
            }
            None => format!("{verify} looks for it in the order list"),
            Some(reason) => {
                let meant = told(reason);
                let meant = meant.split_once(": ").map_or(&*meant, |(_, meant)| meant);
                if self.looked || is_for_a_person(reason) {
                    format!("{meant}: look for it in the service's order list, then {rule}")
                } else {
                    format!("{meant}: {verify} looks for it once more")
                }
            }
        })
    }
}

/// Returns the order as `orders rule` takes it. A shell would read a bare `#7` as a comment.
fn name_of(order: &RecoveredOrder) -> String {
    match &order.name {
        Some(name) => name.as_str().to_owned(),
        None => format!("'#{}'", order.intent.0),
    }
}

fn days_of(entries: &[Entry]) -> BTreeMap<(Account, IntentNo), TradingDay> {
    let mut days = BTreeMap::new();
    for entry in entries {
        if let Record::Begun { attempt, day, .. } = &entry.record {
            days.insert((entry.account.clone(), attempt.intent), *day);
        }
    }
    days
}

/// Returns a trading day as `Wed, 25 Nov 2026`.
fn date_of(day: TradingDay) -> String {
    let since = Duration::from_secs(u64::try_from(day.0).unwrap_or_default().saturating_mul(DAY));
    let date = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since);
    date.strip_suffix(" 00:00:00 GMT").unwrap_or(&date).to_owned()
}
