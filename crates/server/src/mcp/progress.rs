//! Signs of life while a tool runs.
//! Invariant: the first is sent at once and one follows at least every 20 s, because a host gives up a call that is silent.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;

const EVERY: Duration = Duration::from_secs(15);

/// Runs `work`, telling a client that asked for it that it goes on.
pub async fn while_running<T>(context: &RequestContext<RoleServer>, work: impl Future<Output = T>) -> T {
    let Some(token) = context.meta.get_progress_token() else {
        return work.await;
    };
    tokio::pin!(work);
    let mut ticks = tokio::time::interval(EVERY);
    let mut count = 0.0;
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                count += 1.0;
                let step = ProgressNotificationParam::new(token.clone(), count).with_message("running");
                // A client that does not listen any more is told nothing; the work goes on.
                let _ = context.peer.notify_progress(step).await;
            }
            done = &mut work => return done,
        }
    }
}
