//! Visits every state that can be reached.
//!
//! A state that was met is remembered by 128 bits: the odds that two of a hundred million states share them by chance
//! are one in 10²². The memory goes to the worlds that are still to be visited: many of them if the nearest go first,
//! and a few hundred if the latest does.

use std::{
    collections::{HashSet, VecDeque},
    hash::{BuildHasherDefault, DefaultHasher, Hasher},
    rc::Rc,
};

use super::{
    Found, Model, Move,
    world::{World, orders, records},
};

/// Which known state is visited next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The one in the fewest moves: the first mistake found has the shortest trace.
    Nearest,
    /// The latest: all states, in little memory.
    Latest,
}

pub(super) fn explore(model: Model, until_wrong: bool) -> Found {
    explore_up_to(usize::MAX, Next::Nearest, model, until_wrong)
}

/// Visits at most `most` states.
pub(super) fn explore_up_to(most: usize, next: Next, model: Model, until_wrong: bool) -> Found {
    let orders = orders();
    let all = records(8);
    let mut found = Found::default();
    let start = World::new(&model, &orders);
    let mut met = HashSet::<u128, BuildHasherDefault<Spread>>::default();
    met.insert(fingerprint(&start.key(&model)));
    let mut ahead = VecDeque::from([(start, None)]);
    let mut moves = Vec::new();
    let take = |ahead: &mut VecDeque<_>| match next {
        Next::Nearest => ahead.pop_front(),
        Next::Latest => ahead.pop_back(),
    };
    while let Some((world, way)) = take(&mut ahead) {
        if let (Some(wrong), None) = (world.judge(&model, &mut found), &found.trace) {
            found.trace = Some(format!("{wrong}: {:?}", path(way.as_ref())));
            if until_wrong {
                break;
            }
        }
        if world.double {
            continue;
        }
        if met.len() >= most {
            found.cut = true;
            break;
        }
        world.moves(&model, &mut moves);
        for &made in &moves {
            let mut after = world.clone();
            after.make(&model, made, &orders, &all);
            if met.insert(fingerprint(&after.key(&model))) {
                ahead.push_back((after, Some(Rc::new(Way { made, before: way.clone() }))));
            }
        }
    }
    found.states = met.len();
    found
}

/// The moves that led to a world, kept while a later world is still to be visited.
struct Way {
    made: Move,
    before: Option<Rc<Way>>,
}

fn path(mut way: Option<&Rc<Way>>) -> Vec<Move> {
    let mut moves = Vec::new();
    while let Some(step) = way {
        moves.push(step.made);
        way = step.before.as_ref();
    }
    moves.reverse();
    moves
}

fn fingerprint(key: &[u8]) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(salt);
        hasher.write(key);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// A hasher that passes fingerprints on, which are spread evenly already.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write_u128(&mut self, fingerprint: u128) {
        self.0 = fingerprint as u64;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are hashed");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
