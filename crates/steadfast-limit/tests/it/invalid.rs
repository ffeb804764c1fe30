//! Every way in which a configuration is refused, by name.

use std::{io, num::NonZeroU32, path::PathBuf, time::Duration};

use steadfast_limit::{
    Builder, Ceilings, ColdStart, InvalidLimiter as Invalid, Lane, MINUTE, Profile, Quota, Reserve, SECOND,
    Scope, Zone, ZoneLimiter,
};

const MINE: Zone = Zone::new("mine");

fn quota() -> Quota {
    Quota::new(MINE, Scope::AuthToken).limit(10, SECOND)
}

fn zone(quota: Quota) -> Builder {
    ZoneLimiter::builder().zone(quota)
}

#[track_caller]
fn refused(builder: Builder, expected: &Invalid, message: &str) {
    let error = builder.build().err();
    assert_eq!(error.as_ref(), Some(expected));
    assert_eq!(expected.to_string(), message);
}

#[test]
fn a_limiter_without_a_zone() {
    refused(ZoneLimiter::builder(), &Invalid::NoZones, "limiter has no zone");
}

#[test]
fn more_zones_than_a_limiter_holds() {
    let many = (0..65).fold(ZoneLimiter::builder(), |builder, _| builder.zone(quota()));
    refused(many, &Invalid::TooManyZones { most: 64 }, "limiter has more than 64 zones");
}

#[test]
fn a_zone_that_is_named_twice() {
    refused(zone(quota()).zone(quota()), &Invalid::DuplicateZone(MINE), "zone mine is configured twice");
    let preset = ZoneLimiter::builder().preset().preset();
    refused(preset, &Invalid::DuplicateZone(Zone::OTP), "zone otp is configured twice");
}

#[test]
fn a_change_to_a_zone_that_is_not_there() {
    let adjusted = ZoneLimiter::builder().adjust(MINE, |quota| quota).zone(quota());
    refused(adjusted, &Invalid::UnknownZone(MINE), "zone mine is adjusted but not configured");
}

#[test]
fn a_zone_without_a_window() {
    refused(zone(quota().clear_limits()), &Invalid::NoWindows(MINE), "zone mine has no window");
}

#[test]
fn more_windows_than_a_zone_holds() {
    let many = (2..10).fold(quota(), |quota, n| quota.limit(10 * n, n * SECOND));
    refused(
        zone(many),
        &Invalid::TooManyWindows { zone: MINE, most: 8 },
        "zone mine has more than 8 windows",
    );
}

#[test]
fn two_windows_of_one_length() {
    let twice = Invalid::DuplicatePeriod { zone: MINE, period: SECOND };
    refused(zone(quota().limit(20, SECOND)), &twice, "zone mine has two windows of 1s");
}

#[test]
fn a_window_of_no_requests() {
    refused(
        zone(quota().limit(0, MINUTE)),
        &Invalid::ZeroLimit(MINE),
        "zone mine has a window of zero requests",
    );
}

#[test]
fn a_window_of_no_length() {
    refused(
        zone(quota().limit(1, Duration::ZERO)),
        &Invalid::ZeroPeriod(MINE),
        "zone mine has a window of zero length",
    );
}

#[test]
fn what_is_too_large_to_be_counted_exactly() {
    let message = "zone mine has a window too large to count exactly";
    let years = Duration::from_secs(365 * 86_400);
    for quota in [quota().limit(10, Duration::MAX), quota().limit(u32::MAX, years)] {
        refused(zone(quota), &Invalid::TooLarge(MINE), message);
    }
    let message = "zone mine counts requests too late after their answers to count exactly";
    refused(zone(quota().settle(Duration::MAX)), &Invalid::CountedTooLate(MINE), message);
}

#[test]
fn a_headroom_that_leaves_nothing() {
    refused(
        zone(quota().headroom(10)),
        &Invalid::HeadroomTakesAll(MINE),
        "headroom of zone mine leaves nothing of a window",
    );
}

#[test]
fn ceilings_that_starve_a_lane() {
    let all = Ceilings::none().withhold(Lane::Bulk, Reserve::slots(10));
    let starved = Invalid::StarvedLane { zone: MINE, lane: Lane::Bulk };
    refused(zone(quota().ceilings(all)), &starved, "ceilings of zone mine leave nothing to lane bulk");
}

#[test]
fn ceilings_that_favour_a_lower_lane() {
    let upside_down = Ceilings::none().withhold(Lane::Trading, Reserve::slots(3));
    let inverted = Invalid::InvertedCeilings { zone: MINE, lane: Lane::Normal };
    let message = "ceilings of zone mine leave more to lane normal than to the lane above it";
    refused(zone(quota().ceilings(upside_down)), &inverted, message);
}

#[test]
fn a_burst_of_more_than_half_a_window() {
    let profile = Profile::Paced { burst: NonZeroU32::new(6).unwrap() };
    refused(
        zone(quota().profile(profile)),
        &Invalid::BurstTooLarge(MINE),
        "burst of zone mine is more than half of a window",
    );
}

#[test]
fn a_lane_that_may_not_wait() {
    let builder = zone(quota()).queue_bound(Lane::Bulk, 0);
    refused(builder, &Invalid::ZeroQueue(Lane::Bulk), "queue of lane bulk holds nothing");
}

#[test]
fn a_limiter_that_may_keep_no_key() {
    refused(zone(quota()).max_keys(0), &Invalid::ZeroKeys, "limiter may keep no key");
}

#[test]
fn a_time_to_arrive_beyond_counting() {
    let builder = zone(quota()).arrives_within(Duration::MAX);
    refused(
        builder,
        &Invalid::ArrivalTooLong,
        "time within which a request arrives is too long to count exactly",
    );
}

#[test]
fn a_move_of_routes_to_a_zone_that_is_not_there_or_is_the_same() {
    let message = "move of refused routes names zone data, which is not another zone of the limiter";
    let wrong = Invalid::InvalidMove(Zone::DATA);
    refused(zone(quota()).move_refused_routes(Zone::DATA, MINE), &wrong, message);
    refused(zone(quota()).move_refused_routes(MINE, Zone::DATA), &wrong, message);
    let message = "move of refused routes names zone mine, which is not another zone of the limiter";
    refused(zone(quota()).move_refused_routes(MINE, MINE), &Invalid::InvalidMove(MINE), message);
}

#[test]
fn a_journal_that_cannot_be_kept() {
    let path = PathBuf::from("no such folder/limits");
    let journal = Invalid::Journal { path: path.clone(), kind: io::ErrorKind::NotFound };
    let builder = zone(quota()).cold_start(ColdStart::Journal(path));
    refused(builder, &journal, "journal no such folder/limits cannot be kept: entity not found");
}

#[test]
fn a_journal_that_another_keeps() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("limits");
    let builder = || zone(quota()).cold_start(ColdStart::Journal(path.clone()));
    let _first = builder().build().unwrap();
    let message = format!("journal {} is kept by another limiter", path.display());
    refused(builder(), &Invalid::JournalInUse(path.clone()), &message);
}

#[test]
fn a_journal_of_the_pure_core() {
    let builder = zone(quota()).cold_start(ColdStart::Journal("limits".into()));
    assert_eq!(builder.build_core().err(), Some(Invalid::JournalInCore));
    assert_eq!(Invalid::JournalInCore.to_string(), "pure core keeps no journal");
}
