//! The modes of a connection that writes, the mark of the database file, and the wait for a lock.
//! Invariant: a connection that was configured is in WAL mode with `synchronous = FULL`.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::Options;
use super::error::is_busy;
use crate::OpenError;

/// The application id in the header of the database file: `tkmk` in ASCII. A database with another id belongs to
/// another program.
pub const APPLICATION_ID: i64 = 0x746b_6d6b;

/// The WAL file is cut back to this size after a burst of writes has made it larger.
const MAX_WAL_BYTES: i64 = 64 * 1024 * 1024;

/// The pause between two attempts to take the write lock. SQLite's own pauses grow to 100 ms, and a busy process would
/// take the lock during each of them.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Repeats `attempt` for at most `timeout` while another connection holds the lock.
pub fn wait_while_busy<T>(timeout: Duration, mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let deadline = Instant::now() + timeout;
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < deadline => std::thread::sleep(LOCK_POLL_INTERVAL),
            result => return result,
        }
    }
}

/// Sets the modes that durable commits need, and the size limits of the files.
pub fn configure(path: &Path, connection: &Connection, options: &Options) -> Result<(), OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    // SQLite does not wait for a lock in this statement. If two processes create the database at the same moment, one
    // gets `busy` at once, so the statement is repeated.
    let mode: String = wait_while_busy(options.busy_timeout, || {
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
    })
    .map_err(open_error)?;
    if mode != "wal" {
        let source = format!("the file system of the database supports journal mode `{mode}` and not WAL").into();
        return Err(OpenError::Failed { path: path.to_owned(), source });
    }
    // In WAL mode, `NORMAL` flushes at checkpoints only, so a power cut would lose commits that were already answered.
    connection.pragma_update(None, "synchronous", "FULL").map_err(open_error)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(open_error)?;
    // These two pragmas return the new value as a row, which `pragma_update` treats as an error.
    let set_number = |name: &str, value: i64| {
        connection.pragma_update_and_check(None, name, value, |row| row.get::<_, i64>(0)).map_err(open_error)
    };
    set_number("journal_size_limit", MAX_WAL_BYTES)?;
    if let Some(pages) = options.max_pages {
        set_number("max_page_count", i64::from(pages))?;
    }
    Ok(())
}
