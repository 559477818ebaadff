//! Cancels runs whose caller left before it learned their id.
//! Invariant: such a run ends as cancelled and moves no head, whether or not it was stored, unless it has already
//! ended. A run that cannot be found never started.

use std::time::Duration;

use crate::engine::ExecutionIdCell;
use crate::error::{Error, JsError};
use crate::service::Service;
use access::Caller;

/// The pause between two lookups of a run that is not stored yet, and their number. A run is stored well within this
/// time, or never.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const LOOKS: usize = 500;

impl Service {
    /// Ends the run that a call started, like `cancel_execution`, even if the run is stored only later.
    pub async fn cancel_unanswered_js(&self, caller: &Caller, id_cell: &ExecutionIdCell) -> Result<(), Error> {
        // The id is set before the run can start, so an empty cell means that there is no run.
        let Some(id) = id_cell.get() else { return Ok(()) };
        let (mut seen, mut left) = (false, Ok(()));
        for _ in 0..LOOKS {
            match self.cancel_execution(caller, &id.to_string()).await {
                Ok(()) | Err(Error::Js(JsError::Ended { .. })) => return Ok(()),
                Err(Error::Js(JsError::NoExecution(_))) => left = Ok(()),
                // The live run is stopped anyway, and storing its end is retried.
                Err(error) => left = Err(error),
            }
            match self.js()?.lives.get(*id) {
                // A run that is not stored yet ends itself when it is cancelled (`fast_path.rs`).
                Some(live) => {
                    live.end();
                    seen = true;
                }
                None if seen && left.is_ok() => return Ok(()),
                None => {}
            }
            self.ports.clock.sleep(LOOK_AGAIN).await;
        }
        left
    }
}
