use crate::sim::chooser::{Site, Tape};

/// Shortens a failing tape as far as it still fails: removes choices by delta debugging, then lowers the remaining
/// ones.
///
/// `fails` is called at most `most_runs` times; the shortest tape so far is then returned.
pub fn shrink(tape: &Tape, most_runs: usize, mut fails: impl FnMut(&Tape) -> bool) -> Tape {
    let mut left = most_runs;
    let mut try_with = |choices: &[(Site, u32)]| {
        let Some(rest) = left.checked_sub(1) else { return false };
        left = rest;
        fails(&choices.iter().copied().collect())
    };
    let mut choices: Vec<(Site, u32)> = tape.iter().collect();
    let mut size = choices.len().div_ceil(2);
    while size > 0 && !choices.is_empty() {
        let mut start = 0;
        let mut shorter = false;
        while start < choices.len() {
            let end = (start + size).min(choices.len());
            let without: Vec<_> = choices[..start].iter().chain(&choices[end..]).copied().collect();
            if try_with(&without) {
                choices = without;
                shorter = true;
            } else {
                start = end;
            }
        }
        // With single choices, a removal may make another one possible that was not before.
        size = if size == 1 { usize::from(shorter) } else { size / 2 };
    }
    for index in 0..choices.len() {
        lower(&mut choices, index, &mut try_with);
    }
    choices.into_iter().collect()
}

/// Finds the least choice that still fails, by halving.
fn lower(choices: &mut [(Site, u32)], index: usize, try_with: &mut impl FnMut(&[(Site, u32)]) -> bool) {
    let (mut passing, mut failing) = (0, choices[index].1);
    while passing + 1 < failing {
        let middle = passing + (failing - passing) / 2;
        choices[index].1 = middle;
        if try_with(choices) {
            failing = middle;
        } else {
            passing = middle;
        }
    }
    choices[index].1 = failing;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape(choices: &[(u64, u32)]) -> Tape {
        choices.iter().map(|&(of, choice)| (Site::new("x").of(of), choice)).collect()
    }

    #[test]
    fn a_tape_shrinks_to_the_least_that_still_fails() {
        let long: Vec<(u64, u32)> = (0..1_000).map(|of| (of, 90)).collect();
        let at = |tape: &Tape, of| tape.get(Site::new("x").of(of));
        let short = shrink(&tape(&long), 2_000, |tape| at(tape, 17) >= 40 && at(tape, 900) > 0);
        assert_eq!(short, tape(&[(17, 40), (900, 1)]));
    }

    #[test]
    fn it_asks_no_more_often_than_it_may() {
        let long: Vec<(u64, u32)> = (0..100).map(|of| (of, 1)).collect();
        let mut asked = 0;
        shrink(&tape(&long), 10, |_| {
            asked += 1;
            true
        });
        assert!(asked <= 10, "{asked}");
    }
}
