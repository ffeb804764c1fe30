//! Which tags our orders carry, and how far a session's lists can be trusted with them.
//!
//! A list tells nothing by tags before it has proved that it can: it must have shown the tag of an acknowledged order.
//! One acknowledged order that shows something else ends that for the session. One that shows nothing proves nothing,
//! but tells that orders of its class may be listed without; so does one that was found. Later lists count as much as the
//! first one.

mod echo;

use std::{collections::BTreeMap, sync::Arc};

use steadfast_spec::{OrderRecord, OrderRequest, ShownTag, Tag};

use crate::{
    numbers::{IntentNo, Session},
    protocol::{
        listed_orders::fresh::Fresh,
        order_event::TagEcho,
        tags::echo::{Class, Echo},
    },
};

/// How many records are kept that show one tag.
const KEPT: usize = 16;

/// The first characters of a tag. No two tags of a day share them.
type Prefix = [u8; Tag::SHORTEST];

/// The tags of our orders, and what lists have shown of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tags {
    own: BTreeMap<Prefix, (Tag, IntentNo)>,
    echoes: BTreeMap<Session, Echo>,
    /// Listed orders without an owner that show a tag of ours.
    shown: BTreeMap<Prefix, Vec<Fresh>>,
}

impl Tags {
    /// True if no order of the day has this tag or one that begins alike.
    pub(crate) fn is_free(&self, tag: Tag) -> bool {
        !self.own.contains_key(&tag.prefix())
    }

    /// Gives an intent its tag.
    pub(crate) fn assign(&mut self, number: IntentNo, tag: Tag) {
        self.own.entry(tag.prefix()).or_insert((tag, number));
    }

    /// Keeps the tags of intents that are still remembered; what lists have shown of them is over with the day.
    pub(crate) fn begin_day(&mut self, is_known: impl Fn(IntentNo) -> bool) {
        self.own.retain(|_, (_, number)| is_known(*number));
        self.echoes.clear();
        self.shown.clear();
    }

    /// Compares an acknowledged order with what a list of ours shows; says what it shows if that is news in this
    /// session.
    pub(crate) fn compare(
        &mut self,
        session: Session,
        tag: Tag,
        order: &OrderRequest,
        record: &OrderRecord,
    ) -> (TagEcho, bool) {
        let echo = echo_of(tag, record);
        let known = self.echoes.entry(session).or_default();
        known.count(Class::of_order(order), &record.order_id, echo);
        (echo, known.meet(echo))
    }

    /// True if a list of a session shows an order of ours without its whole tag, and that is news of its class or, for an
    /// acknowledged one, of the session.
    pub(crate) fn is_unlike(
        &self,
        session: Session,
        tag: Tag,
        order: &OrderRequest,
        is_acknowledged: bool,
        record: &OrderRecord,
    ) -> bool {
        let echo = echo_of(tag, record);
        let is_known = |known: &Echo| {
            known.has_missed(Class::of_order(order)) && (!is_acknowledged || known.has_met(echo))
        };
        echo != TagEcho::Whole && !self.echoes.get(&session).is_some_and(is_known)
    }

    /// Notes that a list of a session shows an order of this class without its whole tag. Only an acknowledged order is
    /// certainly ours, so that it tells of tags as such.
    pub(crate) fn miss(&mut self, session: Session, order: &OrderRequest, record: &OrderRecord) {
        let known = self.echoes.entry(session).or_default();
        known.count(Class::of_order(order), &record.order_id, TagEcho::Missing);
    }

    /// True if no order of ours carries a tag.
    pub(crate) fn is_unused(&self) -> bool {
        self.own.is_empty()
    }

    /// True unless this session's lists have shown that they do not tell orders by tags.
    pub(crate) fn may_tell(&self, session: Session) -> bool {
        self.echoes.get(&session).is_none_or(Echo::may_tell)
    }

    /// Returns the order of ours whose tag a record shows, whole or cut off.
    pub(crate) fn owner(&self, record: &OrderRecord) -> Option<IntentNo> {
        self.own_of(shown(record)?).map(|(_, number)| number)
    }

    fn own_of(&self, shown: ShownTag) -> Option<(Tag, IntentNo)> {
        self.own.get(&shown.prefix()?).copied().filter(|(tag, _)| shown.is_of(*tag))
    }

    /// Keeps a listed order that shows a tag of ours and has no owner. A later list may prove more of it.
    pub(crate) fn keep(&mut self, fresh: Fresh) {
        let Some((tag, _)) = shown(&fresh.record).and_then(|shown| self.own_of(shown)) else { return };
        let echoes = &self.echoes;
        let proves = |other: &Fresh| {
            let is_whole = shown(&other.record) == Some(ShownTag::Whole(tag));
            is_whole && echoes.get(&other.session).is_some_and(Echo::is_proved)
        };
        let kept = self.shown.entry(tag.prefix()).or_default();
        match kept.iter().position(|other| other.order_id == fresh.order_id) {
            Some(at) if !proves(&kept[at]) => kept[at] = fresh,
            None if kept.len() < KEPT => kept.push(fresh),
            _ => {}
        }
    }

    /// Returns the listed orders that show this tag, whole or cut off.
    pub(crate) fn shown(&self, tag: Tag) -> impl Iterator<Item = &Fresh> {
        self.shown.get(&tag.prefix()).into_iter().flatten()
    }

    /// Drops those that have an owner by now.
    pub(crate) fn prune(&mut self, tag: Tag, is_owned: impl Fn(&Arc<str>) -> bool) {
        if let Some(kept) = self.shown.get_mut(&tag.prefix()) {
            kept.retain(|fresh| !is_owned(&fresh.order_id));
            if kept.is_empty() {
                self.shown.remove(&tag.prefix());
            }
        }
    }

    /// True if a record shows exactly this tag, in a session whose lists are proved.
    pub(crate) fn proves(&self, tag: Tag, fresh: &Fresh) -> bool {
        shown(&fresh.record) == Some(ShownTag::Whole(tag)) && self.is_proved(fresh)
    }

    /// True if a record shows at least the beginning of this tag, in a session whose lists are proved that far.
    pub(crate) fn supports(&self, tag: Tag, fresh: &Fresh) -> bool {
        let proved = self.echoes.get(&fresh.session).is_some_and(Echo::is_proved_cut);
        proved && shown(&fresh.record).is_some_and(|shown| shown.is_of(tag))
    }

    /// Returns the order of ours whose whole tag a record shows, in a session whose lists are proved.
    pub(crate) fn proved_owner(&self, fresh: &Fresh) -> Option<IntentNo> {
        match shown(&fresh.record)? {
            whole @ ShownTag::Whole(_) if self.is_proved(fresh) => {
                self.own_of(whole).map(|(_, number)| number)
            }
            _ => None,
        }
    }

    /// True if a record shows another tag than this one, in a session whose lists are proved.
    pub(crate) fn is_anothers(&self, tag: Tag, fresh: &Fresh) -> bool {
        matches!(shown(&fresh.record), Some(ShownTag::Whole(other)) if other != tag) && self.is_proved(fresh)
    }

    /// True if a record shows a whole tag that no order of ours has, in a session whose lists are proved.
    pub(crate) fn is_strangers(&self, fresh: &Fresh) -> bool {
        matches!(shown(&fresh.record), Some(ShownTag::Whole(tag)) if !self.own.contains_key(&tag.prefix()))
            && self.is_proved(fresh)
    }

    /// True if a record is certainly not of the order with this tag.
    ///
    /// It shows a tag that no order of ours has; or none, in a class whose orders all show theirs. A smaller one may be
    /// a slice that the service made of the order. One with the tag of another order of ours may be a copy of a field,
    /// until that order owns it.
    pub(crate) fn excludes(&self, tag: Tag, order: &OrderRequest, fresh: &Fresh) -> bool {
        let Some(echo) = self.echoes.get(&fresh.session).filter(|echo| echo.is_proved()) else {
            return false;
        };
        match shown(&fresh.record) {
            Some(ShownTag::Whole(other)) => other != tag && !self.own.contains_key(&other.prefix()),
            Some(ShownTag::Cut(_)) => false,
            _ => {
                fresh.record.qty.is_some_and(|qty| qty >= order.qty())
                    && echo.vouches_for(Class::of_order(order))
                    && echo.vouches_for(Class::of_record(&fresh.record))
            }
        }
    }

    /// Returns everything that lists of a session have shown of tags, as one number.
    #[cfg(test)]
    pub(crate) fn echoed(&self, session: Session) -> u8 {
        self.echoes.get(&session).map_or(0, Echo::as_number)
    }

    /// True if a listed order is kept that shows a tag of ours.
    #[cfg(test)]
    pub(crate) fn is_kept(&self, order_id: &str) -> bool {
        self.shown.values().flatten().any(|fresh| *fresh.order_id == *order_id)
    }

    fn is_proved(&self, fresh: &Fresh) -> bool {
        self.echoes.get(&fresh.session).is_some_and(Echo::is_proved)
    }
}

/// Returns what the record of an order with this tag shows of it.
fn echo_of(tag: Tag, record: &OrderRecord) -> TagEcho {
    match shown(record) {
        None => TagEcho::Missing,
        Some(ShownTag::Whole(shown)) if shown == tag => TagEcho::Whole,
        Some(shown) if shown.is_of(tag) => TagEcho::Cut,
        Some(_) => TagEcho::Altered,
    }
}

fn shown(record: &OrderRecord) -> Option<ShownTag> {
    record.remarks.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(ShownTag::read)
}

#[cfg(test)]
mod tests {
    use steadfast_spec::{FieldNames, parse_order_list};

    use super::*;
    use crate::numbers::LogicalTime;

    #[test]
    fn three_records_of_one_order_are_one_order() {
        let fields = [
            ("symId", "EQT_INFY_EQ_NSE"),
            ("qty", "10"),
            ("side", "buy"),
            ("type", "market"),
            ("product", "bracket"),
            ("validity", "day"),
        ];
        let order = OrderRequest::from_fields(fields).unwrap();
        let tag = Tag::from_draw;
        let record = |id: &str, remarks: String| {
            let body = format!(
                r#"{{"s":"ok","d":[{{"orderId":"{id}","symId":"EQT_INFY_EQ_NSE","side":"buy","qty":10,
                "type":"market","product":"bracket","remarks":"{remarks}"}}]}}"#
            );
            parse_order_list(body.as_bytes(), &FieldNames::default()).unwrap().remove(0)
        };
        let bare = Fresh {
            order_id: "x".into(),
            first_seen: LogicalTime(9),
            record: Arc::new(record("x", String::new())),
            session: Session::default(),
            flagged: false,
            late: false,
        };
        let vouches = |ids: [&str; 3]| {
            let mut tags = Tags::default();
            for id in ids {
                tags.compare(Session::default(), tag(1), &order, &record(id, tag(1).to_string()));
            }
            tags.excludes(tag(9), &order, &bare)
        };
        assert!(vouches(["a", "b", "c"]));
        assert!(!vouches(["a", "a", "a"]) && !vouches(["a", "a", "b"]));
    }
}
