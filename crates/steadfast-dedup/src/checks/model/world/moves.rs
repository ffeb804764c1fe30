//! Everything that can happen next in a world.

use steadfast_call::{Outcome, Resend};
use steadfast_spec::OrderRecord;

use super::{Orders, World};
use crate::{
    checks::model::{Lists, Model, Move, Record, Served, at},
    numbers::{AttemptNo, IntentNo, Session},
    protocol::{
        attempt::{Attempt, AttemptState},
        event::{Answer, Event},
        phase::Phase,
        wake::Purpose,
    },
};

impl World {
    /// Collects everything that can happen next.
    pub(in crate::checks::model) fn moves(&self, model: &Model, out: &mut Vec<Move>) {
        out.clear();
        for n in 0..model.intents {
            let intent = self.intent(n);
            let first = n == 0 || !self.served[at(n - 1)].is_empty();
            let turn = self.protocol.has_turn(IntentNo(n));
            if *intent.phase() == Phase::Idle && intent.attempts().is_empty() && first && turn {
                out.push(Move::Send(n));
            }
            // A caller that believes a refusal sends again at once.
            let believed = *intent.phase() == Phase::Idle && !model.rules.refusals_checked;
            if believed && (1..3).contains(&intent.attempts().len()) {
                out.push(Move::Resend(n));
            }
            if matches!(intent.phase(), Phase::Refused(_)) {
                out.push(Move::Leave(n));
            }
            if matches!(intent.phase(), Phase::Granted | Phase::Cleared) {
                out.push(Move::Leave(n));
                // Sends refused for rate could go on for ever.
                if intent.attempts().len() < 3 {
                    out.push(Move::Resend(n));
                }
            }
            for (k, attempt) in intent.attempts().iter().enumerate() {
                self.moves_of(model, n, k, attempt, out);
            }
        }
        if self.orders.iter().filter(|owner| owner.is_none()).count() < model.foreign {
            out.push(Move::Foreign);
        }
        if model.lists != Lists::OneSession && !self.renewed && self.sent > 0 {
            out.push(Move::Renew);
        }
        if self.reads.len() < model.reads {
            out.push(Move::Read);
        }
        if self.renewed && self.protocol.has_readable() {
            out.push(Move::Lose);
            if self.reads.len() < model.reads {
                out.push(Move::ReadOwn);
            }
        }
        for (index, (_, seen)) in self.reads.iter().enumerate() {
            out.push(if seen.is_none() { Move::Evaluate(index) } else { Move::List(index) });
        }
        if self.crashes < model.crashes && self.sent > 0 {
            let durable = self.durable();
            out.push(Move::Crash(self.journal.len()));
            if model.lossy && durable < self.journal.len() {
                out.push(Move::Crash(durable));
            }
        }
    }

    fn moves_of(&self, model: &Model, n: u64, k: usize, attempt: &Attempt, out: &mut Vec<Move>) {
        let served = self.served[at(n)][k];
        if served == Served::Pending && !matches!(attempt.state(), AttemptState::Void) {
            out.extend([Move::Apply(n, k), Move::Drop(n, k)]);
        }
        match *attempt.state() {
            AttemptState::InFlight(_) => {
                out.push(Move::Doubt(n, k));
                if model.nevers {
                    out.push(Move::Deny(n, k));
                    if served != Served::Dropped {
                        out.push(Move::Mumble(n, k));
                    }
                }
                match served {
                    Served::Applied(_) => {
                        out.push(Move::Acknowledge(n, k));
                        if model.refuted {
                            out.push(Move::Limit(n, k));
                        }
                    }
                    Served::Dropped if model.refusals => out.extend([Move::Refuse(n, k), Move::Limit(n, k)]),
                    _ => {}
                }
            }
            AttemptState::Doubt { settled: None, .. } if !model.bounded || served != Served::Pending => {
                out.push(Move::Settle(n, k));
            }
            _ => {}
        }
    }

    pub(in crate::checks::model) fn make(
        &mut self,
        model: &Model,
        made: Move,
        orders: &Orders,
        all: &[OrderRecord],
    ) {
        let number = |n, index| AttemptNo { intent: IntentNo(n), index };
        match made {
            Move::Send(n) => {
                let before = self.served[at(n)].len();
                self.send(n);
                self.sent += (self.served[at(n)].len() - before) as u64;
            }
            Move::Resend(n) => self.send(n),
            Move::Leave(n) => self.step(Event::Concluded(IntentNo(n))),
            Move::Apply(n, k) => {
                self.served[at(n)][k] = Served::Applied(self.orders.len());
                self.orders.push(Some(n));
                self.of_new_session.push(self.intent(n).attempts()[k].session() != Session::default());
            }
            Move::Drop(n, k) => self.served[at(n)][k] = Served::Dropped,
            Move::Acknowledge(n, k) => {
                let Served::Applied(order) = self.served[at(n)][k] else { unreachable!() };
                self.journal.push(Record::Acknowledged(n, k, order));
                self.close(number(n, k), Outcome::Accepted { order_id: Some(order.to_string().into()) });
            }
            Move::Doubt(n, k) => self.close(number(n, k), Outcome::Unknown { resend: Resend::AfterAbsence }),
            Move::Deny(n, k) => self.close_for_good(number(n, k), Answer::Denied),
            Move::Mumble(n, k) => self.close_for_good(number(n, k), Answer::Status(200)),
            Move::Refuse(n, k) => {
                self.journal.push(Record::Refused(n, k));
                self.close(number(n, k), Outcome::Rejected);
            }
            Move::Limit(n, k) => {
                self.journal.push(Record::Limited(n, k));
                self.close(number(n, k), Outcome::NotExecuted);
            }
            Move::Settle(n, k) => {
                self.protocol.settle_now(number(n, k));
            }
            Move::Foreign => {
                self.orders.push(None);
                self.of_new_session.push(self.renewed);
            }
            Move::Read => self.open_read(),
            Move::ReadOwn => self.open_read_in(Session::default(), Purpose::OwnSession),
            Move::Lose => self.step(Event::SessionLost(Session::default())),
            Move::Evaluate(index) => self.reads[index].1 = Some(self.orders.len()),
            Move::List(index) => self.close_read(model, index, all),
            Move::Renew => {
                self.renewed = true;
                self.open_read();
                let last = self.reads.len() - 1;
                self.reads[last].1 = Some(self.orders.len());
                self.close_read(model, last, all);
            }
            Move::Crash(keep) => self.crash(model, keep, orders),
        }
    }
}
