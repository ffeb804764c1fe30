//! The proofs that tags of orders give, found independently from the rules.

use std::collections::BTreeSet;

use steadfast_call::Outcome;
use steadfast_dedup::IntentNo;
use steadfast_spec::{Code, OrderRecord, ShownTag, Tag};

use super::history::{History, Read, is_same};

impl History<'_> {
    /// True if a list up to `at` that shows this record had proved that a tag on it tells whose it is, and it carries
    /// this intent's.
    pub(crate) fn is_its_by_tag(&self, intent: IntentNo, record: &OrderRecord, at: usize) -> bool {
        let (Some(tag), Some(order), Some(shown)) = (self.tag(intent), self.order(intent), shown(record))
        else {
            return false;
        };
        let other_side = matches!(record.side, Some(Code::Known(side)) if side != order.side());
        let proved = self.echoes(record, at);
        match shown {
            ShownTag::Whole(shown) => shown == tag && !other_side && proved.iter().any(|it| it.is_whole()),
            cut => {
                let is_proved = |it: &Echo| it.shown.is_some_and(|shown| shown.is_of(it.tag));
                cut.is_of(tag) && is_same(record, order) && proved.iter().any(is_proved)
            }
        }
    }

    /// True if such a list had proved that this record is not this intent's.
    pub(crate) fn is_not_its_by_tag(&self, intent: IntentNo, record: &OrderRecord, at: usize) -> bool {
        let (Some(tag), Some(order)) = (self.tag(intent), self.order(intent)) else { return false };
        let proved = self.echoes(record, at);
        if !proved.iter().any(Echo::is_whole) {
            return false;
        }
        match shown(record) {
            Some(ShownTag::Whole(other)) => other != tag && !self.tags().any(|own| own == other),
            Some(ShownTag::Cut(_)) => false,
            _ => {
                let terms = (record.product.clone(), record.order_type.clone());
                let own = (Some(Code::Known(order.product())), Some(Code::Known(order.order_type())));
                let vouched = |class: &(_, _)| {
                    let of_class = || proved.iter().filter(|it| it.class == *class);
                    of_class().all(Echo::is_whole)
                        && of_class().map(|it| &it.order_id).collect::<BTreeSet<_>>().len() >= 3
                };
                record.qty.is_some_and(|qty| qty >= order.qty()) && vouched(&terms) && vouched(&own)
            }
        }
    }

    /// Returns what lists up to `at`, of the sessions whose lists show this record, show of the tags of acknowledged
    /// orders. A list that a caller read is of any session.
    fn echoes(&self, record: &OrderRecord, at: usize) -> Vec<Echo> {
        let reads = || self.reads.iter().filter(|read| read.ended <= at && read.list.is_some());
        let shows = |read: &&Read| read.list.iter().flatten().any(|other| other.order_id == record.order_id);
        let session = |read: &Read| read.started.map(|(_, session)| session);
        let sessions: Vec<_> = reads().filter(shows).map(session).collect();
        let told = |order_id: &str, by: usize| {
            self.attempts.iter().find_map(|attempt| match &attempt.closed {
                Some((closed, Outcome::Accepted { order_id: Some(id) }, _))
                    if **id == *order_id && *closed <= by =>
                {
                    Some(attempt.no.intent)
                }
                _ => None,
            })
        };
        let mut echoes = Vec::new();
        for read in reads().filter(|read| {
            read.started.is_some() && (sessions.contains(&session(read)) || sessions.contains(&None))
        }) {
            for listed in read.list.iter().flatten() {
                let Some(intent) = told(&listed.order_id, read.ended) else { continue };
                let (Some(tag), Some(order)) = (self.tag(intent), self.order(intent)) else { continue };
                let class = (Some(Code::Known(order.product())), Some(Code::Known(order.order_type())));
                echoes.push(Echo { order_id: listed.order_id.clone(), tag, shown: shown(listed), class });
            }
        }
        echoes
    }
}

/// The form in which a list shows the tag of an acknowledged order.
struct Echo {
    order_id: String,
    tag: Tag,
    shown: Option<ShownTag>,
    class: (Option<Code<steadfast_spec::Product>>, Option<Code<steadfast_spec::OrderType>>),
}

impl Echo {
    fn is_whole(&self) -> bool {
        self.shown == Some(ShownTag::Whole(self.tag))
    }
}

fn shown(record: &OrderRecord) -> Option<ShownTag> {
    record.remarks.as_deref().filter(|text| !text.trim().is_empty()).map(ShownTag::read)
}
