//! The same promises on real threads, with an arbitrary order of events.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{Request, Response, StatusCode};
use steadfast_auth::{
    ApiKey, Attempt, AuthHeaderLayer, Grant, Login, LoginFailure, LoginMode, RefreshLayer, TokenSource,
};
use steadfast_call::ext::{Sent, TokenGeneration};
use tower::{ServiceBuilder, ServiceExt, service_fn};

/// Each login brings the next token; the service accepts only the newest.
#[derive(Clone, Default)]
struct Service {
    logins: Arc<AtomicU64>,
    accepts_from: Arc<AtomicU64>,
}

impl Login for Service {
    fn mode(&self) -> LoginMode {
        LoginMode::Unattended
    }

    async fn attempt(&self, attempt: &Attempt) -> Result<Grant, LoginFailure> {
        let token = self.logins.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::task::yield_now().await;
        Ok(Grant::new(format!("{token}"), attempt.now()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_tasks_over_a_roll_over_make_one_login_and_lose_nothing() {
    for _ in 0..50 {
        let service = Service::default();
        let source = TokenSource::builder(ApiKey::new("k").unwrap(), service.clone()).build();
        let gateway = service.clone();
        let api = service_fn(move |request: Request<()>| {
            let token = request.headers()["authorization"].to_str().unwrap().split_once(':').unwrap().1;
            let known = token.parse::<u64>().unwrap() >= gateway.accepts_from.load(Ordering::SeqCst);
            async move {
                tokio::task::yield_now().await;
                let status = if known { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
                Ok::<_, Infallible>(Response::builder().status(status).body(()).unwrap())
            }
        });
        let stack = ServiceBuilder::new()
            .layer(RefreshLayer::new(source.clone()))
            .layer(AuthHeaderLayer::new(source.clone()))
            .service(api);
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..8 {
            let (stack, service) = (stack.clone(), service.clone());
            tasks.spawn(async move {
                let mut newest = TokenGeneration(0);
                for call in 0..100 {
                    if task == 0 && call == 50 {
                        service.accepts_from.store(2, Ordering::SeqCst);
                    }
                    let request = Request::get("https://api.example/v2/api/oms/orders").body(()).unwrap();
                    let response = stack.clone().oneshot(request).await.unwrap();
                    assert_eq!(response.status(), StatusCode::OK);
                    let generation = Sent::of(response.extensions()).generation().unwrap();
                    assert!(generation >= newest, "an older token after a newer one");
                    newest = generation;
                }
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
        assert_eq!(service.logins.load(Ordering::SeqCst), 2, "the first and the roll-over's");
    }
}

/// A thousand requests meet an ended token at once, and one login serves them all. Prints the cost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_callers_on_a_401_make_one_login() {
    let service = Service::default();
    let source = TokenSource::builder(ApiKey::new("k").unwrap(), service.clone()).build();
    let gateway = service.clone();
    let api = service_fn(move |request: Request<()>| {
        let token = request.headers()["authorization"].to_str().unwrap().split_once(':').unwrap().1;
        let known = token.parse::<u64>().unwrap() >= gateway.accepts_from.load(Ordering::SeqCst);
        let status = if known { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        std::future::ready(Ok::<_, Infallible>(Response::builder().status(status).body(()).unwrap()))
    });
    let stack = ServiceBuilder::new()
        .layer(RefreshLayer::new(source.clone()))
        .layer(AuthHeaderLayer::new(source.clone()))
        .service(api);
    let request = || Request::get("https://api.example/v2/api/oms/orders").body(()).unwrap();
    assert_eq!(stack.clone().oneshot(request()).await.unwrap().status(), StatusCode::OK);
    service.accepts_from.store(2, Ordering::SeqCst);
    let start = tokio::time::Instant::now();
    let mut calls: tokio::task::JoinSet<_> = (0..1_000).map(|_| stack.clone().oneshot(request())).collect();
    while let Some(call) = calls.join_next().await {
        assert_eq!(call.unwrap().unwrap().status(), StatusCode::OK);
    }
    println!(
        "1,000 callers on a 401: {:?}, {} logins",
        start.elapsed(),
        service.logins.load(Ordering::SeqCst)
    );
    assert_eq!(service.logins.load(Ordering::SeqCst), 2, "the first and the one for all of them");
}
