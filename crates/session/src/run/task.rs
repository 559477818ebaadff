//! Operations under a name that does not depend on the connection, for clients that poll.
//! Invariant: a name finds an operation of the caller's tenant or nothing; a question never waits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use base::{LogicalSessionId, Timestamp};

use super::operation::{OperationRequest, OperationRow, OperationState, operation_key};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{RunRow, run_key};
use crate::run_result::RunAnswer;
use crate::service::Service;

/// An operation's name: `{session}_o{number}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskId {
    pub session: LogicalSessionId,
    pub number: u64,
}

/// The state of an operation.
#[derive(Debug)]
pub struct TaskState {
    pub started: Timestamp,
    /// When its state last changed, or its owner was last heard of.
    pub changed: Timestamp,
    /// The outcome so far. The error of a failed run is in here, not the error of this question.
    pub answer: Result<RunAnswer, Error>,
}

impl Service {
    /// Returns the state of an operation. With `cancel` it is cancelled first.
    pub async fn task(self: &Arc<Self>, caller: &Caller, name: &str, cancel: bool) -> Result<TaskState, Error> {
        let unknown = || Error::NoHandle(base::printable(name, 60));
        let TaskId { session, number } = TaskId::parse(name).ok_or_else(unknown)?;
        let session = match self.session(caller, &session.to_string()).await {
            Err(Error::NoSession(_)) => return Err(unknown()),
            found => found?,
        };
        let asked = OperationRequest { number, cancel, patience: Duration::ZERO };
        let answer = match self.ask_operation_number(caller, &session, asked).await {
            Ok(None) => return Err(unknown()),
            Ok(Some(answer)) => Ok(answer),
            Err(error) => Err(error),
        };
        let key = operation_key(caller, &session, number);
        let row: Versioned<OperationRow> = self.fetch(&key).await?.ok_or_else(unknown)?;
        let changed = match row.row.state {
            OperationState::Running { beat } => Some(beat),
            OperationState::Ended { number } => {
                let run: Option<Versioned<RunRow>> = self.fetch(&run_key(&caller.tenant, session.id, number)).await?;
                run.map(|found| found.row.finished)
            }
        };
        let changed = changed.unwrap_or_else(|| self.now());
        Ok(TaskState { started: row.row.started.unwrap_or(changed), changed, answer })
    }
}

impl TaskId {
    fn parse(text: &str) -> Option<Self> {
        let (session, number) = text.rsplit_once("_o")?;
        // Each name has one spelling: no sign, no leading zeros.
        let number: u64 = number.parse().ok().filter(|n: &u64| n.to_string() == number)?;
        Some(Self { session: LogicalSessionId::parse(session).ok()?, number })
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_o{}", self.session, self.number)
    }
}
