//! Reads the query of a request: which parameters it may carry and what each may hold.
//! Invariant: `Params` exists only for a query whose every parameter is allowed on its route and given once, so a route
//! cannot ignore a parameter by mistake.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;

use crate::error::ApiError;
use crate::page::Window;
use crate::world::Choice;

/// Every list takes these.
const PAGING: [&str; 2] = ["page", "per_page"];

/// A query as it arrived; `list`, `only` or `none` turn it into something usable.
pub struct Asked(Vec<(String, String)>);

/// A query that has been checked against the parameters of its route.
pub struct Params(Vec<(String, String)>);

impl Asked {
    /// For a route that answers with a list: paging is always allowed beside its own `filters`.
    pub fn list(self, filters: &[&'static str]) -> Result<(Params, Window), ApiError> {
        let allowed: Vec<_> = filters.iter().copied().chain(PAGING).collect();
        let params = self.check(&allowed)?;
        let window = Window::new(params.positive("page")?, params.positive("per_page")?);
        Ok((params, window))
    }

    /// For a route whose parameters are its own.
    pub fn only(self, allowed: &[&'static str]) -> Result<Params, ApiError> {
        self.check(allowed)
    }

    /// A parameter before the check: a credential is looked at first.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// For a route that answers with one item.
    pub fn none(self) -> Result<(), ApiError> {
        self.check(&[]).map(|_| ())
    }

    fn check(self, allowed: &[&'static str]) -> Result<Params, ApiError> {
        for (at, (name, _)) in self.0.iter().enumerate() {
            if !allowed.contains(&name.as_str()) {
                return Err(ApiError::UnknownParameter { name: name.clone(), allowed: allowed.to_vec() });
            }
            if self.0[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(ApiError::RepeatedParameter { name: name.clone() });
            }
        }
        Ok(Params(self.0))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(pairs)) => Ok(Asked(pairs)),
            Err(rejection) => Err(ApiError::BadQuery { reason: rejection.body_text() }),
        }
    }
}

impl Params {
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn choice<C: Choice>(&self, name: &'static str) -> Result<Option<C>, ApiError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match C::ALL.iter().find(|choice| choice.word() == value) {
            Some(choice) => Ok(Some(*choice)),
            None => {
                let allowed = C::ALL.iter().map(|choice| choice.word()).collect();
                Err(ApiError::NotOneOf { name, value: value.to_owned(), allowed })
            }
        }
    }

    pub fn positive(&self, name: &'static str) -> Result<Option<u64>, ApiError> {
        self.text(name).map(|value| positive(name, value)).transpose()
    }
}

/// A positive integer in plain digits; Rust's own parser would also take a leading `+`.
pub fn positive(name: &'static str, value: &str) -> Result<u64, ApiError> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse() {
        Ok(number) if digits && number > 0 => Ok(number),
        _ => Err(ApiError::NotInRange { name, value: value.to_owned(), range: "a positive integer" }),
    }
}
