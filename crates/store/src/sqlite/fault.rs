//! A failure of the database on its way to a caller.
//! Invariant: only a full disk is `Full`, only what does not read back as it was written is `Damaged`; everything else that
//! is not a conflict is `Unavailable`.

use std::error::Error as StdError;
use std::sync::Arc;

use ports::store;
use rusqlite::ErrorCode;

use crate::OpenError;

/// Can be given to every batch of a group, hence the `Arc`.
#[derive(Debug, Clone)]
pub enum Fault {
    Full(Arc<dyn StdError + Send + Sync>),
    /// What it is, where that is known.
    Damaged(Option<String>, Arc<dyn StdError + Send + Sync>),
    Unavailable(Arc<dyn StdError + Send + Sync>),
}

impl Fault {
    pub fn damaged(what: String) -> Self {
        Self::Damaged(Some(what), Arc::from(Box::<dyn StdError + Send + Sync>::from("its checksum is another one")))
    }

    /// Damage that SQLite found while it looked for this.
    pub fn looking_for(self, what: impl FnOnce() -> String) -> Self {
        match self {
            Self::Damaged(None, cause) => Self::Damaged(Some(what()), cause),
            other => other,
        }
    }

    /// Another connection holds a lock.
    pub fn is_busy(&self) -> bool {
        let Self::Unavailable(cause) = self else { return false };
        let opening = cause.downcast_ref::<OpenError>().and_then(StdError::source);
        let cause = opening.unwrap_or(cause.as_ref());
        cause.downcast_ref::<rusqlite::Error>().is_some_and(is_busy)
    }

    pub fn unavailable(reason: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Unavailable(Arc::from(reason.into()))
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(Arc::new(error)),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(None, Arc::new(error)),
            _ => Self::Unavailable(Arc::new(error)),
        }
    }
}

impl From<OpenError> for Fault {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Full { .. } => Self::Full(Arc::new(error)),
            OpenError::Damaged { .. } => Self::Damaged(None, Arc::new(error)),
            _ => Self::Unavailable(Arc::new(error)),
        }
    }
}

impl From<Fault> for store::Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Full(cause) => Self::Full(Box::new(cause)),
            Fault::Damaged(what, cause) => {
                let what = what.unwrap_or_else(|| format!("the database {}", super::FILE_NAME));
                Self::Damaged { what, cause: Box::new(cause) }
            }
            Fault::Unavailable(cause) => Self::Unavailable(Box::new(cause)),
        }
    }
}

/// Another connection holds the lock.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The connection is as good as before: there was no space, or no lock.
pub fn leaves_connection_whole(error: &rusqlite::Error) -> bool {
    is_busy(error) || error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}
