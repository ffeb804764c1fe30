use std::{collections::VecDeque, num::NonZeroUsize, time::Duration};

use tokio::time::Instant;

/// The bounds of a [`Pool`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long an unused connection is kept.
    pub(super) idle: Duration,
    /// How long a connection may have been unused before it carries an order.
    pub(super) order_idle: Duration,
    /// How many connections there may be.
    pub(super) connections: NonZeroUsize,
}

/// The requirements of a send on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// In doubt if it is lost: it takes a new connection, or one that was in use moments ago, because the service may be
    /// about to close an older one.
    pub(super) is_order: bool,
    /// Gets a connection of its own rather than wait for one.
    pub(super) is_urgent: bool,
}

/// The decision for one send.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice<C> {
    Take(C),
    /// Make a connection and wait. An unused one has to make room for it.
    Dial {
        closes: Option<C>,
    },
    /// There are as many connections as allowed, and all are in use.
    Wait,
}

/// Decides which connection carries a send. It opens and closes none, and has no clock.
///
/// A new connection, or one that is given back, goes to the urgent send that waits longest, then to the other one that
/// does; without any it stays here.
#[derive(Debug)]
pub(super) struct Pool<C, W> {
    limits: Limits,
    /// Unused connections with the time of their last use, the longest unused first.
    idle: VecDeque<(C, Instant)>,
    /// The sends that wait, urgent ones first.
    waiting: [VecDeque<W>; 2],
    dialing: usize,
    /// Connections that exist or are being made.
    open: usize,
}

impl<C, W> Pool<C, W> {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, idle: VecDeque::new(), waiting: Default::default(), dialing: 0, open: 0 }
    }

    /// Returns the connection for a send, or what it has to wait for.
    pub(super) fn choose(&mut self, now: Instant, need: Need) -> Choice<C> {
        let longest = match need.is_order {
            true => self.limits.order_idle.min(self.limits.idle),
            false => self.limits.idle,
        };
        let is_young = |since: Instant| now.saturating_duration_since(since) <= longest;
        if let Some((connection, _)) = self.idle.pop_back_if(|(_, since)| is_young(*since)) {
            return Choice::Take(connection);
        }
        let has_room = self.open < self.limits.connections.get();
        let closes = if has_room { None } else { self.idle.pop_front().map(|(connection, _)| connection) };
        if has_room || closes.is_some() || need.is_urgent {
            self.dial();
            return Choice::Dial { closes };
        }
        Choice::Wait
    }

    fn dial(&mut self) {
        self.open += 1;
        self.dialing += 1;
    }

    /// Adds a send that waits for a connection.
    pub(super) fn wait(&mut self, send: W, need: Need) {
        self.waiting[usize::from(!need.is_urgent)].push_back(send);
    }

    fn next_waiting(&mut self) -> Option<W> {
        self.waiting.iter_mut().find_map(VecDeque::pop_front)
    }

    fn lacks_connections(&self) -> bool {
        self.waiting.iter().map(VecDeque::len).sum::<usize>() > self.dialing
    }

    /// Notes that a dialled connection was made, or was not.
    pub(super) fn dialed(&mut self) {
        self.dialing = self.dialing.saturating_sub(1);
    }

    /// Takes a connection that is ready for the next send. Returns it with the send that is to have it.
    pub(super) fn give(&mut self, connection: C, now: Instant) -> Option<(W, C)> {
        match self.next_waiting() {
            Some(send) => Some((send, connection)),
            None => {
                self.idle.push_back((connection, now));
                None
            }
        }
    }

    /// Returns the send to be told that a dialled connection was not made. None if enough others are being made.
    pub(super) fn refuse(&mut self) -> Option<W> {
        if self.lacks_connections() { self.next_waiting() } else { None }
    }

    /// Notes the end of a connection, or of the attempt to make one. Unused ones that ended are removed.
    pub(super) fn ended(&mut self, mut is_usable: impl FnMut(&C) -> bool) {
        self.open = self.open.saturating_sub(1);
        self.idle.retain(|(connection, _)| is_usable(connection));
    }

    /// Returns true if a connection has to be made for a send that waits.
    pub(super) fn needs_another(&mut self) -> bool {
        let needs = self.lacks_connections() && self.open < self.limits.connections.get();
        if needs {
            self.dial();
        }
        needs
    }

    /// Removes connections that have been unused for too long. Returns when to look again, while any is open.
    pub(super) fn expire(&mut self, now: Instant) -> (Vec<C>, Option<Instant>) {
        let is_old = |since: Instant| now.saturating_duration_since(since) >= self.limits.idle;
        let mut old = Vec::new();
        while let Some((connection, _)) = self.idle.pop_front_if(|(_, since)| is_old(*since)) {
            old.push(connection);
        }
        // One that is in use now may be unused from now on.
        let oldest = self.idle.front().map(|(_, since)| *since).or((self.open > 0).then_some(now));
        (old, oldest.and_then(|since| since.checked_add(self.limits.idle)))
    }
}

#[cfg(test)]
mod tests;
