//! Calls of `run_js` that their client gives up by `notifications/cancelled`.
//! Invariant: only that ends a run. A connection that breaks leaves it to go on: `list_executions` and the log tell of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use access::Caller;
use rmcp::model::RequestId;
use session::{ExecutionIdCell, Service};
use tokio_util::sync::CancellationToken;

/// The SDK ends a call for both, and tells of a notification right after that.
const WISH_COMES_WITHIN: Duration = Duration::from_secs(1);

/// The calls of one connection that are under way.
#[derive(Clone, Default)]
pub struct Calls(Arc<Mutex<HashMap<RequestId, CancellationToken>>>);

/// One of them, for as long as it is answered.
pub struct UnderWay {
    calls: Calls,
    id: RequestId,
    given_up: CancellationToken,
    pub id_cell: ExecutionIdCell,
}

impl Calls {
    pub fn enter(&self, id: &RequestId) -> UnderWay {
        let given_up = CancellationToken::new();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), given_up.clone());
        UnderWay { calls: self.clone(), id: id.clone(), given_up, id_cell: ExecutionIdCell::default() }
    }

    /// What the client says no longer to wait for.
    pub fn give_up(&self, id: &RequestId) {
        if let Some(given_up) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            given_up.cancel();
        }
    }
}

impl UnderWay {
    /// After the SDK has ended the call: the run ends too, where its client asked for that.
    pub async fn end(&self, service: &Service, caller: &Caller) {
        if tokio::time::timeout(WISH_COMES_WITHIN, self.given_up.cancelled()).await.is_err() {
            return;
        }
        if let Err(error) = service.cancel_unanswered_js(caller, &self.id_cell).await {
            tracing::error!(error = &error as &dyn std::error::Error, "a run that was given up goes on");
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.calls.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
