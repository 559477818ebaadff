//! The error of a read or a commit inside the SQLite store, and its translation to the port's error.
//! Invariant: only a full disk is `Full`, and only content that differs from what was written is `Damaged`. Everything else
//! that is not a conflict is `Unavailable`.

use std::error::Error as StdError;
use std::sync::Arc;

use ports::store;
use rusqlite::ErrorCode;

use crate::OpenError;

/// The causes are in an `Arc`, because one error may be the answer to every batch of a group.
#[derive(Debug, Clone)]
pub enum SqliteError {
    Full(Arc<dyn StdError + Send + Sync>),
    Damaged {
        /// The damaged part, such as a row, if it is known.
        what: Option<String>,
        cause: Arc<dyn StdError + Send + Sync>,
    },
    Unavailable(Arc<dyn StdError + Send + Sync>),
}

impl SqliteError {
    /// Returns the error of a row whose checksum does not match.
    pub fn damaged_row(row: String) -> Self {
        let cause = Box::<dyn StdError + Send + Sync>::from("its checksum is another one");
        Self::Damaged { what: Some(row), cause: Arc::from(cause) }
    }

    pub fn unavailable(reason: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Unavailable(Arc::from(reason.into()))
    }

    /// Names the part that was read, if the error is damage without a name: SQLite finds damage in a page and does not say
    /// which rows the page holds.
    pub fn while_reading(self, what: impl FnOnce() -> String) -> Self {
        match self {
            Self::Damaged { what: None, cause } => Self::Damaged { what: Some(what()), cause },
            other => other,
        }
    }

    /// Returns whether another connection holds a lock, be it for the read or for opening the file.
    pub fn is_busy(&self) -> bool {
        let Self::Unavailable(cause) = self else { return false };
        let cause_of_open = cause.downcast_ref::<OpenError>().and_then(StdError::source);
        let cause = cause_of_open.unwrap_or(cause.as_ref());
        cause.downcast_ref::<rusqlite::Error>().is_some_and(is_busy)
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(Arc::new(error)),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { what: None, cause: Arc::new(error) }
            }
            _ => Self::Unavailable(Arc::new(error)),
        }
    }
}

impl From<OpenError> for SqliteError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Full { .. } => Self::Full(Arc::new(error)),
            OpenError::Damaged { .. } => Self::Damaged { what: None, cause: Arc::new(error) },
            _ => Self::Unavailable(Arc::new(error)),
        }
    }
}

impl From<SqliteError> for store::Error {
    fn from(error: SqliteError) -> Self {
        match error {
            SqliteError::Full(cause) => Self::Full(Box::new(cause)),
            SqliteError::Damaged { what, cause } => {
                let what = what.unwrap_or_else(|| format!("the database {}", super::FILE_NAME));
                Self::Damaged { what, cause: Box::new(cause) }
            }
            SqliteError::Unavailable(cause) => Self::Unavailable(Box::new(cause)),
        }
    }
}

/// Returns whether another connection holds the lock.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Returns whether the connection is still usable after a rollback: there was no space, or no lock. After any other error
/// the state of the connection is not known, so it is closed.
pub fn leaves_connection_usable(error: &rusqlite::Error) -> bool {
    is_busy(error) || error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}
