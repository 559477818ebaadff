//! The type `CachedBlobs`: a cache of blobs in a local folder, in front of a storage that is slow to reach. A copy is a
//! blob's file in this folder.
//!
//! A copy is the file `ab/cdef…`, named by the digest of the blob. `tmp/` contains files that are being written. The
//! folder has a size limit. The size is checked each time this process has written a sixteenth of the limit. If the
//! limit is exceeded, the least recently read copies are deleted.
//!
//! Invariants:
//! - A copy is made only of a blob that is in the storage: after `put` to the storage returned, or after `get` from the
//!   storage.
//! - A copy is returned only after its digest was verified. A missing, damaged or unwritable copy makes a read slower
//!   and is never an error of a call.
//! - Several processes may share a folder: a copy gets its name only after it is completely written, and any process
//!   may delete any copy.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use base::Digest;
use ports::Blobs;
use ports::blobs::{Error, StoredBlob};

use crate::{OpenError, folder};

const TEMPORARY_FOLDER: &str = "tmp";
/// A temporary file that is older than this time belongs to a process that was killed.
const TEMPORARY_FILE_ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);
/// A read renews the date of a copy only if the date is older than this time. This saves a disk write for most reads.
const DATE_PRECISION: Duration = Duration::from_secs(60);

/// A store of blobs that reads and writes another storage and keeps copies in a local folder.
pub struct CachedBlobs {
    /// The storage that contains all blobs.
    storage: Arc<dyn Blobs>,
    copies: Arc<Copies>,
}

/// The folder of copies. Its functions block, so `CachedBlobs` calls them on blocking threads.
#[derive(Debug)]
struct Copies {
    root: PathBuf,
    /// The largest total size of all copies in bytes.
    max_bytes: u64,
    /// The bytes that this process has written since it last checked the size of the folder.
    written_bytes: AtomicU64,
    /// The number in the name of the next temporary file. It makes the names unique within this process.
    next_temporary: AtomicU64,
}

impl CachedBlobs {
    /// Opens the folder `dir` for copies with a total size of about `max_bytes`. The folder is created if it does not
    /// exist.
    pub fn open(storage: Arc<dyn Blobs>, dir: &Path, max_bytes: u64) -> Result<Self, OpenError> {
        let open_error = |error| OpenError::from_io(dir, error);
        folder::create(&dir.join(TEMPORARY_FOLDER)).map_err(open_error)?;
        let copies = Copies {
            root: dir.canonicalize().map_err(open_error)?,
            max_bytes,
            // With this start value the first copy checks the size of the folder, because another process may have
            // filled it.
            written_bytes: AtomicU64::new(max_bytes),
            next_temporary: AtomicU64::new(0),
        };
        // A probe file is written, so that a folder without write permission is an error of `open` and not a warning at
        // each copy.
        let (probe, _file) = copies.new_temporary_file().map_err(open_error)?;
        std::fs::remove_file(probe).map_err(open_error)?;
        Ok(Self { storage, copies: Arc::new(copies) })
    }

    /// Runs `work` on a blocking thread. `None` means that the runtime is shutting down.
    async fn with_copies<T: Send + 'static>(&self, work: impl FnOnce(&Copies) -> T + Send + 'static) -> Option<T> {
        let copies = Arc::clone(&self.copies);
        tokio::task::spawn_blocking(move || work(&copies)).await.ok()
    }
}

#[async_trait]
impl Blobs for CachedBlobs {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        // The blob is put to the storage before it is copied, so that a copy is never the only file with its bytes.
        let digest = self.storage.put(bytes).await?;
        let bytes = bytes.to_vec();
        self.with_copies(move |copies| copies.add(&digest, &bytes)).await;
        Ok(digest)
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let digest = *digest;
        if let Some(Some(bytes)) = self.with_copies(move |copies| copies.read(&digest)).await {
            return Ok(bytes);
        }
        let bytes = Arc::new(self.storage.get(&digest).await?);
        let bytes_to_copy = Arc::clone(&bytes);
        self.with_copies(move |copies| copies.add(&digest, &bytes_to_copy)).await;
        Ok(Arc::unwrap_or_clone(bytes))
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>, Error> {
        self.storage.list(after, limit).await
    }

    async fn delete(&self, digest: &Digest, min_idle: Duration) -> Result<bool, Error> {
        let deleted = self.storage.delete(digest, min_idle).await?;
        if deleted {
            let digest = *digest;
            self.with_copies(move |copies| copies.remove(&digest)).await;
        }
        Ok(deleted)
    }
}

impl Copies {
    fn path_of(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        let (first, rest) = name.split_at(2);
        self.root.join(first).join(rest)
    }

    /// Returns the bytes of an intact copy. A damaged copy is deleted, because the storage has the bytes.
    fn read(&self, digest: &Digest) -> Option<Vec<u8>> {
        let path = self.path_of(digest);
        let bytes = std::fs::read(&path).ok()?;
        if Digest::of(&bytes) != *digest {
            tracing::warn!(path = %path.display(), "the local copy of a blob is damaged; the blob is read from the storage instead");
            self.remove(digest);
            return None;
        }
        let modified = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
        if !modified.is_ok_and(|modified| age(modified) < DATE_PRECISION) {
            // An error is ignored, because the date only decides in which order copies are deleted.
            let _ = File::options().write(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Some(bytes)
    }

    /// Writes a copy. If this process has written enough bytes since the last check, the function checks the folder's
    /// size and deletes old copies.
    fn add(&self, digest: &Digest, bytes: &[u8]) {
        let size = bytes.len() as u64;
        // A copy that is larger than the limit is not written, because all copies would be deleted for it.
        if size > self.max_bytes {
            return;
        }
        let path = self.path_of(digest);
        if let Err(error) = self.write(&path, bytes) {
            tracing::warn!(%error, path = %path.display(), "the local copy of a blob could not be written, so later reads of the blob are slower; check the folder's space and permissions");
            return;
        }
        let written_bytes = self.written_bytes.fetch_add(size, Ordering::Relaxed) + size;
        // The size is not checked after every copy, because measuring reads the whole folder.
        if written_bytes >= self.max_bytes / 16 {
            self.written_bytes.store(0, Ordering::Relaxed);
            if let Err(error) = self.delete_least_recently_read() {
                tracing::warn!(%error, folder = %self.root.display(), "the folder of the blob cache could not be read, so old copies are not deleted");
            }
        }
    }

    /// Writes a temporary file and renames it, so that no reader sees a half-written copy. The file is not flushed,
    /// because a copy that a power cut damaged is recognised by its digest.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        folder::create_private(path.parent().unwrap_or(&self.root))?;
        let (temporary, mut file) = self.new_temporary_file()?;
        let written = file.write_all(bytes);
        drop(file);
        let renamed = written.and_then(|()| std::fs::rename(&temporary, path));
        if renamed.is_err() {
            // The half-written file is deleted, because it uses space on a disk that may be full.
            let _ = std::fs::remove_file(&temporary);
        }
        renamed
    }

    fn remove(&self, digest: &Digest) {
        // An error is ignored, because another process may have deleted the copy first.
        let _ = std::fs::remove_file(self.path_of(digest));
    }

    /// Creates a file in `tmp/` that no other thread or process uses.
    fn new_temporary_file(&self) -> io::Result<(PathBuf, File)> {
        loop {
            let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
            let path = self.root.join(TEMPORARY_FOLDER).join(format!("{}-{number}", std::process::id()));
            match folder::create_new_file(&path) {
                // The name exists already, because process ids repeat over time and between containers that share the
                // folder. The next number is tried.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // The operator may delete the folder `tmp/` while the process runs, so it is created again.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    folder::create_private(&self.root.join(TEMPORARY_FOLDER))?;
                }
                opened => return opened.map(|file| (path, file)),
            }
        }
    }

    /// Deletes the least recently read copies if the total size exceeds the limit. Also deletes abandoned temporary
    /// files.
    fn delete_least_recently_read(&self) -> io::Result<()> {
        let mut copies = Vec::new();
        for subfolder in std::fs::read_dir(&self.root)?.flatten() {
            let is_temporary = subfolder.file_name() == TEMPORARY_FOLDER;
            for file in std::fs::read_dir(subfolder.path()).into_iter().flatten().flatten() {
                // Another process may have deleted the file since the folder was listed.
                let Ok(metadata) = file.metadata() else { continue };
                let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if !is_temporary {
                    copies.push((modified, metadata.len(), file.path()));
                } else if age(modified) > TEMPORARY_FILE_ABANDONED_AFTER {
                    let _ = std::fs::remove_file(file.path());
                }
            }
        }
        let mut total: u64 = copies.iter().map(|(_, bytes, _)| bytes).sum();
        if total <= self.max_bytes {
            return Ok(());
        }
        copies.sort();
        for (_, bytes, path) in copies {
            // Copies are deleted until the size is a tenth below the limit, so that the next copy does not exceed the
            // limit at once.
            if total <= self.max_bytes / 10 * 9 {
                break;
            }
            let _ = std::fs::remove_file(path);
            total -= bytes;
        }
        Ok(())
    }
}

/// Returns the time since `modified`. A date in the future counts as now.
fn age(modified: SystemTime) -> Duration {
    modified.elapsed().unwrap_or_default()
}
