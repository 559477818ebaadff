//! Reads and replaces the files `secrets.enc` and `secret-bindings.json`, and locks them for one writer at a time.
//!
//! Invariants:
//! - The path `secrets.enc` always leads to a complete file. When `replace` returns, it leads to the new file, durably.
//! - A writer takes the lock before it reads the file and releases it after it has replaced the file. Otherwise two
//!   writers could read the same file, and the second one would undo the change of the first one.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::error::{Error, MAX_FILE_BYTES};
use crate::folder;

pub const FILE_NAME: &str = "secrets.enc";
/// The name of the lock file. The lock is not on `secrets.enc`, because that file is replaced, and a lock belongs to a
/// file and not to a name. The lock file is never deleted, because two processes could then lock two different files of
/// this name.
const LOCK_FILE_NAME: &str = "secrets.lock";
const NEW_FILE_NAME: &str = "secrets.enc.new";
/// The time that a writer waits for the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads `secrets.enc` in the data folder `data`. Returns `None` if the file does not exist.
pub fn read(data: &Path) -> Result<Option<Vec<u8>>, Error> {
    read_named(data, FILE_NAME)
}

/// Reads the file `name` in the data folder `data`. Returns `None` if the file does not exist.
pub fn read_named(data: &Path, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let file = match File::open(data.join(name)) {
        Ok(file) => file,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(Error::io("read", cause)),
    };
    let mut bytes = Vec::new();
    // At most one byte more than the bound is read, so that a file that is too large is noticed without reading all of
    // it.
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|cause| Error::io("read", cause))?;
    check_size(bytes.len())?;
    Ok(Some(bytes))
}

/// The exclusive right to replace `secrets.enc`. The lock is released when this value is dropped or when the process
/// ends.
pub struct WriteLock {
    /// The open lock file. Closing it releases the lock.
    _file: File,
}

impl WriteLock {
    /// Waits for the lock. The data folder is created if it does not exist.
    pub fn acquire(data: &Path) -> Result<Self, Error> {
        Self::acquire_within(data, LOCK_TIMEOUT)
    }

    fn acquire_within(data: &Path, timeout: Duration) -> Result<Self, Error> {
        let lock_error = |cause| Error::io("locked", cause);
        folder::create(data).map_err(lock_error)?;
        let file = folder::private_file().create(true).open(data.join(LOCK_FILE_NAME)).map_err(lock_error)?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(cause)) => return Err(lock_error(cause)),
                Err(TryLockError::WouldBlock) if started.elapsed() >= timeout => {
                    return Err(Error::Busy { seconds: timeout.as_secs() });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

/// Replaces the content of `secrets.enc`, durably. The new file is written under another name, flushed and renamed, so
/// that a crash leaves either the old or the new file.
pub fn replace(lock: &WriteLock, data: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace_named(lock, data, FILE_NAME, NEW_FILE_NAME, bytes)
}

/// Replaces the content of the file `name`, durably. `new_name` is the name of the new file until it is complete.
pub fn replace_named(_lock: &WriteLock, data: &Path, name: &str, new_name: &str, bytes: &[u8]) -> Result<(), Error> {
    check_size(bytes.len())?;
    let new = data.join(new_name);
    // A killed writer may have left a file with this name, perhaps with permissions for other users. It is deleted
    // first, because `create_new` below refuses an existing file.
    match std::fs::remove_file(&new) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(Error::io("written", cause)),
        _ => {}
    }
    let written = write_new(&new, bytes).and_then(|()| std::fs::rename(&new, data.join(name)));
    if let Err(cause) = written {
        // The old file stays valid. The half-written new file is deleted.
        let _ = std::fs::remove_file(&new);
        return Err(Error::io("written", cause));
    }
    folder::sync(data).map_err(|cause| Error::io("written", cause))
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = folder::create_new_file(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn check_size(bytes: usize) -> Result<(), Error> {
    if bytes > MAX_FILE_BYTES {
        return Err(Error::TooLarge { found: bytes as u64, most: MAX_FILE_BYTES as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let lock = WriteLock::acquire(dir.path()).unwrap();
        assert!(matches!(WriteLock::acquire_within(dir.path(), Duration::ZERO), Err(Error::Busy { .. })));
        drop(lock);
        assert!(WriteLock::acquire_within(dir.path(), Duration::ZERO).is_ok());
    }

    #[test]
    fn a_file_that_a_killed_writer_left_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(NEW_FILE_NAME), b"half").unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        replace(&WriteLock::acquire(dir.path()).unwrap(), dir.path(), b"whole").unwrap();
        assert_eq!(read(dir.path()).unwrap().unwrap(), b"whole");
        assert!(!dir.path().join(NEW_FILE_NAME).exists());
    }

    #[test]
    fn a_file_that_is_too_large_is_neither_read_nor_written() {
        let dir = tempfile::tempdir().unwrap();
        let large = vec![0; MAX_FILE_BYTES + 1];
        let refused = replace(&WriteLock::acquire(dir.path()).unwrap(), dir.path(), &large);
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
        std::fs::write(dir.path().join(FILE_NAME), &large).unwrap();
        assert!(matches!(read(dir.path()), Err(Error::TooLarge { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_files() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        replace(&WriteLock::acquire(dir.path()).unwrap(), dir.path(), b"x").unwrap();
        for name in [FILE_NAME, LOCK_FILE_NAME] {
            let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
