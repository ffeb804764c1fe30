use crate::{
    orders::ledger::{Fence, Lease, Renewal, Taken, Told},
    rule::Micros,
};

/// How long a lease must have stood still, by the clock of the process that watches it, before it is over.
pub(crate) const LEASE_LIFE: Micros = 8_000_000;
/// For how long a renewal makes its process the owner, from before it was asked for.
pub(crate) const OWNS_FOR: Micros = 6_000_000;
/// How often an owner renews its lease.
pub(crate) const RENEWS_EVERY: Micros = 2_000_000;
/// How often another process looks at it.
pub(crate) const LOOKS_EVERY: Micros = 500_000;

/// One process's knowledge of the owner of an account's orders: readings of its own clock and the store's words in, decisions
/// out.
///
/// No clock but the process's own counts, and that one counts the sleep of the machine. So a store whose clock is set ends no
/// lease. An owner is one for less time than all others wait, both from its renewal on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ownership {
    /// The random bits of this process's ownership. It has one at most.
    own: String,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum State {
    /// The orders may be another process's. Its lease, and since when it stands still.
    Watching(Option<(Lease, Micros)>),
    /// They are its own: when the last renewal that succeeded was asked for, and how often one was.
    Owning { counter: u64, renewed: Micros, renewals: u64 },
    /// They were its own, and are not any more; whose they are now, if that is known.
    Over(Option<String>),
}

impl Ownership {
    /// `own` are 128 random bits.
    pub(crate) fn new(own: impl Into<String>) -> Self {
        Self { own: own.into(), state: State::Watching(None) }
    }

    /// Returns its random bits.
    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// Returns the lease that may be taken, because it has stood still for too long.
    pub(crate) fn dead_lease(&self, now: Micros) -> Option<&Lease> {
        match &self.state {
            State::Watching(Some((lease, since))) if now - since >= LEASE_LIFE => Some(lease),
            _ => None,
        }
    }

    /// Takes in the answer to a call that was sent at `sent` and answered at `received`, and asked for the orders.
    pub(crate) fn taken(&mut self, taken: &Taken, sent: Micros, received: Micros) {
        let State::Watching(seen) = &self.state else { return };
        self.state = match taken {
            // ## Watching => Owning
            Taken::Yes { counter, .. } => State::Owning { counter: *counter, renewed: sent, renewals: 0 },
            // It stands still since it was first seen so, which is later than when it was renewed.
            Taken::Owned(lease) => {
                let before = seen.as_ref().filter(|(before, _)| before == lease);
                let since = before.map_or(received, |(_, since)| *since);
                State::Watching(Some((lease.clone(), since)))
            }
            Taken::MayLack(_) => State::Watching(None),
        };
    }

    /// Returns the next renewal to ask for, unless its ownership is over. It says that the process has heard of so many turns
    /// of the kill switch.
    pub(crate) fn renewal(&mut self, now: Micros, heard: u64) -> Option<Renewal> {
        let still_owns = self.is_owner(now);
        let State::Owning { renewals, .. } = &mut self.state else { return None };
        *renewals += 1;
        Some(Renewal { number: *renewals, still_owns, heard })
    }

    /// Takes in what the store said to a renewal that was sent at `sent`.
    pub(crate) fn renewed(&mut self, told: &Told, sent: Micros) {
        if let (State::Owning { renewed, .. }, Told::Done) = (&mut self.state, told) {
            *renewed = sent.max(*renewed);
        }
        self.appended(told);
    }

    /// Takes in what the store said to entries. They renew nothing: others watch renewals alone.
    pub(crate) fn appended(&mut self, told: &Told) {
        if !matches!(self.state, State::Owning { .. }) {
            return;
        }
        match told {
            Told::Done => {}
            // ## Owning => Over
            //
            // For good: what it knows is not what the journal holds.
            Told::NotOwner(name) => {
                self.state = State::Over(Some(name.clone()).filter(|name| !name.is_empty()));
            }
            Told::Lost => self.state = State::Over(None),
        }
    }

    /// Returns the fence of what it writes; `None` if it is not the owner, or was.
    pub(crate) fn fence(&self) -> Option<Fence> {
        match &self.state {
            State::Owning { counter, .. } => Some(Fence { counter: *counter, owner: self.own.clone() }),
            _ => None,
        }
    }

    /// True while no other process can own the orders.
    pub(crate) fn is_owner(&self, now: Micros) -> bool {
        matches!(self.state, State::Owning { renewed, .. } if now - renewed < OWNS_FOR)
    }

    /// True once they were its own and are not any more.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// Returns the name of the process that owns the orders, as far as that is known.
    pub(crate) fn owner(&self) -> Option<&str> {
        match &self.state {
            State::Watching(seen) => seen.as_ref().map(|(lease, _)| &*lease.name),
            State::Over(name) => name.as_deref(),
            State::Owning { .. } => None,
        }
    }

    /// Returns how long it takes at least until this process could own them.
    pub(crate) fn free_in(&self, now: Micros) -> Micros {
        match &self.state {
            State::Watching(Some((_, since))) => (since + LEASE_LIFE - now).max(0),
            State::Watching(None) | State::Owning { .. } => 0,
            State::Over(_) => LEASE_LIFE,
        }
    }
}
