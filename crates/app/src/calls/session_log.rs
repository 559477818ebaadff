//! The log of a session's script runs: `list_sessions`, `list_session_snapshots`, `rewind_session`.

use access::Caller;
use base::LogicalSessionId;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{JsError, ListPage, ListRequest, LogEntry, SessionTarget};

use super::run_js::ConnectionScope;
use crate::call::{App, Call};
use crate::error::Error;

/// The names of the sessions that have a log.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessions {
    // Not in the schema: docs/heaps.md has both.
    #[serde(default)]
    #[schemars(skip)]
    pub after: Option<String>,
    #[serde(default)]
    #[schemars(skip)]
    pub limit: Option<usize>,
}

impl Call for ListSessions {
    const NAME: &'static str = "list_sessions";
    type Answer = ListPage<String>;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ListPage<String>, Error> {
        let request = ListRequest { after: self.after.clone(), limit: self.limit };
        Ok(app.service().js_sessions(caller, &request).await?)
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
    // Not in the schema: docs/heaps.md has both.
    #[serde(default)]
    #[schemars(skip)]
    pub after: Option<u64>,
    #[serde(default)]
    #[schemars(skip)]
    pub limit: Option<usize>,
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
    type Answer = ListPage<LogEntry>;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ListPage<LogEntry>, Error> {
        let fields = self.chosen_fields()?;
        let with_code = fields.is_empty() || fields.iter().any(|field| field == "code");
        let request = ListRequest { after: self.after.map(|index| index.to_string()), limit: self.limit };
        let page = |target: SessionTarget| {
            let request = &request;
            async move { app.service().session_log_page(caller, &target, request, with_code).await }
        };
        let name = match &self.owner {
            LogOwner::Connection(connection) => {
                let target = connection.target(self.logical_session_ref.as_deref());
                return Ok(page(target).await?);
            }
            LogOwner::Address(name) => name,
        };
        if LogicalSessionId::parse(name).is_ok() {
            match page(SessionTarget::Logical(name.clone())).await {
                // A connection may have chosen a name that looks like an id.
                Err(session::Error::NoSession(_)) => {}
                entries => return Ok(entries?),
            }
        }
        Ok(page(SessionTarget::Named(name.clone())).await?)
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
