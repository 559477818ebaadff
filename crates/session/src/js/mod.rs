//! JavaScript in sessions: runs as continuations, heaps by key, the log and the tags of what they left.
//!
//! Invariants:
//! - A run is accepted durably before it starts; a continuation is stored before a call that it owes is made.
//! - A final state never changes: every end is one compare-and-set transaction with heap, head, log entry and tags.
//! - A heap key is read through a row of the caller's tenant, also when the engine has the heap in memory.

mod heaps;
mod lineage;
mod output;
mod pins;
mod room;
mod run;
mod tags;

use std::sync::Arc;

use base::InstanceId;
use ports::{Presence, Scripts};

pub use lineage::{Fork, Forked, Lineage, NamedSession, Node};

use crate::engine::{Js, JsSettings};
use crate::error::{Error, JsError};
use crate::service::Service;

impl Service {
    /// With an engine for JavaScript.
    #[must_use]
    pub fn with_js(mut self, scripts: Arc<dyn Scripts>, presence: Arc<dyn Presence>, settings: JsSettings) -> Self {
        self.js = Some(Js::new(scripts, presence, settings));
        self
    }

    /// This process, where processes know each other.
    pub(crate) fn instance(&self) -> Option<InstanceId> {
        self.js.as_ref().map(|js| js.presence.me())
    }

    pub(crate) fn js(&self) -> Result<&Js, Error> {
        Ok(self.js.as_ref().ok_or(JsError::NoScripts)?)
    }
}
