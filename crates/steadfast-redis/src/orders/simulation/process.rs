//! The turns of a process: its calls, their answers, and the orders that it sends.

use super::{
    ANSWERS_WITHIN, MS, World,
    happening::{Answer, Call, Happening, Mistake, Of, Said},
};
use crate::orders::{
    ledger::{Renewal, Taken, Told},
    ownership::{LOOKS_EVERY, Ownership, RENEWS_EVERY},
};

impl World {
    pub(super) fn begin_again(&mut self, at: usize) {
        let process = &mut self.processes[at];
        process.life += 1;
        process.call = 0;
        process.asked = None;
        process.order = None;
        process.ownership = Ownership::new(format!("{at}.{}", process.life));
        let life = process.life;
        let after = self.below(3_000) * MS;
        self.happen(after, Happening::Acts((at, life, 0)));
    }

    pub(super) fn act(&mut self, of: Of) {
        let (at, life, _) = of;
        if !self.is_current(of) || self.processes[at].asked.is_some() {
            return;
        }
        if self.processes[at].ownership.is_over() {
            return self.begin_again(at);
        }
        let now = self.processes[at].clock(self.now);
        self.next += 1;
        let (mistake, number) = (self.mistake, self.next);
        let process = &mut self.processes[at];
        let fence = process.ownership.fence().map(|fence| (fence, process.entries));
        let call = if fence.is_none() {
            let dead = process.ownership.dead_lease(now).cloned();
            let lease =
                if mistake == Mistake::TakesAtOnce { self.server.ledger.lease().cloned() } else { dead };
            Call::Take(lease)
        } else if now >= process.renews_at {
            process.renews_at = now + RENEWS_EVERY;
            let Some(Renewal { number, still_owns, .. }) = process.ownership.renewal(now, 0) else { return };
            Call::Renew(fence, (number, still_owns || mistake == Mistake::RenewsInAnotherRun))
        } else if process.order.is_some() || now >= process.places_at {
            process.places_at = now + 700 * MS;
            let order = process.order.get_or_insert_with(|| number.to_string()).clone();
            Call::Append(fence, order)
        } else {
            let after = process.renews_at.min(process.places_at) - now;
            return self.happen(after.max(MS), Happening::Acts(of));
        };
        process.call += 1;
        process.asked = Some((call.clone(), now));
        let of = (at, life, process.call);
        let way = self.way();
        let run = match &self.old {
            Some((old, _)) if self.processes[at].reaches_old => old.run,
            _ => self.server.run,
        };
        self.happen(way, Happening::Arrives(of, call, run));
        self.happen(ANSWERS_WITHIN, Happening::GivesUp(of));
    }

    pub(super) fn answer(&mut self, of: Of, answer: Answer) {
        let (at, life, call) = of;
        if !self.is_current(of) {
            return;
        }
        let now = self.processes[at].clock(self.now);
        let process = &mut self.processes[at];
        let Some((asked, sent)) = process.asked.take() else { return };
        let after = match answer {
            Answer::Taken(Some((counter, entries, journal)), _) => {
                process.ownership.taken(&Taken::Yes { counter, entries }, sent, now);
                process.entries = entries;
                process.knows = journal;
                (process.renews_at, process.places_at) = (now + RENEWS_EVERY, now);
                0
            }
            Answer::Taken(None, Some(lease)) => {
                process.ownership.taken(&Taken::Owned(lease), sent, now);
                LOOKS_EVERY
            }
            Answer::Taken(None, None) => {
                process.ownership.taken(&Taken::MayLack(String::new()), sent, now);
                LOOKS_EVERY
            }
            Answer::Renewed(said) => {
                process.ownership.renewed(&told(said), sent);
                0
            }
            Answer::Appended(said) => {
                process.ownership.appended(&told(said));
                if let (Said::Done, Call::Append(_, order)) = (said, asked) {
                    process.entries += 1;
                    process.order = None;
                    let after = self.below(100) * MS;
                    self.happen(after, Happening::Polls((at, life, call), order));
                }
                0
            }
        };
        self.happen(after, Happening::Acts((at, life, call)));
    }

    pub(super) fn poll(&mut self, (at, life, _): Of, order: String) {
        let process = &mut self.processes[at];
        let is_owner = process.ownership.is_owner(process.clock(self.now));
        if process.life != life || !is_owner && self.mistake != Mistake::SendsUnasked {
            return;
        }
        process.knows.push(order.clone());
        // A process that sends knows all that was sent before, or a person has looked for it.
        if let Some(unknown) = self.sent[self.looked_for..].iter().find(|sent| !process.knows.contains(sent))
        {
            self.wrong = Some(format!(
                "{at}.{life} sends {order} at {} ms and knows nothing of {unknown}",
                self.now / MS
            ));
        }
        self.sent.push(order);
    }
}

fn told(said: Said) -> Told {
    match said {
        Said::Done => Told::Done,
        Said::NotOwner => Told::NotOwner(String::new()),
        Said::Lost => Told::Lost,
    }
}
