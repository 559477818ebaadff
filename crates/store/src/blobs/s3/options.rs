//! The type `Options` of an S3 storage: location, endpoint, credentials and timeouts.
//! Invariant: invalid options are refused with a message that contains the form to write instead. No message and no
//! `Debug` contains a secret.

use std::fmt;
use std::time::Duration;

use base::Secret;
use url::{Host, Url};

/// The bucket and prefix of the blobs, written as `s3://bucket/prefix`. Each blob is the object `prefix/DIGEST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub bucket: String,
    /// The beginning of every key, without a slash at either end. It is empty if the blobs are directly in the bucket.
    pub prefix: String,
}

/// The options of an S3 storage.
#[derive(Debug, Clone)]
pub struct Options {
    pub location: Location,
    /// The name of the database whose rows refer to these blobs. A prefix belongs to one database (`owner.rs`).
    pub owner: String,
    /// The URL of an S3-compatible storage. `None` means Amazon S3.
    pub endpoint: Option<String>,
    pub region: String,
    /// Whether plain HTTP to another machine is allowed. Plain HTTP to this machine is always allowed.
    pub allow_http: bool,
    /// Whether the bucket's name is in the path of the URL and not in the host name. `None` puts the name in the path
    /// if `endpoint` is set or if the name has a dot, because certificates for `*.s3.amazonaws.com` do not cover a name
    /// with a dot.
    pub path_style: Option<bool>,
    pub credentials: Credentials,
    /// The time limit of one request, including its retries.
    pub timeout: Duration,
    /// The number of times that a failed request is sent again.
    pub retries: usize,
}

/// The source of the credentials.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// An access key with its secret, and a session token for temporary keys.
    Keys { id: String, secret: Secret, token: Option<Secret> },
    /// The role of this machine, container or pod. The pairs are AWS's environment variables with names in lower case.
    /// An empty list means the role of the machine.
    Role(Vec<(String, String)>),
}

/// The reason for which the options are invalid. The operator must change a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("`{0}` is not a place for blobs; write s3://BUCKET, s3://BUCKET/PREFIX, or the path of a folder")]
    Location(String),
    #[error("`{0}` is not the name of an S3 bucket; write 3 to 63 lower-case letters, digits, dots and hyphens")]
    Bucket(String),
    #[error(
        "`{0}` is not a prefix of S3 objects; write at most 512 printable characters, without an empty part, `.` or `..`"
    )]
    Prefix(String),
    #[error("`{0}` is not an S3 endpoint; write http://HOST:PORT or https://HOST:PORT")]
    Endpoint(String),
    #[error(
        "the S3 endpoint {0} uses plain HTTP to another machine, so others on the network could read and change blobs; write https, or set `allow_http = true` in [blobs]"
    )]
    PlainHttp(String),
    #[error("the S3 client cannot be created; the log says why")]
    Client,
}

impl Location {
    /// Reads `s3://BUCKET` or `s3://BUCKET/PREFIX`.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let rest = text.strip_prefix("s3://").ok_or_else(|| SettingsError::Location(shown(text)))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(is_allowed) || bucket.contains("..") {
            return Err(SettingsError::Bucket(shown(bucket)));
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        // A URL parser resolves `.` and `..`, and ends the path at `?` and `#`. Such a prefix would lead to other
        // objects, so it is refused.
        let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
        let is_printable = prefix.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '\\'));
        if !prefix.is_empty() && (prefix.len() > 512 || !is_printable || !prefix.split('/').all(is_segment)) {
            return Err(SettingsError::Prefix(shown(prefix)));
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }

    /// Returns the key of the object `name` under the prefix.
    pub fn key(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }

    /// Returns the beginning of every key: the prefix with a slash, or an empty text.
    pub fn folder(&self) -> String {
        self.key("")
    }

    /// Returns the address `s3://BUCKET/KEY` of the object `name`, for messages.
    pub fn address_of(&self, name: &str) -> String {
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
    /// Returns whether the name of the bucket is the first label of the host name.
    pub(super) fn bucket_in_host(&self) -> bool {
        !self.path_style.unwrap_or(self.endpoint.is_some() || self.location.bucket.contains('.'))
    }

    /// Returns the checked endpoint, with the bucket in its host name unless the bucket is in the path. `None` means
    /// Amazon S3.
    pub(super) fn endpoint_url(&self) -> Result<Option<Url>, SettingsError> {
        let Some(text) = &self.endpoint else { return Ok(None) };
        let not_an_endpoint = || SettingsError::Endpoint(shown(text));
        let mut url = Url::parse(text).map_err(|_| not_an_endpoint())?;
        let host = url.host().ok_or_else(not_an_endpoint)?.to_owned();
        // A URL with a user or password is refused, because the password would appear in logs.
        let is_bare =
            url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.path() == "/";
        if !matches!(url.scheme(), "http" | "https") || !is_bare {
            return Err(not_an_endpoint());
        }
        if url.scheme() == "http" && !self.allow_http && !is_loopback(&host) {
            return Err(SettingsError::PlainHttp(url.to_string()));
        }
        if self.bucket_in_host() {
            let host = format!("{}.{host}", self.location.bucket);
            url.set_host(Some(&host)).map_err(|_| not_an_endpoint())?;
        }
        Ok(Some(url))
    }

    /// Returns whether the storage is on this machine. Requests to a local storage use no proxy.
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

/// Returns at most 200 printable characters of the text, for a message.
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
    fn a_location_is_printed_as_it_was_written() {
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
    fn each_mistake_in_a_location_has_an_error_of_its_own() {
        for text in ["", "heaps", "gs://heaps", "S3://heaps", "s3:/heaps"] {
            assert!(matches!(Location::parse(text), Err(SettingsError::Location(_))), "{text}");
        }
        for text in ["s3://", "s3:///x", "s3://ab", "s3://UPPER", "s3://a..b", "s3://a b c"] {
            assert!(matches!(Location::parse(text), Err(SettingsError::Bucket(_))), "{text}");
        }
        for text in [
            "s3://heaps//x",
            "s3://heaps/a//b",
            "s3://heaps/../x",
            "s3://heaps/a/./b",
            "s3://heaps/a?b",
            "s3://heaps/a b",
        ] {
            assert!(matches!(Location::parse(text), Err(SettingsError::Prefix(_))), "{text}");
        }
    }

    #[test]
    fn plain_http_needs_a_setting_unless_it_is_to_this_machine() {
        for local in ["http://127.0.0.1:9000", "http://localhost:1", "http://[::1]:1", "http://s3.localhost"] {
            assert!(options(Some(local)).endpoint_url().is_ok() && options(Some(local)).is_local(), "{local}");
        }
        let remote = options(Some("http://storage.example:9000"));
        assert!(matches!(remote.endpoint_url(), Err(SettingsError::PlainHttp(_))));
        assert!(Options { allow_http: true, ..remote }.endpoint_url().is_ok());
        for wrong in ["ftp://x", "storage", "https://user:word@x", "https://x/path", "https://x?a=b"] {
            assert!(matches!(options(Some(wrong)).endpoint_url(), Err(SettingsError::Endpoint(_))), "{wrong}");
        }
    }

    #[test]
    fn the_bucket_is_in_the_path_or_in_the_host() {
        assert_eq!(options(None).endpoint_url().unwrap(), None);
        assert!(options(None).bucket_in_host());
        let dotted = Options { location: Location::parse("s3://my.heaps").unwrap(), ..options(None) };
        assert_eq!(dotted.endpoint_url().unwrap(), None);
        assert!(!dotted.bucket_in_host());
        let host_style = Options { path_style: Some(false), ..options(Some("https://storage.example:9000")) };
        assert_eq!(host_style.endpoint_url().unwrap().unwrap().as_str(), "https://heaps.storage.example:9000/");
        assert!(host_style.bucket_in_host());
        assert!(!options(Some("https://storage.example")).bucket_in_host());
    }

    #[test]
    fn no_secret_is_printed() {
        assert!(!format!("{:?}", options(None)).contains("hunter"));
    }
}
