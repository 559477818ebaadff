//! Who is calling, and over what.
//! Invariant: slots belong to a connection; where there is none, to the principal. The tenant comes from auth, never from input.

use base::{Digest, Principal, TenantId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub tenant: TenantId,
    pub connection: Connection,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// A transport session that the server minted (`Mcp-Session-Id`).
    Transport(String),
    /// No transport session: the slots are the principal's.
    Principal(Principal),
}

impl Caller {
    /// Who is asking, where that is known.
    pub fn principal(&self) -> Option<&Principal> {
        match &self.connection {
            Connection::Principal(principal) => Some(principal),
            Connection::Transport(_) => None,
        }
    }
}

impl Connection {
    /// The id of its row. A transport id comes from outside, so it is hashed: no length or character in it matters.
    pub(crate) fn row_id(&self) -> String {
        match self {
            Connection::Transport(id) => format!("t/{}", Digest::of(id.as_bytes())),
            Connection::Principal(principal) => format!("p/{principal}"),
        }
    }
}
