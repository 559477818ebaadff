//! Reads and replaces `secrets.enc`, and locks it for one writer at a time.
//!
//! Invariants:
//! - The name always leads to a whole file. When `replace` returns, that is the new file, durably.
//! - A writer holds the lock from before it reads until after it has replaced the file. Otherwise two writers could start
//!   from the same file, and the second would undo the change of the first.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::error::{Error, MAX_FILE_BYTES};
use crate::folder;

pub const NAME: &str = "secrets.enc";
/// The locked file. It is not `secrets.enc`, because that file is replaced and a lock belongs to a file, not to a name. It is
/// never deleted: after a deletion two processes could hold a lock on a file each.
const LOCK: &str = "secrets.lock";
const NEW: &str = "secrets.enc.new";
/// How long a writer waits for the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the file of the data folder `data`. Returns `None` if there is no such file.
pub fn read(data: &Path) -> Result<Option<Vec<u8>>, Error> {
    let file = match File::open(data.join(NAME)) {
        Ok(file) => file,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(Error::io("read", cause)),
    };
    let mut bytes = Vec::new();
    // One byte more than the bound, so that a file that is too large is noticed and never read whole.
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|cause| Error::io("read", cause))?;
    check_size(bytes.len())?;
    Ok(Some(bytes))
}

/// The right to replace the file. It ends when the value is dropped. When the process is killed, the system ends it.
pub struct WriteLock {
    /// The open file carries the lock.
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
        let mut options = OpenOptions::new();
        let file = private(options.write(true).create(true)).open(data.join(LOCK)).map_err(lock_error)?;
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

/// Replaces the content of the file, durably. The file is written under another name, flushed and renamed, so that a crash at
/// any point leaves the old or the new file.
pub fn replace(_lock: &WriteLock, data: &Path, bytes: &[u8]) -> Result<(), Error> {
    check_size(bytes.len())?;
    let new = data.join(NEW);
    // A killed writer may have left a file, perhaps with permissions for others. `create_new` below refuses to reuse it.
    match std::fs::remove_file(&new) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(Error::io("written", cause)),
        _ => {}
    }
    let written = write_new(&new, bytes).and_then(|()| std::fs::rename(&new, data.join(NAME)));
    if let Err(cause) = written {
        // The old file stays. Half of a new file is of no use.
        let _ = std::fs::remove_file(&new);
        return Err(Error::io("written", cause));
    }
    folder::sync(data).map_err(|cause| Error::io("written", cause))
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes a new file readable and writable for this user only, from the moment when it is created.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
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
        std::fs::write(dir.path().join(NEW), b"half").unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        replace(&WriteLock::acquire(dir.path()).unwrap(), dir.path(), b"whole").unwrap();
        assert_eq!(read(dir.path()).unwrap().unwrap(), b"whole");
        assert!(!dir.path().join(NEW).exists());
    }

    #[test]
    fn a_file_that_is_too_large_is_neither_read_nor_written() {
        let dir = tempfile::tempdir().unwrap();
        let large = vec![0; MAX_FILE_BYTES + 1];
        let refused = replace(&WriteLock::acquire(dir.path()).unwrap(), dir.path(), &large);
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
        std::fs::write(dir.path().join(NAME), &large).unwrap();
        assert!(matches!(read(dir.path()), Err(Error::TooLarge { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_files() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        replace(&WriteLock::acquire(dir.path()).unwrap(), dir.path(), b"x").unwrap();
        for name in [NAME, LOCK] {
            let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
