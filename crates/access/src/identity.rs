//! The identity that authentication found, and the caller, which is an identity on one connection.
//! Invariant: slots belong to the transport session of a connection if it has one, and to the principal otherwise.

use base::{Digest, ExecuteSessionId, Principal, TenantId};

/// The tenant and principal that authentication found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Every stored row carries the tenant, so no call reaches another tenant's data.
    pub tenant: TenantId,
    /// The person or program within the tenant. Slots and page handles without an intent belong to it.
    pub principal: Principal,
}

impl Identity {
    /// Returns the identity of every request on a server that needs no API key.
    pub fn local() -> Self {
        Self { tenant: TenantId::local(), principal: Principal::local() }
    }

    /// Returns the caller of one request. `transport` is the id of its transport session, if it has one.
    pub fn caller(self, transport: Option<String>) -> Caller {
        let connection = match transport {
            Some(id) => Connection::Transport(id),
            None => Connection::Principal(self.principal.clone()),
        };
        Caller { tenant: self.tenant, principal: self.principal, connection }
    }
}

/// An identity on one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The tenant that every row of this call belongs to.
    pub tenant: TenantId,
    /// The person or program within the tenant, the same on every connection.
    pub principal: Principal,
    /// The owner of the slots that the caller's session refs name.
    pub connection: Connection,
}

impl Caller {
    /// Returns the caller of a command, or of a server without API keys, outside of any transport session.
    pub fn local() -> Self {
        Identity::local().caller(None)
    }

    /// Returns the same identity with the principal's own slots, whatever connection the call came over.
    #[must_use]
    pub fn as_principal(&self) -> Self {
        Self { connection: Connection::Principal(self.principal.clone()), ..self.clone() }
    }

    /// Returns the same identity at the HTTP address of one execute session, where that session is `s0`.
    #[must_use]
    pub fn at(self, execute: ExecuteSessionId) -> Self {
        Self { connection: Connection::Execute(execute), ..self }
    }

    /// Returns the execute session at whose address this caller is.
    pub fn execute_session(&self) -> Option<ExecuteSessionId> {
        match &self.connection {
            Connection::Execute(id) => Some(*id),
            Connection::Transport(_) | Connection::Principal(_) => None,
        }
    }
}

/// The owner of a caller's slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// A transport session that the server created (`Mcp-Session-Id`).
    Transport(String),
    /// A connection without a transport session: the slots belong to the principal.
    Principal(Principal),
    /// The HTTP address of one execute session, which has the single slot `s0`.
    Execute(ExecuteSessionId),
}

impl Connection {
    /// Returns the id of the row that stores the connection's slots.
    pub fn row_id(&self) -> String {
        match self {
            // A transport id comes from a client. Its digest has a bounded length and no separator of row ids.
            Connection::Transport(id) => format!("t/{}", Digest::of(id.as_bytes())),
            Connection::Principal(principal) => format!("p/{principal}"),
            Connection::Execute(id) => format!("x/{id}"),
        }
    }
}
