//! The lock, the clock and the tasks of the shell, so that a model checker can put its own in their place.

#[cfg(all(test, shuttle))]
mod virtual_time;

#[cfg(not(all(test, shuttle)))]
pub(crate) use self::real::{Clock, Mutex, Tasks};
#[cfg(all(test, shuttle))]
pub(crate) use self::virtual_time::{Clock, Mutex, Tasks, from_zero, pass_time};

#[cfg(not(all(test, shuttle)))]
mod real {
    use std::time::Duration;

    pub(crate) use parking_lot::Mutex;
    use tokio::{
        runtime::Handle,
        time::{Instant, timeout_at},
    };

    /// The time since it was made.
    #[derive(Debug)]
    pub(crate) struct Clock(Instant);

    impl Clock {
        pub(crate) fn start() -> Self {
            Self(Instant::now())
        }

        pub(crate) fn now(&self) -> Duration {
            self.0.elapsed()
        }

        /// What `future` comes to, or `None` if it is `at` before. An instant that no clock ever reaches needs no
        /// timer.
        pub(crate) async fn until<T>(&self, at: Duration, future: impl Future<Output = T>) -> Option<T> {
            match self.0.checked_add(at) {
                Some(at) => timeout_at(at, future).await.ok(),
                None => Some(future.await),
            }
        }
    }

    /// Where tasks are started.
    #[derive(Clone, Debug)]
    pub(crate) struct Tasks(Handle);

    impl Tasks {
        /// Those of the runtime that this is called on, if it is.
        pub(crate) fn current() -> Option<Self> {
            Handle::try_current().ok().map(Self)
        }

        /// Starts a task that nobody waits for.
        pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
            drop(self.0.spawn(task));
        }
    }
}
