use crate::{
    orders::{
        ledger::{Fence, HaltState},
        ownership::LEASE_LIFE,
    },
    rule::Micros,
};

/// Waits until everybody who may place orders has heard of a halt: readings of its own clock and the store's words in,
/// decisions out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Hearing {
    /// The owner that has not said that it has heard, and since when its lease stands still.
    silent: Option<(Option<(Fence, u64)>, Micros)>,
}

/// How far a halt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// No order leaves any more.
    Everywhere,
    NotYet,
    /// A process has resumed since.
    Resumed,
}

impl Hearing {
    /// Takes in the answer to a call that was sent at `sent` and answered at `received`.
    pub(crate) fn look(&mut self, state: &HaltState, sent: Micros, received: Micros) -> Heard {
        // The store has not lost the halt: each look tells of it.
        if state.halt().is_none() {
            return Heard::Resumed;
        }
        if state.is_heard() {
            return Heard::Everywhere;
        }
        // As a process waits that wants the orders.
        match &self.silent {
            Some((seen, since)) if *seen == state.owner => {
                if sent - since >= LEASE_LIFE {
                    return Heard::Everywhere;
                }
            }
            _ => self.silent = Some((state.owner.clone(), received)),
        }
        Heard::NotYet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::ledger::{Ledger, Turn};

    const S: Micros = 1_000_000;

    fn state(turns: u64, heard: u64, renewals: Option<u64>) -> HaltState {
        let fence = Fence { counter: 1, owner: "one".to_owned() };
        HaltState { turns, heard, owner: renewals.map(|renewals| (fence, renewals)), is_known: true }
    }

    #[test]
    fn a_halt_holds_once_the_owner_has_heard_or_nobody_owns_the_orders() {
        let mut hearing = Hearing::default();
        assert_eq!(hearing.look(&state(3, 2, Some(7)), 0, 1), Heard::NotYet);
        assert_eq!(hearing.look(&state(3, 3, Some(8)), S, S), Heard::Everywhere);
        assert_eq!(Hearing::default().look(&state(3, 2, None), 0, 1), Heard::Everywhere);
        // The owner has heard of turns that the store has lost since; the one of now is another.
        assert_eq!(Hearing::default().look(&state(3, 4, Some(7)), 0, 1), Heard::NotYet);
    }

    #[test]
    fn an_owner_that_is_silent_is_waited_for_as_long_as_it_may_own_the_orders() {
        let mut hearing = Hearing::default();
        let silent = state(1, 0, Some(7));
        assert_eq!(hearing.look(&silent, 0, S), Heard::NotYet);
        assert_eq!(hearing.look(&silent, 9 * S - 1, 9 * S), Heard::NotYet);
        // It is alive after all.
        assert_eq!(hearing.look(&state(1, 0, Some(8)), 10 * S, 10 * S), Heard::NotYet);
        assert_eq!(hearing.look(&state(1, 0, Some(8)), 18 * S - 1, 18 * S), Heard::NotYet);
        assert_eq!(hearing.look(&state(1, 0, Some(8)), 18 * S, 19 * S), Heard::Everywhere);
        // A store that was emptied knows of no owner, and there may be one.
        let (mut hearing, emptied) = (Hearing::default(), HaltState { is_known: false, ..state(1, 0, None) });
        assert_eq!(hearing.look(&emptied, 0, 0), Heard::NotYet);
        assert_eq!(hearing.look(&emptied, 8 * S, 8 * S), Heard::Everywhere);
    }

    /// Regression: turns 3 were heard, 4 resumed, and a store that had lost 4 said that 3 were heard.
    #[test]
    fn a_store_that_may_have_lost_a_resume_does_not_vouch_for_the_owner() {
        let (mut hearing, lossy) =
            (Hearing::default(), HaltState { is_known: false, ..state(3, 3, Some(7)) });
        assert_eq!(hearing.look(&lossy, 0, S), Heard::NotYet);
        // The owner has renewed, and told that it knows of more.
        assert_eq!(hearing.look(&state(5, 4, Some(8)), 2 * S, 2 * S), Heard::NotYet);
        assert_eq!(hearing.look(&state(5, 5, Some(9)), 3 * S, 3 * S), Heard::Everywhere);
    }

    #[test]
    fn a_halt_that_the_store_has_lost_is_none_that_was_resumed() {
        let (mut hearing, mut ledger) = (Hearing::default(), Ledger::default());
        let halted = ledger.turn("run", Turn::Halt(0));
        assert_eq!(hearing.look(&halted, 0, 1), Heard::NotYet, "the run of the server knows of no owner");
        ledger.flush();
        let looked = ledger.turn("run", Turn::Look(halted.turns));
        assert_eq!((hearing.look(&looked, S, S), looked.turns), (Heard::NotYet, 1));
        let resumed = ledger.turn("run", Turn::Resume(1));
        assert_eq!(hearing.look(&resumed, S, S), Heard::Resumed);
    }

    #[test]
    fn a_resume_ends_the_halt_that_it_names_and_no_other_one() {
        let mut ledger = Ledger::default();
        let mut turn = |turn| ledger.turn("run", turn).turns;
        assert_eq!((turn(Turn::Halt(0)), turn(Turn::Resume(1))), (1, 2));
        // It comes twice, and late, and without a halt.
        assert_eq!((turn(Turn::Resume(1)), turn(Turn::Resume(2))), (2, 2));
        assert_eq!(
            (turn(Turn::Halt(0)), turn(Turn::Halt(0))),
            (3, 5),
            "a halt of a halted switch is a new one"
        );
        assert_eq!((turn(Turn::Resume(1)), turn(Turn::Resume(3)), turn(Turn::Resume(5))), (5, 5, 6));
    }
}
