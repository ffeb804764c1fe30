//! Every state that can be reached, those in the fewest moves first.

use std::collections::{HashMap, VecDeque, hash_map::Entry};

use super::{
    Found, Model, Move,
    world::{World, orders, records},
};

pub(super) fn explore(model: Model, until_wrong: bool) -> Found {
    explore_up_to(usize::MAX, model, until_wrong)
}

/// Visits at most so many states, those that are reached in the fewest moves first.
pub(super) fn explore_up_to(most: usize, model: Model, until_wrong: bool) -> Found {
    let orders = orders();
    let all = records(8);
    let mut found = Found::default();
    let start = World::new(&model, &orders);
    let mut index: HashMap<Box<[u8]>, u32> = HashMap::new();
    let mut parents = vec![(0, Move::Foreign)];
    index.insert(start.key(&model), 0);
    let mut queue = VecDeque::from([(0_u32, start)]);
    let mut moves = Vec::new();
    while let Some((number, world)) = queue.pop_front() {
        if let (Some(wrong), None) = (world.judge(&model, &mut found), &found.trace) {
            found.trace = Some(format!("{wrong}: {:?}", path(&parents, number)));
            if until_wrong {
                break;
            }
        }
        if world.double {
            continue;
        }
        if parents.len() >= most {
            break;
        }
        world.moves(&model, &mut moves);
        for &made in &moves {
            let mut next = world.clone();
            next.make(&model, made, &orders, &all);
            let fresh = u32::try_from(parents.len()).unwrap();
            if let Entry::Vacant(entry) = index.entry(next.key(&model)) {
                entry.insert(fresh);
                parents.push((number, made));
                queue.push_back((fresh, next));
            }
        }
    }
    found.states = parents.len();
    found
}

/// The moves that led to a state.
fn path(parents: &[(u32, Move)], mut number: u32) -> Vec<Move> {
    let mut moves = Vec::new();
    while number != 0 {
        let (parent, made) = parents[number as usize];
        moves.push(made);
        number = parent;
    }
    moves.reverse();
    moves
}
