//! The last two minutes of quota and lanes, one sample a second.

use std::collections::VecDeque;

use steadfast::call::Lane;

use super::{
    reading::ZoneReading,
    state::{LaneStrip, Window, Word, Zone},
};

/// The length of a strip.
pub(crate) const SAMPLES: usize = 120;

/// The samples, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Strips(VecDeque<Vec<ZoneReading>>);

impl Strips {
    pub(crate) fn push(&mut self, zones: Vec<ZoneReading>) {
        if self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(zones);
    }

    pub(crate) fn zones(&self) -> Vec<Zone> {
        let Some(newest) = self.0.back() else { return Vec::new() };
        newest.iter().map(|zone| self.zone(zone)).collect()
    }

    fn zone(&self, newest: &ZoneReading) -> Zone {
        let strip = |of: &dyn Fn(&ZoneReading) -> u32| {
            self.strip(|zones| zones.iter().find(|zone| zone.zone == newest.zone).map_or(0, of))
        };
        let windows = newest.windows.iter().enumerate().map(|(at, window)| Window {
            period_ms: window.period_ms,
            limit: window.limit,
            reserved: window.reserved,
            used: strip(&|zone| zone.windows.get(at).map_or(0, |window| window.used)),
        });
        Zone {
            zone: Word::Borrowed(newest.zone),
            step: newest.step.to_string(),
            lost: newest.lost,
            paused_ms: newest.paused_ms,
            next_free_ms: newest.next_free(),
            learned: newest.learned,
            windows: windows.collect(),
            in_flight: strip(&|zone| zone.in_flight),
            paused: strip(&|zone| u32::from(zone.paused_ms.is_some())),
        }
    }

    pub(crate) fn lanes(&self) -> Vec<LaneStrip> {
        let newest = self.0.back().map_or(&[][..], Vec::as_slice);
        let lane = |(at, lane): (usize, Lane)| {
            let busy = newest.iter().filter(|zone| zone.waiting[at] > 0);
            LaneStrip {
                lane: Word::Borrowed(lane.as_str()),
                next_free_ms: busy.map(|zone| zone.next_free_ms[at]).max().unwrap_or(0),
                waiting: self.strip(|zones| zones.iter().map(|zone| zone.waiting[at]).sum()),
            }
        };
        Lane::ALL.into_iter().enumerate().map(lane).collect()
    }

    /// Returns one number a sample, with zeros for the time before the first.
    fn strip(&self, of: impl Fn(&[ZoneReading]) -> u32) -> Vec<u32> {
        let before = std::iter::repeat_n(0, SAMPLES - self.0.len());
        before.chain(self.0.iter().map(|zones| of(zones))).collect()
    }
}
