//! Reads secrets from the files of a folder: the file of a secret has the name of the secret.
//! Invariants: the name of a secret cannot leave the folder. A file that every user of the machine may read or change is refused. The
//! permissions are read from the open file, so they belong to the content that is read.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use base::Secret;
use ports::secrets::{Error, NAME_RULE, is_name};

use crate::failure::Failure;

/// The largest secret in a file. Keys and tokens are far shorter.
const MAX_BYTES: u64 = 64 * 1024;

/// Reads the secret with this name. Returns `None` if the folder has no file of this name.
pub fn read_secret_file(folder: &Path, name: &str) -> Result<Option<Secret>, Error> {
    if !is_name(name) {
        return Err(unusable(name, NAME_RULE));
    }
    let file = match File::open(folder.join(name)) {
        Ok(file) => file,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) if cause.kind() == ErrorKind::PermissionDenied => {
            return Err(unusable(
                name,
                "the server may not read the file of this secret; make the user that runs the server the owner of the file",
            ));
        }
        Err(cause) => return Err(unavailable(cause)),
    };
    read_secret(file).map(Some).map_err(|problem| match problem {
        SecretFileProblem::Unusable(hint) => unusable(name, &format!("the file of this secret {hint}")),
        SecretFileProblem::Unreadable(cause) => unavailable(cause),
    })
}

/// Reads the key of the encrypted secrets from a file. The rules for the file are the same as for the file of a secret.
pub fn key_file(path: &Path) -> Result<Secret, Failure> {
    let file = File::open(path).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => Failure::Missing { path: path.to_owned() },
        _ => Failure::Unreadable { path: path.to_owned(), cause },
    })?;
    read_secret(file).map_err(|problem| match problem {
        SecretFileProblem::Unusable(hint) => Failure::KeyFile { path: path.to_owned(), hint },
        SecretFileProblem::Unreadable(cause) => Failure::Unreadable { path: path.to_owned(), cause },
    })
}

/// The reasons why a file cannot be used as a secret.
enum SecretFileProblem {
    /// The file breaks a rule. The text is the predicate of a sentence about the file, such as "is empty".
    Unusable(&'static str),
    Unreadable(std::io::Error),
}

/// Checks an open file and reads its content as a secret.
fn read_secret(file: File) -> Result<Secret, SecretFileProblem> {
    let metadata = file.metadata().map_err(SecretFileProblem::Unreadable)?;
    if !metadata.is_file() {
        return Err(SecretFileProblem::Unusable("is a folder or a device; replace it by a regular file"));
    }
    if open_to_all(&metadata) {
        return Err(SecretFileProblem::Unusable(
            "has permissions for every user of this machine; run `chmod 600` on the file, and change the secret",
        ));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(SecretFileProblem::Unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SecretFileProblem::Unusable("is larger than 64 KiB, which is the limit"));
    }
    let secret = secret_of_line(bytes).ok_or(SecretFileProblem::Unusable("is not UTF-8 text"))?;
    if secret.expose().is_empty() { Err(SecretFileProblem::Unusable("is empty")) } else { Ok(secret) }
}

/// Converts bytes to a secret, without the line break that editors and `echo` add at the end. Returns `None` if the bytes are not UTF-8.
///
/// A line break inside of the text is kept. A place that cannot send a line break, such as a header, refuses the secret later.
pub fn secret_of_line(bytes: Vec<u8>) -> Option<Secret> {
    let text = String::from_utf8(bytes).map(Secret::new).ok()?;
    let value = text.expose().strip_suffix('\n');
    let value = value.map_or(text.expose(), |line| line.strip_suffix('\r').unwrap_or(line));
    Some(Secret::new(value))
}

/// Returns the error for a secret whose value in the environment is not text.
pub fn not_text(name: &str) -> Error {
    unusable(name, "the value of the environment variable is not UTF-8 text; encode it, for example as base64")
}

/// Returns whether users other than the owner and the group have any permission for a file.
#[cfg(unix)]
fn open_to_all(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o007 != 0
}

/// Returns false, because the permissions are checked on Unix only.
#[cfg(not(unix))]
fn open_to_all(_metadata: &std::fs::Metadata) -> bool {
    false
}

/// Returns the error for a secret that exists but cannot be used. `hint` is a sentence with the reason or the correction.
pub fn unusable(name: &str, hint: &str) -> Error {
    Error::Unusable { name: name.escape_debug().to_string(), hint: hint.to_owned() }
}

/// Returns the error for a file that cannot be read because of the system.
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
                assert_eq!(read_secret_file(folder.path(), "TOKEN").unwrap().unwrap().expose(), value);
                std::fs::remove_file(folder.path().join("TOKEN")).unwrap();
            }
        }
        put(folder.path(), "real", b"abc", 0o600);
        symlink(folder.path().join("real"), folder.path().join("linked")).unwrap();
        assert_eq!(read_secret_file(folder.path(), "linked").unwrap().unwrap().expose(), "abc");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_an_error_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o644, 0o604, 0o602, 0o666, 0o601] {
            put(folder.path(), "OPEN", b"hunter2", mode);
            let error = read_secret_file(folder.path(), "OPEN").unwrap_err();
            assert!(matches!(&error, Error::Unusable { hint, .. } if hint.contains("chmod 600")), "{error:?}");
            assert!(!format!("{error:?} {error}").contains("hunter2"));
            std::fs::remove_file(folder.path().join("OPEN")).unwrap();
        }
        put(folder.path(), "EMPTY", b"\n", 0o600);
        put(folder.path(), "BYTES", b"\xff\xfe", 0o600);
        put(folder.path(), "LARGE", &vec![b'a'; 64 * 1024 + 1], 0o600);
        std::fs::create_dir(folder.path().join("FOLDER")).unwrap();
        for name in ["EMPTY", "BYTES", "LARGE", "FOLDER"] {
            assert!(matches!(read_secret_file(folder.path(), name), Err(Error::Unusable { .. })), "{name}");
        }
        assert!(read_secret_file(folder.path(), "MISSING").unwrap().is_none());
        assert!(read_secret_file(&folder.path().join("none"), "X").unwrap().is_none());
    }

    #[test]
    fn a_key_file_has_the_same_rules() {
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
    fn a_name_that_would_be_a_path_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        put(folder.path(), "out", b"hunter2", 0o600);
        let long = "a".repeat(129);
        let inside = folder.path().join("in");
        for name in ["../out", "..", ".", "", "/etc/passwd", "a/b", "a\\b", ".hidden", "a\0b", "é", "a b", "a\n", &long]
        {
            assert!(matches!(read_secret_file(&inside, name), Err(Error::Unusable { .. })), "{name:?}");
        }
    }
}
