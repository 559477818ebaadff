//! Functions that create and flush folders, so that the entries of a folder survive a power cut.
//! Invariant: when `create` returns, the folder and every parent that it created are on disk.

use std::io;
use std::path::{Path, PathBuf};

/// Creates the folder and its missing parents, durably.
pub fn create(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let missing: Vec<PathBuf> =
        folder.ancestors().take_while(|ancestor| !openable(ancestor).is_dir()).map(Path::to_owned).collect();
    std::fs::create_dir_all(folder)?;
    // `create_dir_all` flushes nothing. Each new folder is an entry of its parent, so both are flushed.
    for created in missing {
        sync(&created)?;
        sync(created.parent().unwrap_or(Path::new("/")))?;
    }
    Ok(())
}

/// Makes the changes to the folder's list of entries durable.
pub fn sync(folder: &Path) -> io::Result<()> {
    // Only Unix can open a folder as a file. On other systems the function does nothing.
    if cfg!(unix) { std::fs::File::open(openable(folder))?.sync_all() } else { Ok(()) }
}

/// Returns whether the error means that the disk is full or the quota is used up. The operator must then free space.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns `.` for the empty path, and any other path unchanged. The parent of the relative path `data` is the empty
/// path, which the system cannot open.
fn openable(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_created_with_their_parents() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        create(&deep).unwrap();
        create(&deep).unwrap();
        assert!(deep.is_dir());
        sync(Path::new("")).unwrap();
        std::fs::write(dir.path().join("file"), b"").unwrap();
        assert!(create(&dir.path().join("file")).is_err());
        assert!(create(&dir.path().join("file/sub")).is_err());
    }

    #[test]
    fn a_full_disk_is_recognised_by_the_kind_of_its_error() {
        assert!(is_full(&io::Error::from(io::ErrorKind::StorageFull)));
        assert!(is_full(&io::Error::from(io::ErrorKind::QuotaExceeded)));
        assert!(!is_full(&io::Error::from(io::ErrorKind::PermissionDenied)));
    }
}
