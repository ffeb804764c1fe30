use steadfast_sandbox::Sandbox;
use tokio::net::TcpStream;

use crate::world::{Answer, Line, READER, TOKEN, World};

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
