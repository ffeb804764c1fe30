use std::time::Duration;

use steadfast_sandbox::enforce::Kind;
use steadfast_spec::Zone;

use super::{
    contender::{Contender, Profile},
    load::{Counted, Load, Memory, Settle, Storm},
    row::Row,
};
use crate::sim::{
    axes::{Axes, Axis},
    network::Network,
};

/// The zones of the matrix: one window that orders burst in, and two windows at once.
pub(super) const ZONES: [Zone; 2] = [Zone::PLACE_ORDER, Zone::GENERAL];

/// Every way of counting. Phases are drawn for every session.
pub(super) const GATEWAYS: [Kind; 9] = [
    Kind::FixedWindow { phase: Duration::ZERO },
    Kind::FirstHit,
    Kind::SlidingLog,
    Kind::TokenBucket,
    Kind::WholeSecond,
    Kind::SlidingCounter { phase: Duration::ZERO },
    Kind::CountingRejects { phase: Duration::ZERO },
    Kind::LeakyBucket { burst: 4 },
    Kind::LeakyBucket { burst: 0 },
];

pub(super) const OURS: [Contender; 3] =
    [Contender::Steadfast(Profile::Universal), Contender::Steadfast(Profile::WindowLog), Contender::Preset];

pub(super) const DISCIPLINES: [Contender; 6] = [
    Contender::Preset,
    Contender::PriorityOnly,
    Contender::OneQueue,
    Contender::Governor,
    Contender::GovernorPaced,
    Contender::Tower,
];

/// Returns the rows of a world with these axes.
pub(super) fn rows_with(axes: Axes) -> Vec<Row> {
    let mut rows = rows();
    if axes.has(Axis::Quotas) {
        for zone in ZONES {
            for contender in OURS {
                let loads = [Load::AfterAnswer, Load::Lowered];
                add(&mut rows, zone, contender, &GATEWAYS, &Network::ALL, &loads);
            }
        }
    }
    rows
}

/// Returns every row; rows to be compared are adjacent.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for zone in ZONES {
        for contender in Contender::ALL {
            add(&mut rows, zone, contender, &GATEWAYS, &Network::ALL, &Load::PLAIN);
        }
    }
    for contender in Contender::ALL {
        add(&mut rows, Zone::PLACE_ORDER, contender, &[Kind::SlidingLog], &[Network::Const], &[Load::Thirty]);
    }
    let restarts = [Load::Restart(Memory::Kept), Load::Restart(Memory::Lost)];
    let late = [Load::Late(Settle::Set), Load::Late(Settle::Unset)];
    for zone in ZONES {
        for contender in OURS {
            add(&mut rows, zone, contender, &GATEWAYS[..7], &Network::ALL, &restarts);
            add(&mut rows, zone, contender, &GATEWAYS[..7], &Network::ALL, &late);
        }
    }
    let losses = [Load::Spread(Counted::AtOnce), Load::Spread(Counted::Late)];
    for contender in OURS {
        add(&mut rows, Zone::PLACE_ORDER, contender, &GATEWAYS[..7], &Network::ALL, &losses);
    }
    let storms = [
        Load::Cancels(Storm::None),
        Load::Cancels(Storm::Verification),
        Load::CancelBursts,
        Load::Cancels(Storm::Freeze),
        Load::Cancels(Storm::Told),
        Load::Cancels(Storm::Resets),
    ];
    let gateways = [Kind::SlidingLog, Kind::SlidingCounter { phase: Duration::ZERO }];
    for contender in DISCIPLINES {
        add(&mut rows, Zone::GENERAL, contender, &gateways, &Network::ALL, &storms);
    }
    rows
}

fn add(
    rows: &mut Vec<Row>,
    zone: Zone,
    contender: Contender,
    gateways: &[Kind],
    networks: &[Network],
    loads: &[Load],
) {
    for gateway in gateways.iter().copied() {
        for network in networks.iter().copied() {
            rows.extend(loads.iter().map(|&load| Row { zone, contender, gateway, network, load }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let rows = rows();
        let names: HashSet<String> = rows.iter().map(Row::to_string).collect();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn axes_only_add_rows_and_each_has_a_name_of_its_own() {
        assert_eq!(rows_with(Axes::NONE), rows());
        let all = rows_with(Axes::ALL);
        let names: HashSet<String> = all.iter().map(Row::to_string).collect();
        assert!(names.len() == all.len() && all.starts_with(&rows()) && all.len() > rows().len());
    }

    #[test]
    fn promises_cover_what_the_figures_ask_for() {
        let rows = rows();
        for zone in ZONES {
            for gateway in &GATEWAYS[..7] {
                for network in Network::ALL {
                    for load in Load::PLAIN {
                        let contender = Contender::Steadfast(Profile::Universal);
                        let row = Row { zone, contender, gateway: *gateway, network, load };
                        assert!(rows.contains(&row) && row.promises_zero(), "{row}");
                    }
                }
            }
        }
        assert!(rows.iter().all(|row| row.contender.is_ours() || !row.promises_zero()));
    }
}
