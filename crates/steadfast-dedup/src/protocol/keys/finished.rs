//! The decided intents of a key, also by quantity: a listed order that is exactly one of theirs has its quantity.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_spec::Decimal;

use crate::numbers::IntentNo;

/// Decided intents and the quantity that each asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finished {
    all: BTreeMap<IntentNo, Decimal>,
    by_qty: BTreeSet<(Decimal, IntentNo)>,
}

impl Finished {
    pub(super) fn insert(&mut self, number: IntentNo, qty: Decimal) {
        if let Some(before) = self.all.insert(number, qty) {
            self.by_qty.remove(&(before, number));
        }
        self.by_qty.insert((qty, number));
    }

    pub(super) fn remove(&mut self, number: IntentNo) {
        if let Some(qty) = self.all.remove(&number) {
            self.by_qty.remove(&(qty, number));
        }
    }

    pub(super) fn contains(&self, number: IntentNo) -> bool {
        self.all.contains_key(&number)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns all of them, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = IntentNo> + '_ {
        self.all.keys().copied()
    }

    /// Returns those of this quantity, the oldest first.
    pub(crate) fn of_qty(&self, qty: Decimal) -> impl Iterator<Item = IntentNo> + '_ {
        let range = (qty, IntentNo(0))..=(qty, IntentNo(u64::MAX));
        self.by_qty.range(range).map(|&(_, number)| number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Those of a quantity are what a look at all of them finds.
        #[test]
        fn those_of_a_quantity_are_found_as_by_a_look_at_all(
            steps in prop::collection::vec((any::<bool>(), 0_u64..12, 0_i64..4, 0_u32..3), 1..80),
        ) {
            let (mut finished, mut plain) = (Finished::default(), BTreeMap::new());
            for (ends, number, qty, zeros) in steps {
                // The same quantity is listed as 10, 10.0 or 10.00.
                let (number, qty) = (IntentNo(number), Decimal::new(qty * 10_i64.pow(zeros), zeros));
                if ends {
                    finished.insert(number, qty);
                    plain.insert(number, qty);
                } else {
                    finished.remove(number);
                    plain.remove(&number);
                }
                prop_assert_eq!(finished.is_empty(), plain.is_empty());
                prop_assert!(finished.iter().eq(plain.keys().copied()));
                prop_assert!(finished.iter().all(|number| finished.contains(number)));
                for qty in (0..4).map(Decimal::from) {
                    let found = plain.iter().filter(|(_, its)| **its == qty).map(|(number, _)| *number);
                    prop_assert!(finished.of_qty(qty).eq(found));
                }
            }
        }
    }
}
