//! The end of a run, and what ends it early.

use std::io;

use steadfast::dedup::OrderEvent;
use tokio::{sync::broadcast::Receiver, time::Instant};

use super::{QUIET, Replay, until};
use crate::signal::Signals;

const STOPPED: &str =
    "interrupted: nothing more is sent; waiting for the orders on their way; interrupt again to leave them";

/// Why the run ends early, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::replay) enum Stop {
    Nobody,
    /// No later order could be placed: nothing more leaves, and orders on the wire are followed to their end.
    Hindered,
    /// Nothing more leaves, and orders on the wire are followed to their end.
    Halted,
    /// The run waits for nothing any more.
    Left,
}

impl Replay {
    /// Waits until no order is in doubt. Signals meanwhile are handled as before.
    pub(super) async fn shut_down(&mut self, events: &mut Receiver<OrderEvent>, signals: &mut Signals) {
        let client = self.client.clone();
        let mut ended = std::pin::pin!(client.shutdown());
        let mut quiet = Some(Instant::now() + QUIET);
        while self.stop != Stop::Left {
            tokio::select! {
                biased;
                () = signals.next() => {
                    self.interrupt();
                    quiet = Some(Instant::now() + QUIET);
                }
                event = events.recv() => {
                    self.take(event);
                    // It may have begun or ended a search, and the last note may no longer hold.
                    quiet = Some(Instant::now() + QUIET);
                }
                () = until(quiet) => {
                    quiet = None;
                    self.note_wait(0);
                }
                () = &mut ended => return,
            }
        }
    }

    pub(super) fn interrupt(&mut self) {
        if self.stop < Stop::Halted {
            self.client.halt();
            self.note(STOPPED);
            self.stop = Stop::Halted;
        } else {
            self.stop = Stop::Left;
        }
    }

    /// Ends the run if its output has gone: no order is placed whose result cannot be reported.
    pub(super) fn note_unwritten(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && self.unwritten.is_none()
        {
            self.unwritten = Some(error);
            self.client.halt();
            self.stop = self.stop.max(Stop::Halted);
        }
    }
}
