//! The orders that callers have asked for, so that none is placed twice because an answer was not heard.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use steadfast::{dedup::Verdict, ext::IntentId};
use tokio::time::Instant;

/// How long an order whose answer its caller did not hear keeps an equal one without a name from being placed.
pub(crate) const UNHEARD: Duration = Duration::from_secs(300);

/// Returns what is known of the order of a name.
type Inquiry = Box<dyn Fn(&IntentId) -> Option<Verdict> + Send + Sync>;

/// All orders that are not answered, or whose answer was not heard.
pub(crate) struct Orders {
    /// Begins the names of orders without a name of their caller's.
    prefix: String,
    inquire: Inquiry,
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
    name: IntentId,
    /// `None` while its caller waits.
    ended: Option<Instant>,
    order_id: Option<String>,
    /// Its caller was told so, or has gone.
    is_in_doubt: bool,
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
    /// Names orders by `prefix`. `inquire` returns what is known of the order of a name.
    pub(crate) fn new(
        prefix: String,
        inquire: impl Fn(&IntentId) -> Option<Verdict> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { prefix, inquire: Box::new(inquire), state: Mutex::default() })
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
        if let Some(key) = &key
            && !state.names.insert(key.clone())
        {
            return Err(Conflict::Running);
        }
        if state.asked.len() > 1024 {
            state.asked.retain(|_, asked| asked.iter().any(|one| one.stands(now, &self.inquire)));
        }
        let asked = state.asked.entry(form.clone()).or_default();
        asked.retain(|one| one.stands(now, &self.inquire));
        if let (None, false, Some(one)) = (&key, is_new, asked.last()) {
            return Err(Conflict::Equal(one.known_id(&self.inquire)));
        }
        let number = state.next;
        state.next += 1;
        let name = IntentId::new(key.clone().unwrap_or_else(|| format!("{}-{number}", self.prefix)));
        asked.push(Asked { number, name: name.clone(), ended: None, order_id: None, is_in_doubt: false });
        let delivery = Delivery { orders: self.clone(), form, number, is_over: false };
        Ok(Entry { name, key, delivery })
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

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl Asked {
    fn stands(&self, now: Instant, inquire: &Inquiry) -> bool {
        self.ended.is_none_or(|ended| now.duration_since(ended) < UNHEARD)
            || self.is_in_doubt && inquire(&self.name).is_some_and(|verdict| may_exist_unseen(&verdict))
    }

    /// Returns its id, if it is certain.
    fn known_id(&self, inquire: &Inquiry) -> Option<String> {
        if self.is_in_doubt { found(inquire(&self.name)?) } else { self.order_id.clone() }
    }
}

/// True unless it is known what became of the order, or lists that would have shown it lack it.
fn may_exist_unseen(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Pending | Verdict::Resend => true,
        Verdict::Unresolved(unresolved) => !unresolved.reason.is_absence(),
        _ => false,
    }
}

/// Returns the id of an order that is known to exist. A candidate may be the order of another program.
pub(crate) fn found(verdict: Verdict) -> Option<String> {
    match verdict {
        Verdict::Acknowledged { order_id } | Verdict::Recovered { order_id, .. } => Some(order_id),
        _ => None,
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

    /// Ends the wait for an order in doubt. It stands until its time is over, and beyond as long as it may exist unseen,
    /// whether its caller hears of it or not.
    pub(crate) fn in_doubt(self) {
        self.delivery.orders.change(&self.delivery.form, self.delivery.number, |one| one.is_in_doubt = true);
    }

    /// Ends the wait for an order that placed nothing.
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
        Orders::new("p".to_owned(), |_| None)
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
    async fn an_order_in_doubt_stands_as_long_as_it_may_exist_unseen() {
        let verdict = Arc::new(Mutex::new(Some(Verdict::Pending)));
        let known = verdict.clone();
        let orders = Orders::new("p".to_owned(), move |name| {
            assert_eq!(name.as_str(), "p-0");
            known.lock().clone()
        });
        enter(&orders, None, false).unwrap().in_doubt();
        tokio::time::advance(2 * UNHEARD).await;
        assert_eq!(enter(&orders, None, false).unwrap_err(), Conflict::Equal(None));
        *verdict.lock() = Some(Verdict::Recovered { order_id: "7".to_owned(), status: None });
        assert!(enter(&orders, None, false).is_ok(), "it was found, and its time is over");
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_in_doubt_is_told_by_its_id_once_it_is_found() {
        let recovered = || Some(Verdict::Recovered { order_id: "7".to_owned(), status: None });
        let orders = Orders::new("p".to_owned(), move |_| recovered());
        let first = enter(&orders, None, false).unwrap();
        assert_eq!(enter(&orders, None, false).unwrap_err(), Conflict::Equal(None), "its caller waits");
        first.in_doubt();
        assert_eq!(enter(&orders, None, false).unwrap_err(), Conflict::Equal(Some("7".to_owned())));
    }

    #[test]
    fn nothing_is_kept_of_an_order_that_was_refused_for_its_name() {
        let orders = orders();
        let _first = enter(&orders, Some("k"), false).unwrap();
        for _ in 0..3 {
            let long = orders.enter("x".repeat(9), Some("k".to_owned()), false);
            assert_eq!(long.unwrap_err(), Conflict::Running);
        }
        assert_eq!(orders.state.lock().asked.len(), 1);
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
