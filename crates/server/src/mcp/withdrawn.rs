//! Calls of `run_js` that their client withdraws with `notifications/cancelled`.
//! Invariant: only that notification ends a run. After a connection broke, its runs go on, and `list_executions` and the log
//! show them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use access::Caller;
use app::calls::CancelWithdrawnRun;
use app::{App, Context, EntryPoint};
use rmcp::model::RequestId;
use session::ExecutionIdCell;
use tokio_util::sync::CancellationToken;

/// The SDK cancels a call for a broken connection and for a withdrawal alike, and passes on the notification right after a
/// withdrawal. Without it after this time, the connection broke.
const NOTIFICATION_WINDOW: Duration = Duration::from_secs(1);

/// The open `run_js` calls of one connection.
#[derive(Clone, Default)]
pub struct OpenScriptCalls(Arc<Mutex<HashMap<RequestId, CancellationToken>>>);

/// One open call. Dropping it takes it off the list.
pub struct OpenScriptCall {
    /// The list that has this call.
    calls: OpenScriptCalls,
    /// The id of the request, by which the notification names the call.
    request: RequestId,
    /// Cancelled when the notification arrives.
    withdrawn: CancellationToken,
    /// Receives the id of the run before it can start.
    pub id_cell: ExecutionIdCell,
}

impl OpenScriptCalls {
    /// Puts a call on the list.
    pub fn enter(&self, request: &RequestId) -> OpenScriptCall {
        let withdrawn = CancellationToken::new();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(request.clone(), withdrawn.clone());
        OpenScriptCall { calls: self.clone(), request: request.clone(), withdrawn, id_cell: ExecutionIdCell::default() }
    }

    /// Notes that the client withdrew a request.
    pub fn withdraw(&self, request: &RequestId) {
        if let Some(withdrawn) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(request) {
            withdrawn.cancel();
        }
    }
}

impl OpenScriptCall {
    /// Cancels the run of a call that the SDK has cancelled, if its client withdrew it.
    pub async fn cancel_run_if_withdrawn(&self, app: &App, caller: &Caller) {
        if tokio::time::timeout(NOTIFICATION_WINDOW, self.withdrawn.cancelled()).await.is_err() {
            return;
        }
        let context = Context::new(caller.clone(), EntryPoint::Protocol);
        let cancelled = app.call(&context, CancelWithdrawnRun { id_cell: self.id_cell.clone() }).await;
        if let Err(error) = cancelled {
            tracing::error!(error = &error as &dyn std::error::Error, "a run could not be cancelled and goes on");
        }
    }
}

impl Drop for OpenScriptCall {
    fn drop(&mut self) {
        self.calls.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.request);
    }
}
