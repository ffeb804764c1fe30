//! The lock, replaceable by a model checker's.

#[cfg(not(all(test, shuttle)))]
pub(crate) use parking_lot::Mutex;

/// A lock that the checker schedules.
#[cfg(all(test, shuttle))]
#[derive(Debug)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

#[cfg(all(test, shuttle))]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
