//! Where an S3 storage is and how it is spoken to.
//! Invariant: what cannot work is refused here, with what to write instead; a secret is in no message and in no `Debug`.

use std::fmt;
use std::time::Duration;

use base::Secret;
use url::{Host, Url};

/// `s3://bucket/prefix`: the blobs are the objects `prefix/DIGEST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub bucket: String,
    /// Without slashes at its ends; empty for the bucket itself.
    pub prefix: String,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub location: Location,
    /// What the database that names these blobs is called; one prefix is for one database.
    pub owner: String,
    /// Any S3-compatible storage; Amazon's own when left out.
    pub endpoint: Option<String>,
    pub region: String,
    /// Plain HTTP to another machine. To this one it is always allowed.
    pub allow_http: bool,
    /// The bucket in the path, not in the host name. Without a word: with an endpoint, and for a bucket with a dot.
    pub path_style: Option<bool>,
    pub credentials: Credentials,
    /// For one request, with whatever is asked again within it.
    pub timeout: Duration,
    /// How often a request is sent again that failed.
    pub retries: usize,
}

#[derive(Debug, Clone)]
pub enum Credentials {
    Keys {
        id: String,
        secret: Secret,
        token: Option<Secret>,
    },
    /// Of the machine, container or pod: environment variables of AWS by their names, in lower case. May be empty: then the machine's.
    Role(Vec<(String, String)>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("`{0}` is not where blobs can be kept; write s3://BUCKET, s3://BUCKET/PREFIX, or a folder")]
    Location(String),
    #[error("`{0}` cannot be a bucket: its name has 3 to 63 lower-case letters, digits, dots and hyphens")]
    Bucket(String),
    #[error(
        "`{0}` cannot be a prefix: it has at most 512 printable characters, and no part of it is empty, `.` or `..`"
    )]
    Prefix(String),
    #[error("`{0}` is not an endpoint; write http://HOST:PORT or https://HOST:PORT")]
    Endpoint(String),
    #[error(
        "the endpoint {0} is plain HTTP to another machine, which lets everyone on the way read and change blobs; take https, or set `allow_http = true` in [blobs]"
    )]
    PlainHttp(String),
    #[error("the S3 client cannot be made; the log says why")]
    Client,
}

impl Location {
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let rest = text.strip_prefix("s3://").ok_or_else(|| SettingsError::Location(shown(text)))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(plain) || bucket.contains("..") {
            return Err(SettingsError::Bucket(shown(bucket)));
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let part = |part: &str| !matches!(part, "" | "." | "..");
        let printable = prefix.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '\\'));
        if !prefix.is_empty() && (prefix.len() > 512 || !printable || !prefix.split('/').all(part)) {
            return Err(SettingsError::Prefix(shown(prefix)));
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }

    /// The key of something under the prefix.
    pub fn key(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }

    /// What keys of blobs begin with.
    pub fn folder(&self) -> String {
        self.key("")
    }

    pub fn place(&self, name: &str) -> String {
        format!("s3://{}/{}", self.bucket, self.key(name))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        write!(f, "s3://{}{slash}{}", self.bucket, self.prefix)
    }
}

impl Options {
    /// Where requests go: the address that names the bucket, and whether the bucket is its first label.
    pub(super) fn address(&self) -> Result<(Option<Url>, bool), SettingsError> {
        let bucket = &self.location.bucket;
        let path_style = self.path_style.unwrap_or(self.endpoint.is_some() || bucket.contains('.'));
        let Some(text) = &self.endpoint else { return Ok((None, !path_style)) };
        let wrong = || SettingsError::Endpoint(shown(text));
        let mut url = Url::parse(text).map_err(|_| wrong())?;
        let host = url.host().ok_or_else(wrong)?.to_owned();
        // A password in an address would be in every log.
        let bare = url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.path() == "/";
        if !matches!(url.scheme(), "http" | "https") || !bare {
            return Err(wrong());
        }
        if url.scheme() == "http" && !self.allow_http && !is_loopback(&host) {
            return Err(SettingsError::PlainHttp(url.to_string()));
        }
        if !path_style {
            url.set_host(Some(&format!("{bucket}.{host}"))).map_err(|_| wrong())?;
        }
        Ok((Some(url), !path_style))
    }

    /// Nothing of this machine goes through a proxy.
    pub(super) fn is_local(&self) -> bool {
        let url = self.endpoint.as_ref().and_then(|text| Url::parse(text).ok());
        url.is_some_and(|url| url.host().is_some_and(|host| is_loopback(&host.to_owned())))
    }
}

fn is_loopback(host: &Host<String>) -> bool {
    match host {
        Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

fn shown(text: &str) -> String {
    base::printable(text, 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(endpoint: Option<&str>) -> Options {
        Options {
            location: Location::parse("s3://heaps/a/b").unwrap(),
            owner: "one".to_owned(),
            endpoint: endpoint.map(str::to_owned),
            region: "us-east-1".to_owned(),
            allow_http: false,
            path_style: None,
            credentials: Credentials::Keys {
                id: "key".to_owned(),
                secret: Secret::new("hunter2"),
                token: Some(Secret::new("hunter3")),
            },
            timeout: Duration::from_secs(1),
            retries: 0,
        }
    }

    #[test]
    fn locations_are_read_and_printed_as_they_were() {
        for (text, bucket, prefix, key) in [
            ("s3://heaps", "heaps", "", "x"),
            ("s3://heaps/", "heaps", "", "x"),
            ("s3://my.heaps-1/a/b c".trim_end_matches(" c"), "my.heaps-1", "a/b", "a/b/x"),
            ("s3://heaps/a/", "heaps", "a", "a/x"),
        ] {
            let location = Location::parse(text).unwrap();
            assert_eq!((location.bucket.as_str(), location.prefix.as_str()), (bucket, prefix));
            assert_eq!(location.key("x"), key);
            assert_eq!(Location::parse(&location.to_string()).unwrap(), location);
        }
    }

    #[test]
    fn what_is_no_location_is_told_by_what_is_wrong() {
        use SettingsError as E;
        for text in ["", "heaps", "gs://heaps", "S3://heaps", "s3:/heaps"] {
            assert!(matches!(Location::parse(text), Err(E::Location(_))), "{text}");
        }
        for text in ["s3://", "s3:///x", "s3://ab", "s3://UPPER", "s3://a..b", "s3://a b c"] {
            assert!(matches!(Location::parse(text), Err(E::Bucket(_))), "{text}");
        }
        for text in [
            "s3://heaps//x",
            "s3://heaps/a//b",
            "s3://heaps/../x",
            "s3://heaps/a/./b",
            "s3://heaps/a?b",
            "s3://heaps/a b",
        ] {
            assert!(matches!(Location::parse(text), Err(E::Prefix(_))), "{text}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine_or_on_request() {
        for local in ["http://127.0.0.1:9000", "http://localhost:1", "http://[::1]:1", "http://s3.localhost"] {
            assert!(options(Some(local)).address().is_ok() && options(Some(local)).is_local(), "{local}");
        }
        let far = options(Some("http://storage.example:9000"));
        assert!(matches!(far.address(), Err(SettingsError::PlainHttp(_))));
        assert!(Options { allow_http: true, ..far }.address().is_ok());
        for wrong in ["ftp://x", "storage", "https://user:word@x", "https://x/path", "https://x?a=b"] {
            assert!(matches!(options(Some(wrong)).address(), Err(SettingsError::Endpoint(_))), "{wrong}");
        }
    }

    #[test]
    fn the_bucket_is_in_the_path_or_in_the_host() {
        assert_eq!(options(None).address().unwrap(), (None, true));
        let dotted = Location::parse("s3://my.heaps").unwrap();
        assert_eq!(Options { location: dotted, ..options(None) }.address().unwrap(), (None, false));
        let asked = Options { path_style: Some(false), ..options(Some("https://storage.example:9000")) };
        let (url, in_host) = asked.address().unwrap();
        assert_eq!((url.unwrap().as_str(), in_host), ("https://heaps.storage.example:9000/", true));
        assert!(!options(Some("https://storage.example")).address().unwrap().1);
    }

    #[test]
    fn no_secret_is_printed() {
        assert!(!format!("{:?}", options(None)).contains("hunter"));
    }
}
