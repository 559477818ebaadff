//! Signs requests with their credentials.
//! Invariant: the value of a secret goes from the port into one header or one query parameter. An error about a value names
//! the secret and shows no part of the value.

mod oauth;

use base::{Auth, Secret};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ports::upstream::{Call, Error};
use ports::{Secrets, secrets};

pub(crate) use oauth::TokenCache;

use crate::failure::refusal_error;
use crate::outgoing::{Outgoing, Refusal};
use crate::transport::Transport;
use oauth::{IssuedToken, TokenEndpoint, TokenKey, TokenProblem};

/// The credentials of a signed request, for the rest of the call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signed {
    /// The number of the token, if the credential is a token that can be fetched again.
    pub(crate) token: Option<u64>,
    /// The credential, if it is not a token. It is part of the cache's key, so that a caller with another credential gets no
    /// kept answer.
    pub(crate) credential: Option<Secret>,
    /// Every secret value of the request. They are removed from the answer, because the API may echo them.
    pub(crate) values: Vec<Secret>,
}

/// Signs the tries of one call.
pub(crate) struct Signer<'a> {
    /// Fetches tokens.
    pub(crate) transport: &'a Transport,
    pub(crate) secrets: &'a dyn Secrets,
    pub(crate) tokens: &'a TokenCache,
    pub(crate) call: &'a Call,
    pub(crate) label: &'a str,
}

impl Signer<'_> {
    /// Adds the call's credential to the request. `refused_token` is the number of a token that the origin has just refused.
    pub(crate) async fn sign(&self, outgoing: &mut Outgoing, refused_token: Option<u64>) -> Result<Signed, Error> {
        let Some(auth) = &self.call.request.auth else { return Ok(Signed::default()) };
        match self.sign_with(outgoing, auth, refused_token).await {
            // The API also answers without a credential. A secret that is set but unusable stays an error, since the operator
            // wants it to be used.
            Err(Error::Secret { source: secrets::Error::NotSet { .. }, .. }) if self.call.request.anonymous => {
                Ok(Signed::default())
            }
            result => result,
        }
    }

    async fn sign_with(
        &self,
        outgoing: &mut Outgoing,
        auth: &Auth,
        refused_token: Option<u64>,
    ) -> Result<Signed, Error> {
        let with_credential =
            |secret: Secret| Signed { token: None, values: vec![secret.clone()], credential: Some(secret) };
        match auth {
            Auth::Bearer(name) => {
                let secret = self.secret(name).await?;
                self.set_header(outgoing, "authorization", &bearer(&secret), name)?;
                Ok(with_credential(secret))
            }
            Auth::Header { name: header, secret: name, prefix } => {
                let secret = self.secret(name).await?;
                let prefixed = prefix.as_ref().map(|prefix| Secret::new(format!("{prefix} {}", secret.expose())));
                self.set_header(outgoing, header, prefixed.as_ref().unwrap_or(&secret), name)?;
                Ok(with_credential(secret))
            }
            Auth::Query { name: parameter, secret: name } => {
                let secret = self.secret(name).await?;
                outgoing.set_secret_parameter(parameter, &secret);
                Ok(with_credential(secret))
            }
            Auth::Basic { user: user_name, password: password_name } => {
                let user = self.secret(user_name).await?;
                let password = self.secret(password_name).await?;
                // The first colon ends the user name (RFC 7617), so the password would be another one.
                if user.expose().contains(':') {
                    return Err(self.secret_error(unusable(user_name, "a user name has no colon")));
                }
                let credential = basic(user.expose(), password.expose());
                self.set_header(outgoing, "authorization", &credential, password_name)?;
                let encoded = Secret::new(credential.expose().trim_start_matches("Basic "));
                // The user name is no secret. An echo of the password is removed both in plain and in encoded form.
                Ok(Signed { values: vec![password, encoded], ..with_credential(credential) })
            }
            Auth::Oauth2 { token_origin, token_path, client_id, client_secret, scopes } => {
                let endpoint = TokenEndpoint {
                    origin: token_origin,
                    path: token_path,
                    client_id_name: client_id,
                    client_secret_name: client_secret,
                    scopes: scopes.as_slice(),
                };
                let token = self.token(auth, &endpoint, refused_token).await?;
                self.set_header(outgoing, "authorization", &bearer(&token.value), client_secret)?;
                // There is no `credential`. A token changes with each fetch, so with its value in the cache's key no kept answer
                // would be found after a renewal. `Auth`, which names the client, is in that key.
                Ok(Signed { token: Some(token.number), credential: None, values: vec![token.value] })
            }
        }
    }

    async fn token(
        &self,
        auth: &Auth,
        endpoint: &TokenEndpoint<'_>,
        refused_token: Option<u64>,
    ) -> Result<IssuedToken, Error> {
        let key = TokenKey { tenant: self.call.tenant.clone(), auth: auth.clone() };
        let fetch = async {
            let client_id = self.usable_secret(endpoint.client_id_name).await.map_err(TokenProblem::Secret)?;
            let client_secret = self.usable_secret(endpoint.client_secret_name).await.map_err(TokenProblem::Secret)?;
            oauth::fetch(self.transport, endpoint, &client_id, &client_secret).await
        };
        let token = self.tokens.get(key, || self.transport.now(), refused_token, fetch).await;
        token.map_err(|problem| match problem {
            TokenProblem::Secret(source) => self.secret_error(source),
            TokenProblem::Refused(refusal) => refusal_error(self.label, refusal),
            TokenProblem::Token(source) => Error::Token { label: self.label.to_owned(), source },
        })
    }

    fn set_header(
        &self,
        outgoing: &mut Outgoing,
        header: &str,
        value: &Secret,
        secret_name: &str,
    ) -> Result<(), Error> {
        outgoing.set_secret_header(header, value).map_err(|refusal| match refusal {
            Refusal::Value(_) => self.secret_error(unusable(secret_name, BAD_CHARACTER)),
            other => refusal_error(self.label, other),
        })
    }

    async fn secret(&self, name: &str) -> Result<Secret, Error> {
        self.usable_secret(name).await.map_err(|source| self.secret_error(source))
    }

    /// Returns a secret without control characters. One with such a character, as a line break at the end, is the operator's
    /// mistake. It is refused for every form of credential, so that the mistake is found whatever the encoding.
    async fn usable_secret(&self, name: &str) -> Result<Secret, secrets::Error> {
        let secret = self.secrets.get(&self.call.tenant, name).await?;
        if secret.expose().contains(char::is_control) { Err(unusable(name, BAD_CHARACTER)) } else { Ok(secret) }
    }

    fn secret_error(&self, source: secrets::Error) -> Error {
        Error::Secret { label: self.label.to_owned(), source }
    }
}

const BAD_CHARACTER: &str = "its value has a character that no header can carry, such as a line break; set it again";

fn unusable(name: &str, hint: &str) -> secrets::Error {
    secrets::Error::Unusable { name: name.to_owned(), hint: hint.to_owned() }
}

// The two functions below return a `Secret`, so that these copies of the value are overwritten too.

fn bearer(token: &Secret) -> Secret {
    Secret::new(format!("Bearer {}", token.expose()))
}

fn basic(user: &str, password: &str) -> Secret {
    let pair = Secret::new(format!("{user}:{password}"));
    Secret::new(format!("Basic {}", STANDARD.encode(pair.expose())))
}
