//! Orders that stay undecided because others of their key keep getting lost.
//!
//! No order is absent before every order in doubt of its key has settled (`docs/design/orders.md`, section 6, rule 3).
//! If orders of one key are lost faster than they settle, no search for one of them can end, and its call ends with its
//! deadline or the spent budget. That keeps the promise; it is not a forgotten order.

use std::time::Duration;

use tokio::time::Instant;

use crate::sim::{
    orders::{
        policy::DEADLINE,
        trader::Told,
        workload::{Wanted, Workload},
    },
    wire::Loss,
};

/// The time after a send in which everything settles: the gateway's longest work, and the lateness bound.
const SETTLES: Duration = Duration::from_secs(30 + 15);
/// How long a settled key may wait for the read that ends its searches, on a slow line.
const READ: Duration = Duration::from_secs(12);
/// The shortest time after which a search is given up: the budget, counted from the loss.
const GIVEN_UP: Duration = Duration::from_secs(30 + 15 + 60);

/// Counts unresolved orders that could not be decided in time, because their key was never settled between their loss
/// and their end. Includes orders that the service had accepted, lost later on the same key, about which nothing is
/// concluded any more.
pub(crate) fn kept_waiting(
    workload: &Workload,
    told: &[Option<Told>],
    begun: &[Option<Instant>],
    losses: &[Loss],
) -> u64 {
    let orders = || workload.wanted.iter().zip(told);
    let shape =
        |number| workload.wanted.iter().find(|wanted| wanted.number == number).map(|wanted| wanted.shape);
    let key = |loss: &Loss| shape(loss.order).map(|shape| shape.key());
    let loss_of = |order: &Wanted| losses.iter().find(|loss| loss.order == order.number);
    let waited = orders().zip(begun).filter_map(|((wanted, told), begun)| {
        let Some(Told::Unresolved("deadline" | "budget")) = told else { return None };
        let own = loss_of(wanted)?;
        let others = losses
            .iter()
            .filter(|loss| loss.at >= own.at && loss.order != own.order && key(loss) == key(own));
        let (mut waits, mut unsettled_until) = (false, own.at + SETTLES);
        for loss in others {
            if loss.at > unsettled_until + READ {
                break;
            }
            (waits, unsettled_until) = (true, unsettled_until.max(loss.at + SETTLES));
        }
        let given_up = own.at + GIVEN_UP;
        let given_up = begun.map_or(given_up, |begun| given_up.min(begun + DEADLINE));
        (waits && unsettled_until + READ >= given_up).then_some(own)
    });
    let waited: Vec<_> = waited.collect();
    let behind = orders().filter(|(wanted, told)| {
        let Some(Told::Unresolved("tainted" | "accepted_unknown_id")) = told else { return false };
        let Some(own) = loss_of(wanted) else { return false };
        waited.iter().any(|first| key(first) == key(own) && first.at < own.at)
    });
    (waited.len() + behind.count()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::orders::workload::Shape;

    /// Counts orders of these shapes; the first ends with its deadline, and about the third nothing is concluded.
    fn told_of_its_deadline(shapes: &[Shape], lost_at: &[(u64, u64)]) -> u64 {
        told_of_its_deadline_and(Told::Unresolved("tainted"), 0, shapes, lost_at)
    }

    /// The same, with the result of the third and the wait before the first was sent.
    fn told_of_its_deadline_and(third: Told, waited: u64, shapes: &[Shape], lost_at: &[(u64, u64)]) -> u64 {
        let wanted = (0..).zip(shapes).map(|(number, &shape)| Wanted {
            number,
            shape,
            caller: 0,
            at: Duration::ZERO,
            named: false,
            patience: None,
            cancelled: false,
            looks: false,
            haste: None,
            repeated_after: Duration::ZERO,
        });
        let workload = Workload { callers: 1, wanted: wanted.collect(), token_dies: None };
        let mut told = vec![Some(Told::NotObserved); shapes.len()];
        told[0] = Some(Told::Unresolved("deadline"));
        if let Some(told) = told.get_mut(2) {
            *told = Some(third);
        }
        let start = Instant::now();
        let begun = vec![Some(start); shapes.len()];
        let loss = |&(order, at)| Loss { order, at: start + Duration::from_secs(waited + at) };
        kept_waiting(&workload, &told, &begun, &lost_at.iter().map(loss).collect::<Vec<_>>())
    }

    #[test]
    fn an_order_waits_only_while_others_of_its_key_are_lost() {
        let (one, other) = (Shape::MARKET, Shape::of_another_symbol());
        let lost = [(0, 0), (1, 40), (2, 70)];
        let with = |third| told_of_its_deadline_and(third, 0, &[one, one, one], &lost);
        assert_eq!(with(Told::Unresolved("tainted")), 2, "and the last behind it");
        assert_eq!(with(Told::Unresolved("accepted_unknown_id")), 2, "and the last behind it, though taken");
        assert_eq!(with(Told::NotObserved), 1);
        assert_eq!(told_of_its_deadline(&[one], &[(0, 0)]), 0, "nothing kept it waiting");
        assert_eq!(told_of_its_deadline(&[one, one], &[(0, 0), (1, 30)]), 0, "its key settled in time");
        assert_eq!(told_of_its_deadline(&[one, other, other], &[(0, 0), (1, 40), (2, 70)]), 0);
        assert_eq!(told_of_its_deadline(&[one, one], &[(0, 0), (1, 80)]), 0, "there was a moment between");
    }

    #[test]
    fn an_order_that_waited_before_it_was_sent_has_the_less_time() {
        let one = Shape::MARKET;
        let after =
            |waited| told_of_its_deadline_and(Told::Rejected, waited, &[one, one], &[(0, 0), (1, 40)]);
        assert_eq!((after(0), after(22), after(24)), (0, 0, 1));
    }

    #[test]
    fn nobody_keeps_an_order_waiting_but_others_of_its_key() {
        let one = Shape::MARKET;
        let alone =
            |waited, lost: &[(u64, u64)]| told_of_its_deadline_and(Told::Rejected, waited, &[one, one], lost);
        assert_eq!(alone(70, &[(0, 0)]), 0, "it was sent late");
        assert_eq!(alone(0, &[(0, 0), (0, 50)]), 0, "it was lost twice");
        let before = told_of_its_deadline_and(
            Told::Unresolved("tainted"),
            0,
            &[one, one, one],
            &[(2, 0), (0, 10), (1, 50), (1, 90)],
        );
        assert_eq!(before, 1, "the third was lost before the first");
    }
}
