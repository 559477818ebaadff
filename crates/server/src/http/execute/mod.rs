//! `/execute`: the language over HTTP, for programs that hold the address of an execute session instead of a connection.
//! Invariant: the same service, gate and text as the tools; a session's own slot is `s0` at its own address.

mod accept;
mod answer;
mod open;
mod run;
mod stream;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::{Finished, Planned, Running, result};
pub use open::{More, Open, Opened, Session, expand, open, show};
pub use run::{Asked, Program, artifact, run};
pub use stream::operation;

/// An entity to teach.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// Catalog id or alias.
    #[serde(alias = "entry_id")]
    pub api: String,
    pub entity: String,
    /// Of its writes, by name; `*` for all. Otherwise those the intent speaks of.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

impl From<Seed> for session::SeedRequest {
    fn from(seed: Seed) -> Self {
        Self { api: seed.api, entity: seed.entity, capabilities: seed.capabilities }
    }
}

/// Of an execute session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Address {
    pub prompt_hash: String,
    pub session: String,
}

impl Address {
    pub fn of(binding: &session::ExecuteBinding) -> Self {
        Self { prompt_hash: binding.prompt_hash.to_string(), session: binding.session_id.to_string() }
    }

    pub fn path(&self) -> String {
        format!("/execute/{}/{}", self.prompt_hash, self.session)
    }
}
