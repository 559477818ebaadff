//! Sessions at an HTTP address of their own: open one, show it, add seeds to it.

use access::Caller;
use session::{ExecuteAddress, ExecuteRequest, OpenRequest, OpenedExecute, OpenedSession};

use super::plasm_context::SeedArgument;
use crate::call::{App, Call};
use crate::error::Error;

/// Opens a session by an id, by an intent, or by its seeds alone. The same request finds the same session.
#[derive(Debug, Clone)]
pub struct OpenExecute(pub ExecuteRequest);

impl Call for OpenExecute {
    const NAME: &'static str = "open_execute";
    type Answer = OpenedExecute;

    async fn run(&self, app: &App, caller: &Caller) -> Result<OpenedExecute, Error> {
        Ok(app.service().open_execute(caller, self.0.clone()).await?)
    }
}

/// The session at an address, with everything it was taught.
#[derive(Debug, Clone)]
pub struct ShowExecute {
    /// The first part of the address, as the client wrote it.
    pub prompt_hash: String,
    /// The second part of the address, as the client wrote it.
    pub session: String,
}

/// The answer to [`ShowExecute`].
#[derive(Debug)]
pub struct ShownExecute {
    pub address: ExecuteAddress,
    /// The cumulative table.
    pub table: String,
}

impl Call for ShowExecute {
    const NAME: &'static str = "show_execute";
    type Answer = ShownExecute;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ShownExecute, Error> {
        let address = app.execute_address(caller.clone(), &self.prompt_hash, &self.session).await?;
        let table = app.service().cumulative_table(&address).await?;
        Ok(ShownExecute { address, table })
    }
}

/// Teaches the session at an address more.
#[derive(Debug, Clone)]
pub struct AddSeeds {
    pub prompt_hash: String,
    pub session: String,
    pub seeds: Vec<SeedArgument>,
    /// Capabilities to teach regardless of the intent.
    pub ranked_capabilities: Vec<String>,
    /// Send the whole table again.
    pub replay: bool,
}

/// The answer to [`AddSeeds`].
#[derive(Debug)]
pub struct ExpandedExecute {
    pub address: ExecuteAddress,
    /// The wave that the seeds added.
    pub opened: OpenedSession,
}

impl Call for AddSeeds {
    const NAME: &'static str = "add_seeds";
    type Answer = ExpandedExecute;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ExpandedExecute, Error> {
        let address = app.execute_address(caller.clone(), &self.prompt_hash, &self.session).await?;
        let request = OpenRequest {
            ranked: self.ranked_capabilities.clone(),
            replay: self.replay,
            ..OpenRequest::new("", self.seeds.iter().map(SeedArgument::to_request).collect())
        };
        let opened = app.service().expand_session(&address, request).await?;
        Ok(ExpandedExecute { address, opened })
    }
}
