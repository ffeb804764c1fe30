use std::time::Duration;

use tokio::time::Instant;

/// The acknowledged orders of one session's client, by which an incomplete list can be detected.
#[derive(Debug, Default)]
pub(super) struct Acks {
    session: String,
    /// The order's number in the book, when the answer was delivered, and whether the order was completed at once.
    told: Vec<(u64, Instant, bool)>,
}

impl Acks {
    /// Records that the answer to an order was delivered now.
    pub(super) fn push(&mut self, told: Told, order_id: &str) {
        if self.session != told.session {
            *self = Self { session: told.session, told: Vec::new() };
        }
        // Identifiers are 26 followed by a number that counts the book's orders.
        let number = order_id.strip_prefix("26").and_then(|number| number.parse().ok()).unwrap_or_default();
        self.told.push((number, Instant::now(), told.market));
    }

    /// Returns the orders that were acknowledged at least `age` ago, by their numbers.
    pub(super) fn old(&self, session: &str, age: Duration) -> Vec<(u64, bool)> {
        if self.session != session {
            return Vec::new();
        }
        let old = self.told.iter().filter(|(_, at, _)| at.elapsed() > age);
        let mut old: Vec<_> = old.map(|&(number, _, market)| (number, market)).collect();
        old.sort_unstable();
        old
    }
}

/// The data of an order's request that the wire keeps until its answer is delivered.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) session: String,
    pub(super) market: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_the_same_session_was_told_of_long_ago_counts() {
        let mut acks = Acks::default();
        let told = |session: &str| Told { session: session.to_owned(), market: true };
        acks.push(told("a"), "260000000007");
        tokio::time::advance(Duration::from_secs(10)).await;
        acks.push(told("a"), "260000000008");
        assert_eq!(acks.old("a", Duration::from_secs(5)), [(7, true)]);
        assert_eq!(acks.old("b", Duration::from_secs(5)), []);
        acks.push(told("b"), "260000000009");
        assert_eq!(acks.old("a", Duration::ZERO), []);
    }
}
