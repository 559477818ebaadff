//! Reads an answer into a `Response`, within bounds.
//! Invariant: never more of a body than the limit is in memory, whatever its announced length or compression. A redirect is
//! an error, and its target is never contacted.

use base::Response;
use reqwest::StatusCode;
use reqwest::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, HeaderMap, HeaderName, LAST_MODIFIED, LOCATION, SET_COOKIE,
    VARY,
};
use url::{Position, Url};

use crate::body::BodyDecoder;
use crate::failure::{EncodedError, Failure};

/// The header of an answer that was kept and that its origin has confirmed. A server cannot set it.
pub(crate) const CACHE_MARK: &str = "x-tokamak-cache";

/// The largest buffer that is reserved before the first byte has arrived, since an announced length is only a claim. It is
/// enough for a page of a hundred long rows, so that such a body is not copied while it grows.
const MAX_RESERVED_BYTES: usize = 256 * 1024;

/// Reads the whole answer. `limit` bounds its body.
pub(crate) async fn read(mut response: reqwest::Response, limit: usize) -> Result<Response, Failure> {
    let status = response.status();
    if let Some(location) = redirect_location(status, response.headers()) {
        return Err(Failure::Redirect(location));
    }
    let is_gzip = is_gzip(response.headers())?;
    let announced = response.content_length().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > limit) {
        return Err(Failure::TooLarge);
    }
    let headers = headers_to_keep(response.headers(), is_gzip);
    let mut body = BodyDecoder::new(is_gzip, limit, announced.unwrap_or(0).min(MAX_RESERVED_BYTES));
    while let Some(chunk) = response.chunk().await.map_err(|error| Failure::of(error, true))? {
        body.push(&chunk)?;
    }
    Ok(Response { status: status.as_u16(), headers, body: body.finish()? })
}

/// Returns whether an answer may be kept for a conditional request: it has a validator, and its origin does not forbid it.
pub(crate) fn is_cacheable(response: &reqwest::Response) -> bool {
    let headers = response.headers();
    let has_directive = |name: HeaderName, directive: &str| {
        let texts = headers.get_all(name).into_iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        texts.into_iter().any(|text| text.split(',').any(|part| part.trim().eq_ignore_ascii_case(directive)))
    };
    response.status() == StatusCode::OK
        && (headers.contains_key(ETAG) || headers.contains_key(LAST_MODIFIED))
        // A cookie is a credential of one answer, so the answer must not be used for another call.
        && !headers.contains_key(SET_COOKIE)
        && !has_directive(CACHE_CONTROL, "no-store")
        && !has_directive(VARY, "*")
}

/// Returns the target of a redirect. A 304 is none, and a 3xx without a location is an ordinary answer.
fn redirect_location(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
        return None;
    }
    headers.get(LOCATION).map(|value| shown_location(&String::from_utf8_lossy(value.as_bytes())))
}

/// Returns a location for an error message: without user, query and fragment, which may hold a credential, and not longer
/// than a line.
fn shown_location(location: &str) -> String {
    let text = match Url::parse(location) {
        Ok(url) if url.has_host() => {
            format!("{}://{}", url.scheme(), &url[Position::BeforeHost..Position::AfterPath])
        }
        _ => location.split(['?', '#']).next().unwrap_or_default().to_owned(),
    };
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Returns whether the body is compressed. Gzip is the only encoding that requests ask for, so any other one is an error.
fn is_gzip(headers: &HeaderMap) -> Result<bool, Failure> {
    let mut is_gzip = false;
    for value in headers.get_all(CONTENT_ENCODING) {
        let text = String::from_utf8_lossy(value.as_bytes());
        let encoding = text.trim();
        if encoding.is_empty() || encoding.eq_ignore_ascii_case("identity") {
            continue;
        }
        let is_known = encoding.eq_ignore_ascii_case("gzip") || encoding.eq_ignore_ascii_case("x-gzip");
        // No honest server compresses an answer twice. An attack does, to multiply the compression.
        if !is_known || std::mem::replace(&mut is_gzip, true) {
            return Err(Failure::Encoded(EncodedError::Unknown(encoding.chars().take(40).collect())));
        }
    }
    Ok(is_gzip)
}

/// Returns the headers that a caller may see. Cookies are left out: they are credentials, and no later request carries them.
/// The mark that only this adapter sets is left out, and headers that describe the compressed body only.
fn headers_to_keep(headers: &HeaderMap, is_decoded: bool) -> Vec<(String, String)> {
    let is_dropped = |name: &HeaderName| {
        *name == SET_COOKIE
            || name.as_str() == CACHE_MARK
            || is_decoded && (*name == CONTENT_ENCODING || *name == CONTENT_LENGTH)
    };
    let kept = headers.iter().filter(|(name, _)| !is_dropped(name));
    kept.map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::shown_location;

    #[test]
    fn a_location_is_shown_without_parts_that_may_be_secret() {
        assert_eq!(shown_location("https://user:pw@evil.example:81/a/b?token=t#f"), "https://evil.example:81/a/b");
        assert_eq!(shown_location("/next?token=t"), "/next");
        assert_eq!(shown_location("//evil.example/x?y"), "//evil.example/x");
        assert_eq!(shown_location("data:text/plain,hello#x"), "data:text/plain,hello");
        assert_eq!(shown_location(&format!("/{}", "a".repeat(1000))).len(), 200);
    }
}
