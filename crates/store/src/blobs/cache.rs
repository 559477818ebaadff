//! Copies of blobs in a local folder, before storage that is far away: `ab/cdef…` by digest, `tmp/` while they are written.
//!
//! Invariants: a copy is made only of what the storage keeps (after its `put` returned, or as it came from there), and read only
//! with its digest verified; a copy that is missing, damaged or cannot be written changes nothing but the time a read takes.
//! Several processes may share a folder: a copy gets its name whole, and any of them may remove any copy. Together the copies
//! stay near the bound: whoever has written a sixteenth of it looks how much there is, and removes what was not read for longest.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use base::Digest;
use ports::Blobs;
use ports::blobs::{Error, Stored};

use crate::{OpenError, folder};

const TEMPORARY: &str = "tmp";
/// A temporary file this old belongs to a process that was killed.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);
/// A copy that was read counts as read for so long, without another write to the disk.
const READ_LATELY: Duration = Duration::from_secs(60);

pub struct CachedBlobs {
    far: Arc<dyn Blobs>,
    near: Arc<Copies>,
}

#[derive(Debug)]
struct Copies {
    root: PathBuf,
    most_bytes: u64,
    /// Since the folder was last looked through; at first as if it were full.
    written: AtomicU64,
    next_temporary: AtomicU64,
}

impl CachedBlobs {
    /// Keeps copies of what is in `far` in the folder `dir`, made where there is none, up to about `most_bytes`.
    pub fn open(far: Arc<dyn Blobs>, dir: &Path, most_bytes: u64) -> Result<Self, OpenError> {
        let wrong = |error| OpenError::from_io(dir, error);
        folder::create(&dir.join(TEMPORARY)).map_err(wrong)?;
        let root = dir.canonicalize().map_err(wrong)?;
        let (written, next_temporary) = (AtomicU64::new(most_bytes), AtomicU64::new(0));
        let copies = Copies { root, most_bytes, written, next_temporary };
        let (probe, _file) = copies.temporary().map_err(wrong)?;
        std::fs::remove_file(probe).map_err(wrong)?;
        Ok(Self { far, near: Arc::new(copies) })
    }

    async fn near<T: Send + 'static>(&self, work: impl FnOnce(&Copies) -> T + Send + 'static) -> Option<T> {
        let near = Arc::clone(&self.near);
        tokio::task::spawn_blocking(move || work(&near)).await.ok()
    }
}

#[async_trait]
impl Blobs for CachedBlobs {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = self.far.put(bytes).await?;
        let bytes = bytes.to_vec();
        self.near(move |near| near.keep(&digest, &bytes)).await;
        Ok(digest)
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let wanted = *digest;
        if let Some(Some(bytes)) = self.near(move |near| near.read(&wanted)).await {
            return Ok(bytes);
        }
        let bytes = Arc::new(self.far.get(digest).await?);
        let copied = Arc::clone(&bytes);
        self.near(move |near| near.keep(&wanted, &copied)).await;
        Ok(Arc::unwrap_or_clone(bytes))
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<Stored>, Error> {
        self.far.list(after, limit).await
    }

    async fn delete(&self, digest: &Digest, idle: Duration) -> Result<bool, Error> {
        let removed = self.far.delete(digest, idle).await?;
        if removed {
            let gone = *digest;
            self.near(move |near| near.forget(&gone)).await;
        }
        Ok(removed)
    }
}

impl Copies {
    fn place(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        let (first, rest) = name.split_at(2);
        self.root.join(first).join(rest)
    }

    /// The copy, where there is a sound one. A damaged one goes: the storage has the bytes.
    fn read(&self, digest: &Digest) -> Option<Vec<u8>> {
        let path = self.place(digest);
        let bytes = std::fs::read(&path).ok()?;
        if Digest::of(&bytes) != *digest {
            tracing::warn!(path = %path.display(), "a copy of a blob is damaged; the storage is asked");
            self.forget(digest);
            return None;
        }
        let lately = std::fs::metadata(&path).and_then(|found| found.modified()).is_ok_and(|at| age(at) < READ_LATELY);
        if !lately {
            // Only the order in which copies go depends on it.
            let _ = File::options().write(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Some(bytes)
    }

    fn keep(&self, digest: &Digest, bytes: &[u8]) {
        let size = bytes.len() as u64;
        if size > self.most_bytes {
            return;
        }
        let path = self.place(digest);
        if let Err(error) = self.write(&path, bytes) {
            tracing::warn!(%error, path = %path.display(), "a copy of a blob cannot be written");
            return;
        }
        let written = self.written.fetch_add(size, Ordering::Relaxed) + size;
        if written >= self.most_bytes / 16 {
            self.written.store(0, Ordering::Relaxed);
            if let Err(error) = self.bound() {
                tracing::warn!(%error, folder = %self.root.display(), "copies of blobs cannot be looked through");
            }
        }
    }

    /// Not flushed: after a power cut a copy may be damaged, and is then not taken.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
        let (temporary, mut file) = self.temporary()?;
        let written = file.write_all(bytes);
        drop(file);
        let named = written.and_then(|()| std::fs::rename(&temporary, path));
        if named.is_err() {
            // On a full disk the half-written file must not stay.
            let _ = std::fs::remove_file(&temporary);
        }
        named
    }

    fn forget(&self, digest: &Digest) {
        // Another process may be faster.
        let _ = std::fs::remove_file(self.place(digest));
    }

    /// A new file that no other thread or process has.
    fn temporary(&self) -> io::Result<(PathBuf, File)> {
        loop {
            let number = self.next_temporary.fetch_add(1, Ordering::Relaxed);
            let path = self.root.join(TEMPORARY).join(format!("{}-{number}", std::process::id()));
            match File::options().write(true).create_new(true).open(&path) {
                // Process ids repeat, over time and between containers.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    std::fs::create_dir_all(self.root.join(TEMPORARY))?;
                }
                opened => return opened.map(|file| (path, file)),
            }
        }
    }

    /// Removes the copies that were not read for longest, until there is a little room.
    fn bound(&self) -> io::Result<()> {
        let mut copies = Vec::new();
        for shelf in std::fs::read_dir(&self.root)?.flatten() {
            let temporary = shelf.file_name() == TEMPORARY;
            for file in std::fs::read_dir(shelf.path()).into_iter().flatten().flatten() {
                // One that was removed in between is not there.
                let Ok(found) = file.metadata() else { continue };
                let at = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if !temporary {
                    copies.push((at, found.len(), file.path()));
                } else if age(at) > ABANDONED_AFTER {
                    let _ = std::fs::remove_file(file.path());
                }
            }
        }
        let mut total: u64 = copies.iter().map(|(_, bytes, _)| bytes).sum();
        if total <= self.most_bytes {
            return Ok(());
        }
        copies.sort();
        for (_, bytes, path) in copies {
            if total <= self.most_bytes / 10 * 9 {
                break;
            }
            let _ = std::fs::remove_file(path);
            total -= bytes;
        }
        Ok(())
    }
}

/// A date in the future is now.
fn age(at: SystemTime) -> Duration {
    at.elapsed().unwrap_or_default()
}
