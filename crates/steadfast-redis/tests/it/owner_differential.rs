use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use redis::{aio::MultiplexedConnection, cmd};
use steadfast_redis::{Fence, HaltState, Lease, Ledger, OrdersScript, Renewal, Taken, Told, Turn};

use crate::server::Server;

const KEYS: [&str; 2] = ["{sf:SB0001}:orders", "{sf:SB0001}:journal"];

/// The scripts and the pure core, with one history of three processes.
struct Pair {
    store: MultiplexedConnection,
    core: Ledger,
    dice: ChaCha8Rng,
    run: u64,
    next: u64,
    /// By process: its random bits, its fence, and how many entries it knows of.
    processes: [(String, Fence, u64); 3],
    seen: Option<Lease>,
    mark: String,
    counts: [u32; 9],
}

impl Pair {
    async fn step(&mut self) {
        let at = self.below(3);
        let (own, fence, known) = self.processes[at].clone();
        let run = format!("run{}", self.run);
        let step = match self.below(1_000) {
            0..5 => {
                self.run += 1;
                return;
            }
            5..10 => {
                self.core.flush();
                return self.command(&["DEL", KEYS[0], KEYS[1]]).await;
            }
            10..15 => return self.cut().await,
            // Another process in its place.
            15..40 => {
                self.next += 1;
                self.processes[at].0 = format!("{:032x}", self.next);
                return;
            }
            40..300 => 0,
            300..500 => 1,
            500..800 => 2,
            800..850 => 3,
            850..900 => 4,
            900..940 => 7,
            _ => return self.command(&["PING"]).await,
        };
        let counter = fence.counter.to_string();
        // A process may have heard of turns that the store has lost since.
        let heard = (self.core.turns() + self.below(20) as u64 / 18).saturating_sub(self.below(3) as u64);
        let (script, arguments, expected) = match step {
            0 => {
                let seen = self.seen.clone().filter(|_| self.below(4) > 0);
                self.next += 1;
                let mark = format!("mark{}", self.next);
                let taken = self.core.take(&run, seen.as_ref(), &own, "name", &mark, heard);
                let lease = seen.map_or_else(<[String; 3]>::default, |lease| {
                    [lease.fence.counter.to_string(), lease.fence.owner, lease.renewals.to_string()]
                });
                let [counter, owner, renewals] = lease;
                let arguments =
                    [counter, owner, renewals, own.clone(), "name".to_owned(), mark, heard.to_string()];
                (OrdersScript::TAKE, arguments.to_vec(), self.taken(at, &own, taken))
            }
            1 => {
                let known = (known + self.below(2) as u64).saturating_sub(self.below(2) as u64);
                let still_owns = self.below(2) == 0;
                self.next += 1;
                let renewal = Renewal { number: self.next, still_owns, heard };
                let told = self.core.renew(&run, &fence, known, renewal);
                let [known, number, still_owns, heard] =
                    [known, renewal.number, u64::from(still_owns), heard].map(|it| it.to_string());
                let arguments = vec![counter, fence.owner, known, number, still_owns, heard];
                (OrdersScript::RENEW, arguments, texts(&told))
            }
            2 => {
                // One that is repeated or in front of a gap, now and then.
                let before = (known + self.below(12) as u64 / 11).saturating_sub(self.below(12) as u64 / 11);
                let entries: Vec<_> = (0..=self.below(2)).map(|entry| format!("{own} {entry}")).collect();
                let told = self.core.append(&fence, before, &entries);
                if told == Told::Done {
                    self.processes[at].2 = before + entries.len() as u64;
                }
                let arguments = [counter, fence.owner, before.to_string()].into_iter().chain(entries);
                (OrdersScript::APPEND, arguments.collect(), texts(&told))
            }
            3 => {
                let released = u8::from(self.core.release(&fence)).to_string();
                (OrdersScript::RELEASE, vec![counter, fence.owner], vec![released])
            }
            7 => {
                let (turn, what) = [
                    (Turn::Halt(heard), "halt"),
                    (Turn::Resume(heard), "resume"),
                    (Turn::Look(heard), "look"),
                ][self.below(3)];
                let expected = halt_state(self.core.turn(&run, turn));
                (OrdersScript::HALT, vec![what.to_owned(), heard.to_string()], expected)
            }
            _ => {
                let mark = if self.below(8) == 0 { "another".to_owned() } else { self.mark.clone() };
                let accepted = u8::from(self.core.accept(&run, &mark)).to_string();
                (OrdersScript::ACCEPT, vec![mark], vec![accepted])
            }
        };
        let mut reply: Vec<String> = cmd("EVAL")
            .arg(script.text(&run))
            .arg(2)
            .arg(&KEYS)
            .arg(&arguments)
            .query_async(&mut self.store)
            .await
            .unwrap();
        if step < 3 {
            assert_eq!(reply.pop().unwrap(), self.core.turns().to_string(), "{step} of {:?}", self.core);
        }
        if step == 0 && reply[0] == "1" {
            assert_eq!(reply.pop().unwrap().len(), 32, "the salt");
        }
        assert_eq!(reply, expected, "{step} with {arguments:?} of {:?}", self.core);
        if step == 7 {
            self.counts[7] += u32::from(reply[0] != "0");
            self.counts[8] += u32::from(reply[0] == reply[1]);
            return;
        }
        self.counts[step] += u32::from(reply[0] == "1");
        self.counts[5] += u32::from(reply[0] == "0");
        self.counts[6] += u32::from(reply[0] == "-1");
    }

    /// Notes what a process was told, and returns it as the script says it.
    fn taken(&mut self, at: usize, own: &str, taken: Taken) -> Vec<String> {
        match taken {
            Taken::Yes { counter, entries } => {
                self.processes[at].1 = Fence { counter, owner: own.to_owned() };
                self.processes[at].2 = entries;
                vec!["1".to_owned(), counter.to_string(), entries.to_string()]
            }
            Taken::Owned(lease) => {
                self.seen = Some(lease.clone());
                let Lease { fence, renewals, name } = lease;
                vec!["0".to_owned(), fence.counter.to_string(), fence.owner, renewals.to_string(), name]
            }
            Taken::MayLack(mark) => {
                self.mark.clone_from(&mark);
                vec!["-1".to_owned(), mark]
            }
        }
    }

    /// Cuts the last entry off the stream.
    async fn cut(&mut self) {
        self.core.cut();
        let mut last = cmd("XREVRANGE");
        last.arg(KEYS[1]).arg("+").arg("-").arg("COUNT").arg(1);
        let last: Vec<(String, (String, String))> = last.query_async(&mut self.store).await.unwrap();
        if let Some((id, _)) = last.first() {
            self.command(&["XDEL", KEYS[1], id]).await;
        }
    }

    async fn command(&mut self, words: &[&str]) {
        let _: redis::Value = cmd(words[0]).arg(&words[1..]).query_async(&mut self.store).await.unwrap();
    }

    fn below(&mut self, n: u64) -> usize {
        (self.dice.next_u64() % n) as usize
    }
}

fn halt_state(state: HaltState) -> Vec<String> {
    let HaltState { turns, heard, owner, is_known } = state;
    let mut texts = [turns, heard, is_known.into()].map(|it| it.to_string()).to_vec();
    if let Some((fence, renewals)) = owner {
        texts.extend([fence.counter.to_string(), fence.owner, renewals.to_string()]);
    }
    texts
}

fn texts(told: &Told) -> Vec<String> {
    match told {
        Told::Done => vec!["1".to_owned()],
        Told::NotOwner(name) => vec!["0".to_owned(), name.clone()],
        Told::Lost => vec!["-1".to_owned()],
    }
}

#[tokio::test]
async fn the_scripts_about_the_owner_and_their_core_decide_the_same() {
    let Some(server) = Server::start().await else { return };
    let steps = if std::env::var_os("STEADFAST_DEEP").is_some() { 200_000 } else { 10_000 };
    let process = |own: u64| (format!("{own:032x}"), Fence { counter: 0, owner: String::new() }, 0);
    let mut pair = Pair {
        store: server.connection().await,
        core: Ledger::default(),
        dice: ChaCha8Rng::seed_from_u64(1),
        run: 0,
        next: 3,
        processes: [process(1), process(2), process(3)],
        seen: None,
        mark: String::new(),
        counts: [0; 9],
    };
    for _ in 0..steps {
        pair.step().await;
    }
    println!("done: {:?}; refused {}; lost {}", &pair.counts[..5], pair.counts[5], pair.counts[6]);
    assert!(pair.counts.iter().all(|count| *count > steps / 500), "{:?}", pair.counts);
    let mut entries = cmd("XRANGE");
    entries.arg(KEYS[1]).arg("-").arg("+");
    let entries: Vec<(String, (String, String))> = entries.query_async(&mut pair.store).await.unwrap();
    let entries: Vec<_> = entries.into_iter().map(|(_, (_, entry))| entry).collect();
    assert_eq!(entries, pair.core.journal());
}
