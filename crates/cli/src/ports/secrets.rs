//! Finds secrets in environment variables, in the files of a folder, and in the encrypted store, in this order.
//! Invariants: the value of a secret is only in a `Secret`. An error contains the name of the secret, but neither its value nor a path.
//! A catalog cannot get the key of the encrypted store.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use base::{Secret, TenantId};
use ports::Secrets;
use ports::secrets::Error;
use store::secrets::SecretStore;

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
}

impl OperatorSecrets {
    pub fn new(folder: Option<PathBuf>, store: Arc<SecretStore>) -> Self {
        Self { folder, store }
    }

    /// Finds a secret. This function blocks, because it reads the disk if the environment does not have the secret.
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
    async fn get(&self, tenant: &TenantId, name: &str) -> Result<Secret, Error> {
        if let Some(secret) = find_in_environment(name)? {
            return Ok(secret);
        }
        let (own, tenant, name) = (self.clone(), tenant.clone(), name.to_owned());
        tokio::task::spawn_blocking(move || own.find_on_disk(&tenant, &name))
            .await
            .unwrap_or_else(|stopped| Err(Error::Unavailable(Box::new(stopped))))
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

    use super::*;

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
        let secrets = OperatorSecrets::new(Some(folder.path().to_owned()), store);
        let path = std::env::var("PATH").unwrap();
        for (name, value) in [
            ("PATH", path.as_str()),
            ("TOKAMAK_TEST_IN_A_FILE", "from a file"),
            ("TOKAMAK_TEST_IN_THE_STORE", "from the store"),
        ] {
            assert_eq!(secrets.get(&tenant, name).await.unwrap().expose(), value);
        }
        let other = secrets.get(&TenantId::parse("other").unwrap(), "TOKAMAK_TEST_IN_THE_STORE").await;
        assert!(matches!(other, Err(Error::NotSet { hint, .. }) if hint.contains("secrets_dir")));
    }

    #[tokio::test]
    async fn a_store_that_does_not_open_is_an_error_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let tenant = TenantId::local();
        let empty = OperatorSecrets::new(None, store_with_key(folder.path(), None));
        let result = empty.get(&tenant, "TOKAMAK_TEST").await;
        assert!(matches!(result, Err(Error::NotSet { hint, .. }) if hint.contains("tokamak secret set TOKAMAK_TEST")));
        store_with_key(folder.path(), Some("right")).set(&tenant, "TOKAMAK_TEST", &Secret::new("hunter2")).unwrap();
        for (key, word) in [(Some("wrong"), "does not open"), (None, "TOKAMAK_SECRETS_KEY")] {
            let result =
                OperatorSecrets::new(None, store_with_key(folder.path(), key)).get(&tenant, "TOKAMAK_TEST").await;
            assert!(matches!(&result, Err(Error::Unusable { hint, .. }) if hint.contains(word)), "{result:?}");
        }
    }

    #[tokio::test]
    async fn a_catalog_cannot_get_the_key_of_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = OperatorSecrets::new(None, store_with_key(folder.path(), Some("key")));
        assert!(matches!(secrets.get(&TenantId::local(), SECRETS_KEY).await, Err(Error::Unusable { .. })));
    }
}
