//! Finds secrets in environment variables, in the files of a folder, and in the encrypted store, in this order.
//! Invariants: the value of a secret is only in a `Secret`, and is returned only for an origin to which the secret is bound. An error contains the name of the secret, but neither its value nor a path.
//! A catalog cannot get the key of the encrypted store.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use base::{Origin, Secret, TenantId};
use ports::Secrets;
use ports::secrets::Error;
use store::secrets::SecretStore;

use super::SecretBindings;
use super::secrets_files as files;

/// The name of the environment variable with the key of the encrypted store.
pub const SECRETS_KEY: &str = "TOKAMAK_SECRETS_KEY";

/// The secrets of the operator.
///
/// The environment overrides the folder and the store, so that an operator can give another value to a single process.
#[derive(Clone)]
pub struct OperatorSecrets {
    /// The folder with one file for each secret: `secrets_dir`.
    folder: Option<PathBuf>,
    store: Arc<SecretStore>,
    bindings: SecretBindings,
}

impl OperatorSecrets {
    pub fn new(folder: Option<PathBuf>, store: Arc<SecretStore>, bindings: SecretBindings) -> Self {
        Self { folder, store, bindings }
    }

    /// Returns the bindings of all secrets.
    pub fn bindings(&self) -> &SecretBindings {
        &self.bindings
    }

    /// Finds a secret for a request to `origin`. This function blocks, because it may read the disk.
    pub fn find_for(&self, tenant: &TenantId, name: &str, origin: &Origin) -> Result<Secret, Error> {
        let found = self.find(tenant, name);
        if self.bindings.allows(name, origin)? {
            return found;
        }
        match found {
            Err(Error::NotSet { name, hint }) => {
                let hint = format!("{hint}; then bind it with `tokamak secret bind {name} {origin}`");
                Err(Error::NotSet { name, hint })
            }
            _ => Err(Error::NotBound { name: name.escape_debug().to_string(), origin: origin.clone() }),
        }
    }

    /// Finds a secret for the operator's own use, such as the credentials of S3 in the settings. Requests of catalogs and
    /// code use [`Self::find_for`]. This function blocks, because it reads the disk if the environment does not have the
    /// secret.
    pub fn find(&self, tenant: &TenantId, name: &str) -> Result<Secret, Error> {
        match find_in_environment(name)? {
            Some(secret) => Ok(secret),
            None => self.find_on_disk(tenant, name),
        }
    }

    /// Finds a secret in the folder or in the encrypted store.
    fn find_on_disk(&self, tenant: &TenantId, name: &str) -> Result<Secret, Error> {
        if let Some(secret) =
            self.folder.as_ref().map(|folder| files::read_secret_file(folder, name)).transpose()?.flatten()
        {
            return Ok(secret);
        }
        if let Some(secret) = self.store.get(tenant, name).map_err(|error| store_error(name, error))? {
            return Ok(secret);
        }
        let file = self.folder.as_ref().map_or("", |_| "put it into a file of that name in secrets_dir, ");
        let hint = format!("set {name} in the server's environment, {file}or run `tokamak secret set {name}`");
        Err(Error::NotSet { name: name.to_owned(), hint })
    }
}

#[async_trait]
impl Secrets for OperatorSecrets {
    async fn get(&self, tenant: &TenantId, name: &str, origin: &Origin) -> Result<Secret, Error> {
        // The most frequent case needs no thread: a secret in the environment that is bound by the settings.
        if self.bindings.is_fixed(name, origin)
            && let Some(secret) = find_in_environment(name)?
        {
            return Ok(secret);
        }
        let (own, tenant, name, origin) = (self.clone(), tenant.clone(), name.to_owned(), origin.clone());
        tokio::task::spawn_blocking(move || own.find_for(&tenant, &name, &origin))
            .await
            .unwrap_or_else(|stopped| Err(Error::Unavailable(Box::new(stopped))))
    }

    async fn check_binding(&self, _: &TenantId, name: &str, origin: &Origin) -> Result<(), Error> {
        if self.bindings.is_fixed(name, origin) {
            return Ok(());
        }
        let (bindings, name, origin) = (self.bindings.clone(), name.to_owned(), origin.clone());
        let check = move || match bindings.allows(&name, &origin)? {
            true => Ok(()),
            false => Err(Error::NotBound { name, origin }),
        };
        tokio::task::spawn_blocking(check).await.unwrap_or_else(|stopped| Err(Error::Unavailable(Box::new(stopped))))
    }
}

/// Finds a secret in the environment.
fn find_in_environment(name: &str) -> Result<Option<Secret>, Error> {
    // A catalog that names the key of the store would send this key to its API.
    if name == SECRETS_KEY {
        return Err(files::unusable(
            name,
            "this name is that of the key of the encrypted secrets; name another secret in the catalog",
        ));
    }
    match std::env::var_os(name).filter(|value| !value.is_empty()) {
        Some(value) => value.into_string().map(|text| Some(Secret::new(text))).map_err(|_| files::not_text(name)),
        None => Ok(None),
    }
}

/// Returns the error for an encrypted store that cannot be opened. The error is not `NotSet`, because the store may contain the secret.
fn store_error(name: &str, error: store::secrets::Error) -> Error {
    use store::secrets::Error as Cause;
    match error {
        Cause::Io { .. } | Cause::Full(_) | Cause::Busy { .. } | Cause::Crypto => Error::Unavailable(Box::new(error)),
        _ => files::unusable(name, &error.to_string()),
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use store::secrets::BindingStore;

    use super::*;

    /// The origin of the tests.
    const API: &str = "https://api.example.com";

    /// Returns bindings of the tests' secrets to `API`. Commands may add bindings in the folder `data`.
    fn bound(data: &std::path::Path) -> SecretBindings {
        let names = ["PATH", "TOKAMAK_TEST_IN_A_FILE", "TOKAMAK_TEST_IN_THE_STORE", "TOKAMAK_TEST"];
        let origins = std::collections::BTreeSet::from([Origin::parse(API).unwrap()]);
        let configured = names.map(|name| (name.to_owned(), origins.clone())).into_iter().collect();
        SecretBindings::new(configured, BindingStore::new(data))
    }

    fn store_with_key(data: &std::path::Path, key: Option<&str>) -> Arc<SecretStore> {
        let cheap = store::secrets::KeyCost { memory_kib: 64, passes: 1, lanes: 1 };
        Arc::new(SecretStore::with_cost(data, key.map(Secret::new), cheap))
    }

    #[tokio::test]
    async fn the_environment_comes_before_the_folder_and_the_folder_before_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let tenant = TenantId::local();
        let store = store_with_key(folder.path(), Some("key"));
        // Every test process has a variable PATH.
        for name in ["PATH", "TOKAMAK_TEST_IN_A_FILE", "TOKAMAK_TEST_IN_THE_STORE"] {
            store.set(&tenant, name, &Secret::new("from the store")).unwrap();
        }
        for name in ["PATH", "TOKAMAK_TEST_IN_A_FILE"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "from a file\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let secrets = OperatorSecrets::new(Some(folder.path().to_owned()), store, bound(folder.path()));
        let api = Origin::parse(API).unwrap();
        let path = std::env::var("PATH").unwrap();
        for (name, value) in [
            ("PATH", path.as_str()),
            ("TOKAMAK_TEST_IN_A_FILE", "from a file"),
            ("TOKAMAK_TEST_IN_THE_STORE", "from the store"),
        ] {
            assert_eq!(secrets.get(&tenant, name, &api).await.unwrap().expose(), value);
        }
        let other = secrets.get(&TenantId::parse("other").unwrap(), "TOKAMAK_TEST_IN_THE_STORE", &api).await;
        assert!(matches!(other, Err(Error::NotSet { hint, .. }) if hint.contains("secrets_dir")));
    }

    #[tokio::test]
    async fn a_store_that_does_not_open_is_an_error_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let tenant = TenantId::local();
        let api = Origin::parse(API).unwrap();
        let empty = OperatorSecrets::new(None, store_with_key(folder.path(), None), bound(folder.path()));
        let result = empty.get(&tenant, "TOKAMAK_TEST", &api).await;
        assert!(matches!(result, Err(Error::NotSet { hint, .. }) if hint.contains("tokamak secret set TOKAMAK_TEST")));
        store_with_key(folder.path(), Some("right")).set(&tenant, "TOKAMAK_TEST", &Secret::new("hunter2")).unwrap();
        for (key, word) in [(Some("wrong"), "does not open"), (None, "TOKAMAK_SECRETS_KEY")] {
            let result = OperatorSecrets::new(None, store_with_key(folder.path(), key), bound(folder.path()))
                .get(&tenant, "TOKAMAK_TEST", &api)
                .await;
            assert!(matches!(&result, Err(Error::Unusable { hint, .. }) if hint.contains(word)), "{result:?}");
        }
    }

    #[tokio::test]
    async fn a_catalog_cannot_get_the_key_of_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = OperatorSecrets::new(None, store_with_key(folder.path(), Some("key")), bound(folder.path()));
        let api = Origin::parse(API).unwrap();
        for _ in 0..2 {
            let refused = secrets.get(&TenantId::local(), SECRETS_KEY, &api).await;
            assert!(matches!(refused, Err(Error::Unusable { .. } | Error::NotBound { .. })));
            // Even a file that was changed by hand does not make the key readable.
            let text = format!(r#"{{"version": 1, "bindings": {{"{SECRETS_KEY}": ["{API}"]}}}}"#);
            std::fs::write(folder.path().join(store::secrets::BINDINGS_FILE_NAME), text).unwrap();
        }
    }

    #[tokio::test]
    async fn a_secret_is_found_only_for_an_origin_to_which_it_is_bound() {
        let folder = tempfile::tempdir().unwrap();
        let tenant = TenantId::local();
        let secrets = OperatorSecrets::new(None, store_with_key(folder.path(), Some("key")), bound(folder.path()));
        let api = Origin::parse(API).unwrap();
        // A variable of the environment, and the name of a shipped catalog's secret.
        for name in ["PATH", "GITHUB_TOKEN"] {
            let other = Origin::parse("https://evil.example").unwrap();
            let refused = secrets.get(&tenant, name, &other).await;
            let is_refused = matches!(refused, Err(Error::NotBound { .. } | Error::NotSet { .. }));
            assert!(is_refused && secrets.check_binding(&tenant, name, &other).await.is_err(), "{name}");
        }
        let unbound = secrets.get(&tenant, "HOME", &api).await.map(|_| ()).unwrap_err();
        let command = format!("tokamak secret bind HOME {API}");
        assert!(matches!(unbound, Error::NotBound { .. }) && unbound.to_string().contains(&command), "{unbound}");
        // A running server sees a binding that a command adds or removes.
        let store = BindingStore::new(folder.path());
        store.bind("HOME", &api).unwrap();
        assert!(
            secrets.get(&tenant, "HOME", &api).await.is_ok()
                && secrets.check_binding(&tenant, "HOME", &api).await.is_ok()
        );
        store.unbind("HOME", None).unwrap();
        assert!(matches!(secrets.get(&tenant, "HOME", &api).await, Err(Error::NotBound { .. })));
        // A secret that is neither set nor bound is reported with both commands.
        let unset = secrets.get(&tenant, "TOKAMAK_TEST_NOT_SET", &api).await.map(|_| ()).unwrap_err().to_string();
        assert!(unset.contains("tokamak secret set TOKAMAK_TEST_NOT_SET"), "{unset}");
        assert!(unset.contains(&format!("tokamak secret bind TOKAMAK_TEST_NOT_SET {API}")), "{unset}");
        // Without readable bindings nothing is sent.
        std::fs::write(folder.path().join(store::secrets::BINDINGS_FILE_NAME), "{").unwrap();
        assert!(matches!(secrets.get(&tenant, "HOME", &api).await, Err(Error::Unusable { .. })));
    }
}
