//! The data of a tenant that one of its principals may see, where each principal has its own (`auth_resolution = "delegated"`).
//!
//! Invariant: if principals are separate, the sessions, runs, traces, results and executions of another principal look like those
//! that do not exist. The principal `local` is the operator and this process itself, and sees all of them. Heaps and their tags
//! belong to the tenant: a heap is found by its key, which only its producers know.

use access::Caller;
use base::Principal;

use crate::engine::rows::SessionName;
use crate::error::Error;
use crate::reuse_key::intent_id;
use crate::service::Service;

impl Service {
    /// Returns whether the caller must not see something that belongs to this principal. `None` stands for something that was stored
    /// while principals were not separate.
    pub(crate) fn is_hidden(&self, caller: &Caller, owner: Option<&Principal>) -> bool {
        self.separates(caller) && owner != Some(&caller.principal)
    }

    /// Returns whether the caller sees only its own data.
    fn separates(&self, caller: &Caller) -> bool {
        self.delegated && caller.principal != Principal::local()
    }

    /// Returns the owner to store with something that the caller makes, if principals are separate.
    pub(crate) fn owner(&self, caller: &Caller) -> Option<Principal> {
        self.delegated.then(|| caller.principal.clone())
    }

    /// Returns the id of the row that leads from an intent to its session. Where principals are separate, each has its own session
    /// for the same intent.
    pub(crate) fn intent_row_id(&self, caller: &Caller, intent: &str) -> String {
        if self.separates(caller) {
            format!("of/{}/{}", caller.principal, intent_id(intent))
        } else {
            intent_id(intent)
        }
    }

    /// Returns the session that a connection of this caller means by a name. A principal's name has no `/`, so no choice of a name
    /// reaches another principal's sessions.
    pub(crate) fn named_session(&self, caller: &Caller, name: &str) -> SessionName {
        let scoped = if self.separates(caller) { format!("{}/{name}", caller.principal) } else { name.to_owned() };
        SessionName::Named(scoped)
    }

    /// Returns a session's name as the caller knows it.
    pub(crate) fn shown_name(&self, caller: &Caller, name: &SessionName) -> String {
        let shown = name.shown();
        if let SessionName::Named(_) = name
            && self.separates(caller)
            && let Some((_, own)) = shown.split_once('/')
        {
            return own.to_owned();
        }
        shown
    }

    /// Returns whether the caller may see a session with JavaScript.
    pub(crate) async fn may_see_session(&self, caller: &Caller, name: &SessionName) -> Result<bool, Error> {
        if !self.separates(caller) {
            return Ok(true);
        }
        match name {
            SessionName::Logical(id) => Ok(self.logical(caller, *id).await?.is_some()),
            SessionName::Named(name) => {
                Ok(name.split_once('/').is_some_and(|(owner, _)| owner == caller.principal.as_str()))
            }
        }
    }
}
