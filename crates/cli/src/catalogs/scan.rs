//! Reads the names and texts of the catalog files in folders.
//! Invariant: a scan always ends, because only regular files are read, and the size of each file and of each folder is limited.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use catalog::{FileError, FileScan, FolderError, FolderScan};

const MIB: u64 = 1024 * 1024;
/// The largest catalog file that is read. The largest catalogs of real APIs have a tenth of this size.
const MAX_FILE_BYTES: u64 = 4 * MIB;
/// The largest sum of the file sizes in one folder. A scan has the texts of all files of a folder in memory.
const MAX_FOLDER_BYTES: u64 = 256 * MIB;
/// The largest number of catalog files in one folder.
const MAX_FILES: usize = 2_000;

/// Reads all catalog files of the folders.
pub fn scan_folders(folders: &[PathBuf]) -> Vec<FolderScan> {
    folders
        .iter()
        .map(|folder| FolderScan { folder: folder.display().to_string(), files: scan_files(folder) })
        .collect()
}

/// Returns the sorted names of the catalog files in a folder: `*.yaml` and `*.yml`. Names that begin with a dot are left out, because
/// editors and Kubernetes use such names for their own files.
pub fn catalog_file_names(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let unlisted = |cause: std::io::Error| match cause.kind() {
        ErrorKind::NotFound => FolderError::Missing,
        kind => FolderError::Unreadable(kind.to_string()),
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unlisted)? {
        let name = PathBuf::from(entry.map_err(unlisted)?.file_name());
        let is_yaml = name.extension().is_some_and(|e| e == "yaml" || e == "yml");
        if !is_yaml || name.as_os_str().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if names.len() == MAX_FILES {
            return Err(FolderError::TooManyFiles { most: MAX_FILES });
        }
        names.push(name);
    }
    names.sort();
    Ok(names)
}

fn scan_files(folder: &Path) -> Result<Vec<FileScan>, FolderError> {
    let mut bytes = 0;
    let mut files = Vec::new();
    for name in catalog_file_names(folder)? {
        let (shown, text) = match printable_name(&name) {
            Some(plain) => (plain, read_target(&folder.join(&name))),
            None => (quoted_name(&name), Some(Err(FileError::Name))),
        };
        // `None` means that the file was removed after the folder was listed.
        let Some(text) = text else { continue };
        bytes += text.as_ref().map_or(0, String::len) as u64;
        if bytes > MAX_FOLDER_BYTES {
            return Err(FolderError::TooManyBytes { most_mib: (MAX_FOLDER_BYTES / MIB) as usize });
        }
        files.push(FileScan { file: folder.join(shown).display().to_string(), text });
    }
    Ok(files)
}

/// Returns the name as text if it can be printed unchanged. A name with control characters could break a log line, or look like
/// another name, so for such a name the result is `None`.
fn printable_name(name: &Path) -> Option<String> {
    let text = name.to_str()?;
    (text.escape_debug().to_string().replace("\\'", "'") == text).then(|| text.to_owned())
}

/// Returns the escaped name in quotes. A printable name contains no quote, so an escaped name cannot be mistaken for a printable one.
fn quoted_name(name: &Path) -> String {
    format!("\"{}\"", name.to_string_lossy().escape_debug())
}

/// Reads the text of a file, or of the target of a symbolic link. Returns `None` if the file does not exist.
fn read_target(path: &Path) -> Option<Result<String, FileError>> {
    match std::fs::metadata(path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            let leads_nowhere = std::fs::symlink_metadata(path).is_ok();
            leads_nowhere.then(|| Err(FileError::Unreadable("a link that leads nowhere".to_owned())))
        }
        Err(cause) => Some(Err(FileError::Unreadable(cause.kind().to_string()))),
        // The kind is checked before the file is opened, because opening a device may have effects.
        Ok(metadata) if !metadata.is_file() => Some(Err(FileError::NotAFile)),
        Ok(_) => Some(read_regular_file(path)),
    }
}

/// Opens a regular file and reads its text.
fn read_regular_file(path: &Path) -> Result<String, FileError> {
    let unreadable = |cause: std::io::Error| FileError::Unreadable(cause.kind().to_string());
    // `O_NONBLOCK`, because the file may have been replaced by a pipe since it was checked, and opening a pipe would wait for a writer.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(FileError::NotAFile);
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(FileError::TooLarge { most_mib: (MAX_FILE_BYTES / MIB) as usize });
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        FileError::NotText { line: valid.iter().filter(|byte| **byte == b'\n').count() + 1 }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn scan(folder: &Path) -> Vec<(String, Result<String, FileError>)> {
        let files = scan_folders(&[folder.to_owned()]).remove(0).files.unwrap();
        let name = |file: &str| file.rsplit('/').next().unwrap().to_owned();
        files.into_iter().map(|file| (name(&file.file), file.text)).collect()
    }

    #[test]
    fn only_yaml_files_are_read_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.yml", "a.yaml", "c.json", ".hidden.yaml", "d.yaml~", "yaml"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let text = |name: &str| (name.to_owned(), Ok(name.to_owned()));
        assert_eq!(scan(folder.path()), [text("a.yaml"), text("b.yml")]);
    }

    #[test]
    fn devices_pipes_and_folders_are_reported_and_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("folder.yaml")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe.yaml")).status().unwrap().success());
        symlink("/dev/zero", at("zero.yaml")).unwrap();
        symlink(at("pipe.yaml"), at("to-pipe.yaml")).unwrap();
        symlink(at("nowhere"), at("dangling.yaml")).unwrap();
        symlink(at("loop.yaml"), at("loop.yaml")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket.yaml")).unwrap();
        let found = scan(folder.path());
        assert_eq!(found.len(), 7);
        for (name, text) in found {
            let error = text.unwrap_err();
            let leads_nowhere = matches!(&*name, "dangling.yaml" | "loop.yaml");
            assert_eq!(matches!(error, FileError::Unreadable(_)), leads_nowhere, "{name}: {error}");
            assert_eq!(error == FileError::NotAFile, !leads_nowhere, "{name}: {error}");
        }
        // `read_regular_file` opens the pipe without waiting for a writer, and refuses it by the second check.
        assert_eq!(read_regular_file(&at("pipe.yaml")), Err(FileError::NotAFile));
    }

    #[test]
    fn links_are_followed_to_files() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("x.yaml"), "text").unwrap();
        symlink(elsewhere.path(), folder.path().join("..data")).unwrap();
        symlink("..data/x.yaml", folder.path().join("x.yaml")).unwrap();
        assert_eq!(scan(folder.path()), [("x.yaml".to_owned(), Ok("text".to_owned()))]);
    }

    #[test]
    fn hostile_names_and_contents_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(name));
        for name in [&b"a\nb.yaml"[..], b"\x1b[2J.yaml", b"\xff.yaml", b"\"q\".yaml", "\u{202e}x.yaml".as_bytes()] {
            fs::write(at(name), "x").unwrap();
        }
        let found = scan(folder.path());
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|(name, text)| *text == Err(FileError::Name) && !name.contains(['\n', '\u{1b}'])));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("it's fine.yaml"), "x").unwrap();
        fs::write(folder.path().join("huge.yaml"), vec![b' '; MAX_FILE_BYTES as usize + 1]).unwrap();
        fs::write(folder.path().join("most.yaml"), vec![b' '; MAX_FILE_BYTES as usize]).unwrap();
        fs::write(folder.path().join("latin.yaml"), b"a: 1\nb: caf\xe9\n").unwrap();
        let texts: Vec<_> = scan(folder.path()).into_iter().map(|(_, text)| text.map(|t| t.len())).collect();
        let too_large = Err(FileError::TooLarge { most_mib: 4 });
        assert_eq!(texts, [too_large, Ok(1), Err(FileError::NotText { line: 2 }), Ok(MAX_FILE_BYTES as usize)]);
    }

    #[test]
    fn a_folder_with_too_many_files_is_not_listed() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..=MAX_FILES {
            fs::write(folder.path().join(format!("{n}.yaml")), "").unwrap();
        }
        assert_eq!(
            scan_folders(&[folder.path().to_owned()])[0].files,
            Err(FolderError::TooManyFiles { most: MAX_FILES })
        );
        let missing = folder.path().join("missing");
        assert_eq!(scan_folders(&[missing])[0].files, Err(FolderError::Missing));
    }
}
