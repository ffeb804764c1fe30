//! §4.3 POST /api-gw/oauth/individual-token-v2.

use std::time::Duration;

use crate::{
    answer::{INVALID_INPUT, UNAUTHORIZED},
    form::Form,
    world::World,
};

#[tokio::test(start_paused = true)]
async fn spec_4_3_a_two_factor_code_buys_a_token() {
    let world = World::new();
    let answer = world.try_log_in().await;
    let session = world.session_from(&answer);
    assert!(world.is_alive(&session).await);
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_success_is_in_the_envelope() {
    // §1 excepts the OAuth token exchange alone: every other JSON answer is in the envelope.
    let world = World::new();
    let payload = world.try_log_in().await.payload();
    assert!(payload.to_string().len() > "{}".len(), "the payload holds the token");
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_a_code_has_six_digits() {
    let world = World::new();
    let code = world.sandbox.totp_now();
    assert_eq!(code.len(), 6);
    assert!(code.bytes().all(|byte| byte.is_ascii_digit()), "{code}");
    for wrong in [&code[..5], &format!("0{code}"), "", "abcdef"] {
        let form = world.login_form().with("twoFa", wrong);
        world.calmly(&world.individual_token(&form)).await.assert_refused_with(&[400, 401]);
    }
    world.log_in().await;
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_the_header_carries_the_api_key_only() {
    let world = World::new();
    let key = &world.user.api_key;
    let wrong = [
        format!("Bearer {key}:{}", world.user.session.token),
        format!("Bearer {key}:"),
        format!("Bearer :{key}"),
        "Bearer nosuchkey".to_owned(),
        "Bearer ".to_owned(),
        "Bearer".to_owned(),
        key.clone(),
        format!("Basic {key}"),
    ];
    for header in wrong {
        world.pass(crate::world::A_MINUTE);
        let call = world.individual_token(&world.login_form()).authorization(&header);
        call.send().await.assert_error(401, UNAUTHORIZED);
    }
    let call = world.individual_token(&world.login_form()).without_authorization();
    world.calmly(&call).await.assert_error(401, UNAUTHORIZED);
    world.log_in().await;
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_the_code_kind_is_required() {
    let world = World::new();
    let form = world.login_form().without("twoFaTyp");
    world.calmly(&world.individual_token(&form)).await.assert_error(400, INVALID_INPUT);
    world.log_in().await;
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_an_unknown_code_kind_buys_no_token() {
    let world = World::new();
    for kind in ["sms", "TOTP", "OTP", ""] {
        let form = world.login_form().with("twoFaTyp", kind);
        world.calmly(&world.individual_token(&form)).await.assert_refused_with(&[400, 401]);
    }
    world.log_in().await;
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_a_code_of_the_other_kind_is_unauthorized() {
    let world = World::new();
    let form = world.login_form().with("twoFaTyp", "otp");
    world.calmly(&world.individual_token(&form)).await.assert_error(401, UNAUTHORIZED);
    world.log_in().await;
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_wrong_credentials_are_unauthorized() {
    let world = World::new();
    for field in ["client_id", "password", "twoFa"] {
        world.pass(crate::world::A_MINUTE);
        let wrong = match field {
            "twoFa" => another_code(&world.sandbox.totp_now()),
            _ => "wrong".to_owned(),
        };
        let form = world.login_form().with(field, &wrong);
        world.individual_token(&form).send().await.assert_error(401, UNAUTHORIZED);
    }
    let form = world.login_form().with("client_id", &world.other.client_id);
    world.calmly(&world.individual_token(&form)).await.assert_error(401, UNAUTHORIZED);
    world.log_in().await;
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_an_expired_code_is_unauthorized() {
    let world = World::new();
    for age in [61, 90, 600] {
        let form = world.login_form();
        world.pass(Duration::from_secs(age));
        world.individual_token(&form).send().await.assert_error(401, UNAUTHORIZED);
    }
    world.log_in().await;
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_a_sent_code_buys_a_token() {
    let world = World::new();
    let form = sent_code_form(&world);
    let session = world.session_from(&world.calmly(&world.individual_token(&form)).await);
    assert!(world.is_alive(&session).await);

    // The same kind of code under the other name is no match.
    let form = sent_code_form(&world).with("twoFaTyp", "totp");
    world.calmly(&world.individual_token(&form)).await.assert_error(401, UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_a_sent_code_expires_within_a_minute() {
    let world = World::new();
    let form = sent_code_form(&world);
    world.pass(Duration::from_secs(61));
    world.individual_token(&form).send().await.assert_error(401, UNAUTHORIZED);

    let form = sent_code_form(&world);
    world.pass(Duration::from_secs(29));
    world.session_from(&world.individual_token(&form).send().await);
}

/// Returns the fields of a login with a code that was just sent to the user.
fn sent_code_form(world: &World) -> Form {
    let code = world.sandbox.send_otp(&world.user.client_id).expect("a known user");
    world.login_form().with("twoFa", &code).with("twoFaTyp", "otp")
}

/// Returns a code that differs in its first digit.
fn another_code(code: &str) -> String {
    let first = if code.starts_with('0') { '1' } else { '0' };
    format!("{first}{}", &code[1..])
}
