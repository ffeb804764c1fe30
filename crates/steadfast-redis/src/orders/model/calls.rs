//! The calls of processes and of a person, and what the store does.

use super::{Answer, Call, LASTS, MARK, NOBODY, Order, Process, World, rules::Mistake};
use crate::{
    orders::{
        hearing::Heard,
        ledger::{Renewal, Taken, Told, Turn},
    },
    rule::Micros,
};

impl World {
    /// A person halts, or goes on to wait until that holds everywhere. False if nothing changes.
    pub(super) fn halt(&mut self, mistake: Mistake) -> bool {
        if self.halted {
            return false;
        }
        let before = self.clone();
        let mut hearing = self.hearing.take().unwrap_or_default();
        let is_first = before.hearing.is_none() || mistake == Mistake::HaltsAtOnce;
        let joins = mistake == Mistake::HaltJoins && !self.ledger.turns().is_multiple_of(2);
        let turn = if is_first && !joins { Turn::Halt(self.turns) } else { Turn::Look(self.turns) };
        let state = self.write(|ledger, run| ledger.turn(run, turn));
        self.turns = self.turns.max(state.turns);
        // Its way to the store takes no time, and what matters is how it waits.
        let now = if mistake == Mistake::HaltLeavesSilent { self.now + LASTS } else { self.now };
        match hearing.look(&state, now, self.now) {
            Heard::Everywhere => self.halted = true,
            Heard::NotYet | Heard::Resumed => {}
        }
        self.halted |= mistake == Mistake::HaltsAtOnce;
        self.hearing = Some(hearing);
        *self != before
    }

    pub(super) fn calls(&self, at: usize, mistake: Mistake) -> Vec<Call> {
        let Process { ownership, order, .. } = &self.processes[at];
        if ownership.fence().is_some() {
            let appends = (*order == Order::Unwritten).then_some(Call::Append);
            return [Call::Renew].into_iter().chain(appends).collect();
        }
        let seen = ownership.dead_lease(if mistake == Mistake::TakesAtOnce { Micros::MAX } else { self.now });
        vec![Call::Take(seen.cloned())]
    }

    /// The store does what a process asks for, and answers.
    pub(super) fn ask(&mut self, at: usize, call: Call, mistake: Mistake) -> bool {
        let process = &self.processes[at];
        let (own, entries, turns) = (process.ownership.own().to_owned(), process.entries, process.turns);
        let mut fence = process.ownership.fence();
        let renewal = matches!(call, Call::Renew)
            .then(|| self.processes[at].ownership.renewal(self.now, turns))
            .flatten()
            .map(|renewal| match mistake {
                Mistake::RenewsInAnotherRun => Renewal { still_owns: true, ..renewal },
                Mistake::StoreCounts => {
                    Renewal { number: self.ledger.lease().map_or(0, |lease| lease.renewals) + 1, ..renewal }
                }
                Mistake::HeardUnheard => Renewal { heard: self.ledger.turns(), ..renewal },
                _ => renewal,
            });
        if let Some(fence) = &mut fence
            && let Some(held) = self.ledger.lease().map(|lease| &lease.fence)
            && (mistake == Mistake::NumberAlone && held.counter == fence.counter
                || mistake == Mistake::NoFence)
        {
            *fence = held.clone();
        }
        let order = own.clone();
        let answer = self.write(|ledger, run| match (call, fence) {
            (Call::Take(seen), _) => {
                if mistake == Mistake::TakesWhatMayLack
                    && let Taken::MayLack(mark) = ledger.clone().take(run, None, NOBODY, "", MARK, 0)
                {
                    ledger.take(run, None, NOBODY, "", MARK, 0);
                    ledger.accept(run, &mark);
                }
                Some(Answer::Taken(ledger.take(run, seen.as_ref(), &own, "", MARK, turns)))
            }
            (Call::Renew, Some(fence)) => Some(Answer::Renewed(ledger.renew(run, &fence, entries, renewal?))),
            (Call::Append, Some(fence)) if mistake == Mistake::NoFence => {
                let behind = ledger.journal().len() as u64;
                Some(Answer::Appended(ledger.append(&fence, behind, &[order])))
            }
            (Call::Append, Some(fence)) => Some(Answer::Appended(ledger.append(&fence, entries, &[order]))),
            _ => None,
        });
        if answer == Some(Answer::Appended(Told::Done)) {
            let writer = self.processes[at].ownership.fence();
            self.strange_entry |= self.ledger.lease().map(|lease| &lease.fence) != writer.as_ref();
        }
        if let Some(Answer::Taken(Taken::Yes { counter, .. })) = answer {
            let journal = self.ledger.journal().to_vec();
            self.processes[at].read.get_or_insert((counter, journal));
        }
        self.processes[at].answer = answer.map(|answer| (answer, self.ledger.turns(), self.now));
        true
    }

    pub(super) fn receive(&mut self, at: usize, mistake: Mistake) -> bool {
        let (now, process) = (self.now, &mut self.processes[at]);
        let Some((answer, turns, sent)) = process.answer.take() else { return false };
        process.turns = process.turns.max(turns);
        let sent = if mistake == Mistake::CountsFromTheAnswer { now } else { sent };
        match answer {
            Answer::Taken(taken) => {
                if let Taken::Yes { entries, .. } = taken {
                    process.entries = entries;
                }
                process.ownership.taken(&taken, sent, now);
            }
            Answer::Appended(told) => {
                match mistake {
                    Mistake::EntryRenews => process.ownership.renewed(&told, sent),
                    _ => process.ownership.appended(&told),
                }
                if told == Told::Done {
                    process.order = Order::Written;
                    process.entries += 1;
                }
            }
            Answer::Renewed(told) => process.ownership.renewed(&told, sent),
        }
        true
    }
}
