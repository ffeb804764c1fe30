//! The orders that callers have asked for, so that none is placed twice because an answer was not heard.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use steadfast::ext::IntentId;
use tokio::time::Instant;

/// How long an order whose answer its caller did not hear keeps an equal one without a name from being placed.
const UNHEARD: Duration = Duration::from_secs(300);

/// All orders that are not answered, or whose answer was not heard.
#[derive(Debug)]
pub(crate) struct Orders {
    /// Begins the names of orders without a name of their caller's.
    prefix: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// By form.
    asked: HashMap<String, Vec<Asked>>,
    /// The names of the callers that wait.
    names: HashSet<String>,
}

/// One order that was asked for.
#[derive(Debug)]
struct Asked {
    number: u64,
    /// `None` while its caller waits.
    ended: Option<Instant>,
    order_id: Option<String>,
}

/// Why an order is not placed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// Its name is that of an order whose caller waits.
    Running,
    /// An equal order has no end, or its answer was not heard; with its id, if that is known.
    Equal(Option<String>),
}

impl Orders {
    pub(crate) fn new(prefix: String) -> Arc<Self> {
        Arc::new(Self { prefix, state: Mutex::default() })
    }

    /// Enters an order by its form.
    pub(crate) fn enter(
        self: &Arc<Self>,
        form: String,
        key: Option<String>,
        is_new: bool,
    ) -> Result<Entry, Conflict> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let state = &mut *state;
        if state.asked.len() > 1024 {
            state.asked.retain(|_, asked| asked.iter().any(|one| one.stands(now)));
        }
        let asked = state.asked.entry(form.clone()).or_default();
        asked.retain(|one| one.stands(now));
        match &key {
            Some(key) if !state.names.insert(key.clone()) => return Err(Conflict::Running),
            None if !is_new => {
                if let Some(one) = asked.last() {
                    return Err(Conflict::Equal(one.order_id.clone()));
                }
            }
            _ => {}
        }
        let number = state.next;
        state.next += 1;
        asked.push(Asked { number, ended: None, order_id: None });
        let name = key.clone().unwrap_or_else(|| format!("{}-{number}", self.prefix));
        let delivery = Delivery { orders: self.clone(), form, number, is_over: false };
        Ok(Entry { name: IntentId::new(name), key, delivery })
    }

    /// Returns the number of orders whose callers wait.
    pub(crate) fn running(&self) -> usize {
        let state = self.state.lock();
        state.asked.values().flatten().filter(|one| one.ended.is_none()).count()
    }

    fn change(&self, form: &str, number: u64, change: impl FnOnce(&mut Asked)) {
        if let Some(asked) = self.state.lock().asked.get_mut(form)
            && let Some(one) = asked.iter_mut().find(|one| one.number == number)
        {
            change(one);
        }
    }

    fn forget(&self, form: &str, number: u64) {
        let mut state = self.state.lock();
        if let Some(asked) = state.asked.get_mut(form) {
            asked.retain(|one| one.number != number);
            if asked.is_empty() {
                state.asked.remove(form);
            }
        }
    }
}

impl Asked {
    fn stands(&self, now: Instant) -> bool {
        self.ended.is_none_or(|ended| now.duration_since(ended) < UNHEARD)
    }
}

/// An order while its caller waits.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: IntentId,
    key: Option<String>,
    delivery: Delivery,
}

impl Entry {
    /// Ends the wait. The order stands until its answer is heard.
    pub(crate) fn answered(mut self, order_id: Option<String>) -> Delivery {
        self.release();
        self.delivery.orders.change(&self.delivery.form, self.delivery.number, |one| one.order_id = order_id);
        let Delivery { orders, form, number, .. } = &self.delivery;
        let delivery =
            Delivery { orders: orders.clone(), form: form.clone(), number: *number, is_over: false };
        self.delivery.is_over = true;
        delivery
    }

    /// Ends the wait for an order that placed nothing, or whose caller would be told in doubt again.
    pub(crate) fn placed_nothing(self) {
        self.answered(None).heard();
    }

    fn release(&mut self) {
        if let Some(key) = self.key.take() {
            self.delivery.orders.state.lock().names.remove(&key);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.release();
    }
}

/// The answer to an order on its way to the caller. Dropped before it is heard, the order stands.
#[derive(Debug)]
pub(crate) struct Delivery {
    orders: Arc<Orders>,
    form: String,
    number: u64,
    is_over: bool,
}

impl Delivery {
    /// The answer has left.
    pub(crate) fn heard(mut self) {
        self.is_over = true;
        self.orders.forget(&self.form, self.number);
    }

    /// The answer has left, but says that the order is in doubt, so that it still stands.
    pub(crate) fn told_in_doubt(self) {
        drop(self);
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.is_over {
            let now = Instant::now();
            self.orders.change(&self.form, self.number, |one| {
                one.ended.get_or_insert(now);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Arc<Orders> {
        Orders::new("p".to_owned())
    }

    fn enter(orders: &Arc<Orders>, key: Option<&str>, is_new: bool) -> Result<Entry, Conflict> {
        orders.enter("symId=S".to_owned(), key.map(str::to_owned), is_new)
    }

    #[tokio::test(start_paused = true)]
    async fn an_equal_order_waits_until_the_answer_of_the_first_was_heard() {
        let orders = orders();
        let first = enter(&orders, None, false).unwrap();
        assert_eq!(enter(&orders, None, false).unwrap_err(), Conflict::Equal(None));
        assert!(enter(&orders, None, true).is_ok(), "a new order by its caller's word");
        tokio::time::advance(UNHEARD).await;
        let delivery = first.answered(Some("7".to_owned()));
        assert_eq!(enter(&orders, None, false).unwrap_err(), Conflict::Equal(Some("7".to_owned())));
        delivery.heard();
        assert!(enter(&orders, None, false).is_ok());
        assert!(orders.orders_of_others_are_free());
    }

    #[tokio::test(start_paused = true)]
    async fn an_unheard_order_stands_for_five_minutes() {
        let orders = orders();
        drop(enter(&orders, None, false).unwrap().answered(Some("7".to_owned())));
        tokio::time::advance(UNHEARD - Duration::from_secs(1)).await;
        assert_eq!(enter(&orders, None, false).unwrap_err(), Conflict::Equal(Some("7".to_owned())));
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(enter(&orders, None, false).unwrap());
        assert_eq!(enter(&orders, None, false).unwrap_err(), Conflict::Equal(None), "its caller has gone");
        assert_eq!(orders.running(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_has_one_caller_at_a_time() {
        let orders = orders();
        let first = enter(&orders, Some("k"), false).unwrap();
        assert_eq!(enter(&orders, Some("k"), false).unwrap_err(), Conflict::Running);
        assert_eq!(enter(&orders, Some("k"), true).unwrap_err(), Conflict::Running);
        assert!(enter(&orders, Some("l"), false).is_ok());
        drop(first);
        assert!(enter(&orders, Some("k"), false).is_ok());
    }

    impl Orders {
        fn orders_of_others_are_free(self: &Arc<Self>) -> bool {
            self.enter("symId=T".to_owned(), None, false).is_ok()
        }
    }
}
