//! Notifications that a list changed, sent when a fixture asks for them.
//! Invariant: a stream gets the notifications of the lists it subscribed to, and no others.

use rmcp::model::ErrorData;
use rmcp::service::SubscriptionContext;
use tokio::sync::broadcast;

/// The list that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Tools,
    Prompts,
}

/// A channel from the fixtures to all streams.
pub struct Changes(broadcast::Sender<Change>);

impl Default for Changes {
    fn default() -> Self {
        Self(broadcast::Sender::new(16))
    }
}

impl Changes {
    pub fn announce(&self, change: Change) {
        // Without a listener, sending fails, and there is nothing to notify.
        let _ = self.0.send(change);
    }

    pub async fn forward_to(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.subscribe();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = context.cancelled() => return Ok(()),
            };
            // The SDK refuses a notification that the stream did not subscribe to.
            let _ = match change {
                Ok(Change::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(_) => return Ok(()),
            };
        }
    }
}
