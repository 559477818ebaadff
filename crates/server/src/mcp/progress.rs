//! Progress notifications while a tool runs.
//! Invariant: the first is sent at once, and one follows at least every 20 s, because hosts cancel a call that stays silent.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::time::Instant;

/// The pause between two notifications. It leaves a margin below the 20 s after which hosts cancel a silent call.
const INTERVAL: Duration = Duration::from_secs(15);

/// Runs `work` and notifies a client that asked for progress.
pub async fn while_running<T>(context: &RequestContext<RoleServer>, work: impl Future<Output = T>) -> T {
    let Some(token) = context.meta.get_progress_token() else {
        return work.await;
    };
    let notify = |count| {
        let progress = ProgressNotificationParam::new(token.clone(), count).with_message("running");
        // A failure means that the client is gone. The work goes on without it.
        async move { drop(context.peer.notify_progress(progress).await) }
    };
    with_notifications(notify, work).await
}

/// Runs `work` and calls `notify` with a growing count, at once and then at every interval.
async fn with_notifications<T, N: Future<Output = ()>>(notify: impl Fn(f64) -> N, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    // The first notification does not wait for a tick of the timer, which comes up to a millisecond later: short work is done
    // by then, and its client would see no progress at all.
    let mut count = 1.0;
    notify(count).await;
    let mut ticks = tokio::time::interval_at(Instant::now() + INTERVAL, INTERVAL);
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                count += 1.0;
                notify(count).await;
            }
            result = &mut work => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn the_first_notification_comes_at_once_and_the_next_within_20_s() {
        let started = Instant::now();
        let notified = RefCell::new(Vec::new());
        let work = async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            7
        };
        let notify = |count: f64| {
            notified.borrow_mut().push((started.elapsed().as_secs(), count));
            std::future::ready(())
        };
        assert_eq!(super::with_notifications(notify, work).await, 7);
        let notified = notified.into_inner();
        assert_eq!(notified[0], (0, 1.0));
        assert!(notified.windows(2).all(|two| two[1].0 - two[0].0 <= 20 && two[1].1 > two[0].1), "{notified:?}");
        assert!(notified.last().is_some_and(|last| last.0 > 80), "{notified:?}");
    }
}
