use steadfast_limit::{Ask, Decision, Lane, Profile, Refusal, Zone, ZoneLimiter};

use crate::drive::{Core, HELD_MINUTE, S, general, granted, per_second, refused};

#[test]
fn a_thousand_idle_keys_leave_nothing_behind() {
    let mut core = Core::of(general());
    let zone = core.limiter.zone_id(Zone::GENERAL).unwrap();
    for key in 0..1_000 {
        let zones = [(zone, key)];
        let ask = Ask { zones: &zones, lane: Lane::Normal, send_by: None, head_of_lane: false };
        let grant = granted(core.limiter.acquire(&ask, core.now));
        core.answer(grant);
    }
    let busy = core.limiter.snapshot(core.now);
    assert_eq!(busy.zones.len(), 1_000);
    core.now += HELD_MINUTE;
    let idle = core.limiter.snapshot(core.now);
    assert_eq!((idle.zones.len(), idle.bytes), (0, 0));
}

#[test]
fn a_key_takes_no_more_memory_than_promised() {
    let mut core = Core::of(general().profile(Profile::Universal));
    for _ in 0..200 {
        loop {
            match core.ask(&[Zone::GENERAL], Lane::Critical) {
                Decision::Granted(grant) => core.answer(grant),
                Decision::Queued { waiter, .. } => break core.cancel(waiter),
                Decision::Refused(refusal) => panic!("{refusal}"),
            }
        }
        core.now += S;
    }
    let full = core.limiter.snapshot(core.now);
    assert_eq!(full.zones.len(), 1);
    println!("bytes of the only key, its windows full: {}", full.bytes);
    assert!(full.bytes <= 3_584, "{}", full.bytes);

    let mut core = Core::of(general());
    let zone = core.limiter.zone_id(Zone::GENERAL).unwrap();
    let grants: Vec<_> = (0..448)
        .map(|key| {
            let zones = [(zone, key)];
            let ask = Ask { zones: &zones, lane: Lane::Critical, send_by: None, head_of_lane: false };
            granted(core.limiter.acquire(&ask, core.now))
        })
        .collect();
    let fresh = core.limiter.snapshot(core.now).bytes / grants.len();
    println!("bytes of a fresh key, of 448: {fresh}");
    assert!((137..=192).contains(&fresh), "{fresh}");
}

#[test]
fn who_waits_is_counted_among_the_bytes_as_long_as_he_waits() {
    let mut core = Core::of(per_second(Zone::GENERAL, 1));
    let _held = core.granted(Zone::GENERAL, Lane::Normal);
    let bytes = |core: &mut Core| core.limiter.snapshot(core.now).bytes;
    let before = bytes(&mut core);
    let waiters: Vec<_> = (0..64).map(|_| core.queued(Zone::GENERAL, Lane::Normal)).collect();
    let each = (bytes(&mut core) - before) / waiters.len();
    println!("bytes of a waiter, of 64: {each}");
    assert!((40..=200).contains(&each), "{each}");
    for waiter in waiters {
        core.cancel(waiter);
    }
    assert!(bytes(&mut core) <= before + 64, "{}", bytes(&mut core));
}

#[test]
fn a_key_in_use_is_never_given_up_for_another() {
    let mut core = Core::new(ZoneLimiter::builder().zone(per_second(Zone::GENERAL, 1)).max_keys(2));
    let zone = core.limiter.zone_id(Zone::GENERAL).unwrap();
    let ask = |core: &mut Core, key| {
        let zones = [(zone, key)];
        let ask = Ask { zones: &zones, lane: Lane::Normal, send_by: None, head_of_lane: false };
        core.limiter.acquire(&ask, core.now)
    };
    let first = granted(ask(&mut core, 1));
    let second = granted(ask(&mut core, 2));
    assert_eq!(refused(ask(&mut core, 3)), Refusal::TooManyKeys { zone: Zone::GENERAL });
    core.answer(first);
    assert_eq!(
        refused(ask(&mut core, 3)),
        Refusal::TooManyKeys { zone: Zone::GENERAL },
        "its window is not over"
    );
    core.now += 2 * S;
    let third = granted(ask(&mut core, 3));
    core.answer(second);
    core.answer(third);
}
