//! The orders that callers have asked for, so that none is placed twice because an answer was not heard.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    task::Waker,
    time::Duration,
};

use parking_lot::Mutex;
use steadfast::{dedup::Verdict, ext::IntentId};
use tokio::{sync::watch, time::Instant};

/// How long an order whose answer its caller did not hear keeps an equal one without a name from being placed.
pub(crate) const UNHEARD: Duration = Duration::from_secs(300);

/// Returns what is known of the order of a name.
type Inquiry = Box<dyn Fn(&IntentId) -> Option<Verdict> + Send + Sync>;
/// Writes down for later processes that the answer to the order of a name was heard.
type Note = Box<dyn Fn(&IntentId) + Send + Sync>;

/// All orders that are not answered, or whose answer was not heard.
pub(crate) struct Orders {
    /// Begins the names of orders without a name of their caller's.
    prefix: String,
    inquire: Inquiry,
    note: Note,
    state: Mutex<State>,
    /// Changes when an answer was heard, or is lost.
    answers: watch::Sender<()>,
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
    /// Its answer is on its way.
    leaving: Option<Leaving>,
}

/// An answer that is being written, or was, and of which it is not decided whether it was heard.
#[derive(Debug, Default)]
struct Leaving {
    /// The task of its connection, once it is written.
    connection: Option<Waker>,
    /// An equal order waits for the decision.
    is_asked: bool,
}

/// Why an order is not placed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// Its name is that of an order whose caller waits.
    Running,
    /// An equal order has no end, or its answer was not heard; with its id, if that is known.
    Equal(Option<String>),
    /// As `Equal`, but its answer is on its way: whether it was heard is known in a moment.
    Leaving(Option<String>),
}

impl Orders {
    /// Names orders by `prefix`. `inquire` returns what is known of the order of a name, and `note` writes down that its
    /// answer was heard.
    pub(crate) fn new(
        prefix: String,
        inquire: impl Fn(&IntentId) -> Option<Verdict> + Send + Sync + 'static,
        note: impl Fn(&IntentId) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (inquire, note, answers) = (Box::new(inquire), Box::new(note), watch::channel(()).0);
        Arc::new(Self { prefix, inquire, note, state: Mutex::default(), answers })
    }

    /// Takes in an order of an earlier process whose answer may not have been heard. When that process ended is not known,
    /// so the order stands for its whole time from now on.
    pub(crate) fn stand(&self, form: String, name: IntentId, order_id: Option<String>) {
        let mut state = self.state.lock();
        let (number, ended) = (state.next, Some(Instant::now()));
        state.next += 1;
        let (is_in_doubt, leaving) = (false, None);
        let one = Asked { number, name, ended, order_id, is_in_doubt, leaving };
        state.asked.entry(form).or_default().push(one);
    }

    /// Returns a receiver that is told when an answer was heard or is lost, from now on.
    pub(crate) fn answers(&self) -> watch::Receiver<()> {
        self.answers.subscribe()
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
        if key.is_none() && !is_new {
            if let Some(one) = asked.iter().rev().find(|one| one.leaving.is_none()) {
                return Err(Conflict::Equal(one.known_id(&self.inquire)));
            }
            asked.iter_mut().for_each(Asked::ask);
            if let Some(one) = asked.last() {
                return Err(Conflict::Leaving(one.known_id(&self.inquire)));
            }
        }
        let number = state.next;
        state.next += 1;
        let name = IntentId::new(key.clone().unwrap_or_else(|| format!("{}-{number}", self.prefix)));
        let (order_id, is_in_doubt) = (None, false);
        asked.push(Asked { number, name: name.clone(), ended: None, order_id, is_in_doubt, leaving: None });
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
        drop(state);
        self.answers.send_replace(());
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

    /// Asks the connection that has written its answer for a decision.
    fn ask(&mut self) {
        if let Some(leaving) = &mut self.leaving {
            leaving.is_asked = true;
            if let Some(connection) = &leaving.connection {
                connection.wake_by_ref();
            }
        }
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
        self.delivery.change(|one| {
            one.order_id = order_id;
            one.leaving = Some(Leaving::default());
        });
        let Delivery { orders, form, number, .. } = &self.delivery;
        let delivery =
            Delivery { orders: orders.clone(), form: form.clone(), number: *number, is_over: false };
        self.delivery.is_over = true;
        delivery
    }

    /// Ends the wait for an order in doubt. It stands until its time is over, and beyond as long as it may exist unseen,
    /// whether its caller hears of it or not.
    pub(crate) fn in_doubt(self) {
        self.delivery.change(|one| one.is_in_doubt = true);
    }

    /// Ends the wait for an order that placed nothing.
    pub(crate) fn placed_nothing(self) {
        self.answered(None).end();
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
    /// The answer was written. `connection` is woken when an equal order waits for the decision about it; true if one
    /// does already.
    pub(crate) fn written(&self, connection: &Waker) -> bool {
        let mut is_asked = false;
        self.change(|one| {
            if let Some(leaving) = &mut one.leaving {
                leaving.connection = Some(connection.clone());
                is_asked = leaving.is_asked;
            }
        });
        is_asked
    }

    /// True if an equal order waits for the decision.
    pub(crate) fn is_asked(&self) -> bool {
        let mut is_asked = false;
        self.change(|one| is_asked = one.leaving.as_ref().is_some_and(|leaving| leaving.is_asked));
        is_asked
    }

    /// The caller has the answer.
    pub(crate) fn heard(self) {
        let mut name = None;
        self.change(|one| name = Some(one.name.clone()));
        // Its caller's own name says by itself that a repetition is one.
        if let Some(name) = name.filter(|name| name.as_str().starts_with(&self.orders.prefix)) {
            (self.orders.note)(&name);
        }
        self.end();
    }

    fn end(mut self) {
        self.is_over = true;
        self.orders.forget(&self.form, self.number);
    }

    fn change(&self, change: impl FnOnce(&mut Asked)) {
        self.orders.change(&self.form, self.number, change);
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.is_over {
            let now = Instant::now();
            self.change(|one| {
                one.ended.get_or_insert(now);
                one.leaving = None;
            });
            self.orders.answers.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Arc<Orders> {
        Orders::new("p".to_owned(), |_| None, |_| ())
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
        assert!(!delivery.is_asked());
        assert_eq!(enter(&orders, None, false).unwrap_err(), Conflict::Leaving(Some("7".to_owned())));
        assert!(delivery.is_asked() && delivery.written(Waker::noop()));
        delivery.heard();
        assert!(enter(&orders, None, false).is_ok());
        assert!(orders.orders_of_others_are_free());
    }

    #[tokio::test(start_paused = true)]
    async fn an_unheard_order_of_an_earlier_process_stands_for_five_minutes() {
        let orders = orders();
        orders.stand("symId=S".to_owned(), IntentId::new("earlier-0"), Some("7".to_owned()));
        tokio::time::advance(UNHEARD - Duration::from_secs(1)).await;
        assert_eq!(enter(&orders, None, false).unwrap_err(), Conflict::Equal(Some("7".to_owned())));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(enter(&orders, None, false).is_ok());
    }

    #[test]
    fn later_processes_are_told_what_was_heard_of_orders_without_names() {
        let noted: Arc<Mutex<Vec<String>>> = Arc::default();
        let note = noted.clone();
        let orders =
            Orders::new("p".to_owned(), |_| None, move |name| note.lock().push(name.as_str().to_owned()));
        enter(&orders, None, false).unwrap().answered(Some("7".to_owned())).heard();
        enter(&orders, Some("k"), false).unwrap().answered(Some("8".to_owned())).heard();
        enter(&orders, None, false).unwrap().placed_nothing();
        drop(enter(&orders, None, false).unwrap().answered(Some("9".to_owned())));
        enter(&orders, None, true).unwrap().in_doubt();
        assert_eq!(*noted.lock(), ["p-0"]);
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
        let orders = Orders::new(
            "p".to_owned(),
            move |name| {
                assert_eq!(name.as_str(), "p-0");
                known.lock().clone()
            },
            |_| (),
        );
        enter(&orders, None, false).unwrap().in_doubt();
        tokio::time::advance(2 * UNHEARD).await;
        assert_eq!(enter(&orders, None, false).unwrap_err(), Conflict::Equal(None));
        *verdict.lock() = Some(Verdict::Recovered { order_id: "7".to_owned(), status: None });
        assert!(enter(&orders, None, false).is_ok(), "it was found, and its time is over");
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_in_doubt_is_told_by_its_id_once_it_is_found() {
        let recovered = || Some(Verdict::Recovered { order_id: "7".to_owned(), status: None });
        let orders = Orders::new("p".to_owned(), move |_| recovered(), |_| ());
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
