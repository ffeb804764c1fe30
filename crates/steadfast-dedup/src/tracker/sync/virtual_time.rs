use std::{
    cell::RefCell,
    collections::BTreeMap,
    future::poll_fn,
    sync::PoisonError,
    task::{Poll, Waker},
    time::Duration,
};

/// A lock that every schedule of the checker's threads passes through.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time that passes only in [`pass_time`].
#[derive(Default)]
struct Time {
    now: Duration,
    timers: BTreeMap<(Duration, u64), Waker>,
    next: u64,
}

thread_local! {
    // All threads of a schedule share one thread of the operating system.
    static TIME: RefCell<Time> = RefCell::default();
}

/// Runs `schedule` from time zero.
pub(crate) fn from_zero(schedule: impl FnOnce()) {
    TIME.take();
    schedule();
}

/// Goes on to the next timer, unless it is beyond `horizon`, and lets it fire.
pub(crate) fn pass_time(horizon: Duration) {
    let fired = TIME.with_borrow_mut(|time| {
        let next = time.timers.first_entry().filter(|timer| timer.key().0 <= horizon)?;
        let ((at, _), waker) = next.remove_entry();
        time.now = time.now.max(at);
        Some(waker)
    });
    // Outside the borrow: a woken task may read the time.
    if let Some(waker) = fired {
        waker.wake();
    }
}

/// The time of the schedule.
#[derive(Debug)]
pub(crate) struct Clock;

impl Clock {
    pub(crate) fn start() -> Self {
        Self
    }

    pub(crate) fn now(&self) -> Duration {
        TIME.with_borrow(|time| time.now)
    }

    pub(crate) async fn until<T>(&self, at: Duration, future: impl Future<Output = T>) -> Option<T> {
        let timer = Timer(TIME.with_borrow_mut(|time| {
            time.next += 1;
            (at, time.next)
        }));
        let mut future = std::pin::pin!(future);
        poll_fn(|cx| {
            if let Poll::Ready(result) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(result));
            }
            TIME.with_borrow_mut(|time| {
                if at <= time.now {
                    return Poll::Ready(None);
                }
                time.timers.insert(timer.0, cx.waker().clone());
                Poll::Pending
            })
        })
        .await
    }
}

struct Timer((Duration, u64));

impl Drop for Timer {
    fn drop(&mut self) {
        drop(TIME.with_borrow_mut(|time| time.timers.remove(&self.0)));
    }
}

/// The checker's own tasks.
#[derive(Clone, Debug)]
pub(crate) struct Tasks;

impl Tasks {
    pub(crate) fn current() -> Option<Self> {
        Some(Self)
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(shuttle::future::spawn(task));
    }
}
