//! Runs that their caller gives up before it is told of them.
//! Invariant: such a run ends as cancelled and moves no head, stored or not, unless it has ended before; where it cannot be
//! found it never began.

use std::time::Duration;

use crate::engine::Became;
use crate::error::{Error, JsError};
use crate::service::Service;
use access::Caller;

/// Between two looks for a run that is not stored yet, and how many there are: it is stored in less, or never.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const LOOKS: usize = 500;

impl Service {
    /// Ends the run that a call became, as `cancel_execution` does, also where it is stored only later.
    pub async fn give_up_js(&self, caller: &Caller, became: &Became) -> Result<(), Error> {
        // It is known before anything of the run begins.
        let Some(id) = became.get() else { return Ok(()) };
        let (mut seen, mut left) = (false, Ok(()));
        for _ in 0..LOOKS {
            match self.cancel_execution(caller, &id.to_string()).await {
                Ok(()) | Err(Error::Js(JsError::Ended { .. })) => return Ok(()),
                Err(Error::Js(JsError::NoExecution(_))) => left = Ok(()),
                // It is told to stop all the same, and its end is tried again.
                Err(error) => left = Err(error),
            }
            match self.js()?.lives.get(*id) {
                // One that is not stored ends itself when it is told (`brief.rs`).
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
