//! A request gets its credential.
//! Invariant: a secret's value goes from the port into one header or one parameter; a value that cannot be carried is told
//! by the secret's name, and nothing of it is.

mod oauth;

use base::{Auth, Secret};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ports::upstream::{Call, Error};
use ports::{Secrets, secrets};

pub(crate) use oauth::Tokens;

use crate::failure::refused;
use crate::outgoing::{Outgoing, Refusal};
use crate::wire::Wire;
use oauth::{Endpoint, Problem};

/// What signing left behind, for the rest of the call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signed {
    /// Which token it was, if it was one that can be fetched anew.
    pub(crate) token: Option<u64>,
    /// The fixed credential that was used: who holds another one shares no cached answer.
    pub(crate) credential: Option<Secret>,
    /// Every value that travelled with the call, to be taken out of its answer should the API echo it.
    pub(crate) values: Vec<Secret>,
}

pub(crate) struct Signer<'a> {
    pub(crate) wire: &'a Wire,
    pub(crate) secrets: &'a dyn Secrets,
    pub(crate) tokens: &'a Tokens,
    pub(crate) call: &'a Call,
    pub(crate) label: &'a str,
}

impl Signer<'_> {
    /// `stale`: the token that the origin has just refused.
    pub(crate) async fn sign(&self, outgoing: &mut Outgoing, stale: Option<u64>) -> Result<Signed, Error> {
        let Some(auth) = &self.call.request.auth else { return Ok(Signed::default()) };
        match self.signed(outgoing, auth, stale).await {
            // What the API shows to anyone needs no credential; one that is set and cannot be used is still told.
            Err(Error::Secret { source: secrets::Error::NotSet { .. }, .. }) if self.call.request.anonymous => {
                Ok(Signed::default())
            }
            signed => signed,
        }
    }

    async fn signed(&self, outgoing: &mut Outgoing, auth: &Auth, stale: Option<u64>) -> Result<Signed, Error> {
        let fixed = |secret: Secret| Signed { token: None, values: vec![secret.clone()], credential: Some(secret) };
        match auth {
            Auth::Bearer(name) => {
                let secret = self.secret(name).await?;
                self.put(outgoing, "authorization", &bearer(&secret), name)?;
                Ok(fixed(secret))
            }
            Auth::Header { name: header, secret: name, prefix } => {
                let secret = self.secret(name).await?;
                let words = prefix.as_ref().map(|prefix| Secret::new(format!("{prefix} {}", secret.expose())));
                self.put(outgoing, header, words.as_ref().unwrap_or(&secret), name)?;
                Ok(fixed(secret))
            }
            Auth::Query { name: parameter, secret: name } => {
                let secret = self.secret(name).await?;
                outgoing.put_query(parameter, &secret);
                Ok(fixed(secret))
            }
            Auth::Basic { user, password } => {
                let (id, word) = (self.secret(user).await?, self.secret(password).await?);
                if id.expose().contains(':') {
                    return Err(self.failed(unfit(user, "a user name has no colon")));
                }
                let pair = basic(id.expose(), word.expose());
                self.put(outgoing, "authorization", &pair, password)?;
                let encoded = Secret::new(pair.expose().trim_start_matches("Basic "));
                Ok(Signed { values: vec![word, encoded], ..fixed(pair) })
            }
            Auth::Oauth2 { token_origin, token_path, client_id, client_secret, scopes } => {
                let endpoint = Endpoint {
                    origin: token_origin,
                    path: token_path,
                    client: (client_id, client_secret),
                    scopes: scopes.as_slice(),
                };
                let (token, number) = self.token(auth, &endpoint, stale).await?;
                self.put(outgoing, "authorization", &bearer(&token), client_secret)?;
                Ok(Signed { token: Some(number), credential: None, values: vec![token] })
            }
        }
    }

    async fn token(&self, auth: &Auth, endpoint: &Endpoint<'_>, stale: Option<u64>) -> Result<(Secret, u64), Error> {
        let key = (self.call.tenant.clone(), auth.clone());
        let fetch = async {
            let id = self.checked(endpoint.client.0).await.map_err(Problem::Secret)?;
            let word = self.checked(endpoint.client.1).await.map_err(Problem::Secret)?;
            oauth::fetch(self.wire, endpoint, &id, &word).await
        };
        let found = self.tokens.get(key, || self.wire.now(), stale, fetch).await;
        found.map_err(|problem| match problem {
            Problem::Secret(source) => self.failed(source),
            Problem::Refused(refusal) => refused(self.label, refusal),
            Problem::Token(source) => Error::Token { label: self.label.to_owned(), source },
        })
    }

    fn put(&self, outgoing: &mut Outgoing, header: &str, value: &Secret, name: &str) -> Result<(), Error> {
        outgoing.put_header(header, value).map_err(|refusal| match refusal {
            Refusal::Value(_) => self.failed(unfit(name, CHARACTER)),
            other => refused(self.label, other),
        })
    }

    async fn secret(&self, name: &str) -> Result<Secret, Error> {
        self.checked(name).await.map_err(|source| self.failed(source))
    }

    /// A control character is a slip of the operator's, such as a line break at the end, in whatever form it would travel.
    async fn checked(&self, name: &str) -> Result<Secret, secrets::Error> {
        let secret = self.secrets.get(&self.call.tenant, name).await?;
        if secret.expose().contains(char::is_control) { Err(unfit(name, CHARACTER)) } else { Ok(secret) }
    }

    fn failed(&self, source: secrets::Error) -> Error {
        Error::Secret { label: self.label.to_owned(), source }
    }
}

const CHARACTER: &str = "its value has a character that no header can carry, such as a line break; set it again";

fn unfit(name: &str, hint: &str) -> secrets::Error {
    secrets::Error::Unusable { name: name.to_owned(), hint: hint.to_owned() }
}

// In a `Secret` again, so that these copies are overwritten too.

fn bearer(token: &Secret) -> Secret {
    Secret::new(format!("Bearer {}", token.expose()))
}

fn basic(user: &str, password: &str) -> Secret {
    let pair = Secret::new(format!("{user}:{password}"));
    Secret::new(format!("Basic {}", STANDARD.encode(pair.expose())))
}
