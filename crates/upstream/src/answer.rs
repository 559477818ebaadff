//! A response from the wire to data, within bounds.
//! Invariant: no more of a body than the limit is ever held, whatever its announced length or compression; a redirect is an error and
//! its target is never contacted.

use base::Response;
use reqwest::StatusCode;
use reqwest::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, HeaderMap, HeaderName, LAST_MODIFIED, LOCATION, SET_COOKIE,
    VARY,
};
use url::{Position, Url};

use crate::body::Body;
use crate::failure::{EncodedError, Failure};

/// Set on an answer that was kept and is confirmed; no server's to set.
pub(crate) const MARK: &str = "x-tokamak-cache";

/// Reserved before the first byte has come: an announced length is only a claim. Enough for a page of a hundred long rows,
/// which is then never copied to grow.
const RESERVE: usize = 256 * 1024;

pub(crate) async fn read(mut response: reqwest::Response, limit: usize) -> Result<Response, Failure> {
    let status = response.status();
    if let Some(location) = redirect(status, response.headers()) {
        return Err(Failure::Redirect(location));
    }
    let gzip = encoded(response.headers())?;
    let announced = response.content_length().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > limit) {
        return Err(Failure::TooLarge);
    }
    let headers = plain(response.headers(), gzip);
    let mut body = Body::new(gzip, limit, announced.unwrap_or(0).min(RESERVE));
    while let Some(chunk) = response.chunk().await.map_err(|error| Failure::of(error, true))? {
        body.take(&chunk)?;
    }
    Ok(Response { status: status.as_u16(), headers, body: body.end()? })
}

/// Whether an answer may be kept and asked for conditionally.
pub(crate) fn keepable(response: &reqwest::Response) -> bool {
    let headers = response.headers();
    let says = |name: HeaderName, word: &str| {
        let texts = headers.get_all(name).into_iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        texts.into_iter().any(|text| text.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    };
    response.status() == StatusCode::OK
        && (headers.contains_key(ETAG) || headers.contains_key(LAST_MODIFIED))
        && !headers.contains_key(SET_COOKIE)
        && !says(CACHE_CONTROL, "no-store")
        && !says(VARY, "*")
}

fn redirect(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
        return None;
    }
    headers.get(LOCATION).map(|value| shown(&String::from_utf8_lossy(value.as_bytes())))
}

/// A location without user, query and fragment, which may hold a credential, and not longer than a line.
fn shown(location: &str) -> String {
    let text = match Url::parse(location) {
        Ok(url) if url.has_host() => {
            format!("{}://{}", url.scheme(), &url[Position::BeforeHost..Position::AfterPath])
        }
        _ => location.split(['?', '#']).next().unwrap_or_default().to_owned(),
    };
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Whether the body is compressed, in the one way that was asked for.
fn encoded(headers: &HeaderMap) -> Result<bool, Failure> {
    let mut gzip = false;
    for value in headers.get_all(CONTENT_ENCODING) {
        let text = String::from_utf8_lossy(value.as_bytes());
        let encoding = text.trim();
        if encoding.is_empty() || encoding.eq_ignore_ascii_case("identity") {
            continue;
        }
        let known = encoding.eq_ignore_ascii_case("gzip") || encoding.eq_ignore_ascii_case("x-gzip");
        // Twice compressed is what only an attack is.
        if !known || std::mem::replace(&mut gzip, true) {
            return Err(Failure::Encoded(EncodedError::Unknown(encoding.chars().take(40).collect())));
        }
    }
    Ok(gzip)
}

/// Cookies stay out: they are credentials, and no later request carries them. So does a mark that only this adapter sets,
/// and what was true of the compressed body only.
fn plain(headers: &HeaderMap, decoded: bool) -> Vec<(String, String)> {
    let dropped = |name: &HeaderName| {
        *name == SET_COOKIE
            || name.as_str() == MARK
            || decoded && (*name == CONTENT_ENCODING || *name == CONTENT_LENGTH)
    };
    let kept = headers.iter().filter(|(name, _)| !dropped(name));
    kept.map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_location_is_shown_without_what_may_be_secret() {
        assert_eq!(shown("https://user:pw@evil.example:81/a/b?token=t#f"), "https://evil.example:81/a/b");
        assert_eq!(shown("/next?token=t"), "/next");
        assert_eq!(shown("//evil.example/x?y"), "//evil.example/x");
        assert_eq!(shown("data:text/plain,hello#x"), "data:text/plain,hello");
        assert_eq!(shown(&format!("/{}", "a".repeat(1000))).len(), 200);
    }
}
