//! Functions that create private folders and files, remove permissions of other users, and flush folders, so that the entries of a folder
//! survive a power cut.
//!
//! Invariants:
//! - When `create` returns, the folder and every parent that it created are on disk.
//! - A folder or file that this module creates has no permission for other users, whatever the umask of the process is.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::OpenError;

/// The permission bits of the group and of all other users.
#[cfg(unix)]
const OTHER_USERS: u32 = 0o077;

/// Names that only a data folder or a blob folder of this program has. A folder without them is not changed, because it may be the home
/// folder of a user or a part of the system.
#[cfg(unix)]
const OWN_NAMES: [&str; 7] =
    ["tokamak.db", "secrets.enc", "secret-bindings.json", "blobs", "engines", "damaged", "processes"];

/// Creates the folder and its missing parents, durably and readable by this user only.
pub fn create(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let missing: Vec<PathBuf> =
        folder.ancestors().take_while(|ancestor| !openable(ancestor).is_dir()).map(Path::to_owned).collect();
    create_private(folder)?;
    // Nothing was flushed yet. Each new folder is an entry of its parent, so both are flushed.
    for created in missing {
        sync(&created)?;
        sync(created.parent().unwrap_or(Path::new("/")))?;
    }
    Ok(())
}

/// Creates the folder and its missing parents, readable by this user only. The new entries are not flushed.
pub fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Returns options with which a file is created for this user only. An existing file keeps its permissions.
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true);
    options
}

/// Removes the permissions of other users from the file if it exists and has any.
pub fn restrict_file(path: &Path) -> Result<(), OpenError> {
    match std::fs::metadata(path) {
        Ok(metadata) if is_exposed(&metadata) => restrict(path, &metadata)
            .map_err(|source| OpenError::Exposed { path: path.to_owned(), source: source.into() }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OpenError::from_io(path, error)),
    }
}

/// Creates the folder if it is missing, and removes the permissions of other users from it. Returns whether other users had permissions.
/// A folder with files of others, or one that all users share, is refused and not changed.
pub fn make_private(folder: &Path) -> Result<bool, OpenError> {
    create(folder).map_err(|error| OpenError::from_io(folder, error))?;
    let metadata = std::fs::metadata(folder).map_err(|error| OpenError::from_io(folder, error))?;
    if !is_exposed(&metadata) {
        return Ok(false);
    }
    if is_shared(&metadata) || !is_own(folder).map_err(|error| OpenError::from_io(folder, error))? {
        return Err(OpenError::SharedFolder { path: folder.to_owned() });
    }
    match restrict(folder, &metadata) {
        Ok(()) => Ok(true),
        Err(source) => Err(OpenError::Exposed { path: folder.to_owned(), source: source.into() }),
    }
}

/// Returns whether other users of the machine have a permission for the file or folder.
#[cfg(unix)]
pub fn is_exposed(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & OTHER_USERS != 0
}

/// Returns false, because permissions are checked on Unix only.
#[cfg(not(unix))]
pub fn is_exposed(_metadata: &Metadata) -> bool {
    false
}

/// Returns whether the folder is one in which all users create files, such as `/tmp`.
#[cfg(unix)]
fn is_shared(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o1000 != 0
}

#[cfg(not(unix))]
fn is_shared(_metadata: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn restrict(path: &Path, metadata: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = metadata.permissions();
    permissions.set_mode(permissions.mode() & !OTHER_USERS);
    std::fs::set_permissions(path, permissions)
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _metadata: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns whether the folder is empty or was made by this program.
#[cfg(unix)]
fn is_own(folder: &Path) -> io::Result<bool> {
    let mut is_empty = true;
    for entry in std::fs::read_dir(folder)? {
        is_empty = false;
        if OWN_NAMES.iter().any(|name| entry.as_ref().is_ok_and(|entry| entry.file_name() == *name)) {
            return Ok(true);
        }
    }
    Ok(is_empty)
}

#[cfg(not(unix))]
fn is_own(_folder: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Opens a new file for this user only. The call fails if the path exists.
pub fn create_new_file(path: &Path) -> io::Result<File> {
    private_file().create_new(true).open(path)
}

/// Makes the changes to the folder's list of entries durable.
pub fn sync(folder: &Path) -> io::Result<()> {
    // Only Unix can open a folder as a file. On other systems the function does nothing.
    if cfg!(unix) { File::open(openable(folder))?.sync_all() } else { Ok(()) }
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

    #[cfg(unix)]
    mod permissions {
        use std::os::unix::fs::PermissionsExt;

        use super::*;

        fn set_mode(path: &Path, mode: u32) {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }

        fn mode(path: &Path) -> u32 {
            std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
        }

        #[test]
        fn a_new_folder_or_file_is_for_this_user_only() {
            let dir = tempfile::tempdir().unwrap();
            create(&dir.path().join("a/b")).unwrap();
            assert!(!make_private(&dir.path().join("c")).unwrap());
            drop(create_new_file(&dir.path().join("file")).unwrap());
            assert_eq!(
                ["a", "a/b", "c", "file"].map(|name| mode(&dir.path().join(name))),
                [0o700, 0o700, 0o700, 0o600]
            );
        }

        #[test]
        fn a_folder_of_ours_that_others_can_read_is_repaired() {
            let dir = tempfile::tempdir().unwrap();
            for (name, entry) in [("empty", None), ("data", Some("tokamak.db")), ("blobs", Some("damaged"))] {
                let folder = dir.path().join(name);
                std::fs::create_dir(&folder).unwrap();
                entry.iter().for_each(|entry| std::fs::write(folder.join(entry), b"").unwrap());
                set_mode(&folder, 0o755);
                assert!(make_private(&folder).unwrap(), "{name}");
                assert!(!make_private(&folder).unwrap(), "{name}");
                assert_eq!(mode(&folder), 0o700, "{name}");
            }
        }

        #[test]
        fn a_folder_of_others_is_refused_and_left_alone() {
            let dir = tempfile::tempdir().unwrap();
            let home = dir.path().join("home");
            std::fs::create_dir(&home).unwrap();
            std::fs::write(home.join("letter.txt"), b"").unwrap();
            set_mode(&home, 0o755);
            let shared = dir.path().join("shared");
            std::fs::create_dir(&shared).unwrap();
            set_mode(&shared, 0o1777);
            for (folder, before) in [(home, 0o755), (shared, 0o1777)] {
                assert!(matches!(make_private(&folder), Err(OpenError::SharedFolder { .. })));
                assert_eq!(mode(&folder), before);
            }
        }

        #[test]
        fn a_file_loses_the_permissions_of_others() {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("file");
            restrict_file(&file).unwrap();
            std::fs::write(&file, b"").unwrap();
            set_mode(&file, 0o664);
            restrict_file(&file).unwrap();
            assert_eq!(mode(&file), 0o600);
        }
    }
}
