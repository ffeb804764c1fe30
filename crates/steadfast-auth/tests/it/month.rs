//! A month in virtual time at the sandbox: one program that starts once and trades for weeks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use steadfast_auth::{
    ApiKey, AuthHeaderLayer, Credentials, IndividualLogin, RefreshLayer, Renewal, TokenSource, TotpSecret,
};
use steadfast_call::WallClock;
use steadfast_sandbox::Sandbox;
use steadfast_spec::BaseUrl;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::support::secs;

/// 2026-11-16 00:00 at +05:30, a Monday.
const MIDNIGHT_S: u64 = 1_794_853_800 - 86_400;
const DAYS: u64 = 30;

#[derive(Debug)]
struct Month {
    calls: u64,
    failed: u64,
    /// Logins that brought a token.
    most_logins_a_day: u64,
    /// Includes logins that were executed and then answered with a 500. The client cannot know of such a session and
    /// needs a token, so it logs in again. On such a day there is one session more than tokens.
    most_sessions_a_day: u64,
    sessions: u64,
    refused: u64,
}

/// Reads the orders every five minutes from 09:00 to 16:00.
///
/// * Every other night at 02:15 all sessions end at the service.
/// * Every fifth night the machine is suspended for seven hours: its monotonic clock stands still.
/// * Its wall clock is off by up to 8 s, and is set again every noon.
/// * The OTP zone is full at every third login, and every seventh login is executed and then answered with a 500.
async fn month(renewal: Renewal, runs_in_background: bool) -> Month {
    let (start, slept, off) = (Instant::now(), Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let true_time = {
        let slept = Arc::clone(&slept);
        move || {
            let slept = Duration::from_millis(slept.load(Ordering::Relaxed).unsigned_abs());
            UNIX_EPOCH + secs(MIDNIGHT_S) + start.elapsed() + slept
        }
    };
    let own_clock = {
        let (true_time, off) = (true_time.clone(), Arc::clone(&off));
        WallClock::new(move || {
            let off = off.load(Ordering::Relaxed);
            let by = Duration::from_millis(off.unsigned_abs());
            if off < 0 { true_time() - by } else { true_time() + by }
        })
    };
    let midnight: SystemTime = UNIX_EPOCH + secs(MIDNIGHT_S);
    let sandbox = Sandbox::builder()
        .seed(11)
        .totp_window(0)
        .wall_clock(midnight)
        .script(
            "[[fault]]\nname = 'quota.storm'\nendpoint = 'individual-token'\nnth = 3\n\
             [[fault]]\nname = 'quota.storm'\nendpoint = 'individual-token'\nnth = 8\ntimes = 2\n\
             [[fault]]\nname = 'auth.login-5xx'\nendpoint = 'individual-token'\nnth = 7\n\
             [[fault]]\nname = 'auth.login-5xx'\nendpoint = 'individual-token'\nnth = 20\n",
        )
        .unwrap()
        .build()
        .unwrap();
    let facts = sandbox.credentials();
    let base: BaseUrl = facts.base_url.parse().unwrap();
    let key = ApiKey::new(facts.api_key).unwrap();
    let credentials = Credentials::new(facts.client_id, facts.password);
    let secret = TotpSecret::new(facts.totp_secret).unwrap();
    let login = IndividualLogin::totp(sandbox.gateway(), &base, key.clone(), credentials, secret).unwrap();
    let source = TokenSource::builder(key, login).clock(own_clock).renewal(renewal.jitter_seed(7)).build();
    if runs_in_background {
        tokio::spawn(source.keep_fresh());
    }
    let header = AuthHeaderLayer::new(source.clone()).layer(sandbox.gateway());
    let stack = RefreshLayer::new(source.clone()).layer(header);

    let mut month =
        Month { calls: 0, failed: 0, most_logins_a_day: 0, most_sessions_a_day: 0, sessions: 0, refused: 0 };
    let mut before = (0, 0);
    for day in 0..DAYS {
        let mut minute = 0;
        while minute < 24 * 60 {
            if minute == 12 * 60 {
                off.store((i64::try_from(day).unwrap() * 3_700) % 16_000 - 8_000, Ordering::Relaxed);
            }
            if minute == 135 && day % 2 == 1 {
                sandbox.revoke(None);
            }
            if minute == 60 && day % 5 == 3 {
                slept.fetch_add(7 * 3_600_000, Ordering::Relaxed);
                sandbox.advance(secs(7 * 3_600));
                minute += 7 * 60;
            }
            if (9 * 60..16 * 60).contains(&minute) && minute % 5 == 0 {
                let request =
                    Request::get(base.join("/api/oms/orders").unwrap()).body(Full::<Bytes>::default());
                let status = stack.clone().oneshot(request.unwrap()).await.map(|response| response.status());
                month.calls += 1;
                month.failed += u64::from(!matches!(status, Ok(StatusCode::OK)));
            }
            tokio::time::sleep(secs(60)).await;
            minute += 1;
        }
        let logins = sandbox.state().logins;
        let held = source.status().generation.map_or(0, |generation| generation.0);
        month.most_logins_a_day = month.most_logins_a_day.max(held - before.0);
        month.most_sessions_a_day = month.most_sessions_a_day.max(logins.succeeded - before.1);
        before = (held, logins.succeeded);
        (month.sessions, month.refused) = (logins.succeeded, logins.failed);
    }
    month
}

#[tokio::test(start_paused = true)]
async fn a_month_of_trading_fails_no_call_and_logs_in_at_most_twice_a_day() {
    let month = month(Renewal::new(), true).await;
    println!("{month:?}");
    assert_eq!(month.calls, DAYS * 84);
    assert_eq!(month.failed, 0);
    assert!(month.most_logins_a_day <= 2, "{month:?}");
    assert!(month.most_sessions_a_day <= 3, "{month:?}");
    // Only the first code can be wrong, while the service's clock is unknown.
    assert!(month.refused <= 1, "{month:?}");
}

/// Shows what the defaults are for: without the daily time and the background, more codes are needed and calls wait.
#[tokio::test(start_paused = true)]
async fn a_month_without_renewal_ahead_still_fails_no_call() {
    let month = month(Renewal::new().daily(None), false).await;
    println!("{month:?}");
    assert_eq!(month.failed, 0);
    assert!(month.most_logins_a_day <= 2, "{month:?}");
}
