//! Adds credentials to requests: bearer tokens, API keys, Basic authentication and OAuth tokens. Signing a request
//! means to add its credential.
//! Invariants:
//! - The value of a secret is written into one header or one query parameter only. An error about a value contains the
//!   name of the secret and no part of the value.
//! - Each secret is asked for together with the origin to which it goes, so that `ports::Secrets` can refuse an origin to
//!   which the secret is not bound.

mod oauth;

use base::{Auth, Origin, Secret};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ports::upstream::{Call, Error};
use ports::{Secrets, secrets};

pub(crate) use oauth::TokenCache;

use crate::failure::refusal_error;
use crate::outgoing::{Outgoing, Refusal};
use crate::redact::{MIN_SECRET_CHARS, SentSecrets};
use crate::transport::Transport;
use oauth::{ClientCredentials, IssuedToken, TokenEndpoint, TokenKey, TokenProblem};

/// The credentials that were added to a request. The later steps of the call (retry, cache, redaction) need them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signed {
    /// The number of the OAuth token. It is `None` if the credential is not an OAuth token.
    pub(crate) token: Option<u64>,
    /// The credential, if it is not an OAuth token. It is part of the cache key, so that a request with another
    /// credential gets no cached answer.
    pub(crate) credential: Option<Secret>,
    /// All secret values of the request. They are removed from the answer, because the API may echo them.
    pub(crate) values: Vec<Secret>,
}

/// Adds credentials to the tries of one call.
pub(crate) struct Signer<'a> {
    /// The transport that sends token requests.
    pub(crate) transport: &'a Transport,
    pub(crate) secrets: &'a dyn Secrets,
    pub(crate) tokens: &'a TokenCache,
    /// The record of the secrets that each origin has received.
    pub(crate) sent: &'a SentSecrets,
    pub(crate) call: &'a Call,
    pub(crate) label: &'a str,
}

impl Signer<'_> {
    /// Adds the call's credential to the request. `refused_token` is the number of a token that the origin has refused,
    /// so that another token is fetched.
    pub(crate) async fn sign(&self, outgoing: &mut Outgoing, refused_token: Option<u64>) -> Result<Signed, Error> {
        let Some(auth) = &self.call.request.auth else { return Ok(Signed::default()) };
        match self.sign_with(outgoing, auth, refused_token).await {
            // The API also accepts this request without a credential. A secret that is set but unusable is still an
            // error, because the operator wants it to be used.
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
                let secret = self.credential(name).await?;
                self.set_header(outgoing, "authorization", &bearer_credential(&secret), name)?;
                Ok(with_credential(secret))
            }
            Auth::Header { name: header, secret: name, prefix } => {
                let secret = self.credential(name).await?;
                let prefixed = prefix.as_ref().map(|prefix| Secret::new(format!("{prefix} {}", secret.expose())));
                self.set_header(outgoing, header, prefixed.as_ref().unwrap_or(&secret), name)?;
                Ok(with_credential(secret))
            }
            Auth::Query { name: parameter, secret: name } => {
                let secret = self.credential(name).await?;
                outgoing.set_secret_parameter(parameter, &secret);
                Ok(with_credential(secret))
            }
            Auth::Basic { user: user_name, password: password_name } => {
                let user = self.usable_secret(user_name, self.target()).await.map_err(|e| self.secret_error(e))?;
                let password = self.credential(password_name).await?;
                // The first colon ends the user name (RFC 7617), so a user name with a colon would change the password.
                if user.expose().contains(':') {
                    return Err(self.secret_error(unusable(user_name, "a user name has no colon")));
                }
                let credential = basic_credential(user.expose(), password.expose());
                self.set_header(outgoing, "authorization", &credential, password_name)?;
                let encoded = Secret::new(credential.expose().trim_start_matches("Basic "));
                // The user name is not secret. The password is removed from answers in plain form and in encoded form.
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
                self.set_header(outgoing, "authorization", &bearer_credential(&token.value), client_secret)?;
                // `credential` is `None`, because a token changes with each fetch: if the cache key contained the
                // token, no cached answer would be found after a renewal. The key contains `auth`, which identifies the
                // client.
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
        // The token gives the rights of the client's secret, so it goes only where the secret may go. Otherwise a catalog
        // with the token endpoint of one API and an origin of its own would receive tokens of this API.
        let binding = self.secrets.check_binding(&self.call.tenant, endpoint.client_secret_name, self.target());
        binding.await.map_err(|source| self.secret_error(source))?;
        let key = TokenKey { tenant: self.call.tenant.clone(), auth: auth.clone() };
        let fetch = async {
            let target = self.transport.route_of(endpoint.origin);
            let client_id = self.usable_secret(endpoint.client_id_name, target).await.map_err(TokenProblem::Secret)?;
            let client_secret =
                self.long_secret(endpoint.client_secret_name, target).await.map_err(TokenProblem::Secret)?;
            let client = ClientCredentials { id: &client_id, secret: &client_secret };
            oauth::fetch_token(self.transport, self.sent, &self.call.tenant, endpoint, client).await
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
            Refusal::Value(_) => self.secret_error(unusable(secret_name, CONTROL_CHARACTER_HINT)),
            other => refusal_error(self.label, other),
        })
    }

    /// Returns the origin to which the request really goes.
    fn target(&self) -> &Origin {
        self.transport.route_of(&self.call.request.origin)
    }

    /// Returns a secret that is put into the request as its credential.
    async fn credential(&self, name: &str) -> Result<Secret, Error> {
        self.long_secret(name, self.target()).await.map_err(|source| self.secret_error(source))
    }

    /// Returns a secret that is long enough to be recognised in an answer that echoes it.
    async fn long_secret(&self, name: &str, origin: &Origin) -> Result<Secret, secrets::Error> {
        let secret = self.usable_secret(name, origin).await?;
        if secret.expose().chars().count() < MIN_SECRET_CHARS {
            return Err(secrets::Error::TooShort { name: name.to_owned(), least: MIN_SECRET_CHARS });
        }
        Ok(secret)
    }

    /// Returns a secret that has no control characters. A value with a control character, such as a line break at the
    /// end, is a mistake of the operator and is refused for every form of credential.
    async fn usable_secret(&self, name: &str, origin: &Origin) -> Result<Secret, secrets::Error> {
        let secret = self.secrets.get(&self.call.tenant, name, origin).await?;
        if secret.expose().contains(char::is_control) {
            Err(unusable(name, CONTROL_CHARACTER_HINT))
        } else {
            Ok(secret)
        }
    }

    fn secret_error(&self, source: secrets::Error) -> Error {
        Error::Secret { label: self.label.to_owned(), source }
    }
}

const CONTROL_CHARACTER_HINT: &str =
    "its value has a character that no header can carry, such as a line break; set it again";

fn unusable(name: &str, hint: &str) -> secrets::Error {
    secrets::Error::Unusable { name: name.to_owned(), hint: hint.to_owned() }
}

// The two functions below return a `Secret`, so that their copies of the value are overwritten when they are dropped.

fn bearer_credential(token: &Secret) -> Secret {
    Secret::new(format!("Bearer {}", token.expose()))
}

fn basic_credential(user: &str, password: &str) -> Secret {
    let pair = Secret::new(format!("{user}:{password}"));
    Secret::new(format!("Basic {}", STANDARD.encode(pair.expose())))
}
