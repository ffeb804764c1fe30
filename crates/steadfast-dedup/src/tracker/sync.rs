//! The lock, the clock and the tasks of the shell. A model checker can replace them.

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

    /// Measures the time since it was made.
    #[derive(Debug)]
    pub(crate) struct Clock(Instant);

    impl Clock {
        pub(crate) fn start() -> Self {
            Self(Instant::now())
        }

        pub(crate) fn now(&self) -> Duration {
            self.0.elapsed()
        }

        /// Returns the result of `future`, or `None` if the clock reaches `at` first.
        ///
        /// An instant beyond the clock's range needs no timer.
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
        /// Returns those of the current runtime, if there is one.
        pub(crate) fn current() -> Option<Self> {
            Handle::try_current().ok().map(Self)
        }

        /// Starts a detached task.
        pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
            drop(self.0.spawn(task));
        }
    }
}
