//! Builds the URL of a request from an origin, an encoded path and query pairs.
//! Invariant: the URL has the origin's scheme, host and port, no user, and exactly the given path. A path that the URL
//! parser would change (`..`, `\`, control characters) is refused.

use base::Origin;
use url::{Url, form_urlencoded};

/// The reason for which no URL could be built for a request.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("the origin of the request is not a web address")]
    Origin,
    /// The path does not begin with exactly one slash. A URL parser could read it as a part of the host or as another
    /// host.
    #[error("the path of the request does not start with exactly one `/`")]
    Start,
    #[error("the path of the request is not percent-encoded, or contains `..`")]
    Path,
    #[error("the scheme, host or port of the request differs from its origin")]
    Moved,
}

impl AddressError {
    /// Returns whether the request could have been sent to another host than its origin.
    pub(crate) fn leaves_origin(&self) -> bool {
        matches!(self, Self::Start | Self::Moved)
    }
}

/// Returns the URL of a request to `origin`. `path` is percent-encoded, and the pairs of `query` are not.
pub(crate) fn request_url(origin: &Origin, path: &str, query: &[(String, String)]) -> Result<Url, AddressError> {
    let origin_url = Url::parse(origin.as_str()).map_err(|_| AddressError::Origin)?;
    // Software that resolves the path as a relative reference would read the text after two slashes as a host.
    if !path.starts_with('/') || path.starts_with("//") {
        return Err(AddressError::Start);
    }
    let mut url = Url::parse(&format!("{origin}{path}")).map_err(|_| AddressError::Path)?;
    if url.path() != path || url.query().is_some() || url.fragment().is_some() {
        return Err(AddressError::Path);
    }
    if !query.is_empty() {
        url.set_query(Some(&encode_pairs(query)));
    }
    // The checks above should guarantee this. The result is checked again, because the safety of a credential must not
    // depend on the details of a URL parser.
    let is_on_origin = url.scheme() == origin_url.scheme()
        && url.host() == origin_url.host()
        && url.port_or_known_default() == origin_url.port_or_known_default()
        && url.username().is_empty()
        && url.password().is_none();
    if is_on_origin { Ok(url) } else { Err(AddressError::Moved) }
}

/// Returns the pairs percent-encoded, for a query or a form body.
pub(crate) fn encode_pairs(pairs: &[(String, String)]) -> String {
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    // The serializer writes a space as `+` and a plus as `%2B`. Some servers do not read `+` as a space, and all read
    // `%20` as a space.
    form.replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_of_path(path: &str) -> Result<String, AddressError> {
        let origin = Origin::parse("https://api.example.com:8443").unwrap();
        request_url(&origin, path, &[]).map(|url| url.to_string())
    }

    #[test]
    fn a_path_is_sent_unchanged_or_refused() {
        for good in ["/", "/a/b", "/a%2Fb/%2E%2Ex", "/@evil", "/a//b", "/a:b;c=d,e", "/%E2%82%AC"] {
            assert_eq!(url_of_path(good), Ok(format!("https://api.example.com:8443{good}")));
        }
        for bad in ["", "a", "@evil.example/x", ":1/x", ".evil.example/", "//evil.example/x", "//"] {
            assert_eq!(url_of_path(bad), Err(AddressError::Start), "{bad:?}");
        }
        for bad in [
            "/\\evil.example",
            "/\\/evil.example",
            "/a/../..//x",
            "/a/..",
            "/./a",
            "/%2e%2e/a",
            "/a/.%2E/b",
            "/a?b=c",
            "/a#b",
            "/a b",
            "/a\tb",
            "/a\r\nHost: evil",
            "/\n/evil.example",
            "/a ",
            "/\u{0}",
            "/é",
            "/\u{ff0f}x",
        ] {
            assert_eq!(url_of_path(bad), Err(AddressError::Path), "{bad:?}");
        }
    }

    #[test]
    fn query_values_cannot_add_pairs_or_a_fragment() {
        let origin = Origin::parse("http://x").unwrap();
        let pairs = |items: &[(&str, &str)]| -> Vec<(String, String)> {
            items.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let query = pairs(&[("q", "a b&c=d#e"), ("plus+", "1+1"), ("x[]", "é/?"), ("empty", ""), ("q", "again")]);
        let url = request_url(&origin, "/s", &query).unwrap();
        assert_eq!(url.as_str(), "http://x/s?q=a%20b%26c%3Dd%23e&plus%2B=1%2B1&x%5B%5D=%C3%A9%2F%3F&empty=&q=again");
        assert_eq!(url.query_pairs().into_owned().collect::<Vec<_>>(), query);
    }
}
