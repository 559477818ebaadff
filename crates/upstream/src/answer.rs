//! A response from the wire to data, within bounds.
//! Invariant: no more of a body than the limit is ever held, whatever its announced length; a redirect is an error and
//! its target is never contacted.

use base::Response;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_ENCODING, HeaderMap, LOCATION, SET_COOKIE};
use url::{Position, Url};

use crate::failure::{EncodedError, Failure};

/// Reserved before the first byte has come: an announced length is only a claim.
const RESERVE: usize = 64 * 1024;

pub(crate) async fn read(mut response: reqwest::Response, limit: usize) -> Result<Response, Failure> {
    let status = response.status();
    if let Some(location) = redirect(status, response.headers()) {
        return Err(Failure::Redirect(location));
    }
    refuse_encoding(response.headers())?;
    let announced = response.content_length().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > limit) {
        return Err(Failure::TooLarge);
    }
    let headers = plain(response.headers());
    let mut body = Vec::with_capacity(announced.unwrap_or(0).min(RESERVE));
    while let Some(chunk) = response.chunk().await.map_err(|error| Failure::of(error, true))? {
        if chunk.len() > limit - body.len() {
            return Err(Failure::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response { status: status.as_u16(), headers, body })
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

fn refuse_encoding(headers: &HeaderMap) -> Result<(), Failure> {
    for value in headers.get_all(CONTENT_ENCODING) {
        let text = String::from_utf8_lossy(value.as_bytes());
        let encoding = text.trim();
        if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
            return Err(Failure::Encoded(EncodedError(encoding.chars().take(40).collect())));
        }
    }
    Ok(())
}

/// Cookies stay out: they are credentials, and no later request carries them.
fn plain(headers: &HeaderMap) -> Vec<(String, String)> {
    let kept = headers.iter().filter(|(name, _)| *name != SET_COOKIE);
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
