//! Secrets as files: a folder with one file for each, named like the secret.
//! Invariant: a name is never a path; a file that everybody may read or change is not used; the permissions that are
//! checked are those of the file that is read.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use base::Secret;
use ports::secrets::Error;

/// Of one secret. Keys and tokens are far shorter.
const MOST_BYTES: u64 = 64 * 1024;

pub fn read(folder: &Path, name: &str) -> Result<Secret, Error> {
    if !is_name(name) {
        return Err(unfit(name, "a name has letters, digits, `_`, `-` and `.`, and does not start with `.`"));
    }
    let file = File::open(folder.join(name)).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => Error::NotSet {
            name: name.to_owned(),
            hint: format!("set {name} in the server's environment, or put it into a file of that name in secrets_dir"),
        },
        ErrorKind::PermissionDenied => unfit(name, "the server may not read its file"),
        _ => Error::Unavailable(Box::new(cause)),
    })?;
    let about = file.metadata().map_err(unavailable)?;
    if !about.is_file() {
        return Err(unfit(name, "what has its name in secrets_dir is not a file"));
    }
    if open_to_all(&about) {
        return Err(unfit(
            name,
            "everybody on this machine may use its file; run `chmod 600` on it, and change the secret",
        ));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unavailable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unfit(name, "its file is larger than 64 KiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| not_text(name))?;
    // The line break that editors and `echo` leave behind; one inside stays, and is refused where it cannot be carried.
    let value = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    let secret = Secret::new(value);
    drop(Secret::new(text));
    if secret.expose().is_empty() { Err(unfit(name, "its file is empty")) } else { Ok(secret) }
}

pub fn not_text(name: &str) -> Error {
    unfit(name, "its value is not UTF-8 text")
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=128).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain)
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

fn unfit(name: &str, hint: &str) -> Error {
    Error::Unfit { name: name.escape_debug().to_string(), hint: hint.to_owned() }
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
                assert_eq!(read(folder.path(), "TOKEN").unwrap().expose(), value);
                std::fs::remove_file(folder.path().join("TOKEN")).unwrap();
            }
        }
        put(folder.path(), "real", b"abc", 0o600);
        symlink(folder.path().join("real"), folder.path().join("linked")).unwrap();
        assert_eq!(read(folder.path(), "linked").unwrap().expose(), "abc");
    }

    #[test]
    fn what_cannot_be_used_is_told_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o644, 0o604, 0o602, 0o666, 0o601] {
            put(folder.path(), "OPEN", b"hunter2", mode);
            let error = read(folder.path(), "OPEN").unwrap_err();
            assert!(matches!(&error, Error::Unfit { hint, .. } if hint.contains("chmod 600")), "{error:?}");
            assert!(!format!("{error:?} {error}").contains("hunter2"));
            std::fs::remove_file(folder.path().join("OPEN")).unwrap();
        }
        put(folder.path(), "EMPTY", b"\n", 0o600);
        put(folder.path(), "BYTES", b"\xff\xfe", 0o600);
        put(folder.path(), "LARGE", &vec![b'a'; 64 * 1024 + 1], 0o600);
        std::fs::create_dir(folder.path().join("FOLDER")).unwrap();
        for name in ["EMPTY", "BYTES", "LARGE", "FOLDER"] {
            assert!(matches!(read(folder.path(), name), Err(Error::Unfit { .. })), "{name}");
        }
        assert!(matches!(read(folder.path(), "MISSING"), Err(Error::NotSet { .. })));
        assert!(matches!(read(&folder.path().join("none"), "X"), Err(Error::NotSet { .. })));
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
            assert!(matches!(read(&inside, name), Err(Error::Unfit { .. })), "{name:?}");
        }
    }
}
