use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// Drops a future after its first poll, a new one after its second, and so on, until one completes.
///
/// `start` makes a new future each time. `check` gets the number of polls before the drop, and asserts that nothing is
/// left behind. Returns the output of the completed future and its number of polls.
///
/// Run it with paused time, so that the same poll is the same point each time.
///
/// # Panics
///
/// If the future has not ended after a thousand polls.
pub async fn drop_at_every_poll<F, C>(
    mut start: impl FnMut() -> F,
    mut check: impl FnMut(usize) -> C,
) -> (F::Output, usize)
where
    F: Future,
    C: Future<Output = ()>,
{
    for most in 1..=1_000 {
        if let Some(output) = at_most(most, start()).await {
            return (output, most);
        }
        check(most).await;
    }
    panic!("future has not ended after a thousand polls");
}

/// Returns the future's output, or `None` if it takes more than `most` polls.
async fn at_most<F: Future>(most: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polls = 0;
    poll_fn(|cx| {
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polls >= most => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_await_is_a_place_to_be_dropped_at() {
        let started = Arc::new(AtomicUsize::new(0));
        let mut dropped_at = Vec::new();
        let (output, polls) = drop_at_every_poll(
            || {
                let started = started.clone();
                async move {
                    started.fetch_add(1, Ordering::SeqCst);
                    sleep(Duration::from_secs(1)).await;
                    sleep(Duration::from_secs(1)).await;
                    7
                }
            },
            |polls| {
                dropped_at.push(polls);
                async {}
            },
        )
        .await;
        assert_eq!((output, polls, dropped_at), (7, 3, vec![1, 2]));
        assert_eq!(started.load(Ordering::SeqCst), 3);
    }
}
