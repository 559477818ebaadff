//! Secrets from environment variables, and from the files of a folder.
//! Invariant: the value goes into a `Secret` and nowhere else; what is wrong with one is told by its name, never by its
//! value or by a path.

use std::path::PathBuf;

use async_trait::async_trait;
use base::{Secret, TenantId};
use ports::Secrets;
use ports::secrets::Error;

use super::secrets_files as files;

/// The environment first, so that one run can be given another value; then the folder, if there is one.
#[derive(Debug, Clone, Default)]
pub struct OperatorSecrets {
    folder: Option<PathBuf>,
}

impl OperatorSecrets {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// Reads the disk, where there is a folder.
    pub fn find(&self, name: &str) -> Result<Secret, Error> {
        if let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            return value.into_string().map(Secret::new).map_err(|_| files::not_text(name));
        }
        match &self.folder {
            Some(folder) => files::read(folder, name),
            None => Err(Error::NotSet {
                name: name.to_owned(),
                hint: format!("start the server with {name} in its environment"),
            }),
        }
    }
}

#[async_trait]
impl Secrets for OperatorSecrets {
    async fn get(&self, _tenant: &TenantId, name: &str) -> Result<Secret, Error> {
        if self.folder.is_none() {
            return self.find(name);
        }
        let (own, name) = (self.clone(), name.to_owned());
        tokio::task::spawn_blocking(move || own.find(&name))
            .await
            .unwrap_or_else(|stopped| Err(Error::Unavailable(Box::new(stopped))))
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn the_environment_beats_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        // A variable that every test process has.
        for name in ["PATH", "TOKAMAK_TEST_ONLY_IN_A_FILE"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "from a file\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let tenant = TenantId::local();
        let secrets = OperatorSecrets::new(Some(folder.path().to_owned()));
        assert_eq!(secrets.get(&tenant, "PATH").await.unwrap().expose(), std::env::var("PATH").unwrap());
        let found = secrets.get(&tenant, "TOKAMAK_TEST_ONLY_IN_A_FILE").await.unwrap();
        assert_eq!(found.expose(), "from a file");
        let without = OperatorSecrets::default().get(&tenant, "TOKAMAK_TEST_ONLY_IN_A_FILE").await;
        assert!(matches!(without, Err(Error::NotSet { hint, .. }) if hint.contains("environment")));
    }
}
