//! The error type `OpenError` of opening a database or a blob folder.
//! Invariant: the operator's action differs from variant to variant, and the message of each variant names the action.

use std::path::{Path, PathBuf};

use ports::Cause;
use rusqlite::ErrorCode;

/// The reason for which a database or a blob folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("`{path}` is a folder and not a database; name the database file inside the folder, such as `{example}`", path = .path.display(), example = .path.join(crate::sqlite::FILE_NAME).display())]
    IsFolder { path: PathBuf },
    #[error("cannot write to `{path}`; give this user write permission there, or choose another data folder", path = .path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error("`{path}` is damaged; restore it from a backup, or move it and its `-wal` and `-shm` files away to start empty", path = .path.display())]
    Damaged {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error("`{path}` is a database of another program; choose another data folder", path = .path.display())]
    Foreign { path: PathBuf },
    /// Other users of the machine have permissions, and the system did not let this process remove them.
    #[error("other users of this machine have permissions for `{path}`, and they could not be removed; run `chmod go-rwx` on it as its owner, or choose another folder", path = .path.display())]
    Exposed {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    /// The folder is open to other users and has files that this program did not make, so its permissions are not changed.
    #[error("other users of this machine have permissions for the folder `{path}`, which is not only Tokamak's; choose a folder of its own, such as `{example}`, or run `chmod 700` on the folder", path = .path.display(), example = .path.join("tokamak").display())]
    SharedFolder { path: PathBuf },
    #[error("`{path}` is on the network file system {kind}, where a database can be damaged; put the database on a local disk with --session-db-path (`database` in the settings)", path = .path.display())]
    NetworkFileSystem { path: PathBuf, kind: &'static str },
    /// There are blobs or commits of the missing database. An empty database would hide the loss.
    #[error("the database `{path}` is missing, but `{remains}` still has data of it; restore the database from a backup, or give the flag --new once to begin with an empty one", path = .path.display())]
    Lost { path: PathBuf, remains: String },
    #[error("`{path}` was written by a newer version of Tokamak (format {found}; this version knows {known}); run the newer version, or choose another data folder", path = .path.display())]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("`{path}` is locked by another process; end that process, or wait and try again", path = .path.display())]
    Busy {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error("`{path}` must be migrated to the format of this version, and {holders} still uses it; end every Tokamak process on this folder, hosts that started one included, and start again", path = .path.display(), holders = processes(.holders))]
    InUse {
        path: PathBuf,
        /// The ids of the processes, as far as the system tells.
        holders: Vec<u32>,
    },
    #[error("there is no space left for `{path}`; free some space", path = .path.display())]
    Full {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error("cannot open the database `{path}`; the log says why", path = .path.display())]
    Failed {
        path: PathBuf,
        #[source]
        source: Cause,
    },
}

impl OpenError {
    pub(crate) fn from_sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let code = error.sqlite_error_code();
        let source: Cause = Box::new(error);
        match code {
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::Unwritable { path, source }
            }
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::Damaged { path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path, source },
            Some(ErrorCode::DiskFull) => Self::Full { path, source },
            _ => Self::Failed { path, source },
        }
    }

    pub(crate) fn from_io(path: &Path, error: std::io::Error) -> Self {
        let is_full = crate::folder::is_full(&error);
        let path = path.to_owned();
        let source: Cause = Box::new(error);
        if is_full { Self::Full { path, source } } else { Self::Unwritable { path, source } }
    }
}

/// Names processes in a sentence: `process 17`, `process 17 and 2 more`.
fn processes(ids: &[u32]) -> String {
    match ids {
        [] => "another process".to_owned(),
        [id] => format!("process {id}"),
        [id, others @ ..] => format!("process {id} and {} more", others.len()),
    }
}
