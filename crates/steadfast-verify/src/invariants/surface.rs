//! Invariants about what other layers and the service see.

use std::{sync::Arc, time::Duration};

use steadfast_dedup::{Event, OrderProtocol, Purpose, TradingDay};

use super::run::Run;

/// I12: the layer cancels nothing. Cancelling a duplicate by itself is later work.
pub(crate) fn i12_nothing_is_ever_cancelled(run: &Run) -> Result<(), String> {
    match run.methods.iter().find(|method| *method == "DELETE") {
        Some(_) => Err("an order was cancelled".into()),
        None => Ok(()),
    }
}

/// I18: reads that search for orders keep their distance, and none bypasses the registry.
pub(crate) fn i18_reads_keep_their_distance(run: &Run) -> Result<(), String> {
    for history in run.histories() {
        let (mut last, mut waiting) = (None::<Duration>, None);
        for step in history.steps {
            match step.event {
                Event::ReadStarted { .. } => waiting = None,
                // The withdrawn read never left, so the next one keeps its distance from the one before.
                Event::ReadWithdrawn(_) => last = waiting.take().unwrap_or(last),
                _ => {}
            }
            let Event::ReadOpened { purpose, .. } = step.event else { continue };
            if purpose == Purpose::Baseline {
                continue;
            }
            waiting = Some(last);
            if let Some(last) = last.filter(|last| step.now < last.saturating_add(run.spacing)) {
                return Err(format!("reads at {last:?} and {:?}", step.now));
            }
            last = Some(step.now);
        }
    }
    Ok(())
}

/// I19: everything that is not an order passes byte for byte.
pub(crate) fn i19_other_traffic_is_untouched(run: &Run) -> Result<(), String> {
    match run.passed.iter().position(|(given, got)| given != got) {
        Some(at) => Err(format!("message {at} was changed on the way")),
        None => Ok(()),
    }
}

/// I21: an order in doubt comes back with the original answer, its marks, and an outcome that is not definite.
pub(crate) fn i21_doubt_is_told_in_full(run: &Run) -> Result<(), String> {
    let told = run.answers.iter().filter(|answer| answer.unresolved);
    let bad = told.clone().position(|answer| !(answer.do_not_retry && answer.unknown && answer.has_original));
    bad.map_or(Ok(()), |at| Err(format!("answer {at} lacks a mark")))
}

/// I22: an account's registry depends only on its own history: a new registry that replays it gives the same effects.
pub(crate) fn i22_accounts_share_nothing(run: &Run) -> Result<(), String> {
    for (number, steps) in run.accounts.iter().enumerate() {
        let epoch = steps.iter().find_map(|step| match step.event {
            Event::DayBegan(epoch) => Some(epoch),
            _ => None,
        });
        let mut registry = OrderProtocol::new(Arc::new(run.settings.clone()), epoch.unwrap_or(TradingDay(0)));
        for (at, step) in steps.iter().enumerate() {
            if registry.step(step.now, step.event.clone()) != step.effects {
                return Err(format!("account {number} knows at step {at} what it was never told"));
            }
        }
    }
    Ok(())
}
