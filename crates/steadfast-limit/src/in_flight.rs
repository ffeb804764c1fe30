use crate::Nanos;

/// The requests on their way: when each was granted, ascending.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    granted: Vec<Nanos>,
}

impl InFlight {
    pub(crate) fn len(&self) -> u32 {
        self.granted.len() as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.granted.is_empty()
    }

    /// When each was granted, ascending.
    pub(crate) fn granted(&self) -> &[Nanos] {
        &self.granted
    }

    /// One is granted at `now`, which is not before any other was.
    pub(crate) fn enter(&mut self, now: Nanos) {
        self.granted.push(now);
    }

    /// One of those granted `at` this instant is on its way no longer.
    pub(crate) fn leave(&mut self, at: Nanos) {
        if let Ok(place) = self.granted.binary_search(&at) {
            self.granted.remove(place);
        }
    }

    /// The bytes that they take on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.granted.capacity() * size_of::<Nanos>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_leaves_once() {
        let mut in_flight = InFlight::default();
        for at in [3, 5, 5, 9] {
            in_flight.enter(at);
        }
        in_flight.leave(5);
        in_flight.leave(4);
        assert_eq!(in_flight.granted(), [3, 5, 9]);
        in_flight.leave(5);
        in_flight.leave(5);
        assert_eq!((in_flight.len(), in_flight.granted()), (2, &[3, 9][..]));
    }
}
