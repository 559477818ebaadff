//! JavaScript in sessions: runs as continuations, heaps by key, and the log and tags of the heaps.
//!
//! Invariants:
//! - A run is accepted durably before it starts; a continuation is stored before any of its calls is made.
//! - A final state never changes: every end is one compare-and-set transaction with heap, head, log entry and tags.
//! - A heap key is resolved through a row of the caller's tenant, even if the engine has the heap in memory.

mod heaps;
mod lineage;
mod output;
mod room;
mod run;
mod tags;

use std::sync::Arc;

use ports::{Presence, Scripts};

pub use lineage::{ForkRequest, ForkedSession, Lineage, LineageNode, NamedSession};

use crate::engine::{Js, JsSettings};
use crate::error::{Error, JsError};
use crate::service::Service;

impl Service {
    /// Adds a JavaScript engine.
    #[must_use]
    pub fn with_js(mut self, scripts: Arc<dyn Scripts>, presence: Arc<dyn Presence>, settings: JsSettings) -> Self {
        self = self.with_presence(presence);
        self.js = Some(Js::new(scripts, settings));
        self
    }

    /// Returns the engine, or an error if the server has none.
    pub(crate) fn js(&self) -> Result<&Js, Error> {
        Ok(self.js.as_ref().ok_or(JsError::NoScripts)?)
    }
}
