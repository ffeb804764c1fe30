//! Behaviours of the world that the simulations once took for impossible. Outside reviewers found each of them.

use std::{fmt, str::FromStr};

use steadfast_sandbox::Fault;

/// One kind of behaviour that can be added to a simulation's world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Proxies answer in the gateway's place, with a page, a text or nothing, while it goes on (O2).
    Intermediaries,
    /// An order is refused with 401, 403 or 429 after it was placed (O5).
    PlacedRefusals,
    /// An ack names another order or none, or answers come shifted (O6).
    StrayAnswers,
    /// Bytes written to a connection arrive after its client has closed it, up to two minutes later (O1).
    Orphans,
    /// The client's wall clock steps, drifts and stops apart from the monotonic one (O3).
    WallClock,
    /// The client's machine is suspended: its monotonic clock stands still, the others go on (O4).
    Suspend,
    /// Limits are lowered, requests are counted after their answers, buckets have no burst (L3, O11).
    Quotas,
    /// Lists hold a hundred thousand bare records (O8).
    LargeLists,
    /// Lists come from a cache (O12).
    CachedLists,
    /// A caller asks again, under the same name, for an order that was refused (O5).
    Repeats,
    /// Orders carry a tag in `remarks`, and lists show it, part of it, nothing, or another order's.
    Remarks,
}

impl Axis {
    const ALL: [(Self, &'static str); 11] = [
        (Self::Intermediaries, "intermediaries"),
        (Self::PlacedRefusals, "placed-refusals"),
        (Self::StrayAnswers, "stray-answers"),
        (Self::Orphans, "orphans"),
        (Self::WallClock, "wall-clock"),
        (Self::Suspend, "suspend"),
        (Self::Quotas, "quotas"),
        (Self::LargeLists, "large-lists"),
        (Self::CachedLists, "cached-lists"),
        (Self::Repeats, "repeats"),
        (Self::Remarks, "remarks"),
    ];

    /// Returns the axis of a sandbox fault, if it has one.
    pub(crate) fn of(fault: Fault) -> Option<Self> {
        match fault {
            Fault::Placement401Applied | Fault::Placement403Applied | Fault::Placement429Applied => {
                Some(Self::PlacedRefusals)
            }
            Fault::PlacementRepeatedIdApplied
            | Fault::PlacementRepeatedIdNotApplied
            | Fault::PlacementInventedIdApplied
            | Fault::PlacementInventedIdNotApplied
            | Fault::TransportAnswerAgain => Some(Self::StrayAnswers),
            Fault::QuotaLowered => Some(Self::Quotas),
            Fault::ListHugeBare => Some(Self::LargeLists),
            Fault::ListCachedAge | Fault::ListCachedHit | Fault::ListCachedUnlessAsked => {
                Some(Self::CachedLists)
            }
            fault if fault.as_str().starts_with("placement.proxy-") => Some(Self::Intermediaries),
            _ => None,
        }
    }
}

/// The axes that are added to a simulation's world.
///
/// Written as `all`, `none`, or names with commas between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes(u16);

impl Axes {
    /// No axes.
    pub const NONE: Self = Self(0);
    /// All axes.
    pub const ALL: Self = Self((1 << Axis::ALL.len()) - 1);
    /// The axes of every simulation by default. This is the one place to switch them on.
    pub const DEFAULT: Self = Self::NONE;

    pub(crate) const fn has(self, axis: Axis) -> bool {
        self.0 & (1 << axis as u16) != 0
    }

    /// True if `axis` is in the world, or is `None`.
    pub(crate) fn admit(self, axis: Option<Axis>) -> bool {
        axis.is_none_or(|axis| self.has(axis))
    }
}

impl Default for Axes {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> =
            Axis::ALL.into_iter().filter(|&(axis, _)| self.has(axis)).map(|(_, name)| name).collect();
        match names.len() {
            0 => f.write_str("none"),
            most if most == Axis::ALL.len() => f.write_str("all"),
            _ => f.write_str(&names.join(",")),
        }
    }
}

impl FromStr for Axes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self::ALL),
            "none" => return Ok(Self::NONE),
            _ => {}
        }
        text.split(',').try_fold(Self::NONE, |axes, name| {
            let known = Axis::ALL.into_iter().find(|(_, known)| *known == name);
            let (axis, _) = known.ok_or_else(|| {
                let names = Axis::ALL.map(|(_, name)| name).join(", ");
                format!("no axis is named {name:?}; there are all, none, {names}")
            })?;
            Ok(Self(axes.0 | 1 << axis as u16))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_read_as_they_are_written() {
        for text in ["none", "all", "orphans", "intermediaries,cached-lists"] {
            assert_eq!(text.parse::<Axes>().unwrap().to_string(), text);
        }
        assert!("orphan".parse::<Axes>().unwrap_err().contains("there are all, none, intermediaries"));
        assert_eq!("none".parse(), Ok(Axes::NONE));
        for (index, (axis, name)) in Axis::ALL.into_iter().enumerate() {
            assert_eq!(axis as usize, index, "{name}");
            assert!(Axes::ALL.has(axis) && !Axes::NONE.has(axis), "{name}");
        }
    }
}
