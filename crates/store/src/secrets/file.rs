//! `secrets.enc` on disk: read whole, replaced whole, one writer at a time.
//! Invariant: the name always leads to a whole file; when `replace` returns, it is the new one, durably; a writer holds the
//! lock from before it reads until after it has replaced.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::error::{Error, MOST_FILE_BYTES};
use crate::folder;

pub const NAME: &str = "secrets.enc";
/// A file of its own, because the other is replaced. It is never removed: two processes could hold one lock each.
const LOCK: &str = "secrets.lock";
const NEW: &str = "secrets.enc.new";
const PATIENCE: Duration = Duration::from_secs(30);

/// None if there is no such file; every other reason is an error.
pub fn read(data: &Path) -> Result<Option<Vec<u8>>, Error> {
    let file = match File::open(data.join(NAME)) {
        Ok(file) => file,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(Error::io("read", cause)),
    };
    let mut bytes = Vec::new();
    file.take(MOST_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|cause| Error::io("read", cause))?;
    fits(bytes.len())?;
    Ok(Some(bytes))
}

/// Held as long as the value lives; the system ends it with the process.
pub struct Lock {
    _file: File,
}

impl Lock {
    pub fn take(data: &Path) -> Result<Self, Error> {
        Self::wait(data, PATIENCE)
    }

    fn wait(data: &Path, patience: Duration) -> Result<Self, Error> {
        let failed = |cause| Error::io("locked", cause);
        folder::create(data).map_err(failed)?;
        let file = private(OpenOptions::new().write(true).create(true)).open(data.join(LOCK)).map_err(failed)?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(cause)) => return Err(failed(cause)),
                Err(TryLockError::WouldBlock) if started.elapsed() >= patience => {
                    return Err(Error::Busy { seconds: patience.as_secs() });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

/// Puts these bytes in the place of the file.
pub fn replace(_held: &Lock, data: &Path, bytes: &[u8]) -> Result<(), Error> {
    fits(bytes.len())?;
    let new = data.join(NEW);
    // What a killed writer left behind, perhaps with other permissions.
    match std::fs::remove_file(&new) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(Error::io("written", cause)),
        _ => {}
    }
    let written = write_new(&new, bytes).and_then(|()| std::fs::rename(&new, data.join(NAME)));
    if let Err(cause) = written {
        // The old file stands; half of a new one helps nobody.
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

/// For this user only, from the moment it is made.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn fits(found: usize) -> Result<(), Error> {
    if found > MOST_FILE_BYTES {
        return Err(Error::TooLarge { found: found as u64, most: MOST_FILE_BYTES as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let held = Lock::take(dir.path()).unwrap();
        assert!(matches!(Lock::wait(dir.path(), Duration::ZERO), Err(Error::Busy { .. })));
        drop(held);
        assert!(Lock::wait(dir.path(), Duration::ZERO).is_ok());
    }

    #[test]
    fn what_a_killed_writer_left_is_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(NEW), b"half").unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        replace(&Lock::take(dir.path()).unwrap(), dir.path(), b"whole").unwrap();
        assert_eq!(read(dir.path()).unwrap().unwrap(), b"whole");
        assert!(!dir.path().join(NEW).exists());
    }

    #[test]
    fn too_much_is_refused_both_ways() {
        let dir = tempfile::tempdir().unwrap();
        let large = vec![0; MOST_FILE_BYTES + 1];
        let refused = replace(&Lock::take(dir.path()).unwrap(), dir.path(), &large);
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
        std::fs::write(dir.path().join(NAME), &large).unwrap();
        assert!(matches!(read(dir.path()), Err(Error::TooLarge { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        replace(&Lock::take(dir.path()).unwrap(), dir.path(), b"x").unwrap();
        for name in [NAME, LOCK] {
            let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
