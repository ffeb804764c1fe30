//! Orders that stay undecided because others of their key keep getting lost.
//!
//! Nothing is absent before every order in doubt of its key has settled (`orders.md` §1, rule 8). Where orders of one
//! instrument and side are lost faster than they settle, no search for one of them can end, and its caller is told of
//! his deadline or of the spent budget: that is the promise kept, and not an order that was forgotten.

use std::time::Duration;

use crate::{
    orders::{trader::Told, workload::Workload},
    wire::Loss,
};

/// Within this time of its send everything is settled: a gateway's longest work, and the lateness bound.
const SETTLES: Duration = Duration::from_secs(30 + 15);
/// How long a settled key may wait for the read that ends its searches, on a slow line.
const READ: Duration = Duration::from_secs(12);
/// The shortest time after which a search is given up: the budget, which is less than a call's deadline.
const GIVEN_UP: Duration = Duration::from_secs(30 + 15 + 60);

/// Those of the orders told to be unresolved that could not be decided in time, because from their loss on until they were
/// given up no moment came at which their key was settled; and those that were lost behind them on the same key, of which
/// nothing is concluded any more.
pub(crate) fn kept_waiting(workload: &Workload, told: &[Option<Told>], losses: &[Loss]) -> u64 {
    let orders = || workload.wanted.iter().zip(told);
    let waited = orders().filter(|(wanted, told)| {
        let Some(Told::Unresolved("deadline" | "budget")) = told else { return false };
        let Some(own) = losses.iter().find(|loss| loss.order == wanted.number) else { return false };
        let key = |order| {
            let of = workload.wanted.iter().find(|wanted| wanted.number == order);
            of.map(|wanted| wanted.shape.key())
        };
        let later = losses.iter().filter(|loss| loss.at >= own.at && key(loss.order) == key(own.order));
        let mut unsettled_until = own.at + SETTLES;
        for loss in later {
            if loss.at > unsettled_until + READ {
                break;
            }
            unsettled_until = unsettled_until.max(loss.at + SETTLES);
        }
        unsettled_until + READ >= own.at + GIVEN_UP
    });
    let keys: Vec<_> = waited.map(|(wanted, _)| wanted.shape.key()).collect();
    let behind = orders().filter(|(wanted, told)| {
        matches!(told, Some(Told::Unresolved("tainted"))) && keys.contains(&wanted.shape.key())
    });
    (keys.len() + behind.count()) as u64
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::orders::workload::{Shape, Wanted};

    /// Orders of these shapes, of which the first is told of its deadline, and the third that nothing is concluded.
    fn told_of_its_deadline(shapes: &[Shape], lost_at: &[(u64, u64)]) -> u64 {
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
        });
        let workload = Workload { callers: 1, wanted: wanted.collect(), token_dies: None };
        let mut told = vec![Some(Told::NotObserved); shapes.len()];
        told[0] = Some(Told::Unresolved("deadline"));
        if let Some(third) = told.get_mut(2) {
            *third = Some(Told::Unresolved("tainted"));
        }
        let start = Instant::now();
        let loss = |&(order, at)| Loss { order, at: start + Duration::from_secs(at) };
        kept_waiting(&workload, &told, &lost_at.iter().map(loss).collect::<Vec<_>>())
    }

    #[test]
    fn an_order_waits_only_while_others_of_its_key_are_lost() {
        let (one, other) = (Shape::MARKET, Shape::of_another_symbol());
        assert_eq!(
            told_of_its_deadline(&[one, one, one], &[(0, 0), (1, 40), (2, 70)]),
            2,
            "and the last behind it"
        );
        assert_eq!(told_of_its_deadline(&[one], &[(0, 0)]), 0, "nothing kept it waiting");
        assert_eq!(told_of_its_deadline(&[one, one], &[(0, 0), (1, 30)]), 0, "its key settled in time");
        assert_eq!(told_of_its_deadline(&[one, other, other], &[(0, 0), (1, 40), (2, 70)]), 0);
        assert_eq!(told_of_its_deadline(&[one, one], &[(0, 0), (1, 80)]), 0, "there was a moment between");
    }
}
