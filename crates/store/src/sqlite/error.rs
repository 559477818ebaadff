//! The error type of the SQLite store, and its conversion to `ports::store::Error`.
//! Invariant: a full disk is `Full`, stored content that differs from the written content is `Damaged`, and every other
//! failure except a conflict is `Unavailable`.

use std::error::Error as StdError;
use std::sync::Arc;

use ports::store;
use rusqlite::ErrorCode;

use crate::OpenError;

/// The error of a read or a commit. Each cause is in an `Arc`, because one error may be the answer to every batch of a
/// group.
#[derive(Debug, Clone)]
pub enum SqliteError {
    Full(Arc<dyn StdError + Send + Sync>),
    Damaged {
        /// The name of the damaged part, such as a row, if it is known.
        what: Option<String>,
        cause: Arc<dyn StdError + Send + Sync>,
    },
    Unavailable(Arc<dyn StdError + Send + Sync>),
}

impl SqliteError {
    /// Returns the error of a row whose checksum does not match.
    pub fn damaged_row(row: String) -> Self {
        let cause = Box::<dyn StdError + Send + Sync>::from("the checksum of the row does not match its content");
        Self::Damaged { what: Some(row), cause: Arc::from(cause) }
    }

    pub fn unavailable(reason: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Unavailable(Arc::from(reason.into()))
    }

    /// Adds the name of the part that was read to an error `Damaged` without a name. SQLite reports a damaged page and
    /// does not name the rows of the page.
    pub fn while_reading(self, what: impl FnOnce() -> String) -> Self {
        match self {
            Self::Damaged { what: None, cause } => Self::Damaged { what: Some(what()), cause },
            other => other,
        }
    }

    /// Returns whether the read, or opening its connection, failed because another connection holds a lock.
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

/// The reason why a read failed: the paths of the database lead to other files than the writer has open.
#[derive(Debug, thiserror::Error)]
#[error("the files of the database were deleted or replaced")]
pub struct FilesChanged;

/// Returns whether a read failed because the files of the database were deleted or replaced.
pub fn is_files_changed(error: &store::Error) -> bool {
    let store::Error::Unavailable(cause) = error else { return false };
    let cause = cause.downcast_ref::<Arc<dyn StdError + Send + Sync>>();
    cause.is_some_and(|cause| cause.downcast_ref::<FilesChanged>().is_some())
}

/// Returns whether the error means that another connection holds a lock.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Returns whether a connection is usable after this error and a rollback. This is true if the disk was full or a lock
/// was taken. After another error the state of the connection is unknown, so the caller closes it.
pub fn leaves_connection_usable(error: &rusqlite::Error) -> bool {
    is_busy(error) || error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}
