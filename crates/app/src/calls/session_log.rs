//! The log of a session's script runs: `list_sessions`, `list_session_snapshots`, `rewind_session`.

use access::Caller;
use base::LogicalSessionId;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{JsError, LogEntry, SessionTarget};

use super::run_js::ConnectionScope;
use crate::call::{App, Call};
use crate::error::Error;

/// The names of the sessions that have a log.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessions {}

impl Call for ListSessions {
    const NAME: &'static str = "list_sessions";
    type Answer = Vec<String>;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Vec<String>, Error> {
        Ok(app.service().js_sessions(caller).await?)
    }
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessionSnapshots {
    /// Comma-separated.
    #[serde(default)]
    pub fields: Option<String>,
    #[serde(default)]
    pub logical_session_ref: Option<String>,
    // Filled in by the entry point, never by the client.
    #[serde(skip)]
    pub owner: LogOwner,
}

/// The session whose log is meant if the request names none by reference.
#[derive(Debug, Clone)]
pub enum LogOwner {
    /// The session that the connection names. Without a name there is no log, never another session's.
    Connection(ConnectionScope),
    /// A name in an address: the id of a logical session, or else the name of a connection's session.
    Address(String),
}

impl Default for LogOwner {
    fn default() -> Self {
        Self::Connection(ConnectionScope::default())
    }
}

impl ListSessionSnapshots {
    /// The fields of an entry that a request can choose.
    pub const FIELDS: [&str; 5] = ["index", "input_heap", "output_heap", "code", "timestamp"];

    /// Returns the fields that the request chooses. An empty list means all of them.
    pub fn chosen_fields(&self) -> Result<Vec<String>, Error> {
        let listed = self.fields.as_deref().unwrap_or_default().split(',').map(str::trim);
        let chosen: Vec<String> = listed.filter(|field| !field.is_empty()).map(str::to_owned).collect();
        match chosen.iter().find(|field| !Self::FIELDS.contains(&field.as_str())) {
            Some(unknown) => {
                let found = unknown.chars().take(60).collect();
                Err(JsError::BadField { found, known: Self::FIELDS.join(", ") }.into())
            }
            None => Ok(chosen),
        }
    }
}

impl Call for ListSessionSnapshots {
    const NAME: &'static str = "list_session_snapshots";
    type Answer = Vec<LogEntry>;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Vec<LogEntry>, Error> {
        self.chosen_fields()?;
        let name = match &self.owner {
            LogOwner::Connection(connection) => {
                let target = connection.target(self.logical_session_ref.as_deref());
                return Ok(app.service().session_log(caller, &target).await?);
            }
            LogOwner::Address(name) => name,
        };
        if LogicalSessionId::parse(name).is_ok() {
            match app.service().session_log(caller, &SessionTarget::Logical(name.clone())).await {
                // A connection may have chosen a name that looks like an id.
                Err(session::Error::NoSession(_)) => {}
                entries => return Ok(entries?),
            }
        }
        Ok(app.service().session_log(caller, &SessionTarget::Named(name.clone())).await?)
    }
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewindSession {
    pub logical_session_ref: String,
    pub index: u64,
}

impl Call for RewindSession {
    const NAME: &'static str = "rewind_session";
    type Answer = LogEntry;

    async fn run(&self, app: &App, caller: &Caller) -> Result<LogEntry, Error> {
        Ok(app.service().rewind_session(caller, &self.logical_session_ref, self.index).await?)
    }
}
