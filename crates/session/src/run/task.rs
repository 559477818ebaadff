//! Operations by a name that needs no connection: what a client that polls holds.
//! Invariant: a name finds an operation of the caller's tenant or nothing; asking waits for nothing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::{LogicalSessionId, Timestamp};

use super::operation::{Asked, OperationRow, OperationState, operation_key};
use crate::error::Error;
use crate::load::Versioned;
use crate::ran::RunAnswer;
use crate::rows::{RunRow, run_key};
use crate::service::Service;
use access::Caller;

/// `{session}_o{number}`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskId {
    pub session: LogicalSessionId,
    pub number: u64,
}

/// An operation as it stands.
#[derive(Debug)]
pub struct TaskState {
    pub started: Timestamp,
    /// When something was last heard of it.
    pub changed: Timestamp,
    /// A run that came to nothing is an error here, not of the question.
    pub answer: Result<RunAnswer, Error>,
}

impl Service {
    /// What has become of an operation. With `cancel` it is told to stop first.
    pub async fn task(self: &Arc<Self>, caller: &Caller, name: &str, cancel: bool) -> Result<TaskState, Error> {
        let unknown = || Error::NoHandle(base::printable(name, 60));
        let TaskId { session, number } = TaskId::parse(name).ok_or_else(unknown)?;
        let session = match self.session(caller, &session.to_string()).await {
            Err(Error::NoSession(_)) => return Err(unknown()),
            found => found?,
        };
        let asked = Asked { number, cancel, patience: Duration::ZERO };
        let answer = match self.ask_for(caller, &session, asked).await {
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
        // One spelling for each: no sign, no leading zero.
        let number: u64 = number.parse().ok().filter(|n: &u64| n.to_string() == number)?;
        Some(Self { session: LogicalSessionId::parse(session).ok()?, number })
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_o{}", self.session, self.number)
    }
}
