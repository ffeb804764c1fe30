//! Which tags our orders carry, and how far a session's lists can be trusted with them.
//!
//! A list tells nothing by tags before it has proved that it can: it must have shown the tag of an acknowledged order.
//! One acknowledged order that shows something else ends that for the session. One that shows nothing proves nothing,
//! but tells that orders of its class may be listed without.

use std::{collections::BTreeMap, sync::Arc};

use steadfast_spec::{Code, OrderRecord, OrderRequest, OrderType, Product, ShownTag, SymId, Tag};

use crate::{
    numbers::{IntentNo, Session},
    protocol::{listed_orders::fresh::Fresh, order_event::TagEcho},
};

/// From so many acknowledged orders with their tags on, an order of their class without a tag is a stranger's.
const VOUCHED: u8 = 3;

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

/// What one session's lists have shown of the tags of acknowledged orders.
#[derive(Clone, Debug, Default)]
struct Echo {
    whole: bool,
    cut: bool,
    missing: bool,
    altered: bool,
    classes: Vec<ClassEcho>,
}

/// The same for one class of orders.
#[derive(Clone, Debug)]
struct ClassEcho {
    class: Class,
    /// How many have shown their whole tag, up to [`VOUCHED`].
    echoed: u8,
    missed: bool,
}

/// Orders that a service may handle by the same part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Class {
    exchange: String,
    product: Product,
    order_type: OrderType,
}

impl Class {
    fn of_order(order: &OrderRequest) -> Option<Self> {
        let exchange = order.sym_id().exchange()?.to_owned();
        Some(Self { exchange, product: order.product(), order_type: order.order_type() })
    }

    fn of_record(record: &OrderRecord) -> Option<Self> {
        let listed: SymId = record.sym_id.as_deref()?.parse().ok()?;
        let exchange = listed.exchange()?.to_owned();
        match (&record.product, &record.order_type) {
            (Some(Code::Known(product)), Some(Code::Known(order_type))) => {
                Some(Self { exchange, product: *product, order_type: *order_type })
            }
            _ => None,
        }
    }
}

impl Echo {
    /// True if a whole tag says whose an order is.
    fn is_proved(&self) -> bool {
        self.whole && !self.altered
    }

    /// True if the beginning of a tag says so of an order that matches strictly.
    fn is_proved_cut(&self) -> bool {
        (self.whole || self.cut) && !self.altered
    }

    fn vouches_for(&self, class: Option<Class>) -> bool {
        let its = |known: &ClassEcho| Some(&known.class) == class.as_ref();
        self.is_proved() && self.classes.iter().any(|it| its(it) && it.echoed >= VOUCHED && !it.missed)
    }

    /// Counts an acknowledged order; true if that is the first of this session with such an echo.
    fn count(&mut self, class: Option<Class>, echo: TagEcho) -> bool {
        if let Some(class) = class {
            let at = self.classes.iter().position(|known| known.class == class).unwrap_or_else(|| {
                self.classes.push(ClassEcho { class, echoed: 0, missed: false });
                self.classes.len() - 1
            });
            let known = &mut self.classes[at];
            match echo {
                TagEcho::Whole => known.echoed = VOUCHED.min(known.echoed + 1),
                TagEcho::Cut | TagEcho::Missing | TagEcho::Altered => known.missed = true,
            }
        }
        let met = match echo {
            TagEcho::Whole => &mut self.whole,
            TagEcho::Cut => &mut self.cut,
            TagEcho::Missing => &mut self.missing,
            TagEcho::Altered => &mut self.altered,
        };
        !std::mem::replace(met, true)
    }
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
        let echo = match shown(record) {
            None => TagEcho::Missing,
            Some(ShownTag::Whole(shown)) if shown == tag => TagEcho::Whole,
            Some(shown) if shown.is_of(tag) => TagEcho::Cut,
            Some(_) => TagEcho::Altered,
        };
        (echo, self.echoes.entry(session).or_default().count(Class::of_order(order), echo))
    }

    /// True unless this session's lists have shown that they do not tell orders by tags.
    pub(crate) fn may_tell(&self, session: Session) -> bool {
        self.echoes
            .get(&session)
            .is_none_or(|echo| !echo.altered && (echo.whole || echo.cut || !echo.missing))
    }

    /// Returns the order of ours whose tag a record shows, whole or cut off.
    pub(crate) fn owner(&self, record: &OrderRecord) -> Option<IntentNo> {
        self.own_of(shown(record)?).map(|(_, number)| number)
    }

    fn own_of(&self, shown: ShownTag) -> Option<(Tag, IntentNo)> {
        self.own.get(&shown.prefix()?).copied().filter(|(tag, _)| shown.is_of(*tag))
    }

    /// Keeps a listed order that shows a tag of ours and has no owner.
    pub(crate) fn keep(&mut self, fresh: Fresh) {
        let Some((tag, _)) = shown(&fresh.record).and_then(|shown| self.own_of(shown)) else { return };
        let kept = self.shown.entry(tag.prefix()).or_default();
        if kept.len() < KEPT && kept.iter().all(|other| other.order_id != fresh.order_id) {
            kept.push(fresh);
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
        let Some(echo) = self.echoes.get(&session) else { return 0 };
        let classes = echo.classes.iter().map(|class| class.echoed * 2 + u8::from(class.missed));
        let kinds = [echo.whole, echo.cut, echo.missing, echo.altered];
        kinds.into_iter().fold(classes.sum(), |all, met| all * 2 + u8::from(met))
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

fn shown(record: &OrderRecord) -> Option<ShownTag> {
    record.remarks.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(ShownTag::read)
}
