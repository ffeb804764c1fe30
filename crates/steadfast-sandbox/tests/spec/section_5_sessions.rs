//! §5.8 Active login sessions: at most 10 per user.

use std::{collections::BTreeSet, time::Duration};

use steadfast_sandbox::{EleventhSession, Sandbox};

use crate::world::{Session, World};

const AT_MOST: usize = 10;

#[tokio::test(start_paused = true)]
async fn spec_5_ten_sessions_live_side_by_side() {
    // The session that is open from the start is one of the ten.
    let world = World::new();
    let mut sessions = vec![world.user.session.clone()];
    while sessions.len() < AT_MOST {
        sessions.push(world.log_in().await);
    }
    let tokens: BTreeSet<&str> = sessions.iter().map(|session| session.token.as_str()).collect();
    assert_eq!(tokens.len(), AT_MOST, "each login opens a session of its own");
    assert_eq!(alive(&world, &sessions).await, [true; AT_MOST]);
}

#[tokio::test(start_paused = true)]
async fn spec_5_the_eleventh_session_evicts_the_oldest() {
    let world = with_eleventh_session(EleventhSession::EvictOldest);
    let mut sessions = Vec::new();
    for _ in 0..=AT_MOST {
        sessions.push(world.log_in().await);
    }
    assert!(!world.is_alive(&world.user.session).await, "the session open from the start is older still");
    assert!(!world.is_alive(&sessions[0]).await, "the oldest of eleven is evicted");
    assert_eq!(alive(&world, &sessions[1..]).await, [true; AT_MOST]);
}

#[tokio::test(start_paused = true)]
async fn spec_5_the_eleventh_session_evicts_the_oldest_for_oauth_too() {
    let world = with_eleventh_session(EleventhSession::EvictOldest);
    let mut sessions = Vec::new();
    for _ in 0..AT_MOST {
        sessions.push(world.log_in().await);
    }
    let newest = world.log_in_by_oauth().await;
    assert!(!world.is_alive(&sessions[0]).await);
    assert_eq!(alive(&world, &sessions[1..]).await, [true; AT_MOST - 1]);
    assert!(world.is_alive(&newest).await);
}

#[tokio::test(start_paused = true)]
async fn spec_5_the_eleventh_session_is_refused_by_switch() {
    let world = with_eleventh_session(EleventhSession::Refuse);
    let mut sessions = vec![world.user.session.clone()];
    while sessions.len() < AT_MOST {
        sessions.push(world.log_in().await);
    }
    for _ in 0..2 {
        let answer = world.try_log_in().await;
        assert_eq!(answer.envelope()["s"], "error", "the status is not shown: {answer}");
        assert!(answer.status.is_client_error(), "{answer}");
    }
    assert_eq!(alive(&world, &sessions).await, [true; AT_MOST]);
}

#[tokio::test(start_paused = true)]
async fn spec_5_an_expired_session_makes_room() {
    let world = with_eleventh_session(EleventhSession::Refuse);
    for _ in 1..AT_MOST {
        world.log_in().await;
    }
    assert_eq!(world.try_log_in().await.envelope()["s"], "error");

    world.pass(Duration::from_secs(25 * 60 * 60));
    let session = world.log_in().await;
    assert!(world.is_alive(&session).await);
}

#[tokio::test(start_paused = true)]
async fn spec_5_the_session_limit_is_per_user() {
    let world = with_eleventh_session(EleventhSession::EvictOldest);
    for _ in 0..=AT_MOST {
        world.log_in().await;
    }
    assert!(!world.is_alive(&world.user.session).await, "eleven logins have evicted this one");
    assert!(world.is_alive(&world.other.session).await, "the other user has one session only");
}

fn with_eleventh_session(switch: EleventhSession) -> World {
    World::of(Sandbox::builder().seed(7).eleventh_session(switch).build().expect("a sandbox"))
}

async fn alive(world: &World, sessions: &[Session]) -> Vec<bool> {
    let mut alive = Vec::new();
    for session in sessions {
        alive.push(world.is_alive(session).await);
    }
    alive
}
