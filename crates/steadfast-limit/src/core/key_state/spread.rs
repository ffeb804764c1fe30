use steadfast_call::Lane;

use super::{KeyState, admission::Unanswered};
use crate::core::{
    count::spread::{Bucket, Slots},
    rules::Rules,
    spent::stamps::Stamps,
    time::Nanos,
    trust::trust_level::Counting,
};

/// The distance between requests after a 429.
impl KeyState {
    /// Returns when a request of `lane` keeps its distance from the others; 0 where the zone is not spread. Of the others,
    /// some are `on_their_way`, each as the instant of its grant, and `ahead` wait before it.
    ///
    /// Every slot that becomes free meanwhile makes the distance shorter, so the answer is the first of those instants
    /// at which the distance of that instant is kept. It is the same at each `now` before it.
    pub(super) fn spread_opens(
        &self,
        rules: &Rules,
        lane: Lane,
        unanswered: &Unanswered<'_>,
        on_their_way: &[Nanos],
        ahead: u32,
        now: Nanos,
    ) -> Option<Nanos> {
        let (Counting::Spread { burst }, Some(bound)) =
            (self.trusted(rules.profile, 0, lane), rules.bounds.first())
        else {
            return Some(0);
        };
        let limit = rules.allows(0, lane, self.learned(lane)).limit;
        // A request on its way fills the bucket when its patience ends. With a burst there may be room beside it now.
        let patience = Self::PATIENCE.min(bound.period);
        let mut given_up = self.lost.given_up().to_vec();
        given_up.extend(on_their_way.iter().map(|granted| granted + patience));
        given_up.sort();
        let busy = ahead.saturating_add(on_their_way.len() as u32);
        let stamps = |given_up| Stamps::new(&self.log, rules.unit, given_up);
        let slots = Slots { held: &unanswered.stamps, until_answered: unanswered.busy };
        slots
            .free(limit, bound.period, now)
            .filter_map(|(from, free)| {
                let bucket = Bucket::new(bound, free, burst);
                let after = bucket.opens(stamps(&given_up), ahead);
                let beside = bucket.opens(stamps(self.lost.given_up()), busy);
                after.into_iter().chain(beside).min().map(|at| at.max(from))
            })
            .min()
    }
}
