//! Reads the answer to a request as a `Response`, with a limit on the size of the body.
//! Invariant: at most `limit` bytes of a body are in memory, whatever length or compression the answer announces. A
//! redirect is an error, and no request is sent to its target.

use base::Response;
use reqwest::StatusCode;
use reqwest::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, HeaderMap, HeaderName, LAST_MODIFIED, LOCATION, SET_COOKIE,
    VARY,
};
use url::{Position, Url};

use crate::body::BodyDecoder;
use crate::failure::{EncodedError, Failure};

/// The name of the header that marks a cached answer which its origin has confirmed. The header is removed from answers
/// of servers, so only this crate sets it.
pub(crate) const CACHE_MARK: &str = "x-tokamak-cache";

/// The largest buffer that is reserved before the first byte has arrived. It is bounded because an announced length may
/// be false. It is large enough for a page of a hundred long rows, so that the buffer for such a body does not grow.
const MAX_RESERVED_BYTES: usize = 256 * 1024;

/// Reads the whole answer. `limit` is the largest body in bytes.
pub(crate) async fn read_answer(mut response: reqwest::Response, limit: usize) -> Result<Response, Failure> {
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

/// Returns whether the answer may be cached for conditional requests: it has an `ETag` or `Last-Modified`, and its
/// origin does not forbid caching.
pub(crate) fn is_cacheable(response: &reqwest::Response) -> bool {
    let headers = response.headers();
    let has_directive = |name: HeaderName, directive: &str| {
        let texts = headers.get_all(name).into_iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        texts.into_iter().any(|text| text.split(',').any(|part| part.trim().eq_ignore_ascii_case(directive)))
    };
    response.status() == StatusCode::OK
        && (headers.contains_key(ETAG) || headers.contains_key(LAST_MODIFIED))
        // An answer with a cookie is not cached, because the cookie is a credential for one call.
        && !headers.contains_key(SET_COOKIE)
        && !has_directive(CACHE_CONTROL, "no-store")
        && !has_directive(VARY, "*")
}

/// Returns the target of a redirect. A 304 is not a redirect, and a 3xx without the header `Location` is an ordinary
/// answer.
fn redirect_location(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
        return None;
    }
    headers.get(LOCATION).map(|value| shown_location(&String::from_utf8_lossy(value.as_bytes())))
}

/// Returns a location for an error message. User, query and fragment are removed, because they may contain a
/// credential, and the text is cut at 200 characters.
fn shown_location(location: &str) -> String {
    let text = match Url::parse(location) {
        Ok(url) if url.has_host() => {
            format!("{}://{}", url.scheme(), &url[Position::BeforeHost..Position::AfterPath])
        }
        _ => location.split(['?', '#']).next().unwrap_or_default().to_owned(),
    };
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Returns whether the body is compressed with gzip. Requests ask only for gzip, so another encoding is an error.
fn is_gzip(headers: &HeaderMap) -> Result<bool, Failure> {
    let mut is_gzip = false;
    for value in headers.get_all(CONTENT_ENCODING) {
        let text = String::from_utf8_lossy(value.as_bytes());
        let encoding = text.trim();
        if encoding.is_empty() || encoding.eq_ignore_ascii_case("identity") {
            continue;
        }
        let is_known = encoding.eq_ignore_ascii_case("gzip") || encoding.eq_ignore_ascii_case("x-gzip");
        // A body that is compressed twice is refused. Only an attack compresses twice, because this multiplies the size
        // of the decompressed body.
        if !is_known || std::mem::replace(&mut is_gzip, true) {
            return Err(Failure::Encoded(EncodedError::Unknown(encoding.chars().take(40).collect())));
        }
    }
    Ok(is_gzip)
}

/// Returns the text of a header. Headers have no declared encoding; the bytes are UTF-8, or else Latin-1, as RFC 9110 (5.5) says of
/// older servers.
fn header_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// Returns the headers for the caller. Three kinds are removed: cookies, which are credentials and are never sent back;
/// the mark `CACHE_MARK`, which only this crate sets; and the headers that describe the compressed body, if it was
/// decompressed.
fn headers_to_keep(headers: &HeaderMap, is_decoded: bool) -> Vec<(String, String)> {
    let is_dropped = |name: &HeaderName| {
        *name == SET_COOKIE
            || name.as_str() == CACHE_MARK
            || is_decoded && (*name == CONTENT_ENCODING || *name == CONTENT_LENGTH)
    };
    let kept = headers.iter().filter(|(name, _)| !is_dropped(name));
    kept.map(|(name, value)| (name.as_str().to_owned(), header_text(value.as_bytes()))).collect()
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
