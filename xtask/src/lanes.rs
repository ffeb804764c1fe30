use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pieces of work that wait in lanes, and their results. Each is done once, by whichever thread drains its lane.
pub(crate) struct Lanes<T, L, R> {
    waiting: Mutex<Vec<(usize, L, T)>>,
    done: Mutex<Vec<(usize, T, R)>>,
}

impl<T: Copy, L: Copy + PartialEq, R> Lanes<T, L, R> {
    pub(crate) fn new(all: &[T], lane: impl Fn(&T) -> L) -> Self {
        let waiting = all.iter().enumerate().map(|(place, one)| (place, lane(one), *one)).collect();
        Self { waiting: Mutex::new(waiting), done: Mutex::new(Vec::new()) }
    }

    /// Does one piece after the other, the first ones first, until none waits in this lane.
    pub(crate) fn drain(&self, lane: L, work: impl Fn(&T) -> R) {
        while let Some((place, one)) = self.next(lane) {
            let result = work(&one);
            lock(&self.done).push((place, one, result));
        }
    }

    /// Returns all results, in the order in which the pieces were given.
    pub(crate) fn done(self) -> impl Iterator<Item = (T, R)> {
        let mut done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(place, ..)| *place);
        done.into_iter().map(|(_, one, result)| (one, result))
    }

    fn next(&self, lane: L) -> Option<(usize, T)> {
        let mut waiting = lock(&self.waiting);
        let at = waiting.iter().position(|(_, of, _)| *of == lane)?;
        let (place, _, one) = waiting.remove(at);
        Some((place, one))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn every_piece_is_done_once_in_its_lane_and_stands_in_its_place() {
        let all: Vec<u32> = (0..100).collect();
        let lanes = Lanes::new(&all, |one| one % 3);
        thread::scope(|scope| {
            for lane in [0, 1, 1, 2] {
                let lanes = &lanes;
                scope.spawn(move || {
                    lanes.drain(lane, |one| {
                        assert_eq!(one % 3, lane);
                        2 * one
                    });
                });
            }
        });
        assert!(lanes.done().eq(all.iter().map(|one| (*one, 2 * one))));
    }
}
