/// The number of an ownership and the random bits of its owner. It is compared whole: a number alone comes back after the
/// store has lost its last writes, and two owners would hold the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(hidden)]
pub struct Fence {
    /// Grows with each owner.
    pub counter: u64,
    /// 128 random bits.
    pub owner: String,
}

/// A lease as the store shows it. It is alive while its renewals go on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(hidden)]
pub struct Lease {
    /// The fence of its owner.
    pub fence: Fence,
    /// The number of its last renewal.
    pub renewals: u64,
    /// The name of the owner's process.
    pub name: String,
}

/// The store's answer to a process that wants the orders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub enum Taken {
    /// They are its own.
    Yes {
        /// The fence's number.
        counter: u64,
        /// How many entries the journal has.
        entries: u64,
    },
    /// Another process owns them.
    Owned(Lease),
    /// The journal may lack an entry. Only a person can [accept](Ledger::accept) it, by this mark.
    MayLack(String),
}

/// A renewal of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub struct Renewal {
    /// Its number, by the owner's own count: a store that has lost a renewal would use its number again, and the lease
    /// would seem to stand still.
    pub number: u64,
    /// True if the owner still owns the orders, by its own clock. Otherwise another run of the server may have lost the
    /// entries of another owner.
    pub still_owns: bool,
    /// The turns of the kill switch that the owner has heard of.
    pub heard: u64,
}

/// A call about the kill switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub enum Turn {
    /// Halts. Its process has heard of so many turns.
    Halt(u64),
    /// Ends the halt of these turns, and no other one: the call may come late.
    Resume(u64),
    /// Tells how it is. Its process has heard of so many turns.
    Look(u64),
}

/// The kill switch of an account's orders, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct HaltState {
    /// How often it was turned: an odd number while it halts.
    pub turns: u64,
    /// The turns that the last owner has heard of.
    pub heard: u64,
    /// The owner's fence, and how often it has renewed; `None` if no process has the orders.
    pub owner: Option<(Fence, u64)>,
    /// True if this run of the server knows of every owner.
    pub is_known: bool,
}

impl HaltState {
    /// Returns the turns of the halt that holds, if one does.
    pub(crate) fn halt(&self) -> Option<u64> {
        (!self.turns.is_multiple_of(2)).then_some(self.turns)
    }

    /// True if everybody who may place orders has heard of it.
    pub(crate) fn is_heard(&self) -> bool {
        // A store that may have lost writes says nothing of its owner: neither that it has heard, nor that there is none.
        self.is_known && (self.heard == self.turns || self.owner.is_none())
    }
}

/// The store's answer to an owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub enum Told {
    /// It is done.
    Done,
    /// The orders are another process's, of this name; without a name, no process has them.
    NotOwner(String),
    /// The store has lost entries.
    Lost,
}

/// The store's record of the owner of an account's orders and of their journal, as a plain value. The scripts beside it
/// decide the same, which a test shows on a real server.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(hidden)]
pub struct Ledger {
    /// The run of the server in which an owner, or a person, has found everything there.
    run: Option<String>,
    counter: u64,
    lease: Option<Lease>,
    /// How many entries were written.
    entries: u64,
    journal: Vec<String>,
    mark: Option<String>,
    /// How often the kill switch was turned, and how often to the owner's knowledge.
    turns: u64,
    heard: u64,
}

impl Ledger {
    /// Gives the orders to a new owner, if no process has them or the lease is still as it was `seen`. `mark` is a new one. The
    /// new owner has `heard` of so many turns of the kill switch, and is told of all.
    pub fn take(
        &mut self,
        run: &str,
        seen: Option<&Lease>,
        owner: &str,
        name: &str,
        mark: &str,
        heard: u64,
    ) -> Taken {
        self.learn(heard);
        if self.run.as_deref() != Some(run) || self.lacks_entries() {
            return Taken::MayLack(self.mark.get_or_insert_with(|| mark.to_owned()).clone());
        }
        let is_own = |lease: &Lease| lease.fence.owner == owner;
        let is_as_seen =
            |lease: &Lease| seen.is_some_and(|it| (&it.fence, it.renewals) == (&lease.fence, lease.renewals));
        match &self.lease {
            // A lost reply is asked for again.
            Some(lease) if is_own(lease) => {}
            Some(lease) if !is_as_seen(lease) => return Taken::Owned(lease.clone()),
            _ => {
                self.counter += 1;
                let fence = Fence { counter: self.counter, owner: owner.to_owned() };
                self.lease = Some(Lease { fence, renewals: 0, name: name.to_owned() });
                // It is told of them before the orders are its own. Not where it asks again: an old call may come late.
                self.heard = self.turns;
            }
        }
        Taken::Yes { counter: self.counter, entries: self.entries }
    }

    /// Renews the lease of an owner who knows so many entries to be written.
    pub fn renew(&mut self, run: &str, fence: &Fence, known: u64, renewal: Renewal) -> Told {
        if let Some(refused) = self.refuse(fence) {
            return refused;
        }
        let is_another_run = self.run.as_deref() != Some(run);
        if self.lacks_entries() || self.entries < known || (is_another_run && !renewal.still_owns) {
            return Told::Lost;
        }
        self.run = Some(run.to_owned());
        self.mark = None;
        self.learn(renewal.heard);
        self.heard = renewal.heard;
        if let Some(lease) = &mut self.lease {
            lease.renewals = renewal.number;
        }
        Told::Done
    }

    /// Appends entries behind the first `before` ones.
    pub fn append(&mut self, fence: &Fence, before: u64, entries: &[String]) -> Told {
        if let Some(refused) = self.refuse(fence) {
            return refused;
        }
        let after = before + entries.len() as u64;
        if self.lacks_entries() {
            return Told::Lost;
        }
        // The reply was lost: the owner appends one batch at a time, and the same one until it is told.
        if self.entries == after {
            return Told::Done;
        }
        if self.entries != before {
            return Told::Lost;
        }
        self.journal.extend_from_slice(entries);
        self.entries = after;
        Told::Done
    }

    /// Gives the orders back.
    pub fn release(&mut self, fence: &Fence) -> bool {
        let is_owner = self.refuse(fence).is_none();
        if is_owner {
            self.lease = None;
        }
        is_owner
    }

    /// Takes the journal as it is, if `mark` is the one that [`take`](Self::take) returned.
    pub fn accept(&mut self, run: &str, mark: &str) -> bool {
        if self.mark.as_deref() != Some(mark) {
            return false;
        }
        self.mark = None;
        self.run = Some(run.to_owned());
        self.entries = self.journal.len() as u64;
        // An owner that has not heard of the loss may still send, and its last renewals may be lost. So another one takes
        // its place, who never renews, and is waited for.
        let fence = Fence { counter: self.counter, owner: mark.to_owned() };
        self.lease = Some(Lease { fence, renewals: 0, name: "nobody".to_owned() });
        self.heard = 0;
        true
    }

    /// Turns the kill switch, or only looks. Returns how it is then.
    pub fn turn(&mut self, run: &str, turn: Turn) -> HaltState {
        match turn {
            // A new halt also where one holds: a resume of that one may be on its way.
            Turn::Halt(heard) => {
                self.learn(heard);
                self.turns += 1 + self.turns % 2;
            }
            Turn::Resume(halt) => {
                if self.turns == halt && !halt.is_multiple_of(2) {
                    self.turns += 1;
                }
            }
            Turn::Look(heard) => self.learn(heard),
        }
        HaltState {
            turns: self.turns,
            heard: self.heard,
            owner: self.lease.as_ref().map(|lease| (lease.fence.clone(), lease.renewals)),
            is_known: self.run.as_deref() == Some(run),
        }
    }

    /// Returns how often the kill switch was turned.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Takes in turns that a process has heard of and the store has lost. A halt stands, even if a single process knows of it.
    fn learn(&mut self, heard: u64) {
        if heard > self.turns {
            let keeps_halt = !self.turns.is_multiple_of(2) && heard.is_multiple_of(2);
            self.turns = heard + u64::from(keeps_halt);
        }
    }

    /// Returns the lease of the owner, if there is one.
    #[must_use]
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    #[cfg(test)]
    pub(super) fn set_lease(&mut self, lease: Option<Lease>) {
        self.lease = lease;
    }

    /// Returns the entries.
    #[must_use]
    pub fn journal(&self) -> &[String] {
        &self.journal
    }

    /// Loses everything, as an emptied server does.
    pub fn flush(&mut self) {
        *self = Self::default();
    }

    /// Loses the last entry without a trace elsewhere, as a stream that was cut.
    pub fn cut(&mut self) {
        self.journal.pop();
    }

    fn lacks_entries(&self) -> bool {
        self.entries != self.journal.len() as u64
    }

    fn refuse(&self, fence: &Fence) -> Option<Told> {
        match &self.lease {
            Some(lease) if lease.fence == *fence => None,
            lease => {
                Some(Told::NotOwner(lease.as_ref().map_or_else(String::new, |lease| lease.name.clone())))
            }
        }
    }
}
