use std::{fmt, time::Duration};

use steadfast_spec::{InvalidOrder, OrderRequest};

use crate::sim::{
    chooser::{Chooser, Site},
    wire::{Day, intent_name},
};

/// The orders of one seed's callers.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) callers: u32,
    pub(crate) wanted: Vec<Wanted>,
    /// When the session's token dies, if it does.
    pub(crate) token_dies: Option<Duration>,
}

/// One order of one caller.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Identifies it at every site; some numbers stand for no order.
    pub(crate) number: u64,
    pub(crate) shape: Shape,
    pub(crate) caller: u32,
    /// The earliest time; the caller's previous order must have ended too.
    pub(crate) at: Duration,
    /// True if the caller gives the order a name of its own.
    pub(crate) named: bool,
    /// After how long the caller leaves.
    pub(crate) patience: Option<Duration>,
    /// True if the caller cancels the order once it is placed.
    pub(crate) cancelled: bool,
    /// True if the caller reads the list of orders afterwards.
    pub(crate) looks: bool,
    /// After how long the caller drops a cancel or a read.
    pub(crate) haste: Option<Duration>,
    /// After how long the caller asks again if the order is refused, where callers do so.
    pub(crate) repeated_after: Duration,
}

/// The terms of an order; equal shapes are identical orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Shape(u32);

const SYMBOLS: [u32; 4] = [1, 3, 10, 40];
const QUANTITIES: [&str; 3] = ["10", "20", "75"];
/// Type, product, validity, limit price, trigger price.
const TERMS: [[&str; 5]; 7] = [
    ["limit", "delivery", "day", "100.05", ""],
    ["market", "intraday", "day", "", ""],
    ["limit", "delivery", "ioc", "100.05", ""],
    ["stoplimit", "intraday", "day", "101", "100.5"],
    ["stopmarket", "intraday", "day", "", "99.95"],
    ["limit", "bracket", "day", "100.05", ""],
    ["limit", "delivery", "day", "100.10", ""],
];
/// Terms, sides and quantities.
const PER_SYMBOL: u32 = 7 * 2 * 3;

/// The time between orders in milliseconds: ten in a second, and in some seeds as fast as possible.
const INTERVALS: [u32; 3] = [100, 15, 1];
/// How much later than the last order a token may die, in milliseconds.
const LATER: u32 = 20_000;
/// Within how many milliseconds an order is asked for again: before a list can confirm its refusal, or perhaps later.
const REPEATED_WITHIN: [u32; 2] = [5_000, 60_000];
/// With more orders at once than can leave in time, no caller waits that long.
const MOST_AT_ONCE: u32 = 100;
/// The shares of identical orders, of orders that differ from the one before only in quantity or price, and of cancels,
/// in percent, with the number of seeds that have them.
const TWINS: [[u32; 3]; 3] = [[64, 30, 6], [15, 75, 10], [30, 20, 50]];
const CANCELS: [[u32; 2]; 2] = [[80, 20], [10, 90]];

impl Workload {
    /// Returns the orders of a seed's callers.
    pub(crate) fn of(chooser: &Chooser) -> Self {
        let callers =
            chooser.weigh(Site::new("callers.many"), &[1, 1]) * chooser.choose(Site::new("callers"), 50) + 1;
        // Long sessions are rare: each read costs as much as the list is long, and most failures need few orders and
        // many readings of the specification.
        let count = match chooser.weigh(Site::new("orders.many"), &[30, 5, 2, 963]) {
            0 => 50 + chooser.choose(Site::new("orders"), 51),
            1 => 100 + chooser.choose(Site::new("orders"), 101),
            2 => 200 + chooser.choose(Site::new("orders"), 301),
            _ => 1 + chooser.choose(Site::new("orders"), 34),
        };
        let swarm = |what, weights: &[u32]| chooser.weigh(Site::new(what), weights) as usize;
        let interval = INTERVALS[swarm("orders.interval", &[75, 13, 12])];
        let interval = if count > MOST_AT_ONCE { INTERVALS[0] } else { interval };
        let twins = TWINS[swarm("swarm.twins", &[72, 16, 12])];
        let cancels = CANCELS[swarm("swarm.cancelled", &[80, 20])];
        let hasty = swarm("swarm.haste", &[75, 25]) == 1;
        let day = Day::of(chooser);
        let symbols = SYMBOLS[chooser.weigh(Site::new("symbols"), &[10, 20, 30, 40]) as usize];
        let named = chooser.choose(Site::new("named"), 3);
        let mut shape = Shape(0);
        let mut wanted = Vec::new();
        for number in 0..u64::from(count) {
            let site = |what| Site::new(what).of(number);
            // A twin is identical to the order before it, even if that one is not on the tape.
            match chooser.weigh(site("order.twin"), &twins) {
                1 if number > 0 => {}
                2 if number > 0 => shape = shape.near(chooser.choose(site("order.near"), 3)),
                _ => shape = Shape(chooser.choose(site("order.shape"), PER_SYMBOL * symbols)),
            }
            // Never drawn; a tape expresses it by leaving the order out.
            if chooser.weigh(site("order"), &[0, 1]) == 0 {
                continue;
            }
            let index = u32::try_from(number).unwrap_or(u32::MAX);
            let at = index.saturating_mul(interval) + chooser.choose(site("order.jitter"), interval);
            let patience = match chooser.weigh(site("order.patience"), &[86, 5, 5, 4]) {
                0 => None,
                1 => Some(50 + u64::from(chooser.choose(site("order.patience-ms"), 1_000))),
                2 => Some(1_000 + u64::from(chooser.choose(site("order.patience-ms"), 20_000))),
                _ => Some(u64::from(chooser.choose(site("order.patience-ms"), 60_000))),
            };
            wanted.push(Wanted {
                number,
                shape,
                caller: index % callers,
                at: Duration::from_millis(u64::from(at)) + day.delay(number),
                named: match named {
                    0 => false,
                    1 => true,
                    _ => chooser.choose(site("order.named"), 2) == 1,
                },
                patience: patience.map(Duration::from_millis),
                cancelled: chooser.weigh(site("order.cancelled"), &cancels) == 1,
                looks: chooser.weigh(site("order.looks"), &[90, 10]) == 1,
                repeated_after: Duration::from_millis(u64::from(chooser.choose(
                    site("order.repeated-after"),
                    REPEATED_WITHIN[chooser.weigh(site("order.repeated"), &[60, 40]) as usize],
                ))),
                haste: (hasty && chooser.weigh(site("order.haste"), &[30, 70]) == 1)
                    .then(|| Duration::from_millis(u64::from(chooser.choose(site("order.haste-ms"), 60)))),
            });
        }
        // Some tokens die long after the last send, in the middle of a search.
        let token_dies = (chooser.weigh(Site::new("token.dies"), &[80, 20]) == 1).then(|| {
            let at = chooser.choose(Site::new("token.dies-at"), count * INTERVALS[0]);
            let later = swarm("token.dies-late", &[50, 50]) as u32
                * chooser.choose(Site::new("token.dies-later"), LATER);
            Duration::from_millis(u64::from(at + later)) + day.delay(u64::MAX)
        });
        Self { callers, wanted, token_dies }
    }
}

impl Wanted {
    /// Returns its name in the gateway's ground truth.
    pub(crate) fn intent(&self) -> String {
        intent_name(self.number)
    }
}

impl Shape {
    /// True if a list without prices does not distinguish the two.
    pub(crate) fn is_alike_without_prices(self, other: Self) -> bool {
        let (ours, theirs) = (self.0 % PER_SYMBOL, other.0 % PER_SYMBOL);
        let terms = |rest: u32| &TERMS[(rest % 7) as usize][..3];
        self.0 / PER_SYMBOL == other.0 / PER_SYMBOL && ours / 7 == theirs / 7 && terms(ours) == terms(theirs)
    }

    /// True if the two differ in their quantities, and not in instrument or side.
    pub(crate) fn is_of_another_quantity(self, other: Self) -> bool {
        let qty = |shape: Self| shape.0 % PER_SYMBOL / 14;
        self.key() == other.key() && qty(self) != qty(other)
    }

    /// Returns instrument and side, the key of orders in doubt.
    pub(crate) fn key(self) -> (u32, u32) {
        (self.0 / PER_SYMBOL, self.0 % PER_SYMBOL / 7 % 2)
    }

    /// Returns an order with the same instrument and side, but another quantity or price.
    fn near(self, which: u32) -> Self {
        let (symbol, rest) = (self.0 / PER_SYMBOL, self.0 % PER_SYMBOL);
        let (terms, sides, qty) = (rest % 7, rest / 7 % 2, rest / 14);
        let (terms, qty) = match (which, terms) {
            // The two terms that differ only in price.
            (0, 0) => (6, qty),
            (0, _) => (0, qty),
            (more, _) => (terms, (qty + more) % 3),
        };
        Self(symbol * PER_SYMBOL + terms + 7 * (sides + 2 * qty))
    }

    /// An order that is completed as soon as it is placed.
    pub(crate) const MARKET: Self = Self(1);
    #[cfg(test)]
    pub(crate) const LIMIT: Self = Self(0);
    #[cfg(test)]
    pub(crate) const LIMIT_AT_ANOTHER_PRICE: Self = Self(6);

    #[cfg(test)]
    pub(crate) fn of_another_symbol() -> Self {
        Self(PER_SYMBOL + 1)
    }

    pub(crate) fn order(self) -> Result<OrderRequest, InvalidOrder> {
        let (symbol, rest) = (self.0 / PER_SYMBOL, self.0 % PER_SYMBOL);
        let (terms, rest) = (rest % 7, rest / 7);
        let [order_type, product, validity, limit, trigger] = TERMS[terms as usize];
        let side = if rest.is_multiple_of(2) { "buy" } else { "sell" };
        OrderRequest::from_fields([
            ("symId", format!("EQT_S{symbol}_EQ_NSE").as_str()),
            ("qty", QUANTITIES[(rest / 2 % 3) as usize]),
            ("side", side),
            ("type", order_type),
            ("product", product),
            ("validity", validity),
            ("limitPrice", limit),
            ("trigPrice", trigger),
        ])
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(order) = self.order() else { return f.write_str("no order") };
        write!(f, "{} {} {} {}", order.side(), order.qty(), order.sym_id(), order.order_type())?;
        write!(f, " {} {}", order.product(), order.validity())?;
        if let Some(price) = order.limit_price() {
            write!(f, " at {price}")?;
        }
        if let Some(price) = order.trig_price() {
            write!(f, " trigger {price}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_shape_is_an_order_of_its_own() {
        let orders: BTreeSet<String> =
            (0..PER_SYMBOL * 2).map(|shape| Shape(shape).order().unwrap().form().encode()).collect();
        assert_eq!(orders.len(), PER_SYMBOL as usize * 2);
    }

    #[test]
    fn a_third_of_the_orders_are_identical_to_the_one_before() {
        let mut twins = (0, 0);
        for seed in 0..400 {
            let workload = Workload::of(&Chooser::rng(seed));
            for pair in workload.wanted.windows(2) {
                twins.0 += usize::from(pair[0].shape == pair[1].shape);
                twins.1 += 1;
            }
            assert!((1..=50).contains(&workload.callers));
            assert!((1..=500).contains(&workload.wanted.len()));
        }
        let share = twins.0 * 100 / twins.1;
        assert!((30..44).contains(&share), "{share} %");
    }

    #[test]
    fn an_order_near_another_shares_its_key_and_is_no_twin() {
        for shape in (0..PER_SYMBOL * 2).map(Shape) {
            for near in (0..3).map(|which| shape.near(which)) {
                let (one, other) = (shape.order().unwrap(), near.order().unwrap());
                assert!(one.sym_id() == other.sym_id() && one.side() == other.side() && shape != near);
            }
        }
    }

    #[test]
    fn an_empty_tape_wants_nothing() {
        assert!(Workload::of(&Chooser::tape(crate::sim::chooser::Tape::default())).wanted.is_empty());
    }
}
