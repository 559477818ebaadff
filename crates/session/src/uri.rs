//! The URIs of a session's results and plans.
//! Invariant: a URI says where to look, never what may be seen; it is resolved under the caller's tenant.

use base::{Digest, ExecuteSessionId, RunId, Slot};

use crate::error::Error;

/// A URI that `read_artifact` and `resources/read` accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceUri {
    /// `plasm://session/s0/r/3`, with the canonical session id accepted for the slot.
    Run { session: String, number: u64, label: Option<String> },
    /// `plasm://session/s0/p/2`
    Plan { session: String, number: u64 },
    /// `plasm://execute/{prompt_hash}/{session}/run/{uuid}`
    Canonical { prompt_hash: Digest, execute: ExecuteSessionId, run: RunId, label: Option<String> },
    /// `plasm://r/3`: a run in the caller's numbering of runs without an intent.
    Bare { number: u64, label: Option<String> },
}

impl ResourceUri {
    /// Parses a URI. An unknown form is reported like a missing resource.
    pub fn parse(uri: &str) -> Result<Self, Error> {
        let refuse = || Error::NoArtifact(base::printable(uri, 120));
        Self::parts(uri.trim()).ok_or_else(refuse)
    }

    fn parts(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix("plasm://")?;
        let (rest, label) = rest.split_once('#').map_or((rest, None), |(rest, label)| (rest, Some(label.to_owned())));
        let parts: Vec<&str> = rest.split('/').collect();
        Some(match parts.as_slice() {
            ["session", session, "r", number] => {
                Self::Run { session: (*session).to_owned(), number: number.parse().ok()?, label }
            }
            ["session", session, "p", number] if label.is_none() => {
                Self::Plan { session: (*session).to_owned(), number: number.parse().ok()? }
            }
            ["execute", prompt_hash, execute, "run", run] => Self::Canonical {
                prompt_hash: Digest::parse(prompt_hash).ok()?,
                execute: ExecuteSessionId::parse(execute).ok()?,
                run: RunId::parse(run).ok()?,
                label,
            },
            ["r", number] => Self::Bare { number: number.parse().ok()?, label },
            _ => return None,
        })
    }

    /// Formats the URI of a run: `plasm://session/s0/r/3`.
    pub fn run(slot: Slot, number: u64) -> String {
        format!("plasm://session/{slot}/r/{number}")
    }

    /// Formats the URI of a plan: `plasm://session/s0/p/2`.
    pub fn plan(slot: Slot, number: u64) -> String {
        format!("plasm://session/{slot}/p/{number}")
    }

    /// Formats the URI of a plan with the id of its session, which names the same session on every connection.
    pub fn plan_of(session: base::LogicalSessionId, number: u64) -> String {
        format!("plasm://session/{session}/p/{number}")
    }

    /// Returns the slot or session id in the URI.
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Run { session, .. } | Self::Plan { session, .. } => Some(session),
            Self::Canonical { .. } | Self::Bare { .. } => None,
        }
    }
}
