//! Sessions as their owner sees them: list, show, show with the calls of their trace, remove.

use access::Caller;
use session::{CallRecord, NamedSession, SessionTarget, SessionView};

use crate::call::{App, Call};
use crate::error::Error;

/// The caller's sessions, the last used first.
#[derive(Debug, Clone)]
pub struct ListLogicalSessions {
    /// Also list the sessions that connections name in a header.
    pub with_named: bool,
    /// The most sessions to list. The limits of the server may allow less.
    pub limit: usize,
}

/// The answer to [`ListLogicalSessions`].
#[derive(Debug)]
pub struct SessionListing {
    pub sessions: Vec<SessionView>,
    /// The number of sessions, of both kinds, beyond the limit.
    pub omitted: u64,
    /// Empty unless the request asked for them.
    pub named: Vec<NamedSession>,
}

impl Call for ListLogicalSessions {
    const NAME: &'static str = "list_logical_sessions";
    type Answer = SessionListing;

    async fn run(&self, app: &App, caller: &Caller) -> Result<SessionListing, Error> {
        let service = app.service();
        let limit = self.limit.min(service.limits().list_rows);
        let (sessions, omitted) = service.list_sessions(caller, limit).await?;
        let (named, more) = if self.with_named { service.named_sessions(caller).await? } else { (Vec::new(), 0) };
        Ok(SessionListing { sessions, omitted: omitted + more, named })
    }
}

/// One session, by slot, id or intent.
#[derive(Debug, Clone)]
pub struct ShowSession {
    pub reference: String,
}

/// The answer to [`ShowSession`].
#[derive(Debug)]
pub struct ShownSession {
    pub session: SessionView,
    /// The table of each wave.
    pub waves: Vec<String>,
}

impl Call for ShowSession {
    const NAME: &'static str = "show_session";
    type Answer = ShownSession;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ShownSession, Error> {
        let session = app.service().session_view(caller, &self.reference).await?;
        let waves = app.service().wave_tables(caller, session.logical_session_id).await?;
        Ok(ShownSession { session, waves })
    }
}

/// One session with its calls, by slot, id or intent.
#[derive(Debug, Clone)]
pub struct ShowTrace {
    pub reference: String,
}

/// The answer to [`ShowTrace`].
#[derive(Debug)]
pub struct ShownTrace {
    pub session: SessionView,
    /// The newest calls, the oldest of them first.
    pub calls: Vec<CallRecord>,
}

impl Call for ShowTrace {
    const NAME: &'static str = "show_trace";
    type Answer = ShownTrace;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ShownTrace, Error> {
        let session = app.service().session_view(caller, &self.reference).await?;
        let calls = app.service().trace(caller, &self.reference).await?;
        Ok(ShownTrace { session, calls })
    }
}

/// Removes a session with everything it owns. Answers its name.
#[derive(Debug, Clone)]
pub struct RemoveSession {
    /// A slot, an id, an intent, or the name that a connection chose.
    pub session: String,
}

impl Call for RemoveSession {
    const NAME: &'static str = "remove_session";
    type Answer = String;

    async fn run(&self, app: &App, caller: &Caller) -> Result<String, Error> {
        match app.service().session_target(caller, &self.session).await? {
            SessionTarget::Named(name) => {
                app.service().remove_named_session(caller, &name).await?;
                Ok(name)
            }
            SessionTarget::Logical(_) | SessionTarget::None => {
                Ok(app.service().remove_session(caller, &self.session).await?.to_string())
            }
        }
    }
}
