use std::slice;

use crate::core::time::Nanos;

/// The requests on their way: when each was granted, ascending.
#[derive(Debug, Default)]
pub(crate) enum InFlight {
    #[default]
    None,
    /// Most keys have one at a time, stored inline.
    One(Nanos),
    #[expect(clippy::box_collection, reason = "a vector in place would make every key larger")]
    Many(Box<Vec<Nanos>>),
}

impl InFlight {
    pub(crate) fn len(&self) -> u32 {
        self.granted().len() as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.granted().is_empty()
    }

    /// Returns when each was granted, ascending.
    pub(crate) fn granted(&self) -> &[Nanos] {
        match self {
            Self::None => &[],
            Self::One(granted) => slice::from_ref(granted),
            Self::Many(granted) => granted,
        }
    }

    /// Adds a request granted at `now`, which is not before any other.
    pub(crate) fn enter(&mut self, now: Nanos) {
        match self {
            Self::None => *self = Self::One(now),
            Self::One(first) => *self = Self::Many(Box::new(vec![*first, now])),
            Self::Many(granted) => granted.push(now),
        }
    }

    /// Removes one of the requests granted at `at`.
    pub(crate) fn leave(&mut self, at: Nanos) {
        match self {
            Self::One(granted) if *granted == at => *self = Self::None,
            Self::Many(granted) => {
                if let Ok(place) = granted.binary_search(&at) {
                    granted.remove(place);
                }
            }
            Self::None | Self::One(_) => {}
        }
    }

    /// Returns the bytes taken on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::None | Self::One(_) => 0,
            Self::Many(granted) => size_of_val(&**granted) + granted.capacity() * size_of::<Nanos>(),
        }
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
        in_flight.leave(3);
        in_flight.leave(9);
        assert!(in_flight.is_empty());
    }

    #[test]
    fn one_takes_no_place_of_its_own() {
        let mut in_flight = InFlight::default();
        in_flight.enter(7);
        in_flight.leave(8);
        assert_eq!((in_flight.granted(), in_flight.heap_bytes()), (&[7][..], 0));
        in_flight.leave(7);
        assert!(in_flight.is_empty());
        assert!(size_of::<InFlight>() <= 16);
    }
}
