//! Tests of the encrypted store of secrets: reading, changing, several processes, wrong keys and damaged files.
//! Invariant: after every refused call the file has the same bytes as before.

use std::path::Path;

use base::{Secret, TenantId};
use store::secrets::{Error, FILE_NAME, KeyCost, SecretStore, SetEffect};

const CHEAP: KeyCost = KeyCost { memory_kib: 64, passes: 1, lanes: 1 };

fn open(data: &Path, key: &str) -> SecretStore {
    SecretStore::with_cost(data, Some(Secret::new(key)), CHEAP)
}

fn local_tenant() -> TenantId {
    TenantId::local()
}

fn set(store: &SecretStore, name: &str, value: &str) -> SetEffect {
    store.set(&local_tenant(), name, &Secret::new(value)).unwrap()
}

fn get(store: &SecretStore, name: &str) -> Option<String> {
    store.get(&local_tenant(), name).unwrap().map(|secret| secret.expose().to_owned())
}

#[test]
fn a_secret_is_found_by_tenant_and_name() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("made/by/set");
    let store = open(&data, "key");
    assert_eq!((store.check().unwrap(), get(&store, "A")), (None, None));
    assert!(!store.remove(&local_tenant(), "A").unwrap());
    assert!(!data.exists(), "reading creates nothing");
    assert_eq!(set(&store, "B", "two"), SetEffect::Added);
    assert_eq!(set(&store, "A", "one"), SetEffect::Added);
    assert_eq!(set(&store, "A", "one again"), SetEffect::Replaced);
    let other = TenantId::parse("acme").unwrap();
    store.set(&other, "A", &Secret::new("theirs")).unwrap();
    assert_eq!(store.names(&local_tenant()).unwrap(), ["A", "B"]);
    assert_eq!(store.names(&other).unwrap(), ["A"]);
    assert_eq!(get(&store, "A").unwrap(), "one again");
    assert_eq!(store.get(&other, "A").unwrap().unwrap().expose(), "theirs");
    assert!(store.get(&other, "B").unwrap().is_none());
    assert!(store.remove(&local_tenant(), "A").unwrap());
    assert!(!store.remove(&local_tenant(), "A").unwrap());
    assert_eq!((get(&store, "A"), store.check().unwrap()), (None, Some(2)));
    let bytes = std::fs::read(data.join(FILE_NAME)).unwrap();
    for plain in ["two", "theirs", "one again"] {
        assert!(!bytes.windows(plain.len()).any(|part| part == plain.as_bytes()), "{plain} can be read in the file");
    }
}

#[test]
fn the_next_call_sees_a_change_by_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), "key");
    let tool = open(dir.path(), "key");
    assert_eq!(get(&server, "A"), None);
    set(&tool, "A", "one");
    assert_eq!(get(&server, "A").unwrap(), "one");
    set(&tool, "A", "two");
    assert_eq!(get(&server, "A").unwrap(), "two");
    // A new file has another salt, so another key.
    std::fs::remove_file(dir.path().join(FILE_NAME)).unwrap();
    assert_eq!(get(&server, "A"), None);
    set(&tool, "A", "three");
    assert_eq!(get(&server, "A").unwrap(), "three");
}

#[test]
fn concurrent_changes_are_all_kept() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let data = dir.path();
            scope.spawn(move || {
                let store = open(data, "key");
                for number in 0..10 {
                    set(&store, &format!("W{writer}_{number}"), "value");
                }
            });
        }
    });
    assert_eq!(open(dir.path(), "key").check().unwrap(), Some(40));
}

/// Checks that every call on a store that cannot be opened returns the expected error and leaves the file as it is.
fn assert_refused(data: &Path, store: &SecretStore, expected: fn(&Error) -> bool) {
    let before = std::fs::read(data.join(FILE_NAME)).unwrap();
    let errors = [
        store.check().unwrap_err(),
        store.names(&local_tenant()).unwrap_err(),
        store.get(&local_tenant(), "A").unwrap_err(),
        store.set(&local_tenant(), "A", &Secret::new("another")).unwrap_err(),
        store.set(&local_tenant(), "NEW", &Secret::new("another")).unwrap_err(),
        store.remove(&local_tenant(), "A").unwrap_err(),
    ];
    for error in errors {
        assert!(expected(&error), "{error:?}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("another") && !text.contains("hunter2"), "{text}");
        assert!(text.contains(';'), "the message does not say what to do: {text}");
    }
    assert_eq!(std::fs::read(data.join(FILE_NAME)).unwrap(), before, "the file was overwritten");
    assert!(!data.join("secrets.enc.new").exists());
}

#[test]
fn a_wrong_key_and_a_missing_key_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    set(&open(dir.path(), "right"), "A", "hunter2");
    assert_refused(dir.path(), &open(dir.path(), "wrong"), |error| matches!(error, Error::WrongKey));
    let none = SecretStore::with_cost(dir.path(), None, CHEAP);
    assert_refused(dir.path(), &none, |error| matches!(error, Error::NoKey));
    assert_eq!(get(&open(dir.path(), "right"), "A").unwrap(), "hunter2");
    let fresh = tempfile::tempdir().unwrap();
    let without = SecretStore::with_cost(fresh.path(), None, CHEAP);
    assert!(matches!(without.set(&local_tenant(), "A", &Secret::new("x")), Err(Error::NoKey)));
    assert!(!fresh.path().join(FILE_NAME).exists());
}

#[test]
fn a_damaged_file_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    set(&open(dir.path(), "key"), "A", "hunter2");
    let whole = std::fs::read(&path).unwrap();
    for length in [0, 1, 9, 40, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert_refused(dir.path(), &open(dir.path(), "key"), |error| matches!(error, Error::Truncated { .. }));
    }
    for at in [9, 20, 60, 90, whole.len() - 40, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        assert_refused(dir.path(), &open(dir.path(), "key"), |error| matches!(error, Error::Damaged { .. }));
    }
    std::fs::write(&path, b"NAME=value\n").unwrap();
    assert_refused(dir.path(), &open(dir.path(), "key"), |error| matches!(error, Error::Foreign));
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(get(&open(dir.path(), "key"), "A").unwrap(), "hunter2");
}

#[test]
fn a_file_that_is_damaged_while_the_store_is_open_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), "key");
    set(&store, "A", "hunter2");
    get(&store, "A").unwrap();
    std::fs::write(dir.path().join(FILE_NAME), b"").unwrap();
    assert_refused(dir.path(), &store, |error| matches!(error, Error::Truncated { .. }));
}

#[test]
fn names_and_values_that_cannot_be_used_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), "key");
    for name in ["", "../A", "a b", ".hidden", "é", "A\n", &"a".repeat(129)] {
        let refusal = store.set(&local_tenant(), name, &Secret::new("x")).unwrap_err();
        assert!(matches!(refusal, Error::Name { .. }), "{name:?}");
    }
    for value in [String::new(), "x".repeat(64 * 1024 + 1)] {
        let refusal = store.set(&local_tenant(), "A", &Secret::new(value)).unwrap_err();
        assert!(matches!(refusal, Error::Value { .. }));
    }
    assert!(!dir.path().join(FILE_NAME).exists());
    set(&store, "A", &"x".repeat(64 * 1024));
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), b"in the way").unwrap();
    let store = open(&dir.path().join("file"), "key");
    assert!(matches!(store.set(&local_tenant(), "A", &Secret::new("x")), Err(Error::Io { .. })));
    std::fs::create_dir(dir.path().join(FILE_NAME)).unwrap();
    assert!(matches!(open(dir.path(), "key").check(), Err(Error::Io { .. })));
}
