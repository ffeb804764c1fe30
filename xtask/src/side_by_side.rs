use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does the work for all of them, the first ones first and so many at once. Returns the results in their order.
pub(crate) fn side_by_side<T: Sync, R: Send + Sync>(
    all: &[T],
    at_once: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<R>> = all.iter().map(|_| OnceLock::new()).collect();
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some((one, place)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    all.get(at).zip(results.get(at))
                } {
                    let _ = place.set(work(one));
                }
            });
        }
    });
    results.into_iter().filter_map(OnceLock::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_once_and_the_results_keep_their_order() {
        let all: Vec<u32> = (0..100).collect();
        let done = AtomicUsize::new(0);
        let doubled = side_by_side(&all, 4, |one| {
            done.fetch_add(1, Ordering::Relaxed);
            2 * one
        });
        assert!(doubled.into_iter().eq(all.iter().map(|one| 2 * one)));
        assert_eq!(done.into_inner(), 100);
    }
}
