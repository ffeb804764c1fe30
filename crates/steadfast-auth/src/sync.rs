//! The primitives of the single flight, so that a model checker can replace them.

#[cfg(not(all(test, shuttle)))]
pub(crate) use self::plain::*;
#[cfg(all(test, shuttle))]
pub(crate) use self::scheduled::*;

#[cfg(not(all(test, shuttle)))]
mod plain {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicI64};

    pub(crate) use arc_swap::{ArcSwapOption, Guard};
    pub(crate) use parking_lot::{Mutex, MutexGuard};
    pub(crate) use tokio::sync::oneshot::{Sender, channel};
}

/// The same, with a possible change of thread before each step.
#[cfg(all(test, shuttle))]
mod scheduled {
    use std::{ops::Deref, sync::Arc, sync::PoisonError};

    pub(crate) use shuttle::sync::{
        MutexGuard,
        atomic::{AtomicBool, AtomicI64},
    };
    use shuttle::{sync, thread};
    use tokio::sync::oneshot;

    #[derive(Debug)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    pub(crate) struct ArcSwapOption<T>(Mutex<Option<Arc<T>>>);

    pub(crate) struct Guard<T>(T);

    impl<T> ArcSwapOption<T> {
        pub(crate) fn empty() -> Self {
            Self(Mutex::new(None))
        }

        pub(crate) fn load(&self) -> Guard<Option<Arc<T>>> {
            Guard(self.load_full())
        }

        pub(crate) fn load_full(&self) -> Option<Arc<T>> {
            self.0.lock().clone()
        }

        pub(crate) fn store(&self, value: Option<Arc<T>>) {
            *self.0.lock() = value;
        }
    }

    impl<T> Deref for Guard<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }

    pub(crate) struct Sender<T>(oneshot::Sender<T>);

    pub(crate) fn channel<T>() -> (Sender<T>, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Sender(sender), receiver)
    }

    impl<T> Sender<T> {
        pub(crate) fn send(self, value: T) -> Result<(), T> {
            thread::yield_now();
            self.0.send(value)
        }

        pub(crate) fn is_closed(&self) -> bool {
            self.0.is_closed()
        }
    }
}
