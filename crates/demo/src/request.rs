//! Reads the parts of requests (path segments, query parameters, JSON bodies), and selects the requested page of a list.
//! Invariants: in a `QueryParams`, every parameter is allowed on its route and occurs once, so a route cannot ignore a parameter by
//! mistake. A request that cannot be read gets a JSON error and not the plain text of axum.

use axum::Json;
use axum::body::{Bytes, HttpBody};
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::world::Choice;

/// The media type of all bodies of this API.
pub const JSON: &str = "application/json";

/// The largest body of a request in bytes.
pub const MAX_BODY: usize = 16 << 20;

const DEFAULT_PER_PAGE: u64 = 20;
const MAX_PER_PAGE: u64 = 100;

/// The query parameters that every list accepts.
const PAGE_PARAMETERS: [&str; 2] = ["page", "per_page"];

/// The percent-decoded variable segments of a path.
pub struct PathSegments<T>(pub T);

impl<T, S> FromRequestParts<S> for PathSegments<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(PathSegments(value)),
            Err(rejection) => Err(ApiError::BadPath { reason: rejection.body_text() }),
        }
    }
}

/// A query before it is checked. `list`, `only` or `none` compares it with the parameters of a route.
pub struct UncheckedQuery(Vec<(String, String)>);

/// A checked query, which has only parameters that its route allows.
pub struct QueryParams(Vec<(String, String)>);

impl UncheckedQuery {
    /// Checks the query of a route that answers with a list. The route allows the page parameters and its own `filters`.
    pub fn list(self, filters: &[&'static str]) -> Result<(QueryParams, PageWindow), ApiError> {
        let allowed: Vec<&'static str> = filters.iter().copied().chain(PAGE_PARAMETERS).collect();
        let params = self.only(&allowed)?;
        let window = PageWindow::new(params.positive("page")?, params.positive("per_page")?);
        Ok((params, window))
    }

    /// Checks the query of a route that allows only these parameters.
    pub fn only(self, allowed: &[&'static str]) -> Result<QueryParams, ApiError> {
        for (at, (name, _)) in self.0.iter().enumerate() {
            if !allowed.contains(&name.as_str()) {
                return Err(ApiError::UnknownParameter { name: name.clone(), allowed: allowed.to_vec() });
            }
            if self.0[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(ApiError::RepeatedParameter { name: name.clone() });
            }
        }
        Ok(QueryParams(self.0))
    }

    /// Checks the query of a route that allows no parameter.
    pub fn none(self) -> Result<(), ApiError> {
        self.only(&[]).map(|_| ())
    }

    /// Returns the first value of a parameter before the query is checked. A route with a credential in its query refuses a wrong
    /// credential first.
    pub fn peek(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for UncheckedQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(pairs)) => Ok(UncheckedQuery(pairs)),
            Err(rejection) => Err(ApiError::BadQuery { reason: rejection.body_text() }),
        }
    }
}

impl QueryParams {
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
        self.text(name).map(|value| parse_positive(name, value)).transpose()
    }
}

/// Parses a positive integer that has only digits.
pub fn parse_positive(name: &'static str, value: &str) -> Result<u64, ApiError> {
    // The parser of Rust would also accept a leading `+`.
    let is_digits = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse() {
        Ok(number) if is_digits && number > 0 => Ok(number),
        _ => Err(ApiError::NotInRange { name, value: value.to_owned(), range: "a positive integer" }),
    }
}

/// The page of a list that a request asks for: `page` (from 1) with `per_page` items (20 by default, 100 at most).
/// A client that reads the pages from 1 until `page * per_page >= total` gets every item once.
pub struct PageWindow {
    page: u64,
    per_page: u64,
}

#[derive(Serialize)]
struct Page<'a, T> {
    data: &'a [&'a T],
    page: u64,
    per_page: u64,
    total: usize,
}

impl PageWindow {
    fn new(page: Option<u64>, per_page: Option<u64>) -> PageWindow {
        PageWindow { page: page.unwrap_or(1), per_page: per_page.unwrap_or(DEFAULT_PER_PAGE).min(MAX_PER_PAGE) }
    }

    /// Returns the answer `{"data", "page", "per_page", "total"}` with this page of `all`, whose order must be stable. A page past the end
    /// is empty.
    pub fn answer<'a, T: Serialize + 'a>(&self, all: impl Iterator<Item = &'a T>) -> Response {
        let all: Vec<&T> = all.collect();
        // The product saturates, because `page` may be any integer. Every start past the end is replaced by the end.
        let start = (self.page - 1).saturating_mul(self.per_page).min(all.len() as u64);
        let end = (start + self.per_page).min(all.len() as u64);
        let data = &all[start as usize..end as usize];
        Json(Page { data, page: self.page, per_page: self.per_page, total: all.len() }).into_response()
    }
}

/// Reads the whole body of a request.
pub(crate) async fn read_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    // A body whose announced length exceeds the limit is refused at once. Otherwise the client would first have to send the whole body.
    if request.body().size_hint().lower() > MAX_BODY as u64 {
        return Err(ApiError::BodyTooLarge { max: MAX_BODY });
    }
    Bytes::from_request(request, state).await.map_err(|rejection: BytesRejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::BodyTooLarge { max: MAX_BODY },
        _ => ApiError::BadBody { reason: rejection.body_text() },
    })
}

/// Parses a JSON body. A body of another media type is refused with a 415, and a body that is not JSON of this type with a 400.
pub fn parse_json<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, ApiError> {
    if content_type(headers) != JSON {
        return Err(ApiError::WrongBodyType { expected: JSON });
    }
    serde_json::from_slice(body).map_err(|error| ApiError::BadBody { reason: error.to_string() })
}

/// Returns the media type of a body without its parameters, in lower case.
pub fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
