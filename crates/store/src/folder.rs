//! Folders whose entries survive a power cut.
//! Invariant: when `create` returns, the folder and every parent it had to make are on disk.

use std::io;
use std::path::{Path, PathBuf};

/// Makes the folder and its parents where they are missing.
pub fn create(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let missing: Vec<PathBuf> =
        folder.ancestors().take_while(|ancestor| !here(ancestor).is_dir()).map(Path::to_owned).collect();
    std::fs::create_dir_all(folder)?;
    for made in missing {
        sync(&made)?;
        sync(made.parent().unwrap_or(Path::new("/")))?;
    }
    Ok(())
}

/// Makes the changes to the folder's list of entries durable.
pub fn sync(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file, and the file system keeps its own order.
    if cfg!(unix) { std::fs::File::open(here(folder))?.sync_all() } else { Ok(()) }
}

/// No space or no quota: the operator can act.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The parent of `data` is the empty path, which names the current folder.
fn here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_with_their_parents() {
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
    fn a_full_disk_is_known_by_its_error() {
        assert!(is_full(&io::Error::from(io::ErrorKind::StorageFull)));
        assert!(is_full(&io::Error::from(io::ErrorKind::QuotaExceeded)));
        assert!(!is_full(&io::Error::from(io::ErrorKind::PermissionDenied)));
    }
}
