//! Transport sessions of older protocol revisions, stored so that neither a restart nor a full memory loses them.
//! Invariant: the stored value is the client's own `initialize` message, as uninterpreted bytes. Where principals are separate, only
//! the one that opened a transport session finds it.

use access::Caller;
use base::{Digest, Principal, TenantId, Timestamp};
use ports::store::{Batch, Expect, Key, Table};

use crate::error::Error;
use crate::service::Service;

impl Service {
    /// Stores the `initialize` message of a transport session.
    pub async fn store_transport(&self, caller: &Caller, id: &str, state: Vec<u8>) -> Result<(), Error> {
        // The first line is the time of storing, and the owner where principals are separate.
        let owner = self.owner(caller).map_or(String::new(), |owner| format!(" {owner}"));
        let value = [format!("{}{owner}\n", self.now().0).as_bytes(), &state].concat();
        Ok(self.ports.store.commit(Batch::default().put(key(&caller.tenant, id), value, Expect::Any)).await?)
    }

    /// Returns the `initialize` message of a transport session.
    pub async fn transport(&self, caller: &Caller, id: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(row) = self.ports.store.get(&key(&caller.tenant, id)).await? else { return Ok(None) };
        let stored = StoredTransport::read(row.value);
        Ok(Some(stored.message).filter(|_| !self.is_hidden(caller, stored.owner.as_ref())))
    }

    /// Forgets a transport session.
    pub async fn drop_transport(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        if self.transport(caller, id).await?.is_none() {
            return Ok(());
        }
        Ok(self.ports.store.commit(Batch::default().delete(key(&caller.tenant, id), Expect::Any)).await?)
    }
}

/// A stored transport session.
struct StoredTransport {
    /// When it was stored. `None` in values of the first version.
    stored_at: Option<Timestamp>,
    /// The principal that opened it, if principals were separate.
    owner: Option<Principal>,
    /// The client's `initialize` message.
    message: Vec<u8>,
}

impl StoredTransport {
    /// Reads a stored value. A value without a time is the whole message.
    fn read(value: Vec<u8>) -> Self {
        let end = value.iter().position(|byte| *byte == b'\n');
        let head = end.and_then(|end| str::from_utf8(&value[..end]).ok()).unwrap_or_default();
        let (millis, owner) = head.split_once(' ').map_or((head, None), |(millis, owner)| (millis, Some(owner)));
        match (millis.parse(), end) {
            (Ok(millis), Some(end)) => Self {
                stored_at: Some(Timestamp(millis)),
                owner: owner.and_then(|owner| Principal::parse(owner).ok()),
                message: value[end + 1..].to_vec(),
            },
            _ => Self { stored_at: None, owner: None, message: value },
        }
    }
}

/// Splits a stored value into its time and the client's message.
pub(crate) fn split_stored_time(value: Vec<u8>) -> (Option<Timestamp>, Vec<u8>) {
    let stored = StoredTransport::read(value);
    (stored.stored_at, stored.message)
}

/// Returns the key of a transport session. Its id comes from a client, so the digest bounds its length and characters.
fn key(tenant: &TenantId, id: &str) -> Key {
    Key::new(tenant, Table::Transport, Digest::of(id.as_bytes()).to_string())
}
