use http::Extensions;
use steadfast_spec::ext;

use crate::{ResendCount, Sends};

/// The extensions of a request that may be sent again, as long as they are only those that every call has.
///
/// Nearly every call ends with its first send. A copy of the whole map for each of them costs more allocations than all
/// else that a policy does; these are held by value, and made a map of when there is a repeat.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) route: Option<ext::Route>,
    account: Option<ext::Account>,
    deadline: Option<ext::Deadline>,
    send_by: Option<ext::SendBy>,
    lane: Option<ext::Lane>,
    sends: Option<Sends>,
    resends: Option<ResendCount>,
    head_of_lane: Option<ext::HeadOfLane>,
}

impl Kept {
    /// `None` if there is any other extension too, which nobody here can name.
    pub(crate) fn of(extensions: &Extensions) -> Option<Self> {
        let kept = Self {
            route: extensions.get().cloned(),
            account: extensions.get().cloned(),
            deadline: extensions.get().copied(),
            send_by: extensions.get().copied(),
            lane: extensions.get().copied(),
            sends: extensions.get().cloned(),
            resends: extensions.get().copied(),
            head_of_lane: extensions.get().copied(),
        };
        (kept.len() == extensions.len()).then_some(kept)
    }

    fn len(&self) -> usize {
        [
            self.route.is_some(),
            self.account.is_some(),
            self.deadline.is_some(),
            self.send_by.is_some(),
            self.lane.is_some(),
            self.sends.is_some(),
            self.resends.is_some(),
            self.head_of_lane.is_some(),
        ]
        .into_iter()
        .filter(|there| *there)
        .count()
    }

    /// Puts them into the extensions of the repeat.
    pub(crate) fn restore(self, extensions: &mut Extensions) {
        fn put<T: Clone + Send + Sync + 'static>(extensions: &mut Extensions, one: Option<T>) {
            if let Some(one) = one {
                extensions.insert(one);
            }
        }
        put(extensions, self.route);
        put(extensions, self.account);
        put(extensions, self.deadline);
        put(extensions, self.send_by);
        put(extensions, self.lane);
        put(extensions, self.sends);
        put(extensions, self.resends);
        put(extensions, self.head_of_lane);
    }
}

#[cfg(test)]
mod tests {
    use steadfast_spec::{Endpoint, Lane, Route};

    use super::*;

    fn of_a_call() -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(ext::Route::new(Route::new(Endpoint::Orders)));
        extensions.insert(ext::Account::new("desk"));
        extensions.insert(Lane::Critical);
        extensions.insert(Sends::new("/api/oms/orders"));
        extensions.insert(ResendCount(2));
        extensions.insert(ext::HeadOfLane);
        extensions
    }

    #[test]
    fn what_is_kept_comes_back_whole() {
        let first = of_a_call();
        let mut repeat = Extensions::new();
        Kept::of(&first).unwrap().restore(&mut repeat);
        assert_eq!(repeat.len(), first.len());
        assert_eq!(repeat.get::<ext::Account>(), Some(&ext::Account::new("desk")));
        assert_eq!(repeat.get::<Lane>(), Some(&Lane::Critical));
        assert_eq!(repeat.get::<ResendCount>(), Some(&ResendCount(2)));
        assert_eq!(repeat.get::<ext::HeadOfLane>(), Some(&ext::HeadOfLane));
        let counted = repeat.get::<Sends>().map(Sends::begin);
        assert_eq!(
            (counted, first.get::<Sends>().map(Sends::begin)),
            (Some(0), Some(1)),
            "they count together"
        );
    }

    #[test]
    fn with_anything_else_in_it_a_map_is_not_taken_apart() {
        let mut extensions = of_a_call();
        extensions.insert("the caller's own");
        assert!(Kept::of(&extensions).is_none());
    }
}
