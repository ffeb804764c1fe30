//! One source used from two runtimes, one of which ends together with the login that it drives.

use std::thread;

use steadfast_auth::AuthErrorKind;
use steadfast_call::Call;
use tokio::{
    runtime::{Builder, Runtime},
    time::Instant,
};
use tower::ServiceExt;

use crate::support::{Answer, Bench, kind, orders, secs};

/// Creates the runtime that ends. Its time is real.
fn other() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Creates the runtime that stays. Its time is paused and advances when all its tasks are idle.
fn lasting() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// Waits, in real time, until `count` logins have arrived.
fn arrived(bench: &Bench, count: usize) {
    while bench.logins.count() < count {
        thread::yield_now();
    }
}

/// Ends a runtime from outside of any runtime, as its owner does.
fn end(runtime: Runtime) {
    thread::spawn(move || drop(runtime)).join().unwrap();
}

/// All other requests used to be told at once that there is no token, as were those of the next half minute.
#[test]
fn t25_requests_outlive_the_runtime_that_drives_their_login() {
    let (lasting, other) = (lasting(), other());
    lasting.block_on(async {
        let bench = Bench::new([Answer::Hang, Answer::Token("one")]);
        bench.api.accept(["one"]);
        let first = other.spawn(bench.stack().oneshot(orders()));
        arrived(&bench, 1);
        let waiting: Vec<_> = (0..10).map(|_| bench.spawn_get()).collect();
        tokio::task::yield_now().await;
        let start = Instant::now();
        end(other);
        assert!(first.await.unwrap_err().is_cancelled());

        let late = bench.get().await.unwrap();
        assert_eq!(late.status(), 200, "it came after the interruption");
        for call in waiting {
            assert_eq!(call.await.unwrap().unwrap().status(), 200);
        }
        assert_eq!(bench.logins.count(), 2, "one login for all of them");
        let waited = start.elapsed().as_secs();
        assert!((30..60).contains(&waited), "the interrupted one may have left: {waited} s");
    });
}

#[test]
fn t25_who_cannot_wait_for_the_next_login_is_told_when_it_is() {
    let (lasting, other) = (lasting(), other());
    lasting.block_on(async {
        let bench = Bench::new([Answer::Hang, Answer::Token("one")]);
        bench.api.accept(["one"]);
        drop(other.spawn(bench.stack().oneshot(orders())));
        arrived(&bench, 1);
        end(other);
        let mut request = orders();
        let start = Instant::now();
        Call::of_mut(request.extensions_mut()).set_deadline(start.into_std() + secs(20));
        let error = bench.stack().oneshot(request).await.unwrap_err();
        assert_eq!((kind(&error), start.elapsed()), (AuthErrorKind::Unavailable, secs(0)));
        let ready = crate::support::auth_error(&error).ready_at().unwrap() - start;
        assert!(ready > secs(25), "{ready:?}");

        // A login on request is waited for too, and its token ends the wait.
        let waiting = bench.spawn_get();
        tokio::task::yield_now().await;
        tokio::time::sleep(secs(31)).await;
        assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
    });
}

/// A request with a refused token waited for the renewal, and used to get its 401 when the renewal's runtime ended.
#[test]
fn t25_a_401_outlives_the_runtime_that_drives_the_renewal() {
    let (lasting, other) = (lasting(), other());
    lasting.block_on(async {
        let bench = Bench::with_working_token("one", [Answer::Hang, Answer::Token("two")]).await;
        bench.api.accept(["two"]);
        // The next code is available at once, also in the runtime with real time.
        bench.clock.suspend(secs(60));
        drop(other.spawn(bench.stack().oneshot(orders())));
        arrived(&bench, 2);
        let waiting = bench.spawn_get();
        tokio::task::yield_now().await;
        end(other);
        assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
        assert_eq!(bench.get().await.unwrap().status(), 200);
        assert_eq!(bench.logins.count(), 3);
        assert_eq!(
            bench.api.tokens().iter().filter(|token| *token == "one").count(),
            2,
            "none is sent in vain"
        );
    });
}
