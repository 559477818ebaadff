//! The type `FileBlobs`: each blob is a file `ab/cdef…`, named by its digest. `tmp/` contains files that are being
//! written, and `damaged/` contains files whose bytes differ from their name.
//!
//! This module writes files itself and does not use `object_store::LocalFileSystem`. That type can flush files and
//! folders (`with_fsync`), but it cannot flush the folder of an object that exists already. So a second `put` of equal
//! bytes could return before the folder entry of the first `put` is durable. That type would also add a dozen
//! dependencies in place of forty lines. The S3 implementation (`s3/`) does use `object_store`.
//!
//! Invariants:
//! - A file gets the name of its digest only after all of its bytes were written and flushed.
//! - `get` returns bytes only after their digest was verified.
//! - A damaged file is moved to `damaged/` and is never deleted, because its bytes may be the only copy of the data.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use base::Digest;
use ports::blobs::{Blobs, Error, StoredBlob};

use super::BlobRead;
use crate::{OpenError, folder};

const TEMPORARY_FOLDER: &str = "tmp";
const DAMAGED_FOLDER: &str = "damaged";

/// A temporary file that is older than this time belongs to a process that was killed.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Blobs in a folder of files.
#[derive(Debug)]
pub struct FileBlobs {
    files: Arc<BlobFiles>,
}

/// The blob folder. Its functions block, so `FileBlobs` calls them on blocking threads.
#[derive(Debug)]
struct BlobFiles {
    root: PathBuf,
    /// The number in the name of the next temporary file. It makes the names unique within this process.
    next_temporary: AtomicU64,
    /// Locked while a damaged file is moved. Without the lock, a second thread that has read the damaged bytes could
    /// move the intact file that has replaced them.
    moving_damaged: Mutex<()>,
}

impl FileBlobs {
    /// Opens the blob folder at `dir`, which is created if it does not exist.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let open_error = |error| OpenError::from_io(dir, error);
        for name in [TEMPORARY_FOLDER, DAMAGED_FOLDER] {
            folder::create(&dir.join(name)).map_err(open_error)?;
        }
        let files = BlobFiles {
            root: dir.canonicalize().map_err(open_error)?,
            next_temporary: AtomicU64::new(0),
            moving_damaged: Mutex::new(()),
        };
        files.remove_abandoned_files();
        // A probe file is written, so that a folder without write permission is an error of `open` and not of the first
        // `put`.
        let (probe, _file) = files.new_temporary_file().map_err(open_error)?;
        std::fs::remove_file(probe).map_err(open_error)?;
        Ok(Self { files: Arc::new(files) })
    }

    /// Runs `work` on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&BlobFiles) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let files = Arc::clone(&self.files);
        let result = tokio::task::spawn_blocking(move || work(&files)).await;
        result.map_err(|error| Error::Unavailable(error.into()))?
    }
}

#[async_trait]
impl Blobs for FileBlobs {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let bytes = bytes.to_vec();
        self.blocking(move |files| files.put(&bytes)).await
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let digest = *digest;
        self.blocking(move |files| files.get(&digest)).await
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>, Error> {
        let after = after.copied();
        self.blocking(move |files| files.list(after.as_ref(), limit).map_err(blob_error)).await
    }

    async fn delete(&self, digest: &Digest, min_idle: Duration) -> Result<bool, Error> {
        let digest = *digest;
        self.blocking(move |files| files.delete(&digest, min_idle).map_err(blob_error)).await
    }
}

impl BlobFiles {
    fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = Digest::of(bytes);
        let path = self.path_of(&digest);
        match std::fs::read(&path) {
            Ok(existing) if existing == bytes => match renew_date(&path) {
                // The process that wrote the file may not have flushed the folder yet. This `put` promises durability,
                // so it flushes the folder.
                Ok(()) => self.sync_entry_of(&path).map_err(blob_error)?,
                // A concurrent `delete` has just removed the file.
                Err(error) if is_absent(&error) => self.write(bytes, &path).map_err(blob_error)?,
                Err(error) => return Err(blob_error(error)),
            },
            Ok(_) => {
                self.move_damaged(&digest);
                self.write(bytes, &path).map_err(blob_error)?;
            }
            Err(error) if is_absent(&error) => self.write(bytes, &path).map_err(blob_error)?,
            Err(error) => return Err(blob_error(error)),
        }
        Ok(digest)
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        match self.read(digest).map_err(blob_error)? {
            BlobRead::Intact(bytes) => Ok(bytes),
            BlobRead::Missing => Err(Error::Missing(*digest)),
            BlobRead::Damaged => self.move_damaged(digest).ok_or(Error::Damaged(*digest)),
        }
    }

    /// Returns at most `limit` blobs after `after`, in the order of their digests. Files whose path is not a digest are
    /// skipped.
    fn list(&self, after: Option<&Digest>, limit: usize) -> io::Result<Vec<StoredBlob>> {
        let after = after.map(ToString::to_string).unwrap_or_default();
        let first_subfolder = after.get(..2).unwrap_or_default();
        let mut blobs = Vec::new();
        let subfolders = sorted_names(&self.root)?;
        for subfolder in subfolders.iter().filter(|name| name.len() == 2 && name.as_str() >= first_subfolder) {
            let folder = self.root.join(subfolder);
            for name in sorted_names(&folder)? {
                let Ok(digest) = Digest::parse(&format!("{subfolder}{name}")) else { continue };
                if digest.to_string() <= after {
                    continue;
                }
                if blobs.len() == limit {
                    return Ok(blobs);
                }
                // Another process may have deleted the blob since its folder was listed.
                let Ok(metadata) = std::fs::metadata(folder.join(&name)) else { continue };
                blobs.push(StoredBlob { digest, bytes: metadata.len(), idle: idle_time(&metadata) });
            }
        }
        Ok(blobs)
    }

    /// Deletes the file of a blob if its date is at least `min_idle` ago. The file is moved to `tmp/` first, and then
    /// its date is checked again. A `put` before the move has renewed the date, so the file is moved back. A `put`
    /// after the move does not find the file and writes it again.
    fn delete(&self, digest: &Digest, min_idle: Duration) -> io::Result<bool> {
        let path = self.path_of(digest);
        match std::fs::metadata(&path) {
            Ok(metadata) if idle_time(&metadata) >= min_idle => {}
            Ok(_) => return Ok(false),
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        let (away, _file) = self.new_temporary_file()?;
        match std::fs::rename(&path, &away) {
            Ok(()) => {}
            Err(error) => {
                let _ = std::fs::remove_file(&away);
                return if is_absent(&error) { Ok(false) } else { Err(error) };
            }
        }
        let is_old = std::fs::metadata(&away).is_ok_and(|metadata| idle_time(&metadata) >= min_idle);
        if is_old {
            std::fs::remove_file(&away)?;
        } else {
            std::fs::rename(&away, &path)?;
        }
        Ok(is_old)
    }

    /// Returns the path `ab/cdef…` of a blob. The two-letter subfolders keep each folder small.
    fn path_of(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        let (first, rest) = name.split_at(2);
        self.root.join(first).join(rest)
    }

    fn subfolder_of<'a>(&'a self, path: &'a Path) -> &'a Path {
        path.parent().unwrap_or(&self.root)
    }

    fn read(&self, digest: &Digest) -> io::Result<BlobRead> {
        match std::fs::read(self.path_of(digest)) {
            Ok(bytes) if Digest::of(&bytes) == *digest => Ok(BlobRead::Intact(bytes)),
            Ok(_) => Ok(BlobRead::Damaged),
            Err(error) if is_absent(&error) => Ok(BlobRead::Missing),
            Err(error) => Err(error),
        }
    }

    /// Writes a file and makes it durable. The bytes are flushed before the rename; otherwise a power cut could leave
    /// the name with other bytes. The folders are flushed after the rename; otherwise a power cut could lose the name.
    fn write(&self, bytes: &[u8], path: &Path) -> io::Result<()> {
        folder::create(self.subfolder_of(path))?;
        let (temporary, mut file) = self.new_temporary_file()?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        drop(file);
        if let Err(error) = written.and_then(|()| std::fs::rename(&temporary, path)) {
            // The half-written file is deleted, because it uses space on a disk that may be full. If the deletion fails
            // too, the caller still gets the first error.
            let _ = std::fs::remove_file(&temporary);
            return Err(error);
        }
        self.sync_entry_of(path)
    }

    /// Flushes the subfolder of the file and the root folder, so that the entry of the file is durable.
    fn sync_entry_of(&self, path: &Path) -> io::Result<()> {
        folder::sync(self.subfolder_of(path))?;
        folder::sync(&self.root)
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
                Err(error) if is_absent(&error) => folder::create(&self.root.join(TEMPORARY_FOLDER))?,
                opened => return opened.map(|file| (path, file)),
            }
        }
    }

    /// Moves the damaged file of this digest to `damaged/`. If another thread has replaced the file by an intact one,
    /// the function returns its bytes instead.
    fn move_damaged(&self, digest: &Digest) -> Option<Vec<u8>> {
        let _guard = self.moving_damaged.lock().unwrap_or_else(PoisonError::into_inner);
        match self.read(digest) {
            Ok(BlobRead::Intact(bytes)) => return Some(bytes),
            // Another thread has moved the damaged file. A later file of this name is intact and must not be moved.
            Ok(BlobRead::Missing) => return None,
            Ok(BlobRead::Damaged) | Err(_) => {}
        }
        let damaged = self.root.join(DAMAGED_FOLDER);
        let moved = folder::create(&damaged)
            .and_then(|()| std::fs::rename(self.path_of(digest), damaged.join(digest.to_string())))
            .and_then(|()| folder::sync(&damaged));
        match moved {
            Ok(()) => {
                tracing::error!(%digest, folder = %damaged.display(), "a stored blob was damaged and was moved to this folder; restore the blob from a backup")
            }
            Err(error) => {
                tracing::error!(%digest, %error, "a stored blob is damaged and could not be moved to the folder `damaged`")
            }
        }
        None
    }

    /// Deletes the files that killed processes left in `tmp/`.
    fn remove_abandoned_files(&self) {
        let entries = std::fs::read_dir(self.root.join(TEMPORARY_FOLDER)).into_iter().flatten().flatten();
        for entry in entries {
            if entry.metadata().is_ok_and(|metadata| idle_time(&metadata) > ABANDONED_AFTER) {
                // An error is ignored, because another process may delete the same file at this moment.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Sets the file's date to the current time, so that collection does not delete the file before the caller has stored
/// the row that names it. The file is looked up again at the end, because a `delete` may have moved the open file.
/// `NotFound` means that the file is gone.
fn renew_date(path: &Path) -> io::Result<()> {
    File::options().write(true).open(path)?.set_modified(SystemTime::now())?;
    std::fs::metadata(path).map(|_| ())
}

/// Returns the time since the file's date, which `put` sets. A date in the future counts as now.
fn idle_time(metadata: &Metadata) -> Duration {
    metadata.modified().ok().and_then(|modified| modified.elapsed().ok()).unwrap_or_default()
}

/// Returns the sorted names of the entries of a folder, or an empty list if the folder does not exist.
fn sorted_names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            for entry in entries {
                names.extend(entry?.file_name().into_string());
            }
        }
        Err(error) if is_absent(&error) => {}
        Err(error) => return Err(error),
    }
    names.sort_unstable();
    Ok(names)
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn blob_error(error: io::Error) -> Error {
    if folder::is_full(&error) { Error::Full(error.into()) } else { Error::Unavailable(error.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_full_and_other_errors_are_unavailable() {
        assert!(matches!(blob_error(io::ErrorKind::StorageFull.into()), Error::Full(_)));
        assert!(matches!(blob_error(io::ErrorKind::ReadOnlyFilesystem.into()), Error::Unavailable(_)));
    }

    #[test]
    fn only_old_temporary_files_are_deleted() {
        let dir = tempfile::tempdir().unwrap();
        FileBlobs::open(dir.path()).unwrap();
        let old = dir.path().join("tmp/1-1");
        let fresh = dir.path().join("tmp/1-2");
        for path in [&old, &fresh] {
            std::fs::write(path, b"half").unwrap();
        }
        let long_ago = SystemTime::now() - ABANDONED_AFTER * 2;
        File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        FileBlobs::open(dir.path()).unwrap();
        assert!(!old.exists() && fresh.exists());
    }
}
