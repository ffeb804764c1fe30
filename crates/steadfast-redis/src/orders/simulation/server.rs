//! The server's part of a call.

use super::{
    FAULTS_END, MAX_LAG, MS, S, World,
    happening::{Answer, Call, Happening, Mistake, Of, Said},
};
use crate::orders::ledger::{Fence, Ledger, Renewal, Taken, Told};

impl World {
    pub(super) fn arrive(&mut self, of: Of, call: Call, run: u64) {
        let (at, life, _) = of;
        let (server, is_old) = match &mut self.old {
            Some((old, since)) if old.run == run && self.now - *since <= MAX_LAG => (old, true),
            _ if self.server.run == run => (&mut self.server, false),
            // The connection to that run is gone.
            _ => return,
        };
        let own = format!("{at}.{life}");
        let (run, mistake) = (run.to_string(), self.mistake);
        if self.now < FAULTS_END && !matches!(call, Call::Take(None)) {
            server.before.retain(|(written, _)| *written > self.now - 3 * S);
            server.before.push((self.now, server.ledger.clone()));
        }
        let forge = |ledger: &Ledger, fence: Option<(Fence, u64)>| {
            let (mut fence, mut entries) = fence?;
            if let Some(held) = ledger.lease().map(|lease| &lease.fence)
                && (mistake == Mistake::NoFence
                    || mistake == Mistake::NumberAlone && held.counter == fence.counter)
            {
                fence = held.clone();
                entries = ledger.journal().len() as u64;
            }
            Some((fence, entries))
        };
        let ledger = &mut server.ledger;
        let answer = match call {
            Call::Take(seen) => {
                let mark = format!("mark {}", self.next);
                if mistake == Mistake::TakesWhatMayLack
                    && let Taken::MayLack(mark) = ledger.clone().take(&run, None, "", "", &mark, 0)
                {
                    ledger.take(&run, None, "", "", &mark, 0);
                    ledger.accept(&run, &mark);
                }
                match ledger.take(&run, seen.as_ref(), &own, "", &mark, 0) {
                    Taken::Yes { counter, entries } => {
                        Answer::Taken(Some((counter, entries, ledger.journal().to_vec())), None)
                    }
                    Taken::Owned(lease) => Answer::Taken(None, Some(lease)),
                    Taken::MayLack(mark) => {
                        if !is_old {
                            // A person compares lists, which takes longer than an owner's time.
                            let after = 8 * S + self.below(10_000) * MS;
                            self.happen(after, Happening::Accepts(mark));
                        }
                        Answer::Taken(None, None)
                    }
                }
            }
            Call::Renew(fence, (number, still_owns)) => {
                let Some((fence, known)) = fence else { return };
                Answer::Renewed(said(&ledger.renew(
                    &run,
                    &fence,
                    known,
                    Renewal { number, still_owns, heard: 0 },
                )))
            }
            Call::Append(fence, order) => {
                let Some((fence, before)) = forge(ledger, fence) else { return };
                let told = said(&ledger.append(&fence, before, &[order]));
                // No replica has it.
                if is_old && told == Said::Done && mistake != Mistake::WaitsForNoReplica {
                    return;
                }
                Answer::Appended(told)
            }
        };
        let way = self.way();
        if self.now >= FAULTS_END || self.below(20) > 0 {
            self.happen(way, Happening::Answered(of, answer));
        }
    }
}

fn said(told: &Told) -> Said {
    match told {
        Told::Done => Said::Done,
        Told::NotOwner(_) => Said::NotOwner,
        Told::Lost => Said::Lost,
    }
}
