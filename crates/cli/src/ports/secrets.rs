//! Secrets from environment variables.
//! Invariant: the value goes into a `Secret` and nowhere else.

use async_trait::async_trait;
use base::{Secret, TenantId};
use ports::Secrets;
use ports::secrets::Error;

pub struct EnvironmentSecrets;

#[async_trait]
impl Secrets for EnvironmentSecrets {
    async fn get(&self, _tenant: &TenantId, name: &str) -> Result<Secret, Error> {
        match std::env::var(name) {
            Ok(value) if !value.is_empty() => Ok(Secret::new(value)),
            _ => Err(Error::NotSet {
                name: name.to_owned(),
                hint: format!("start the server with {name} in its environment"),
            }),
        }
    }
}
