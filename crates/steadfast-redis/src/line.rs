use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use steadfast_call::Lane;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use crate::{
    error::StoreError,
    shared::Inner,
    shared_zone::{SharedPermit, SharedZone},
    store::Asked,
};

/// The requests of this process that wait for the store, in a line for each key and lane.
///
/// One call asks for the first few of a line, and the others wait for them: they would be refused as well. Cancels stand
/// in no line. A task asks, and not the first request itself: one that is not polled would hold up all behind it.
#[derive(Default)]
pub(crate) struct Lines(Mutex<HashMap<At, Line>>);

/// Which line: a key and a lane.
type At = (Arc<str>, Lane);

/// The requests of one line, the first one at the front. There is a task for as long as there is a line.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Waiting>,
    /// When the first one may leave, as the store said last.
    opens: Option<Instant>,
}

struct Waiting {
    permit: SharedPermit,
    deadline: Option<Instant>,
    /// True once the store has answered while it waited.
    has_heard: bool,
    told: oneshot::Sender<Told>,
}

/// The fate of a request in a line.
pub(crate) enum Told {
    Granted(SharedPermit),
    /// It would miss its deadline.
    Refused(Duration),
    Failed {
        error: StoreError,
        /// True if the store has answered since the request joined.
        has_heard: bool,
    },
}

/// A request's place in a line. Dropped, it leaves it.
pub(crate) struct Place {
    pub(crate) told: oneshot::Receiver<Told>,
    shared: Arc<Inner>,
    at: At,
    id: String,
}

/// How many requests one call asks for. Other processes get the rest of a window.
const AT_ONCE: usize = 4;

/// How long the store is not asked at most: permits that are given back may open the windows sooner than it said.
const ASKS_WITHIN: Duration = Duration::from_secs(1);

impl Lines {
    /// Puts a request that has not been asked for at the end of its line.
    pub(crate) fn join(
        zone: &SharedZone,
        lane: Lane,
        deadline: Option<Instant>,
        permit: SharedPermit,
    ) -> Place {
        let (shared, at) = (zone.shared(), (Arc::clone(zone.key()), lane));
        let (id, (told, hears)) = (permit.id().to_owned(), oneshot::channel());
        let waiting = Waiting { permit, deadline, has_heard: false, told };
        let (is_new, late) = {
            let mut lines = shared.lines.0.lock();
            let is_new = !lines.contains_key(&at);
            let line = lines.entry(at.clone()).or_default();
            line.waiting.push_back(waiting);
            (is_new, line.tell_late())
        };
        // Not under the lock: a permit that is dropped is given back, and a runtime that ends drops the task at once.
        drop(late);
        if is_new {
            let task = Task { shared: Arc::downgrade(shared), at: at.clone(), has_ended: false };
            tokio::spawn(task.run());
        }
        Place { told: hears, shared: Arc::clone(shared), at, id }
    }

    /// Takes the first few of a line, or ends it if it is empty.
    fn next(&self, at: &At) -> Option<Vec<Waiting>> {
        let mut lines = self.0.lock();
        let line = lines.get_mut(at)?;
        let first = match line.waiting.front() {
            Some(first) => first.permit.zone(),
            None => {
                lines.remove(at);
                return None;
            }
        };
        // A limit that was learned meanwhile holds for those that came since.
        let alike =
            line.waiting.iter().take(AT_ONCE).take_while(|it| it.permit.zone().rule() == first.rule());
        let count = alike.count();
        Some(line.waiting.drain(..count).collect())
    }

    /// Puts those back that have to wait.
    fn put_back(&self, at: &At, refused: Vec<Waiting>, wait: Duration) {
        let gone = {
            let mut lines = self.0.lock();
            let line = lines.entry(at.clone()).or_default();
            line.opens = Some(Instant::now() + wait);
            // Those that left while they were asked for are dropped with the rest.
            let (left, others): (Vec<_>, Vec<_>) = refused.into_iter().partition(|it| it.told.is_closed());
            others.into_iter().rev().for_each(|it| line.waiting.push_front(it));
            line.waiting.iter_mut().for_each(|it| it.has_heard = true);
            (left, line.tell_late())
        };
        drop(gone);
    }

    /// Takes all of a line.
    fn take_all(&self, at: &At) -> VecDeque<Waiting> {
        let mut lines = self.0.lock();
        lines.get_mut(at).map(|line| std::mem::take(&mut line.waiting)).unwrap_or_default()
    }

    fn leave(&self, at: &At, id: &str) {
        let left = {
            let mut lines = self.0.lock();
            lines.get_mut(at).and_then(|line| {
                let place = line.waiting.iter().position(|it| it.permit.id() == id)?;
                line.waiting.remove(place)
            })
        };
        drop(left);
    }
}

impl Line {
    /// Tells those that would miss their deadlines, and returns their permits.
    fn tell_late(&mut self) -> Vec<SharedPermit> {
        let Some(opens) = self.opens.filter(|opens| *opens > Instant::now()) else { return Vec::new() };
        let is_late = |it: &Waiting| it.deadline.is_some_and(|deadline| deadline <= opens);
        if !self.waiting.iter().any(is_late) {
            return Vec::new();
        }
        let (late, others): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(is_late);
        self.waiting = others;
        let tell = |it: Waiting| {
            let _ = it.told.send(Told::Refused(opens - Instant::now()));
            it.permit
        };
        late.into_iter().map(tell).collect()
    }
}

impl Waiting {
    fn tell(self, told: impl FnOnce(SharedPermit) -> Told) {
        // If its request is gone, the permit is dropped here and given back.
        let _ = self.told.send(told(self.permit));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // In this order: the one that is being asked for is not put back once this is closed.
        self.told.close();
        self.shared.lines.leave(&self.at, &self.id);
    }
}

/// Asks for the requests of a line.
struct Task {
    /// Weak, so that the last clone can be dropped.
    shared: Weak<Inner>,
    at: At,
    has_ended: bool,
}

impl Task {
    async fn run(mut self) {
        while let Some(pause) = self.ask().await {
            sleep(pause).await;
        }
        self.has_ended = true;
    }

    /// Asks for the first few, and returns how long to wait; `None` if the line is empty.
    async fn ask(&self) -> Option<Duration> {
        let shared = self.shared.upgrade()?;
        let mut asked = shared.lines.next(&self.at)?;
        let zone = asked.first()?.permit.zone();
        let answer = zone.ask(asked.iter_mut().map(|it| &mut it.permit), self.at.1).await;
        match answer {
            Ok(Asked { granted, wait }) => {
                let refused = asked.split_off(granted.min(asked.len()));
                let are_refused = !refused.is_empty();
                asked.into_iter().for_each(|it| it.tell(Told::Granted));
                if !are_refused {
                    return Some(Duration::ZERO);
                }
                shared.lines.put_back(&self.at, refused, wait);
                Some(wait.min(ASKS_WITHIN))
            }
            Err(error) => {
                // Each has its own patience. They come back together.
                let behind = shared.lines.take_all(&self.at);
                for it in asked.into_iter().chain(behind) {
                    let (error, has_heard) = (error.clone(), it.has_heard);
                    it.tell(|_| Told::Failed { error, has_heard });
                }
                Some(Duration::ZERO)
            }
        }
    }
}

impl Drop for Task {
    /// Its runtime has ended. Those that wait learn it, as their senders are dropped.
    fn drop(&mut self) {
        if !self.has_ended
            && let Some(shared) = self.shared.upgrade()
        {
            let line = shared.lines.0.lock().remove(&self.at);
            drop(line);
        }
    }
}
