//! Counts how one session's lists show the tags of our orders, and says how much that proves.

use std::collections::BTreeSet;

use steadfast_spec::{Code, OrderRecord, OrderRequest, OrderType, Product, SymId};

use crate::protocol::order_event::TagEcho;

/// From so many acknowledged orders with their tags on, an order of their class without a tag is a stranger's.
const VOUCHED: usize = 3;

/// The tags of acknowledged orders, as far as one session's lists have shown them.
#[derive(Clone, Debug, Default)]
pub(super) struct Echo {
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
    /// Those that have shown their whole tag, up to [`VOUCHED`]. A list may hold one more than once, by its legs.
    echoed: BTreeSet<Box<str>>,
    missed: bool,
}

/// Orders that a service may handle by the same part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Class {
    exchange: String,
    product: Product,
    order_type: OrderType,
}

impl Class {
    pub(super) fn of_order(order: &OrderRequest) -> Option<Self> {
        let exchange = order.sym_id().exchange()?.to_owned();
        Some(Self { exchange, product: order.product(), order_type: order.order_type() })
    }

    pub(super) fn of_record(record: &OrderRecord) -> Option<Self> {
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
    pub(super) fn is_proved(&self) -> bool {
        self.whole && !self.altered
    }

    /// True if the beginning of a tag says so of an order that matches strictly.
    pub(super) fn is_proved_cut(&self) -> bool {
        (self.whole || self.cut) && !self.altered
    }

    pub(super) fn vouches_for(&self, class: Option<Class>) -> bool {
        let its = |known: &ClassEcho| Some(&known.class) == class.as_ref();
        self.is_proved() && self.classes.iter().any(|it| its(it) && it.echoed.len() >= VOUCHED && !it.missed)
    }

    /// True if it is known already that orders of this class may be listed without their tags.
    pub(super) fn has_missed(&self, class: Option<Class>) -> bool {
        class.is_none_or(|class| self.classes.iter().any(|known| known.class == class && known.missed))
    }

    pub(super) fn has_met(&self, echo: TagEcho) -> bool {
        match echo {
            TagEcho::Whole => self.whole,
            TagEcho::Cut => self.cut,
            TagEcho::Missing => self.missing,
            TagEcho::Altered => self.altered,
        }
    }

    /// Notes what an order of a class shows of its tag.
    pub(super) fn count(&mut self, class: Option<Class>, order_id: &str, echo: TagEcho) {
        let Some(class) = class else { return };
        let at = self.classes.iter().position(|known| known.class == class).unwrap_or_else(|| {
            self.classes.push(ClassEcho { class, echoed: BTreeSet::new(), missed: false });
            self.classes.len() - 1
        });
        let known = &mut self.classes[at];
        match echo {
            TagEcho::Whole if known.echoed.len() < VOUCHED => drop(known.echoed.insert(order_id.into())),
            TagEcho::Whole => {}
            TagEcho::Cut | TagEcho::Missing | TagEcho::Altered => known.missed = true,
        }
    }

    /// Notes what an acknowledged order shows; true if it is the first of this session that shows that.
    pub(super) fn meet(&mut self, echo: TagEcho) -> bool {
        let met = match echo {
            TagEcho::Whole => &mut self.whole,
            TagEcho::Cut => &mut self.cut,
            TagEcho::Missing => &mut self.missing,
            TagEcho::Altered => &mut self.altered,
        };
        !std::mem::replace(met, true)
    }

    /// True unless the lists have shown that they do not tell orders by tags.
    pub(super) fn may_tell(&self) -> bool {
        !self.altered && (self.whole || self.cut || !self.missing)
    }

    /// Returns everything that the lists have shown, as one number.
    #[cfg(test)]
    pub(super) fn as_number(&self) -> u8 {
        let echoed = |class: &ClassEcho| u8::try_from(class.echoed.len()).unwrap_or(u8::MAX);
        let classes = self.classes.iter().map(|class| echoed(class) * 2 + u8::from(class.missed));
        let kinds = [self.whole, self.cut, self.missing, self.altered];
        kinds.into_iter().fold(classes.sum(), |all, met| all * 2 + u8::from(met))
    }
}
