//! Forks of a session: `fork_session`, `promote_session`, and the lineage of a session's heaps.

use access::Caller;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{ForkRequest, ForkedSession, Lineage};

use crate::call::{App, Call};
use crate::error::Error;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkSession {
    pub logical_session_ref: String,
    pub intent: String,
    /// Log index.
    #[serde(default)]
    pub at: Option<u64>,
}

impl Call for ForkSession {
    const NAME: &'static str = "fork_session";
    type Answer = ForkedSession;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ForkedSession, Error> {
        let request =
            ForkRequest { session: self.logical_session_ref.clone(), intent: self.intent.clone(), at: self.at };
        Ok(app.service().fork_session(caller, &request).await?)
    }
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromoteSession {
    pub logical_session_ref: String,
}

impl Call for PromoteSession {
    const NAME: &'static str = "promote_session";
    type Answer = ();

    async fn run(&self, app: &App, caller: &Caller) -> Result<(), Error> {
        Ok(app.service().promote_session(caller, &self.logical_session_ref).await?)
    }
}

/// The history of a session's heaps, for drawing it.
#[derive(Debug, Clone)]
pub struct ShowLineage {
    /// A slot, an id, an intent, or the name that a connection chose.
    pub session: String,
}

impl Call for ShowLineage {
    const NAME: &'static str = "show_lineage";
    type Answer = Lineage;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Lineage, Error> {
        let target = app.service().session_target(caller, &self.session).await?;
        Ok(app.service().session_lineage(caller, &target).await?)
    }
}
