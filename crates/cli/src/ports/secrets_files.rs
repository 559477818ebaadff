//! Secrets as files: a folder with one file for each, named like the secret.
//! Invariant: a name is never a path; a file that everybody may read or change is not used; the permissions that are
//! checked are those of the file that is read.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use base::Secret;
use ports::secrets::{Error, NAME_RULE, is_name};

use crate::failure::Failure;

/// Of one secret. Keys and tokens are far shorter.
const MOST_BYTES: u64 = 64 * 1024;

/// None if there is no such file.
pub fn read(folder: &Path, name: &str) -> Result<Option<Secret>, Error> {
    if !is_name(name) {
        return Err(unfit(name, NAME_RULE));
    }
    let file = match File::open(folder.join(name)) {
        Ok(file) => file,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) if cause.kind() == ErrorKind::PermissionDenied => {
            return Err(unfit(name, "the server may not read its file"));
        }
        Err(cause) => return Err(unavailable(cause)),
    };
    content(file).map(Some).map_err(|problem| match problem {
        Problem::Unfit(hint) => unfit(name, &format!("its file {hint}")),
        Problem::Unreadable(cause) => unavailable(cause),
    })
}

/// The key of the encrypted secrets: a file under the same rules.
pub fn key_file(path: &Path) -> Result<Secret, Failure> {
    let file = File::open(path).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => Failure::Missing { path: path.to_owned() },
        _ => Failure::Unreadable { path: path.to_owned(), cause },
    })?;
    content(file).map_err(|problem| match problem {
        Problem::Unfit(hint) => Failure::KeyFile { path: path.to_owned(), hint },
        Problem::Unreadable(cause) => Failure::Unreadable { path: path.to_owned(), cause },
    })
}

enum Problem {
    /// Goes on from "its file".
    Unfit(&'static str),
    Unreadable(std::io::Error),
}

fn content(file: File) -> Result<Secret, Problem> {
    let about = file.metadata().map_err(Problem::Unreadable)?;
    if !about.is_file() {
        return Err(Problem::Unfit("is not a file but something else of that name"));
    }
    if open_to_all(&about) {
        return Err(Problem::Unfit(
            "may be used by everybody on this machine; run `chmod 600` on it, and change the secret",
        ));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(Problem::Unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Problem::Unfit("is larger than 64 KiB"));
    }
    let secret = line(bytes).ok_or(Problem::Unfit("is not UTF-8 text"))?;
    if secret.expose().is_empty() { Err(Problem::Unfit("is empty")) } else { Ok(secret) }
}

/// Text without the line break that editors and `echo` leave behind; one inside stays, and is refused where it cannot be
/// carried. None if it is no text.
pub fn line(bytes: Vec<u8>) -> Option<Secret> {
    let text = String::from_utf8(bytes).map(Secret::new).ok()?;
    let value = text.expose().strip_suffix('\n');
    let value = value.map_or(text.expose(), |line| line.strip_suffix('\r').unwrap_or(line));
    Some(Secret::new(value))
}

pub fn not_text(name: &str) -> Error {
    unfit(name, "its value is not UTF-8 text")
}

#[cfg(unix)]
fn open_to_all(about: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    about.permissions().mode() & 0o007 != 0
}

/// Elsewhere a mode says nothing.
#[cfg(not(unix))]
fn open_to_all(_about: &std::fs::Metadata) -> bool {
    false
}

pub fn unfit(name: &str, hint: &str) -> Error {
    Error::Unusable { name: name.escape_debug().to_string(), hint: hint.to_owned() }
}

fn unavailable(cause: std::io::Error) -> Error {
    Error::Unavailable(Box::new(cause))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn put(folder: &Path, name: &str, bytes: &[u8], mode: u32) {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_holds_a_secret_with_or_without_its_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let values: [(&[u8], &str); 5] =
            [(b"abc", "abc"), (b"abc\n", "abc"), (b"abc\r\n", "abc"), (b"abc\n\n", "abc\n"), (b" a b ", " a b ")];
        for (bytes, value) in values {
            for mode in [0o600, 0o400, 0o640] {
                put(folder.path(), "TOKEN", bytes, mode);
                assert_eq!(read(folder.path(), "TOKEN").unwrap().unwrap().expose(), value);
                std::fs::remove_file(folder.path().join("TOKEN")).unwrap();
            }
        }
        put(folder.path(), "real", b"abc", 0o600);
        symlink(folder.path().join("real"), folder.path().join("linked")).unwrap();
        assert_eq!(read(folder.path(), "linked").unwrap().unwrap().expose(), "abc");
    }

    #[test]
    fn what_cannot_be_used_is_told_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o644, 0o604, 0o602, 0o666, 0o601] {
            put(folder.path(), "OPEN", b"hunter2", mode);
            let error = read(folder.path(), "OPEN").unwrap_err();
            assert!(matches!(&error, Error::Unusable { hint, .. } if hint.contains("chmod 600")), "{error:?}");
            assert!(!format!("{error:?} {error}").contains("hunter2"));
            std::fs::remove_file(folder.path().join("OPEN")).unwrap();
        }
        put(folder.path(), "EMPTY", b"\n", 0o600);
        put(folder.path(), "BYTES", b"\xff\xfe", 0o600);
        put(folder.path(), "LARGE", &vec![b'a'; 64 * 1024 + 1], 0o600);
        std::fs::create_dir(folder.path().join("FOLDER")).unwrap();
        for name in ["EMPTY", "BYTES", "LARGE", "FOLDER"] {
            assert!(matches!(read(folder.path(), name), Err(Error::Unusable { .. })), "{name}");
        }
        assert!(read(folder.path(), "MISSING").unwrap().is_none());
        assert!(read(&folder.path().join("none"), "X").unwrap().is_none());
    }

    #[test]
    fn a_key_file_is_under_the_same_rules() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "good", b"a passphrase\n", 0o600);
        put(folder.path(), "open", b"hunter2", 0o644);
        put(folder.path(), "empty", b"\n", 0o600);
        assert_eq!(key_file(&folder.path().join("good")).unwrap().expose(), "a passphrase");
        let open = key_file(&folder.path().join("open")).unwrap_err();
        assert!(matches!(&open, Failure::KeyFile { hint, .. } if hint.contains("chmod 600")), "{open}");
        assert!(matches!(key_file(&folder.path().join("empty")), Err(Failure::KeyFile { .. })));
        assert!(matches!(key_file(&folder.path().join("none")), Err(Failure::Missing { .. })));
    }

    #[test]
    fn a_name_is_never_a_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        put(folder.path(), "out", b"hunter2", 0o600);
        let long = "a".repeat(129);
        let inside = folder.path().join("in");
        for name in ["../out", "..", ".", "", "/etc/passwd", "a/b", "a\\b", ".hidden", "a\0b", "é", "a b", "a\n", &long]
        {
            assert!(matches!(read(&inside, name), Err(Error::Unusable { .. })), "{name:?}");
        }
    }
}
