use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crate::sim::chooser::{Chooser, Tape};

/// All scripts with a few faults, in place of the draws of a seed.
///
/// A script is a tape. Playing it shows where it could have gone another way. Its successors differ from it at one such
/// site, later than where it differs from its own predecessor. So each script is played once, and sites that exist only
/// because of an earlier fault are found as well.
#[derive(Clone, Debug)]
pub struct Scripts {
    base: Tape,
    most: usize,
    names: &'static [&'static str],
    faults: usize,
}

/// A script still to be played.
#[derive(Clone, Debug)]
struct Script {
    tape: Tape,
    /// How many faults may still be added.
    left: usize,
    /// Only sites from here on are varied, in the order in which they are asked.
    from: usize,
}

impl Scripts {
    /// Creates all scripts around `base` with at most `most` faults. The first `faults` of `names` are sites of faults,
    /// where every choice is tried. The rest are circumstances, which do not count as faults; of them the least, the
    /// middle and the greatest choice are tried.
    #[must_use]
    pub const fn new(base: Tape, most: usize, names: &'static [&'static str], faults: usize) -> Self {
        Self { base, most, names, faults }
    }

    /// Plays every script once, on as many threads as there are processors, shorter ones first. The first error ends
    /// it. Returns how many scripts there were with 0 changes, with 1, and so on.
    ///
    /// # Errors
    ///
    /// The error of `play`.
    pub fn play<E: Send>(&self, play: impl Fn(&Arc<Chooser>) -> Result<(), E> + Sync) -> Result<Vec<u64>, E> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let mut level = vec![Script { tape: self.base.clone(), left: self.most, from: 0 }];
        let (mut counts, stop) = (Vec::new(), AtomicBool::new(false));
        while !level.is_empty() {
            counts.push(level.len() as u64);
            let part = |first: usize| {
                let mut next = Vec::new();
                for script in level.iter().skip(first).step_by(threads) {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let chooser = Arc::new(Chooser::tape(script.tape.clone()).hearing(self.names));
                    if let Err(error) = play(&chooser) {
                        stop.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                    self.successors(script, &chooser, &mut next);
                }
                Ok(next)
            };
            let parts = thread::scope(|scope| {
                let part = &part;
                let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
                // A panic in `play` is passed on to the caller.
                let ends = workers
                    .into_iter()
                    .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                ends.collect::<Result<Vec<Vec<Script>>, E>>()
            })?;
            level = parts.concat();
        }
        Ok(counts)
    }

    fn successors(&self, script: &Script, played: &Chooser, next: &mut Vec<Script>) {
        for (index, (site, n)) in played.asked().into_iter().enumerate().skip(script.from) {
            let is_fault = self.names[..self.faults].contains(&site.what());
            let (choices, left): (Vec<u32>, usize) = match (is_fault, script.left.checked_sub(1)) {
                (true, Some(left)) => ((1..n).collect(), left),
                (true, None) => continue,
                (false, _) => {
                    let mut ends = vec![n / 2, n.saturating_sub(1)];
                    ends.dedup();
                    ends.retain(|&choice| choice > 0);
                    (ends, script.left)
                }
            };
            next.extend(choices.into_iter().map(|choice| Script {
                tape: script.tape.with(site, choice),
                left,
                from: index + 1,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        sync::{Mutex, PoisonError},
    };

    use super::*;
    use crate::sim::chooser::Site;

    /// Makes two sends. The first can fail in two ways; if it does, there is a second one. A failure of the second way
    /// takes time.
    fn sends(chooser: &Chooser) -> [u32; 3] {
        let first = chooser.choose(Site::new("fault").of(1), 3);
        let second = if first > 0 { chooser.choose(Site::new("fault").of(2), 3) } else { 0 };
        let late = if first == 2 { chooser.choose(Site::new("late").of(1), 101) } else { 0 };
        [first, second, late]
    }

    fn played(most: usize) -> (Vec<[u32; 3]>, Vec<u64>) {
        let all = Mutex::new(Vec::new());
        let counts = Scripts::new(Tape::default(), most, &["fault", "late"], 1).play(|chooser| {
            all.lock().unwrap_or_else(PoisonError::into_inner).push(sends(chooser));
            Ok::<_, ()>(())
        });
        (all.into_inner().unwrap(), counts.unwrap())
    }

    #[test]
    fn every_script_up_to_the_number_of_faults_is_played_once() {
        let (one, counts) = played(1);
        assert_eq!(counts, [1, 2, 2]);
        let distinct: BTreeSet<_> = one.iter().copied().collect();
        assert_eq!(distinct, [[0, 0, 0], [1, 0, 0], [2, 0, 0], [2, 0, 50], [2, 0, 100]].into());
        assert_eq!(distinct.len(), one.len());

        let (two, _) = played(2);
        let distinct: BTreeSet<_> = two.iter().copied().collect();
        // A first failure of one kind and three fates of the second send; one of the other kind with three delays.
        assert_eq!((distinct.len(), two.len()), (1 + 3 + 9, 1 + 3 + 9));
    }

    #[test]
    fn an_error_ends_it() {
        let scripts = Scripts::new(Tape::default(), 2, &["fault", "late"], 1);
        let end = scripts.play(|chooser| if sends(chooser)[0] == 2 { Err("two") } else { Ok(()) });
        assert_eq!(end, Err("two"));
    }
}
