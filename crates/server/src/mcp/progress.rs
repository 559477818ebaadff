//! Signs of life while a tool runs.
//! Invariant: the first is sent at once and one follows at least every 20 s, because a host gives up a call that is silent.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::time::Instant;

const EVERY: Duration = Duration::from_secs(15);

/// Runs `work`, telling a client that asked for it that it goes on.
pub async fn while_running<T>(context: &RequestContext<RoleServer>, work: impl Future<Output = T>) -> T {
    let Some(token) = context.meta.get_progress_token() else {
        return work.await;
    };
    let tell = |count| {
        let step = ProgressNotificationParam::new(token.clone(), count).with_message("running");
        // A client that does not listen any more is told nothing; the work goes on.
        async move { drop(context.peer.notify_progress(step).await) }
    };
    telling(tell, work).await
}

async fn telling<T, Told: Future<Output = ()>>(tell: impl Fn(f64) -> Told, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    // Not by the first tick of a clock, which may be a millisecond away: much is done by then.
    let mut count = 1.0;
    tell(count).await;
    let mut ticks = tokio::time::interval_at(Instant::now() + EVERY, EVERY);
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                count += 1.0;
                tell(count).await;
            }
            done = &mut work => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn the_first_sign_of_life_comes_at_once_and_none_is_later_than_20_s_after_another() {
        let (started, told) = (Instant::now(), RefCell::new(Vec::new()));
        let work = async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            7
        };
        let tell = |count: f64| {
            told.borrow_mut().push((started.elapsed().as_secs(), count));
            std::future::ready(())
        };
        assert_eq!(super::telling(tell, work).await, 7);
        let told = told.into_inner();
        assert_eq!(told[0], (0, 1.0));
        assert!(told.windows(2).all(|two| two[1].0 - two[0].0 <= 20 && two[1].1 > two[0].1), "{told:?}");
        assert!(told.last().is_some_and(|last| last.0 > 80), "{told:?}");
    }
}
