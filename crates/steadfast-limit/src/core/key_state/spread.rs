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
    /// Returns when a request of `lane` keeps its distance from the others, with those `on_their_way` and as many
    /// `ahead`; 0 where the zone is not spread.
    pub(super) fn spread_opens(
        &self,
        rules: &Rules,
        lane: Lane,
        unanswered: &Unanswered<'_>,
        (on_their_way, ahead): (&[Nanos], u32),
        now: Nanos,
    ) -> Option<Nanos> {
        let (Counting::Spread { burst }, Some(bound)) =
            (self.trusted(rules.profile, 0, lane), rules.bounds.first())
        else {
            return Some(0);
        };
        let (limit, _) = rules.allows(0, lane, self.learned(lane));
        let slots = Slots { held: &unanswered.stamps, until_answered: unanswered.busy };
        let (free, from) = slots.free(limit, bound.period, now)?;
        let bucket = Bucket::new(bound, free, burst);
        let opens =
            |given_up: &[Nanos], busy| bucket.opens(Stamps::new(&self.log, rules.unit, given_up), busy);
        // A request on its way fills the bucket when its patience ends. With a burst there may be room beside it now.
        let patience = Self::PATIENCE.min(bound.period);
        let mut given_up = self.lost.given_up().to_vec();
        given_up.extend(on_their_way.iter().map(|granted| granted + patience));
        given_up.sort();
        let after = opens(&given_up, ahead);
        let beside = opens(self.lost.given_up(), ahead.saturating_add(on_their_way.len() as u32));
        after.into_iter().chain(beside).min().map(|at| at.max(from))
    }
}
