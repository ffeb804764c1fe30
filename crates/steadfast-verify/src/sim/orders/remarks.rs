//! Orders that carry a tag of their own, and gateways that show it or not.

use std::{
    fmt,
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering},
};

use steadfast::{
    dedup::{OrderTag, Settings},
    spec::{InvalidOrder, OrderRequest, Tag},
};
use steadfast_sandbox::{Remarks, SpecReading};

use crate::sim::{
    axes::{Axes, Axis},
    chooser::{Chooser, Site},
    orders::workload::Shape,
};

/// The form in which every list of a campaign shows the remarks of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo(Remarks);

impl FromStr for Echo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut reading = SpecReading::default();
        reading.set("remarks", text).map_err(|error| error.to_string())?;
        Ok(Self(reading.remarks))
    }
}

impl fmt::Display for Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reading = SpecReading::default();
        reading.remarks = self.0;
        let value = reading.values().into_iter().find(|(axis, _)| *axis == "remarks");
        f.write_str(value.map(|(_, value)| value).unwrap_or_default())
    }
}

/// Chooses what the lists of a seed show.
pub(crate) fn shown(chooser: &Chooser, axes: Axes, fixed: Option<Echo>) -> Remarks {
    if !axes.has(Axis::Remarks) {
        return Remarks::Absent;
    }
    let drawn = chooser.weigh(Site::new("remarks"), &[30, 10, 15, 15, 10, 20]) as usize;
    let all = [
        Remarks::Full,
        Remarks::Absent,
        Remarks::Cut,
        Remarks::SomeClasses,
        Remarks::Capitals,
        Remarks::Copied,
    ];
    fixed.map_or(all[drawn], |Echo(fixed)| fixed)
}

/// Lets a process tag its orders. Each process of a seed draws the same tags in the same sequence.
pub(crate) fn tagged(chooser: &Chooser, axes: Axes, settings: Settings) -> Settings {
    if !axes.has(Axis::Remarks) {
        return settings;
    }
    let seed = u64::from(chooser.choose(Site::new("remarks.seed"), 65_536));
    let drawn = AtomicU64::new(0);
    let draw = move || spread(seed << 32 | drawn.fetch_add(1, Ordering::Relaxed));
    settings.tag(OrderTag::field("remarks").max_len(10).drawn_from(draw))
}

/// Returns a stranger's order: with a tag, with a text of his own, or mostly with neither.
pub(crate) fn strangers(
    chooser: &Chooser,
    axes: Axes,
    number: u64,
    shape: Shape,
) -> Result<OrderRequest, InvalidOrder> {
    let order = shape.order()?;
    let remark = match chooser.weigh(Site::new("foreign.remark").of(number), &[60, 20, 20]) {
        1 => "mine".to_owned(),
        2 => Tag::from_draw(spread(number)).to_string(),
        _ => return Ok(order),
    };
    if !axes.has(Axis::Remarks) {
        return Ok(order);
    }
    OrderRequest::from_fields(order.form().with("remarks", remark).iter())
}

/// Spreads a small number over all bits (the finalizer of SplitMix64).
fn spread(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
