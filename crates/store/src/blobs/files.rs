//! Blobs as files: `ab/cdef…` by digest, `tmp/` while they are written, `damaged/` for what was set aside.
//!
//! Plain files and not `object_store::LocalFileSystem`, though the latter can flush files and folders (`with_fsync`): it
//! cannot flush the folder of an object that is there already, so a second `put` of equal bytes could be answered before
//! the first one's folder entry is durable; and it would bring a dozen crates for the forty lines below that write a file.
//! S3 and its like are another implementation of `ports::Blobs`, for which that crate is the right one.
//!
//! Invariants: a file under its digest's name was written whole and flushed before it got that name; bytes leave only after
//! their digest was verified; a damaged file is moved, never deleted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use base::Digest;
use ports::blobs::{Blobs, Error, Stored};

use super::shelves;
use crate::{OpenError, folder};

const TEMPORARY: &str = "tmp";
const DAMAGED: &str = "damaged";

/// A temporary file this old belongs to a process that was killed.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
pub struct FileBlobs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    next_temporary: AtomicU64,
    /// Held while a damaged file is set aside, so that the sound one that replaces it is not.
    setting_aside: Mutex<()>,
}

impl FileBlobs {
    /// Opens the blob folder at `dir`, made where there is none.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let wrong = |error| OpenError::from_io(dir, error);
        for name in [TEMPORARY, DAMAGED] {
            folder::create(&dir.join(name)).map_err(wrong)?;
        }
        let root = dir.canonicalize().map_err(wrong)?;
        let inner = Inner { root, next_temporary: AtomicU64::new(0), setting_aside: Mutex::new(()) };
        inner.sweep();
        let (probe, _file) = inner.temporary().map_err(wrong)?;
        std::fs::remove_file(probe).map_err(wrong)?;
        Ok(Self { inner: Arc::new(inner) })
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.map_err(|error| Error::Unavailable(error.into()))?
    }
}

#[async_trait]
impl Blobs for FileBlobs {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let bytes = bytes.to_vec();
        self.blocking(move |inner| inner.put(&bytes)).await
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let digest = *digest;
        self.blocking(move |inner| inner.get(&digest)).await
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<Stored>, Error> {
        let after = after.copied();
        self.blocking(move |inner| shelves::list(&inner.root, after.as_ref(), limit).map_err(fault)).await
    }

    async fn delete(&self, digest: &Digest, idle: Duration) -> Result<bool, Error> {
        let digest = *digest;
        self.blocking(move |inner| inner.delete(&digest, idle).map_err(fault)).await
    }
}

impl Inner {
    fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = Digest::of(bytes);
        let (shelf, path) = self.place(&digest);
        match std::fs::read(&path) {
            Ok(found) if found == bytes => match renew(&path) {
                Ok(()) => self.settle(&shelf).map_err(fault)?,
                // Someone has just removed it as too old.
                Err(error) if is_absent(&error) => self.write(bytes, &shelf, &path).map_err(fault)?,
                Err(error) => return Err(fault(error)),
            },
            Ok(_) => {
                self.set_aside(&digest);
                self.write(bytes, &shelf, &path).map_err(fault)?;
            }
            Err(error) if is_absent(&error) => self.write(bytes, &shelf, &path).map_err(fault)?,
            Err(error) => return Err(fault(error)),
        }
        Ok(digest)
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        match self.read_sound(digest).map_err(fault)? {
            Found::Sound(bytes) => Ok(bytes),
            Found::Nothing => Err(Error::Missing(*digest)),
            Found::Damaged => self.set_aside(digest).ok_or(Error::Damaged(*digest)),
        }
    }

    fn place(&self, digest: &Digest) -> (PathBuf, PathBuf) {
        let name = digest.to_string();
        let (first, rest) = name.split_at(2);
        let shelf = self.root.join(first);
        let path = shelf.join(rest);
        (shelf, path)
    }

    fn read_sound(&self, digest: &Digest) -> io::Result<Found> {
        match std::fs::read(self.place(digest).1) {
            Ok(bytes) if Digest::of(&bytes) == *digest => Ok(Found::Sound(bytes)),
            Ok(_) => Ok(Found::Damaged),
            Err(error) if is_absent(&error) => Ok(Found::Nothing),
            Err(error) => Err(error),
        }
    }

    fn write(&self, bytes: &[u8], shelf: &Path, path: &Path) -> io::Result<()> {
        folder::create(shelf)?;
        let (temporary, mut file) = self.temporary()?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        drop(file);
        if let Err(error) = written.and_then(|()| std::fs::rename(&temporary, path)) {
            // On a full disk the half-written file must not stay; that it cannot be removed changes nothing.
            let _ = std::fs::remove_file(&temporary);
            return Err(error);
        }
        self.settle(shelf)
    }

    /// Makes the entry of a file in `shelf`, and of `shelf` itself, durable; whoever wrote them may not have come so far.
    fn settle(&self, shelf: &Path) -> io::Result<()> {
        folder::sync(shelf)?;
        folder::sync(&self.root)
    }

    /// A new file that no other thread or process has.
    fn temporary(&self) -> io::Result<(PathBuf, File)> {
        loop {
            let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
            let path = self.root.join(TEMPORARY).join(format!("{}-{number}", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                // Process ids repeat, over time and between containers.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if is_absent(&error) => folder::create(&self.root.join(TEMPORARY))?,
                opened => return opened.map(|file| (path, file)),
            }
        }
    }

    /// Moves the damaged file of this digest away; gives its bytes where they turn out to be sound by now.
    fn set_aside(&self, digest: &Digest) -> Option<Vec<u8>> {
        let _guard = self.setting_aside.lock().unwrap_or_else(PoisonError::into_inner);
        match self.read_sound(digest) {
            Ok(Found::Sound(bytes)) => return Some(bytes),
            // Another has set it aside; what comes to its place from here on is not to be moved.
            Ok(Found::Nothing) => return None,
            Ok(Found::Damaged) | Err(_) => {}
        }
        let aside = self.root.join(DAMAGED);
        let moved = folder::create(&aside)
            .and_then(|()| std::fs::rename(self.place(digest).1, aside.join(digest.to_string())))
            .and_then(|()| folder::sync(&aside));
        match moved {
            Ok(()) => tracing::error!(%digest, folder = %aside.display(), "a damaged blob was set aside"),
            Err(error) => tracing::error!(%digest, %error, "a damaged blob could not be set aside"),
        }
        None
    }

    /// The file is taken away first and looked at then: a `put` that renewed it before is seen by its date, and one that comes
    /// after does not find it and writes it again.
    fn delete(&self, digest: &Digest, idle: Duration) -> io::Result<bool> {
        let path = self.place(digest).1;
        match std::fs::metadata(&path) {
            Ok(found) if shelves::idle(&found) >= idle => {}
            Ok(_) => return Ok(false),
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        let (away, _file) = self.temporary()?;
        match std::fs::rename(&path, &away) {
            Ok(()) => {}
            Err(error) => {
                let _ = std::fs::remove_file(&away);
                return if is_absent(&error) { Ok(false) } else { Err(error) };
            }
        }
        let old = std::fs::metadata(&away).is_ok_and(|found| shelves::idle(&found) >= idle);
        if old {
            std::fs::remove_file(&away)?;
        } else {
            std::fs::rename(&away, &path)?;
        }
        Ok(old)
    }

    /// Removes what killed processes left in `tmp/`.
    fn sweep(&self) {
        let entries = std::fs::read_dir(self.root.join(TEMPORARY)).into_iter().flatten().flatten();
        for entry in entries {
            let age = entry.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > ABANDONED_AFTER) {
                // Another process may sweep at the same moment.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// From here on it counts as new: who is about to name it has time to. It must be there afterwards, too.
fn renew(path: &Path) -> io::Result<()> {
    File::options().write(true).open(path)?.set_modified(std::time::SystemTime::now())?;
    std::fs::metadata(path).map(|_| ())
}

enum Found {
    Sound(Vec<u8>),
    Damaged,
    Nothing,
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn fault(error: io::Error) -> Error {
    if folder::is_full(&error) { Error::Full(error.into()) } else { Error::Unavailable(error.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_full_and_the_rest_unavailable() {
        assert!(matches!(fault(io::ErrorKind::StorageFull.into()), Error::Full(_)));
        assert!(matches!(fault(io::ErrorKind::ReadOnlyFilesystem.into()), Error::Unavailable(_)));
    }

    #[test]
    fn only_old_temporary_files_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        FileBlobs::open(dir.path()).unwrap();
        let (old, fresh) = (dir.path().join("tmp/1-1"), dir.path().join("tmp/1-2"));
        for path in [&old, &fresh] {
            std::fs::write(path, b"half").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - ABANDONED_AFTER * 2;
        File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        FileBlobs::open(dir.path()).unwrap();
        assert!(!old.exists() && fresh.exists());
    }
}
