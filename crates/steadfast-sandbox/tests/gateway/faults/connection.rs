use http::Method;
use steadfast_sandbox::Fault;

use crate::world::{MARKET, ORDERS, SCRIP_MASTER, World};

/// The client's view of the answer.
#[derive(Clone, Copy)]
enum Seen {
    Nothing,
    HalfOfTheBody,
}

const TABLE: &[(Fault, &str, Seen, usize)] = &[
    (Fault::ConnectionResetBefore, "connection.reset-before", Seen::Nothing, 0),
    (Fault::ConnectionResetAfter, "connection.reset-after", Seen::Nothing, 1),
    (Fault::ConnectionResetMidBody, "connection.reset-mid-body", Seen::HalfOfTheBody, 1),
];

pub(super) fn faults() -> Vec<Fault> {
    TABLE.iter().map(|(fault, ..)| *fault).collect()
}

#[tokio::test(start_paused = true)]
async fn a_connection_fault_loses_the_answer_and_its_row_says_whether_the_order_too() {
    for &(fault, name, seen, orders) in TABLE {
        assert_eq!(fault.as_str(), name);
        let world = World::with_fault(name, 1.0);
        let answer = world.place(MARKET).await;
        match seen {
            Seen::Nothing => assert!(answer.is_reset(), "{name}"),
            Seen::HalfOfTheBody => {
                assert_eq!(answer.status(), 200, "{name}");
                assert!(!answer.is_whole() && !answer.body().is_empty(), "{name}");
            }
        }
        assert_eq!((world.orders(), world.struck(name)), (orders, 1), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn connection_faults_strike_every_kind_of_request() {
    for &(_, name, ..) in TABLE {
        let world = World::with_fault(name, 1.0);
        let calls = [
            world.get(ORDERS),
            world.get(SCRIP_MASTER),
            world.get("/no/such/path"),
            world.call(Method::PATCH, ORDERS),
            world.post("/api-gw/oauth/token", "code=x"),
        ];
        for call in &calls {
            let answer = call.send().await;
            assert!(!answer.is_whole(), "{name}: {answer}");
        }
        assert_eq!(world.struck(name), calls.len() as u64, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_body_breaks_off_too() {
    let world = World::new();
    let user = &world.user;
    let form = format!(
        "api_key={}&client_id={}&password={}&twoFa={}",
        user.api_key,
        user.client_id,
        user.password,
        world.sandbox.totp_now()
    );
    world.strike_always("connection.reset-mid-body");
    let redirect = world.post("/api-gw/oauth/login", form).send().await;
    assert!(redirect.is_reset(), "{redirect}");
}
