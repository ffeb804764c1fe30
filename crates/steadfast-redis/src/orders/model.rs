//! Every course of two processes, a store that forgets, and calls that are late or unanswered, within bounds.

mod calls;
mod rules;
mod safety;

use std::{
    collections::{HashSet, VecDeque},
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
};

use self::rules::{Courses, Mistake};
use super::{
    hearing::Hearing,
    ledger::{Fence, Ledger, Taken, Told, Turn},
    ownership::Ownership,
};
use crate::rule::Micros;

/// Time goes on in steps of this.
const STEP: Micros = 4_000_000;
const LASTS: Micros = 12_000_000;
/// The runs of the store.
const RUNS: [&str; 2] = ["first", "second"];
/// The name that a look is made under.
const NOBODY: &str = "nobody's";
const MARK: &str = "mark";

#[derive(Clone, PartialEq, Eq, Hash)]
enum Call {
    Take(Option<super::ledger::Lease>),
    Renew,
    Append,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Answer {
    Taken(Taken),
    Renewed(Told),
    Appended(Told),
}

/// The one order that a process places as an owner.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Order {
    #[default]
    Unwritten,
    Written,
    /// Its body was polled: it leaves at any time from here on.
    Polled,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Process {
    ownership: Ownership,
    entries: u64,
    order: Order,
    /// The answer that is on its way, with the turns of the kill switch, and when it was asked for.
    answer: Option<(Answer, u64, Micros)>,
    /// The turns that it has heard of.
    turns: u64,
    /// It has asked in this step of time, which it does once.
    asked: bool,
    /// The journal that it has read, and the number of its ownership.
    read: Option<(u64, Vec<String>)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    now: Micros,
    ledger: Ledger,
    /// The state that a restart goes back to if it loses the last write, while that is not saved yet.
    before: Option<Ledger>,
    run: usize,
    flushed: bool,
    /// A person has accepted that entries are lost.
    accepted: bool,
    /// An order was let go after another process had taken the orders.
    polled_late: bool,
    /// An entry was written by a process that is not the owner.
    strange_entry: bool,
    has_halt: bool,
    hearing: Option<Hearing>,
    /// The turns that the person's process has heard of.
    turns: u64,
    /// A resume that is on its way, and the halt that it names.
    resume: Option<u64>,
    /// The halt has returned.
    halted: bool,
    /// An order was let go after that.
    polled_in_halt: bool,
    processes: [Process; 2],
}

impl World {
    fn new(courses: Courses) -> Self {
        let has_halt = courses != Courses::Owners;
        let mut ledger = Ledger::default();
        ledger.take(RUNS[0], None, "", "", "first", 0);
        ledger.accept(RUNS[0], "first");
        ledger.release(&Fence { counter: 0, owner: "first".to_owned() });
        if courses == Courses::LateResume {
            ledger.turn(RUNS[0], Turn::Halt(0));
        }
        let turns = ledger.turns();
        let process = |own: &str| Process {
            ownership: Ownership::new(own),
            entries: 0,
            order: Order::default(),
            answer: None,
            turns: 0,
            asked: false,
            read: None,
        };
        let before = None;
        let processes = [process("one"), process("two")];
        let mut world = Self {
            now: 0,
            ledger,
            before,
            run: 0,
            flushed: false,
            accepted: false,
            polled_late: false,
            strange_entry: false,
            has_halt,
            hearing: None,
            turns,
            resume: (turns > 0).then_some(turns),
            halted: false,
            polled_in_halt: false,
            processes,
        };
        // The first one has the orders. Where it is about a halt, its order is written.
        world.ask(0, Call::Take(None), Mistake::None);
        world.receive(0, Mistake::None);
        if has_halt {
            world.ask(0, Call::Append, Mistake::None);
            world.receive(0, Mistake::None);
        }
        world
    }

    fn next(&self, mistake: Mistake) -> Vec<Self> {
        let mut next = Vec::new();
        let mut step = |change: &dyn Fn(&mut Self) -> bool| {
            let mut world = self.clone();
            if change(&mut world) {
                next.push(world);
            }
        };
        step(&|world| {
            world.now += STEP;
            world.before = None;
            world.processes.iter_mut().for_each(|process| process.asked = false);
            world.now <= LASTS
        });
        step(&|world| {
            world.ledger.flush();
            world.before = None;
            !std::mem::replace(&mut world.flushed, true) && world.run == 0 && !world.has_halt
        });
        step(&|world| world.has_halt && world.halt(mistake));
        step(&|world| {
            let Some(halt) = world.resume.take() else { return false };
            world.write(|ledger, run| {
                let halt = if mistake == Mistake::ResumeNamesNone { ledger.turns() } else { halt };
                ledger.turn(run, Turn::Resume(halt))
            });
            true
        });
        // A restart, which may lose the last write.
        for loses in [false, true] {
            step(&|world| {
                let before = world.before.take();
                let is_new = !loses || before.is_some();
                if loses && let Some(before) = before {
                    world.ledger = before;
                }
                world.run += 1;
                is_new && world.run < RUNS.len() && !world.flushed
            });
        }
        step(&|world| {
            let Taken::MayLack(mark) = world.ledger.clone().take(RUNS[world.run], None, NOBODY, "", MARK, 0)
            else {
                return false;
            };
            world.write(|ledger, run| {
                // The refusal has made the mark.
                ledger.take(run, None, NOBODY, "", MARK, 0);
                let lease = ledger.lease().cloned();
                ledger.accept(run, &mark);
                if mistake == Mistake::AcceptKeepsLease && lease.is_some() {
                    ledger.set_lease(lease);
                }
                if mistake == Mistake::AcceptsAtOnce {
                    ledger.release(&Fence { counter: 0, owner: mark.clone() });
                }
            });
            !std::mem::replace(&mut world.accepted, true) && !world.has_halt
        });
        for at in 0..2 {
            for call in self.calls(at, mistake) {
                step(&|world| {
                    let process = &mut world.processes[at];
                    let is_new = !std::mem::replace(&mut process.asked, true);
                    let may_ask = process.answer.is_none() && (is_new || call == Call::Append);
                    may_ask && world.ask(at, call.clone(), mistake)
                });
            }
            step(&|world| world.receive(at, mistake));
            // It is lost.
            step(&|world| world.processes[at].answer.take().is_some());
            step(&|world| {
                let (now, process) = (world.now, &mut world.processes[at]);
                let is_halted = !process.turns.is_multiple_of(2);
                let may_leave =
                    !is_halted && (mistake == Mistake::SendsUnasked || process.ownership.is_owner(now));
                let leaves = process.order == Order::Written && may_leave;
                process.order = if leaves { Order::Polled } else { process.order };
                let number = |process: &Process| process.read.as_ref().map(|(number, _)| *number);
                world.polled_in_halt |= leaves && world.halted;
                world.polled_late |=
                    leaves && number(&world.processes[1 - at]) > number(&world.processes[at]);
                leaves
            });
        }
        next
    }

    fn write<T>(&mut self, change: impl FnOnce(&mut Ledger, &str) -> T) -> T {
        let before = self.ledger.clone();
        let result = change(&mut self.ledger, RUNS[self.run]);
        if before != self.ledger {
            self.before = Some(before);
        }
        result
    }
}

/// How many worlds the plain tests look at, the nearest first. `STEADFAST_DEEP` looks at all.
const NEAREST: usize = 20_000;

fn most() -> usize {
    if std::env::var_os("STEADFAST_DEEP").is_some() { usize::MAX } else { NEAREST }
}

/// Returns what stands for a world among those that were seen: the worlds themselves are too many to keep.
fn print_of(world: &World) -> (u64, u64) {
    let hasher = BuildHasherDefault::<DefaultHasher>::new();
    (hasher.hash_one(world), hasher.hash_one((world, 1)))
}

/// Returns what goes wrong, and how many worlds were looked at.
fn explore(mistake: Mistake, courses: Courses) -> (Option<&'static str>, usize) {
    let first = World::new(courses);
    let (mut seen, mut open) = (HashSet::from([print_of(&first)]), VecDeque::from([first]));
    while seen.len() < most()
        && let Some(world) = open.pop_front()
    {
        if let Some(wrong) = world.wrong() {
            return (Some(wrong), seen.len());
        }
        for next in world.next(mistake) {
            if seen.insert(print_of(&next)) {
                open.push_back(next);
            }
        }
    }
    (None, seen.len())
}

#[test]
fn no_two_processes_own_the_orders_and_no_owner_lacks_what_was_sent() {
    for courses in [Courses::Owners, Courses::Halt, Courses::LateResume] {
        let (wrong, worlds) = explore(Mistake::None, courses);
        println!("{courses:?}: {worlds} worlds");
        assert_eq!(wrong, None, "{courses:?}");
        assert!(worlds >= NEAREST, "{worlds}");
    }
}

#[test]
fn each_rule_that_is_broken_is_found() {
    let near = [
        Mistake::TakesAtOnce,
        Mistake::NumberAlone,
        Mistake::NoFence,
        Mistake::AcceptsAtOnce,
        Mistake::HaltsAtOnce,
        Mistake::HeardUnheard,
        Mistake::HaltLeavesSilent,
        Mistake::HaltJoins,
    ];
    let far = [
        Mistake::EntryRenews,
        Mistake::CountsFromTheAnswer,
        Mistake::SendsUnasked,
        Mistake::TakesWhatMayLack,
        Mistake::AcceptKeepsLease,
        Mistake::RenewsInAnotherRun,
        Mistake::StoreCounts,
        Mistake::ResumeNamesNone,
    ];
    for mistake in near.into_iter().chain(far) {
        if most() == NEAREST && far.contains(&mistake) {
            continue;
        }
        let (wrong, worlds) = explore(mistake, mistake.courses());
        println!("{mistake:?}: {wrong:?} in {worlds} worlds");
        assert!(wrong.is_some(), "{mistake:?}");
    }
}
