//! `/execute`: programs over HTTP, for clients that hold the address of an execute session instead of a connection.
//! Invariant: at its own address, a session's slot is `s0`.

mod accept;
mod answer;
mod open;
mod program;
mod stream;

use app::calls::SeedArgument;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::{Finished, Planned, Running, finished_json};
pub use open::{AddSeedsBody, Expanded, Open, Opened, SessionShown, add_seeds, open, show};
pub use program::{Program, RunQuery, read_artifact, run};
pub use stream::follow_operation;

/// An entity to teach.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// The id or an alias of a catalog.
    #[serde(alias = "entry_id")]
    pub api: String,
    pub entity: String,
    /// Writes to teach, by name; `*` for all. By default, those that the intent's words name.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

impl From<Seed> for SeedArgument {
    fn from(seed: Seed) -> Self {
        Self { api: seed.api, entity: seed.entity, capabilities: seed.capabilities }
    }
}

/// The address of an execute session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Address {
    pub prompt_hash: String,
    pub session: String,
}

impl Address {
    /// Returns the address of an execute session.
    pub fn new(binding: &session::ExecuteBinding) -> Self {
        Self { prompt_hash: binding.prompt_hash.to_string(), session: binding.session_id.to_string() }
    }

    /// Returns the path of the address.
    pub fn path(&self) -> String {
        format!("/execute/{}/{}", self.prompt_hash, self.session)
    }
}
