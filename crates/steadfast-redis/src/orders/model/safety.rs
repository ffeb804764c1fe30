use super::{Order, Process, World};

impl World {
    /// Returns what is wrong, if anything is.
    pub(super) fn wrong(&self) -> Option<&'static str> {
        let owns = |process: &Process| process.ownership.is_owner(self.now);
        if self.processes.iter().filter(|process| owns(process)).count() > 1 {
            return Some("two owners at once");
        }
        if self.strange_entry {
            return Some("an entry of a process that is not the owner");
        }
        if self.polled_in_halt {
            return Some("an order let go after a halt has returned");
        }
        if self.polled_late {
            return Some("an order let go by a process that is not the owner");
        }
        for (one, other) in [(0, 1), (1, 0)] {
            let (one, other) = (&self.processes[one], &self.processes[other]);
            let (Some((former, _)), Some((later, read))) = (&one.read, &other.read) else { continue };
            // A person who accepts a loss answers for what is lost.
            if one.order == Order::Polled
                && former < later
                && !self.accepted
                && !read.iter().any(|it| it == one.ownership.own())
            {
                return Some("an order that the next owner does not know");
            }
        }
        None
    }
}
