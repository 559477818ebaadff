//! One look at the folders: every catalog file and its text.
//! Invariant: whatever lies there, a look ends: only regular files are read, and nothing without bound.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use catalog::{FileError, FileScan, FolderError, FolderScan};

const MIB: u64 = 1024 * 1024;
/// Of one file. The largest catalogs of real APIs are a tenth of this.
const FILE_BYTES: u64 = 4 * MIB;
/// Of one folder: all of it is in memory during a look.
const FOLDER_BYTES: u64 = 256 * MIB;
const FILES: usize = 2_000;

pub fn folders(folders: &[PathBuf]) -> Vec<FolderScan> {
    folders.iter().map(|folder| FolderScan { folder: folder.display().to_string(), files: files(folder) }).collect()
}

/// The names in a folder that should be catalogs, in order: `*.yaml` and `*.yml`. What begins with a dot is an editor's or
/// Kubernetes' own.
pub fn names(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
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
        if names.len() == FILES {
            return Err(FolderError::TooManyFiles { most: FILES });
        }
        names.push(name);
    }
    names.sort();
    Ok(names)
}

fn files(folder: &Path) -> Result<Vec<FileScan>, FolderError> {
    let mut bytes = 0;
    let mut files = Vec::new();
    for name in names(folder)? {
        let (shown, plain) = shown(&name);
        let text = if plain { read(&folder.join(&name)) } else { Some(Err(FileError::Name)) };
        // One that went away since it was listed is not there.
        let Some(text) = text else { continue };
        bytes += text.as_ref().map_or(0, String::len) as u64;
        if bytes > FOLDER_BYTES {
            return Err(FolderError::TooManyBytes { most_mib: (FOLDER_BYTES / MIB) as usize });
        }
        files.push(FileScan { file: folder.join(shown).display().to_string(), text });
    }
    Ok(files)
}

/// A name as it may stand in a log, and whether that is how it is written. One that would look like another, or break the line, comes back quoted: no plain name
/// has a quote in it, so the two are never taken for each other.
fn shown(name: &Path) -> (String, bool) {
    let text = name.to_string_lossy();
    let plain = name.to_str().is_some() && text.escape_debug().to_string().replace("\\'", "'") == text;
    if plain { (text.into_owned(), true) } else { (format!("\"{}\"", text.escape_debug()), false) }
}

/// The text of a file, or of what a link leads to; `None` when nothing has that name.
fn read(path: &Path) -> Option<Result<String, FileError>> {
    match std::fs::metadata(path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            let leads_nowhere = std::fs::symlink_metadata(path).is_ok();
            leads_nowhere.then(|| Err(FileError::Unreadable("a link that leads nowhere".to_owned())))
        }
        Err(cause) => Some(Err(FileError::Unreadable(cause.kind().to_string()))),
        // Asked before it is opened, because opening a device may do something.
        Ok(about) if !about.is_file() => Some(Err(FileError::NotAFile)),
        Ok(_) => Some(text(path)),
    }
}

fn text(path: &Path) -> Result<String, FileError> {
    let unreadable = |cause: std::io::Error| FileError::Unreadable(cause.kind().to_string());
    // Without waiting: a pipe that took the file's place would never answer.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(FileError::NotAFile);
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(FileError::TooLarge { most_mib: (FILE_BYTES / MIB) as usize });
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        FileError::NotText { line: before.iter().filter(|byte| **byte == b'\n').count() + 1 }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn look(folder: &Path) -> Vec<(String, Result<String, FileError>)> {
        let found = folders(&[folder.to_owned()]).remove(0).files.unwrap();
        let name = |file: &str| file.rsplit('/').next().unwrap().to_owned();
        found.into_iter().map(|file| (name(&file.file), file.text)).collect()
    }

    #[test]
    fn only_yaml_files_are_read_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.yml", "a.yaml", "c.json", ".hidden.yaml", "d.yaml~", "yaml"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let text = |name: &str| (name.to_owned(), Ok(name.to_owned()));
        assert_eq!(look(folder.path()), [text("a.yaml"), text("b.yml")]);
    }

    #[test]
    fn what_is_not_a_file_does_not_hang_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("folder.yaml")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe.yaml")).status().unwrap().success());
        symlink("/dev/zero", at("zero.yaml")).unwrap();
        symlink(at("pipe.yaml"), at("to-pipe.yaml")).unwrap();
        symlink(at("nowhere"), at("dangling.yaml")).unwrap();
        symlink(at("loop.yaml"), at("loop.yaml")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket.yaml")).unwrap();
        let found = look(folder.path());
        assert_eq!(found.len(), 7);
        for (name, text) in found {
            let expected =
                if matches!(&*name, "dangling.yaml" | "loop.yaml") { "cannot be read" } else { "not a file" };
            assert!(text.unwrap_err().to_string().starts_with(expected), "{name}");
        }
        // Opened all the same, a pipe is still no file and nothing waits.
        assert_eq!(text(&at("pipe.yaml")), Err(FileError::NotAFile));
    }

    #[test]
    fn links_are_followed_to_files() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("x.yaml"), "text").unwrap();
        symlink(elsewhere.path(), folder.path().join("..data")).unwrap();
        symlink("..data/x.yaml", folder.path().join("x.yaml")).unwrap();
        assert_eq!(look(folder.path()), [("x.yaml".to_owned(), Ok("text".to_owned()))]);
    }

    #[test]
    fn hostile_names_and_contents_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(name));
        for name in [&b"a\nb.yaml"[..], b"\x1b[2J.yaml", b"\xff.yaml", b"\"q\".yaml", "\u{202e}x.yaml".as_bytes()] {
            fs::write(at(name), "x").unwrap();
        }
        let found = look(folder.path());
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|(name, text)| *text == Err(FileError::Name) && !name.contains(['\n', '\u{1b}'])));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("it's fine.yaml"), "x").unwrap();
        fs::write(folder.path().join("huge.yaml"), vec![b' '; FILE_BYTES as usize + 1]).unwrap();
        fs::write(folder.path().join("most.yaml"), vec![b' '; FILE_BYTES as usize]).unwrap();
        fs::write(folder.path().join("latin.yaml"), b"a: 1\nb: caf\xe9\n").unwrap();
        let texts: Vec<_> = look(folder.path()).into_iter().map(|(_, text)| text.map(|t| t.len())).collect();
        let too_large = Err(FileError::TooLarge { most_mib: 4 });
        assert_eq!(texts, [too_large, Ok(1), Err(FileError::NotText { line: 2 }), Ok(FILE_BYTES as usize)]);
    }

    #[test]
    fn a_folder_of_too_many_files_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..=FILES {
            fs::write(folder.path().join(format!("{n}.yaml")), "").unwrap();
        }
        assert_eq!(folders(&[folder.path().to_owned()])[0].files, Err(FolderError::TooManyFiles { most: FILES }));
        let gone = folder.path().join("gone");
        assert_eq!(folders(&[gone])[0].files, Err(FolderError::Missing));
    }
}
