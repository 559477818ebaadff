//! The type `BindingStore`: the file `secret-bindings.json` in the data folder, with the origins to which the operator has
//! bound each secret. The file contains no values, so it is not encrypted.
//!
//! Invariants:
//! - A file that cannot be read binds nothing, and is never overwritten.
//! - Each call sees the changes that other processes made before it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base::Origin;
use ports::secrets::{NAME_RULE, is_name};

use super::error::Error;
use super::file;

pub const BINDINGS_FILE_NAME: &str = "secret-bindings.json";
const NEW_FILE_NAME: &str = "secret-bindings.json.new";
const VERSION: u64 = 1;
/// The largest number of origins of one secret.
const MAX_ORIGINS: usize = 64;

/// The origins of each secret, by the name of the secret.
pub type Bindings = BTreeMap<String, BTreeSet<Origin>>;

/// The bindings that `tokamak secret bind` has stored. The calls block, because each call reads the disk.
#[derive(Debug)]
pub struct BindingStore {
    /// The data folder.
    data: PathBuf,
}

impl BindingStore {
    /// Returns the store of the folder `data`. The first `bind` creates the file.
    pub fn new(data: &Path) -> Self {
        Self { data: data.to_owned() }
    }

    /// Returns all bindings.
    pub fn list(&self) -> Result<Bindings, Error> {
        let Some(bytes) = file::read_named(&self.data, BINDINGS_FILE_NAME)? else { return Ok(Bindings::new()) };
        parse(&bytes).ok_or(Error::Bindings)
    }

    /// Binds a secret to an origin, durably. Returns whether the binding is new.
    pub fn bind(&self, name: &str, origin: &Origin) -> Result<bool, Error> {
        let shown_name = || name.escape_debug().take(160).collect();
        if !is_name(name) {
            return Err(Error::Name { name: shown_name(), rule: NAME_RULE });
        }
        self.change(|bindings| {
            let origins = bindings.entry(name.to_owned()).or_default();
            let is_new = origins.insert(origin.clone());
            if origins.len() > MAX_ORIGINS {
                return Err(Error::Value { name: shown_name(), rule: "a secret can be bound to at most 64 origins" });
            }
            Ok(is_new)
        })
    }

    /// Removes the binding to one origin, or to all origins, durably. Returns whether there was one.
    pub fn unbind(&self, name: &str, origin: Option<&Origin>) -> Result<bool, Error> {
        self.change(|bindings| {
            let Some(origins) = bindings.get_mut(name) else { return Ok(false) };
            let had_one = match origin {
                Some(origin) => origins.remove(origin),
                None => true,
            };
            if origins.is_empty() || origin.is_none() {
                bindings.remove(name);
            }
            Ok(had_one)
        })
    }

    /// Changes the file under the lock. The file is written only if `change` returns `true`.
    fn change(&self, change: impl FnOnce(&mut Bindings) -> Result<bool, Error>) -> Result<bool, Error> {
        let lock = file::WriteLock::acquire(&self.data)?;
        let mut bindings = self.list()?;
        let is_changed = change(&mut bindings)?;
        if is_changed {
            let text = serde_json::json!({"version": VERSION, "bindings": bindings});
            file::replace_named(
                &lock,
                &self.data,
                BINDINGS_FILE_NAME,
                NEW_FILE_NAME,
                format!("{text:#}\n").as_bytes(),
            )?;
        }
        Ok(is_changed)
    }
}

/// Reads the file's content. Returns `None` if the file has another form or another version.
fn parse(bytes: &[u8]) -> Option<Bindings> {
    let mut value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    if value.get("version")?.as_u64()? != VERSION {
        return None;
    }
    serde_json::from_value(value.get_mut("bindings")?.take()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Origin {
        Origin::parse(text).unwrap()
    }

    #[test]
    fn bindings_are_stored_listed_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let store = BindingStore::new(dir.path());
        assert_eq!(store.list().unwrap(), Bindings::new());
        assert!(!store.unbind("A", None).unwrap());
        let (one, two) = (origin("https://one.example"), origin("https://two.example:8443"));
        assert!(store.bind("A", &one).unwrap() && store.bind("A", &two).unwrap() && store.bind("B", &one).unwrap());
        assert!(!store.bind("A", &origin("HTTPS://ONE.example:443")).unwrap(), "the same origin in another form");
        // Another value for the same folder sees the same bindings.
        let other = BindingStore::new(dir.path());
        assert_eq!(other.list().unwrap()["A"], BTreeSet::from([one.clone(), two.clone()]));
        assert!(other.unbind("A", Some(&two)).unwrap() && !other.unbind("A", Some(&two)).unwrap());
        assert!(other.unbind("B", None).unwrap());
        assert_eq!(store.list().unwrap(), Bindings::from([("A".to_owned(), BTreeSet::from([one]))]));
        assert!(matches!(store.bind("../A", &two), Err(Error::Name { .. })));
    }

    #[test]
    fn a_file_that_cannot_be_read_binds_nothing_and_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let store = BindingStore::new(dir.path());
        let path = dir.path().join(BINDINGS_FILE_NAME);
        for text in [
            "",
            "{}",
            "[]",
            r#"{"version": 2, "bindings": {}}"#,
            r#"{"version": 1, "bindings": {"A": ["not an origin"]}}"#,
            r#"{"version": 1, "bindings": {"A": "https://a.example"}}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(store.list(), Err(Error::Bindings)), "{text}");
            assert!(store.bind("A", &origin("https://a.example")).is_err() && store.unbind("A", None).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_secret_has_a_bounded_number_of_origins() {
        let dir = tempfile::tempdir().unwrap();
        let store = BindingStore::new(dir.path());
        for n in 0..MAX_ORIGINS {
            assert!(store.bind("A", &origin(&format!("https://h{n}.example"))).unwrap());
        }
        assert!(matches!(store.bind("A", &origin("https://more.example")), Err(Error::Value { .. })));
        assert_eq!(store.list().unwrap()["A"].len(), MAX_ORIGINS);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        BindingStore::new(dir.path()).bind("A", &origin("https://a.example")).unwrap();
        let mode = std::fs::metadata(dir.path().join(BINDINGS_FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
