use std::{future::ready, pin::Pin, sync::Arc, time::Duration};

use steadfast_proxy::{
    NotResumed, SharedOrders, Sharing,
    front::{Admission, Tokens},
};
use steadfast_sandbox::Sandbox;
use tokio::net::TcpStream;

use crate::{
    orders::hasty,
    world::{Answer, Line, READER, TOKEN, World},
};

pub(crate) async fn call(world: &World, line: &str, lines: &[String]) -> Answer {
    let mut operator = Line(TcpStream::connect(world.admin).await.unwrap());
    let head = format!("{line} HTTP/1.1\r\nHost: {}\r\n{}\r\n\r\n", world.admin, lines.join("\r\n"));
    operator.send(head.replace("\r\n\r\n\r\n", "\r\n\r\n").as_bytes()).await;
    operator.answer().await.unwrap()
}

#[tokio::test]
async fn an_operator_sees_health_and_figures_and_halts() {
    let world = World::new(Sandbox::builder()).await;
    let [trader, reader] = [TOKEN, READER].map(|token| vec![format!("Authorization: Bearer {token}")]);
    for path in ["/livez", "/readyz", "/startupz"] {
        assert_eq!(call(&world, &format!("GET {path}"), &[]).await.status, 200, "{path}");
    }
    assert_eq!(call(&world, "GET /metrics", &[]).await.status, 401);
    let figures = call(&world, "GET /metrics", &reader).await;
    assert!(figures.body.contains("\nsteadfast_orders_in_doubt 0\n"), "{figures:?}");
    assert_eq!(call(&world, "POST /-/halt", &reader).await.status, 403);
    assert!(!world.client.is_halted());
    assert_eq!(call(&world, "POST /-/halt", &trader).await.status, 200);
    assert!(world.client.is_halted());
    assert_eq!(call(&world, "POST /-/resume", &trader).await.status, 200);
    assert!(!world.client.is_halted());
    world.proxy.stop();
    assert_eq!(call(&world, "GET /readyz", &[]).await.status, 503);
    assert_eq!(call(&world, "POST /-/resume", &trader).await.status, 503);
    assert!(world.client.is_halted());
}

/// Orders that several sidecars share, another of which halts whenever this one resumes.
struct Contested;

impl SharedOrders for Contested {
    fn now(&self) -> Sharing {
        Sharing::new("this one", "127.0.0.1:6379")
    }

    fn halt(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        Box::pin(ready(Ok(())))
    }

    fn resume(&self) -> Pin<Box<dyn Future<Output = Result<(), NotResumed>> + Send>> {
        Box::pin(ready(Err(NotResumed::HaltedAgain { halt: 7 })))
    }

    fn accept(&self, _: String) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        Box::pin(ready(Ok(())))
    }
}

#[tokio::test]
async fn a_resume_says_that_another_sidecar_has_halted_meanwhile() {
    let world = World::that(Sandbox::builder(), |proxy| proxy.shares_orders(Arc::new(Contested))).await;
    let trader = [format!("Authorization: Bearer {TOKEN}")];
    assert_eq!(call(&world, "POST /-/halt", &trader).await.status, 200);
    let resumed = call(&world, "POST /-/resume", &trader).await;
    assert_eq!(
        (resumed.status, resumed.body.contains("halted meanwhile, by halt 7")),
        (409, true),
        "{resumed:?}"
    );
}

#[tokio::test]
async fn no_page_halts_and_no_stranger_learns_the_calls() {
    let world = World::new(Sandbox::builder()).await;
    let page = [format!("Authorization: Bearer {TOKEN}"), "Origin: https://evil.example".to_owned()];
    assert_eq!(call(&world, "POST /-/halt", &page).await.status, 403);
    assert_eq!(call(&world, "POST /-/halt", &[]).await.status, 401);
    assert_eq!(call(&world, "GET /-/halt", &[]).await.status, 401);
    assert_eq!(call(&world, "GET /anything", &[]).await.status, 401);
    assert!(!world.client.is_halted());
}

/// Regression: health said that all was well while the service refused every request.
#[tokio::test]
async fn a_sidecar_whose_session_is_over_is_not_ready() {
    let world = World::new(Sandbox::builder()).await;
    let read = world.request("GET /v2/api/oms/orders HTTP/1.1", &[], "");
    let reader = [format!("Authorization: Bearer {READER}")];
    assert_eq!(world.ask(&read).await.status, 200);
    world.sandbox.revoke(None);
    assert_eq!(world.ask(&read).await.status, 401);
    assert_eq!(call(&world, "GET /readyz", &[]).await.status, 200, "one 401 may be a mistake");
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let ready = call(&world, "GET /readyz", &[]).await;
    let why = "the service refuses the token (401); no login starts by itself";
    assert_eq!((ready.status, ready.body.trim()), (503, why));
    for path in ["/livez", "/startupz"] {
        assert_eq!(
            call(&world, &format!("GET {path}"), &[]).await.status,
            200,
            "{path}: a new start cures nothing"
        );
    }
    let state = call(&world, "GET /-/state", &reader).await.body;
    assert!(
        state.contains(r#""phase":"suspect""#) && state.contains(&format!(r#""trouble":"{why}""#)),
        "{state}"
    );
}

/// Regression: health said that all was well while every order was refused.
#[tokio::test]
async fn a_sidecar_whose_journal_has_failed_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("orders.journal");
    let world = World::journaled(Sandbox::builder(), &journal).await;
    let reader = [format!("Authorization: Bearer {READER}")];
    assert_eq!(world.ask(&world.order(&[])).await.status, 200);
    assert_eq!(call(&world, "GET /readyz", &[]).await.status, 200);
    let figures = call(&world, "GET /metrics", &reader).await.body;
    assert!(figures.contains("\nsteadfast_orders_withheld 0\n"), "{figures}");
    std::fs::remove_file(folder.path().join("orders.journal.lock")).unwrap();
    assert_eq!(world.ask(&world.order(&["x-new-order: 1"])).await.status, 503);
    let why = format!(
        "no order leaves: order cannot be written down before it is sent: {}.lock was moved, removed or replaced while the \
         journal was open",
        journal.display()
    );
    let ready = call(&world, "GET /readyz", &[]).await;
    assert_eq!((ready.status, ready.body.trim()), (503, &*why));
    assert_eq!(call(&world, "GET /livez", &[]).await.status, 200);
    let figures = call(&world, "GET /metrics", &reader).await.body;
    assert!(figures.contains("\nsteadfast_orders_withheld 1\n"), "{figures}");
    let state = call(&world, "GET /-/state", &reader).await.body;
    assert!(state.contains(&format!(r#""withheld":"{why}""#)), "{state}");
    assert_eq!(world.placed(), 1);
}

/// Regression: the figure was 0 as soon as the order was not looked for any more.
#[tokio::test]
async fn an_order_that_a_person_has_to_look_for_counts_as_in_doubt() {
    let script = "[[fault]]\nname = 'placement.504-not-applied'\nnth = 1";
    let world = World::with(Sandbox::builder().script(script).unwrap(), hasty()).await;
    let reader = [format!("Authorization: Bearer {READER}")];
    assert_eq!(world.ask(&world.order(&[])).await.status, 504);
    assert_eq!(world.client.in_doubt(), 0, "it is not looked for any more");
    let figures = call(&world, "GET /metrics", &reader).await.body;
    for figure in ["steadfast_orders_in_doubt 1", "steadfast_orders_unresolved 1"] {
        assert!(figures.contains(&format!("\n{figure}\n")), "{figures}");
    }
    let state = call(&world, "GET /-/state", &reader).await.body;
    assert!(state.contains(r#""in_doubt":0,"unresolved":1,"#), "{state}");

    // A person has looked, and says what became of it.
    let shown: serde_json::Value = serde_json::from_str(&state).unwrap();
    let shown = &shown["unresolved"][0];
    let order = world.client.tracker().unresolved().remove(0);
    assert_eq!(shown["account"].as_str(), Some(order.account.as_str()), "{state}");
    assert_eq!(shown["intent"].as_u64(), Some(order.intent.0), "{state}");
    assert_eq!(shown["what"], "buy 10 EQT_INFY_EQ_NSE limit 100 delivery day");
    let rule = format!("POST {}&not-placed=", shown["rule"].as_str().unwrap());
    let trader = vec![format!("Authorization: Bearer {TOKEN}")];
    let page = [trader.clone(), vec!["Origin: https://evil.example".to_owned()]].concat();
    for (line, lines, status) in [
        (&*rule, &[][..], 401),
        (&rule, &reader, 403),
        (&rule, &page, 403),
        (&rule.replace("POST", "GET"), &trader, 405),
        ("POST /-/rule", &trader, 400),
        (&rule.replace("intent=", "intent=9"), &trader, 409),
    ] {
        assert_eq!(call(&world, line, lines).await.status, status, "{line}");
    }
    assert_eq!(world.client.tracker().unresolved().len(), 1);
    assert_eq!(call(&world, &rule, &trader).await.status, 200);
    assert_eq!(world.client.tracker().unresolved(), []);
    let state = call(&world, "GET /-/state", &reader).await.body;
    assert!(
        state.contains(r#""unresolved":0,"#)
            && state.contains(r#""unresolved":[],"#)
            && state.contains("ruled by an operator: not placed"),
        "{state}"
    );
}

#[tokio::test]
async fn another_admission_holds_from_the_next_request_of_a_connection_on() {
    let world = World::new(Sandbox::builder()).await;
    let mut program = world.connect().await;
    let list = world.request("GET /v2/api/oms/orders HTTP/1.1", &[], "");
    program.send(&list).await;
    assert_eq!(program.answer().await.unwrap().status, 200);

    let tokens = Tokens::new(TOKEN).unwrap().reader(READER).unwrap();
    let named = Admission::new(tokens.clone()).host("steadfast:8090".parse().unwrap());
    assert!(!world.proxy.admit(named.clone().read_only()), "the same tokens");
    let by_name =
        String::from_utf8(list.clone()).unwrap().replace(&world.address.to_string(), "steadfast:8090");
    program.send(by_name.as_bytes()).await;
    assert_eq!(program.answer().await.unwrap().status, 200, "by its other name");
    let order = world.ask(&world.order(&[])).await;
    assert_eq!(order.status, 403, "{order:?}");
    assert!(order.header("proxy-status").unwrap().contains("only reads"), "{order:?}");
    let cancel = world.request("DELETE /v2/api/oms/cancel-order?orderId=1 HTTP/1.1", &[], "");
    assert_ne!(world.ask(&cancel).await.status, 403, "a cancel must get out");
    assert_eq!(world.placed(), 0);

    assert!(world.proxy.admit(Tokens::new("other-0123456789abcdef").unwrap().into()));
    program.send(&list).await;
    assert_eq!(program.answer().await.unwrap().status, 401, "its token is an old one");
    let old = world.request("GET /v2/api/oms/orders HTTP/1.1", &[], "");
    let by_name = String::from_utf8(old).unwrap().replace(&world.address.to_string(), "steadfast:8090");
    assert_eq!(world.ask(by_name.as_bytes()).await.status, 403, "its other name is gone");
}

/// Regression: orders that waited in a queue left after the sidecar was told to let only reads and cancels pass.
#[tokio::test]
async fn orders_that_wait_do_not_leave_once_the_sidecar_only_reads() {
    let world = World::new(Sandbox::builder()).await;
    let trader = [format!("Authorization: Bearer {TOKEN}")];
    let mut callers = Vec::new();
    for _ in 0..40 {
        let mut caller = world.connect().await;
        caller.send(&world.order(&["x-new-order: 1"])).await;
        callers.push(caller);
    }
    while world.placed() == 0 || world.proxy.waiting_orders() < 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let tokens = Tokens::new(TOKEN).unwrap();
    world.proxy.admit(Admission::new(tokens.clone()).read_only());
    let (mut placed, mut kept_back) = (0, 0);
    for mut caller in callers {
        let answer = caller.answer().await.unwrap();
        match answer.status {
            200 => placed += 1,
            503 => {
                assert!(answer.head.contains("the proxy only reads; nothing was sent"), "{answer:?}");
                kept_back += 1;
            }
            // It had not been looked at yet.
            status => assert_eq!(status, 403, "{answer:?}"),
        }
    }
    assert!(kept_back > 0, "a second has room for ten");
    assert_eq!(world.placed(), placed);
    let resume = call(&world, "POST /-/resume", &trader).await;
    assert_eq!((resume.status, resume.body.contains("read-only")), (409, true), "{resume:?}");
    assert!(world.client.is_halted());
    world.proxy.admit(tokens.into());
    assert_eq!(world.ask(&world.order(&["x-new-order: 1"])).await.status, 200);
}

#[tokio::test]
async fn a_reload_is_for_those_who_trade_and_tells_why_nothing_changed() {
    let told = std::sync::Arc::new(parking_lot::Mutex::new(Ok("changed drain".to_owned())));
    let answers = told.clone();
    let world =
        World::that(Sandbox::builder(), |proxy| proxy.on_reload(move || answers.lock().clone())).await;
    let [trader, reader] = [TOKEN, READER].map(|token| vec![format!("Authorization: Bearer {token}")]);
    assert_eq!(call(&world, "POST /-/reload", &[]).await.status, 401);
    assert_eq!(call(&world, "POST /-/reload", &reader).await.status, 403);
    assert_eq!(call(&world, "GET /-/reload", &trader).await.status, 405);
    let done = call(&world, "POST /-/reload", &trader).await;
    assert_eq!((done.status, done.body.as_str()), (200, "changed drain\n"));
    *told.lock() = Err("x.toml:3: unknown key".to_owned());
    let refused = call(&world, "POST /-/reload", &trader).await;
    assert_eq!((refused.status, refused.body.as_str()), (409, "x.toml:3: unknown key\n"));
    let without = World::new(Sandbox::builder()).await;
    assert_eq!(call(&without, "POST /-/reload", &trader).await.status, 409);
}
