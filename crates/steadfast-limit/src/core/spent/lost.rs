use crate::core::time::Nanos;

/// The two instants by which one lost request is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostAt {
    /// When it was given up, or patience with it ended.
    pub(crate) given_up: Nanos,
    /// The latest instant at which the gateway may have counted it.
    pub(crate) counted: Nanos,
}

/// Requests that left and whose answers will never be seen. When the gateway counted them is unknown.
///
/// Each is held twice. For the lanes that can wait, until the last instant at which the gateway may have counted it.
/// For the lanes that must get out, from the instant at which it was given up or patience ended. Otherwise 3 % of
/// lost answers, each held for the gateway's timeout, would stop the zone, cancels included.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// Boxed, because most keys have none.
    held: Option<Box<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    /// When each was given up, ascending.
    given_up: Vec<Nanos>,
    /// The latest instant at which each may have been counted, ascending.
    counted: Vec<Nanos>,
}

impl Lost {
    pub(crate) fn push(&mut self, LostAt { given_up, counted }: LostAt) {
        let held = self.held.get_or_insert_default();
        for (stamps, stamp) in [(&mut held.given_up, given_up), (&mut held.counted, counted)] {
            let place = stamps.partition_point(|earlier| *earlier <= stamp);
            stamps.insert(place, stamp);
        }
    }

    pub(crate) fn given_up(&self) -> &[Nanos] {
        self.held.as_ref().map_or(&[], |held| &held.given_up)
    }

    pub(crate) fn counted(&self) -> &[Nanos] {
        self.held.as_ref().map_or(&[], |held| &held.counted)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    /// Returns the bytes taken on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| {
            size_of::<Held>() + (held.given_up.capacity() + held.counted.capacity()) * size_of::<Nanos>()
        })
    }

    /// Forgets stamps that are older than `retention` at `now`.
    pub(crate) fn expire(&mut self, now: Nanos, retention: Nanos) {
        let Some(held) = &mut self.held else { return };
        for stamps in [&mut held.given_up, &mut held.counted] {
            let over = stamps.partition_point(|stamp| stamp + retention <= now);
            stamps.drain(..over);
        }
        // No request is counted before it is given up, so the other list is empty too.
        if held.counted.is_empty() {
            self.held = None;
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.held = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_ends_by_itself_earlier_for_those_who_must_get_out() {
        let mut lost = Lost::default();
        lost.push(LostAt { given_up: 10, counted: 40 });
        lost.push(LostAt { given_up: 11, counted: 12 });
        assert_eq!((lost.given_up(), lost.counted()), (&[10, 11][..], &[12, 40][..]));
        lost.expire(22, 10);
        assert_eq!((lost.given_up(), lost.counted()), (&[][..], &[40][..]));
        lost.expire(50, 10);
        assert!(lost.is_empty());
        assert_eq!(lost.heap_bytes(), 0);
    }
}
