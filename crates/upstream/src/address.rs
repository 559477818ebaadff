//! The address of a request, from an origin, an encoded path and query pairs.
//! Invariant: the result has the origin's scheme, host and port, no user, and exactly the path that was asked for:
//! whatever the URL parser would have rewritten (`..`, `\`, control characters) is refused instead.

use base::Origin;
use url::{Url, form_urlencoded};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("the origin is not a web address")]
    Origin,
    /// What follows would be read as part of the host, or as another one.
    #[error("the path does not start with one `/`")]
    Start,
    #[error("the path is not encoded, or climbs with `..`")]
    Path,
    #[error("scheme, host or port differ from the origin's")]
    Moved,
}

impl AddressError {
    /// The request would have left its origin, rather than being merely unreadable.
    pub(crate) fn leaves(&self) -> bool {
        matches!(self, Self::Start | Self::Moved)
    }
}

pub(crate) fn address(origin: &Origin, path: &str, query: &[(String, String)]) -> Result<Url, AddressError> {
    let home = Url::parse(origin.as_str()).map_err(|_| AddressError::Origin)?;
    // A second slash would make the path a network address to whatever resolves it as a reference.
    if !path.starts_with('/') || path.starts_with("//") {
        return Err(AddressError::Start);
    }
    let mut url = Url::parse(&format!("{origin}{path}")).map_err(|_| AddressError::Path)?;
    if url.path() != path || url.query().is_some() || url.fragment().is_some() {
        return Err(AddressError::Path);
    }
    if !query.is_empty() {
        url.set_query(Some(&encode(query)));
    }
    let stays = url.scheme() == home.scheme()
        && url.host() == home.host()
        && url.port_or_known_default() == home.port_or_known_default()
        && url.username().is_empty()
        && url.password().is_none();
    if stays { Ok(url) } else { Err(AddressError::Moved) }
}

pub(crate) fn encode(query: &[(String, String)]) -> String {
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    // A form writes a space as `+` (and a plus as `%2B`); `%20` is read as a space by servers of either school.
    form.replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> Result<String, AddressError> {
        let origin = Origin::parse("https://api.example.com:8443").unwrap();
        address(&origin, path, &[]).map(|url| url.to_string())
    }

    #[test]
    fn the_path_is_sent_as_it_is_or_not_at_all() {
        for good in ["/", "/a/b", "/a%2Fb/%2E%2Ex", "/@evil", "/a//b", "/a:b;c=d,e", "/%E2%82%AC"] {
            assert_eq!(at(good), Ok(format!("https://api.example.com:8443{good}")));
        }
        for bad in ["", "a", "@evil.example/x", ":1/x", ".evil.example/", "//evil.example/x", "//"] {
            assert_eq!(at(bad), Err(AddressError::Start), "{bad:?}");
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
            assert_eq!(at(bad), Err(AddressError::Path), "{bad:?}");
        }
    }

    #[test]
    fn query_values_stay_values() {
        let origin = Origin::parse("http://x").unwrap();
        let pairs = |items: &[(&str, &str)]| -> Vec<(String, String)> {
            items.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let query = pairs(&[("q", "a b&c=d#e"), ("plus+", "1+1"), ("x[]", "é/?"), ("empty", ""), ("q", "again")]);
        let url = address(&origin, "/s", &query).unwrap();
        assert_eq!(url.as_str(), "http://x/s?q=a%20b%26c%3Dd%23e&plus%2B=1%2B1&x%5B%5D=%C3%A9%2F%3F&empty=&q=again");
        assert_eq!(url.query_pairs().into_owned().collect::<Vec<_>>(), query);
    }
}
