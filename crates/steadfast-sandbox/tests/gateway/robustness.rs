//! No request brings the gateway down: each has an answer that the specification knows, and the ground truth
//! agrees with what the client saw.

mod generator;
mod oracle;

use std::time::Duration;

use steadfast_sandbox::{
    EleventhSession, Fault, IpRefusal, JsonBody, ListOrder, ListScope, LoginAnswer, Place, RetryAfter,
    Sandbox, SandboxBuilder, enforce::Kind,
};
use steadfast_spec::Zone;
use tower::ServiceExt;

use self::{
    generator::{Generator, Rng},
    oracle::Oracle,
};
use crate::{client::Answer, world::World};

/// The number of requests to one sandbox before the next one with other switches replaces it.
const BLOCK: u64 = 500;

/// Fifty thousand structured and random requests; a million with `STEADFAST_DEEP=1`.
#[tokio::test(start_paused = true)]
async fn no_request_brings_the_gateway_down() {
    let requests = if std::env::var_os("STEADFAST_DEEP").is_some() { 1_000_000 } else { 50_000 };
    let mut oracle = Oracle::default();
    let mut memory = None;
    for block in 0..requests / BLOCK {
        one_block(Rng::new(block), &mut oracle).await;
        if block == 20 {
            memory = resident_bytes();
        }
    }
    println!("{requests} requests: {oracle}");
    oracle.assert_everything_was_seen();
    if let (Some(before), Some(after)) = (memory, resident_bytes()) {
        println!("resident memory: {before} bytes after {} requests, {after} at the end", 21 * BLOCK);
        assert!(after < before + (64 << 20), "memory grows");
    }
}

async fn one_block(mut rng: Rng, oracle: &mut Oracle) {
    let world = World::of(switches(&mut rng));
    let gateway = world.sandbox.gateway();
    let mut generator = Generator::new(rng, &world);
    let mut seen = Vec::new();
    for _ in 0..BLOCK {
        let request = generator.request(&world);
        world.pass(generator.pause());
        let what = format!("{} {}", request.method(), request.uri());
        let answer = Answer::read(gateway.clone().oneshot(request).await).await;
        oracle.check(&what, &answer);
        generator.learn(&answer);
        seen.push(answer);
    }
    oracle.agree(&world.truth(), &seen);
}

/// Returns a sandbox with random switches, and every fault at a small rate.
fn switches(rng: &mut Rng) -> SandboxBuilder {
    let mut builder = Sandbox::builder().seed(rng.next());
    for zone in Zone::ALL {
        builder = builder.enforcer(zone, *rng.pick(&Kind::ALL));
    }
    for &fault in Fault::ALL {
        // The oracle knows the specification's answers only; faults of the answer have tests of their own.
        let foreign = ["answer", "transport", "time"].contains(&fault.group())
            || ["placement.proxy", "placement.repeated-id", "placement.invented-id"]
                .iter()
                .any(|stem| fault.as_str().starts_with(stem));
        let huge = matches!(fault, Fault::ListHuge | Fault::ListHugeBare);
        if foreign || huge || fault.place() == Place::Connection {
            continue;
        }
        // A fault that ends all sessions leaves only 401s to test, and a storm only 429s.
        let lasts = fault.group() == "auth" || matches!(fault, Fault::QuotaStormMinute | Fault::QuotaLowered);
        let rate = if lasts { 0.000_2 } else { 0.004 };
        builder = builder.fault(fault.as_str(), rate).expect("a fault");
    }
    let milliseconds = |rng: &mut Rng| Duration::from_millis(*rng.pick(&[0, 0, 1, 250]));
    builder = builder.accounting_lag(milliseconds(rng)).accounting_jitter(milliseconds(rng));
    if rng.chance(5) {
        builder = builder.whitelist([generator::HOME.into()]);
    }
    if rng.chance(3) {
        builder = builder.lock_out_after(3);
    }
    builder
        .json_body(*rng.pick(&[JsonBody::BadRequest, JsonBody::UnsupportedMediaType]))
        .ip_refusal(*rng.pick(&[IpRefusal::Unauthorized, IpRefusal::Forbidden]))
        .eleventh_session(*rng.pick(&[EleventhSession::EvictOldest, EleventhSession::Refuse]))
        .list_scope(*rng.pick(&[ListScope::LoginSession, ListScope::User]))
        .list_order(*rng.pick(&[ListOrder::OldestFirst, ListOrder::NewestFirst, ListOrder::Shuffled]))
        .retry_after(*rng.pick(&[RetryAfter::Absent, RetryAfter::Seconds, RetryAfter::Absurd]))
        .login_answer(*rng.pick(&[LoginAnswer::Bare, LoginAnswer::Enveloped]))
        .totp_window(*rng.pick(&[0, 1, 255]))
}

/// Returns the process's resident memory, if the system reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}
