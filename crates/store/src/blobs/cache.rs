//! Copies of blobs in a local folder, for storage that is far away.
//!
//! A copy is the file `ab/cdef…` by digest. `tmp/` holds files that are being written. The folder has an upper bound, which
//! is checked whenever this process has written a sixteenth of it; then the copies that were not read for the longest time
//! are deleted.
//!
//! Invariants:
//! - A copy is made only of a blob that the storage keeps: after its `put` returned, or as it came from there.
//! - A copy is returned only after its digest was verified. A missing, damaged or unwritable copy makes a read slower and has
//!   no other effect, so no function here returns an error for it.
//! - Several processes may share a folder: a copy gets its name only when it is whole, and any process may delete any copy.

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

const TEMPORARY: &str = "tmp";
/// A temporary file of this age belongs to a process that was killed.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);
/// A read does not renew the date of a copy that is younger than this, to save a write to the disk for each read.
const DATE_PRECISION: Duration = Duration::from_secs(60);

/// Blobs of another storage, with copies in a local folder.
pub struct CachedBlobs {
    /// The storage that keeps the blobs.
    storage: Arc<dyn Blobs>,
    copies: Arc<Copies>,
}

/// The folder of copies. Its functions block, so they run on blocking threads.
#[derive(Debug)]
struct Copies {
    root: PathBuf,
    /// The size that all copies together may have.
    max_bytes: u64,
    /// The bytes that this process has written since it last compared the folder with its bound.
    written_bytes: AtomicU64,
    /// Makes the names of temporary files unique within this process.
    next_temporary: AtomicU64,
}

impl CachedBlobs {
    /// Opens the folder `dir` for copies of about `max_bytes` in all. The folder is created if it does not exist.
    pub fn open(storage: Arc<dyn Blobs>, dir: &Path, max_bytes: u64) -> Result<Self, OpenError> {
        let open_error = |error| OpenError::from_io(dir, error);
        folder::create(&dir.join(TEMPORARY)).map_err(open_error)?;
        let copies = Copies {
            root: dir.canonicalize().map_err(open_error)?,
            max_bytes,
            // As if the bound were reached: another process may have filled the folder, so the first copy checks it.
            written_bytes: AtomicU64::new(max_bytes),
            next_temporary: AtomicU64::new(0),
        };
        // A folder that cannot be written is the operator's mistake, so it is reported now and not at each copy.
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
        // The storage comes first: a copy is never the only place of a blob.
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

    /// Returns the copy, if there is an intact one. A damaged copy is deleted, since the storage has the bytes.
    fn read(&self, digest: &Digest) -> Option<Vec<u8>> {
        let path = self.path_of(digest);
        let bytes = std::fs::read(&path).ok()?;
        if Digest::of(&bytes) != *digest {
            tracing::warn!(path = %path.display(), "the copy of a blob is damaged; the blob is read from the storage");
            self.remove(digest);
            return None;
        }
        let modified = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
        if !modified.is_ok_and(|modified| age(modified) < DATE_PRECISION) {
            // An error has no effect but the order in which copies are deleted.
            let _ = File::options().write(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Some(bytes)
    }

    /// Writes a copy, and then deletes old copies if it is time to check the bound.
    fn add(&self, digest: &Digest, bytes: &[u8]) {
        let size = bytes.len() as u64;
        // Such a copy would push out all others and then itself.
        if size > self.max_bytes {
            return;
        }
        let path = self.path_of(digest);
        if let Err(error) = self.write(&path, bytes) {
            tracing::warn!(%error, path = %path.display(), "the copy of a blob could not be written");
            return;
        }
        let written_bytes = self.written_bytes.fetch_add(size, Ordering::Relaxed) + size;
        // Not at every copy, because measuring reads the whole folder.
        if written_bytes >= self.max_bytes / 16 {
            self.written_bytes.store(0, Ordering::Relaxed);
            if let Err(error) = self.delete_least_recently_read() {
                tracing::warn!(%error, folder = %self.root.display(), "the folder of copies of blobs could not be read");
            }
        }
    }

    /// Writes the file under a temporary name and renames it, so that no reader sees half a copy. The file is not flushed:
    /// a copy that a power cut damages is recognised by its digest.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
        let (temporary, mut file) = self.new_temporary_file()?;
        let written = file.write_all(bytes);
        drop(file);
        let renamed = written.and_then(|()| std::fs::rename(&temporary, path));
        if renamed.is_err() {
            // On a full disk the half-written file must not stay.
            let _ = std::fs::remove_file(&temporary);
        }
        renamed
    }

    fn remove(&self, digest: &Digest) {
        // An error is no problem: another process may have deleted the copy first.
        let _ = std::fs::remove_file(self.path_of(digest));
    }

    /// Creates a file that no other thread or process has.
    fn new_temporary_file(&self) -> io::Result<(PathBuf, File)> {
        loop {
            let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
            let path = self.root.join(TEMPORARY).join(format!("{}-{number}", std::process::id()));
            match File::options().write(true).create_new(true).open(&path) {
                // Process ids repeat, over time and between containers that share the folder.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // The folder may be deleted at any moment.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    std::fs::create_dir_all(self.root.join(TEMPORARY))?;
                }
                opened => return opened.map(|file| (path, file)),
            }
        }
    }

    /// Deletes the copies that were not read for the longest time, if all copies together exceed the bound. Abandoned
    /// temporary files are deleted as well.
    fn delete_least_recently_read(&self) -> io::Result<()> {
        let mut copies = Vec::new();
        for subfolder in std::fs::read_dir(&self.root)?.flatten() {
            let is_temporary = subfolder.file_name() == TEMPORARY;
            for file in std::fs::read_dir(subfolder.path()).into_iter().flatten().flatten() {
                // Another process may have deleted the file in between.
                let Ok(metadata) = file.metadata() else { continue };
                let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if !is_temporary {
                    copies.push((modified, metadata.len(), file.path()));
                } else if age(modified) > ABANDONED_AFTER {
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
            // A tenth below the bound, so that the next copy does not exceed it at once.
            if total <= self.max_bytes / 10 * 9 {
                break;
            }
            let _ = std::fs::remove_file(path);
            total -= bytes;
        }
        Ok(())
    }
}

/// Returns the time since `modified`. A date in the future, from another clock, counts as now.
fn age(modified: SystemTime) -> Duration {
    modified.elapsed().unwrap_or_default()
}
