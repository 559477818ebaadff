//! Who is calling, and over what.
//! Invariant: slots belong to a connection; where there is none, to the principal. The tenant comes from auth, never from input.

use base::{Digest, ExecuteSessionId, Principal, TenantId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub tenant: TenantId,
    /// Who it is within the tenant, whatever the connection.
    pub principal: Principal,
    pub connection: Connection,
}

/// Who a key names: what auth finds out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub tenant: TenantId,
    pub principal: Principal,
}

impl Identity {
    /// Everyone, on a server without auth.
    pub fn local() -> Self {
        Self { tenant: TenantId::local(), principal: Principal::local() }
    }

    /// Over a transport session, where there is one.
    pub fn caller(self, transport: Option<String>) -> Caller {
        let connection = match transport {
            Some(id) => Connection::Transport(id),
            None => Connection::Principal(self.principal.clone()),
        };
        Caller { tenant: self.tenant, principal: self.principal, connection }
    }
}

impl Caller {
    /// The only caller of a server without auth that has no transport session.
    pub fn local() -> Self {
        Identity::local().caller(None)
    }

    /// The same caller, whatever the connection, on what belongs to its principal.
    pub(crate) fn as_principal(&self) -> Self {
        Self { connection: Connection::Principal(self.principal.clone()), ..self.clone() }
    }

    /// The same caller at the door of one execute session, which is its `s0` there.
    #[must_use]
    pub fn at(self, execute: ExecuteSessionId) -> Self {
        Self { connection: Connection::Execute(execute), ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// A transport session that the server minted (`Mcp-Session-Id`).
    Transport(String),
    /// No transport session: the slots are the principal's.
    Principal(Principal),
    /// The address of one execute session over HTTP: it has one slot, `s0`.
    Execute(ExecuteSessionId),
}

impl Connection {
    /// The id of its row. A transport id comes from outside, so it is hashed: no length or character in it matters.
    pub(crate) fn row_id(&self) -> String {
        match self {
            Connection::Transport(id) => format!("t/{}", Digest::of(id.as_bytes())),
            Connection::Principal(principal) => format!("p/{principal}"),
            Connection::Execute(id) => format!("x/{id}"),
        }
    }
}
