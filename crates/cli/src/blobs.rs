//! The table `[blobs]` of the settings and the flags for blobs: the place of the blobs, and the credentials of S3.
//! Invariant: two flags that name a place are an error. A secret is read only when the storage is opened, and no message contains it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::TenantId;
use ports::{Blobs, Entropy};
use serde::Deserialize;
use serde::de::IgnoredAny;
use store::blobs::s3::{Credentials, Location, Options, S3Blobs};
use store::blobs::{CachedBlobs, FileBlobs};

use crate::args::StorageArgs;
use crate::failure::Failure;
use crate::ports::{OperatorSecrets, SystemEntropy, key_file};

/// The name of the secret with the id of the S3 access key. All clients of S3 use this name and the next two.
const ACCESS_KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET_ACCESS_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";
/// The environment variables with which a container, a pod or a machine gets temporary credentials for its AWS role.
const ROLE_VARIABLES: &[&str] = &[
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_ENDPOINT_URL_STS",
];

/// The content of the table `[blobs]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlobsSettings {
    /// The place of the blobs: a folder, or s3://BUCKET/PREFIX. The default is the folder `blobs` in the data folder.
    url: Option<String>,
    /// The local folder for copies of blobs that are in S3.
    cache: Option<PathBuf>,
    /// The largest size of the folder `cache`.
    cache_mb: u64,
    /// The URL of the S3 service. The default is the service of Amazon in `region`.
    endpoint: Option<String>,
    region: Option<String>,
    /// Whether the endpoint may be reached without TLS.
    allow_http: bool,
    /// Whether a URL has the bucket in its path instead of its host name. With `None` the adapter decides.
    path_style: Option<bool>,
    access_key_id: Option<String>,
    secret_access_key_file: Option<PathBuf>,
    /// This key is known only so that it can be refused. The error for an unknown key would print the whole line, and so the secret.
    secret_access_key: Option<IgnoredAny>,
    /// The longest time of one request to S3.
    timeout_ms: u64,
    /// The number of times that a failed request to S3 is repeated.
    retries: usize,
}

#[cfg(test)]
impl BlobsSettings {
    /// Returns the numbers among the settings, by name.
    pub fn numbers(&self) -> [(&'static str, u64); 3] {
        [("cache_mb", self.cache_mb), ("timeout_ms", self.timeout_ms), ("retries", self.retries as u64)]
    }
}

impl Default for BlobsSettings {
    fn default() -> Self {
        Self {
            url: None,
            cache: None,
            cache_mb: 1_024,
            endpoint: None,
            region: None,
            allow_http: false,
            path_style: None,
            access_key_id: None,
            secret_access_key_file: None,
            secret_access_key: None,
            timeout_ms: 30_000,
            retries: 3,
        }
    }
}

/// The place of the blobs, and the settings with the flags applied.
#[derive(Debug, Clone)]
pub struct BlobsConfig {
    place: BlobsPlace,
    settings: BlobsSettings,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BlobsPlace {
    Folder(PathBuf),
    S3(Location),
}

impl BlobsConfig {
    /// Applies the flags to the settings and checks both.
    pub fn read(mut settings: BlobsSettings, flags: &StorageArgs, data: &Path) -> Result<Self, Failure> {
        check(&settings)?;
        if let Some(url) = place_of_flags(flags)? {
            settings.url = Some(url);
        }
        settings.cache = flags.blob_cache.clone().or(settings.cache);
        let place = match &settings.url {
            Some(url) => BlobsPlace::parse(url)?,
            None => return Self::without_s3(settings, data.join("blobs")),
        };
        match place {
            BlobsPlace::Folder(folder) => Self::without_s3(settings, folder),
            place => Ok(Self { place, settings }),
        }
    }

    /// Returns the folder `blobs` of a data folder as the place, with default settings.
    pub fn folder(data: &Path) -> Self {
        Self { place: BlobsPlace::Folder(data.join("blobs")), settings: BlobsSettings::default() }
    }

    /// Returns a local folder as the place. A cache is refused, because it would copy one local folder to another.
    fn without_s3(settings: BlobsSettings, folder: PathBuf) -> Result<Self, Failure> {
        if settings.cache.is_some() {
            let problem = "--blob-cache is only for blobs in S3, but the blobs of these settings are in a local folder"
                .to_owned();
            let hint = "add --blobs s3://BUCKET/PREFIX, or remove --blob-cache (`cache` in [blobs])";
            return Err(Failure::Blobs { problem, hint });
        }
        Ok(Self { place: BlobsPlace::Folder(folder), settings })
    }

    /// Opens the storage of the blobs for a database. A place in S3 is reserved for the first database that opens it.
    pub fn open(&self, database: &Path, secrets: &OperatorSecrets) -> Result<Arc<dyn Blobs>, Failure> {
        let location = match &self.place {
            BlobsPlace::Folder(folder) => return Ok(Arc::new(FileBlobs::open(folder)?)),
            BlobsPlace::S3(location) => location,
        };
        let remote = Arc::new(S3Blobs::new(&self.s3_options(location, owner_name(database)?, secrets)?)?);
        match &self.settings.cache {
            None => Ok(remote),
            Some(folder) => Ok(Arc::new(CachedBlobs::open(remote, folder, self.settings.cache_mb << 20)?)),
        }
    }

    /// Returns the local folders of the blobs and of their copies.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        let folder = match &self.place {
            BlobsPlace::Folder(folder) => Some(folder),
            BlobsPlace::S3(_) => None,
        };
        folder.into_iter().chain(&self.settings.cache).map(PathBuf::as_path)
    }

    /// Returns the place of blobs that a database at this path has stored, or `None` if there are none. A folder has blobs if it has a file of
    /// one; a place in S3 was used if the database's name for it is stored.
    pub fn existing(&self, database: &Path) -> Option<String> {
        let found = match &self.place {
            BlobsPlace::Folder(folder) => has_blobs(folder),
            BlobsPlace::S3(_) => owner_file(database).exists(),
        };
        found.then(|| self.to_string())
    }

    /// Returns whether the S3 service is reached without TLS.
    pub fn allows_http(&self) -> bool {
        self.is_remote()
            && (self.settings.allow_http || variable("AWS_ALLOW_HTTP").is_some_and(|value| value == "true"))
    }

    /// Returns whether the storage is reached over a network.
    pub fn is_remote(&self) -> bool {
        matches!(self.place, BlobsPlace::S3(_))
    }

    /// Returns the options of the S3 adapter. Environment variables of AWS override the table `[blobs]`.
    fn s3_options(&self, location: &Location, owner: String, secrets: &OperatorSecrets) -> Result<Options, Failure> {
        let settings = &self.settings;
        let endpoint = variable("AWS_ENDPOINT_URL_S3")
            .or_else(|| variable("AWS_ENDPOINT_URL"))
            .or_else(|| settings.endpoint.clone());
        let region = variable("AWS_REGION")
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .or_else(|| settings.region.clone())
            .unwrap_or_else(|| "us-east-1".to_owned());
        Ok(Options {
            location: location.clone(),
            owner,
            credentials: self.credentials(secrets, endpoint.is_some())?,
            endpoint,
            region,
            allow_http: settings.allow_http || variable("AWS_ALLOW_HTTP").is_some_and(|value| value == "true"),
            path_style: settings.path_style,
            timeout: Duration::from_millis(settings.timeout_ms),
            retries: settings.retries,
        })
    }

    /// Finds the credentials of S3: an access key with its secret, or else the AWS role of the machine. With `own_endpoint` the service is
    /// not Amazon's, so a role is used only if an environment variable names one.
    fn credentials(&self, secrets: &OperatorSecrets, own_endpoint: bool) -> Result<Credentials, Failure> {
        let find = |name: &str| match secrets.find(&TenantId::local(), name) {
            Ok(secret) => Ok(Some(secret)),
            Err(ports::secrets::Error::NotSet { .. }) => Ok(None),
            Err(problem) => Err(Failure::Secret(problem)),
        };
        let incomplete =
            |part: &str, hint| Failure::Blobs { problem: format!("the S3 credentials are incomplete: {part}"), hint };
        let id = match &self.settings.access_key_id {
            Some(id) => Some(id.clone()),
            None => find(ACCESS_KEY_ID)?.map(|id| id.expose().to_owned()),
        };
        let secret = match &self.settings.secret_access_key_file {
            Some(path) => Some(key_file(path)?),
            None => find(SECRET_ACCESS_KEY)?,
        };
        match (id, secret) {
            (Some(id), Some(secret)) => {
                // A session token is valid only with the access key that was issued with it, so a key from the settings gets no token.
                let token = if self.settings.access_key_id.is_some() { None } else { find(SESSION_TOKEN)? };
                Ok(Credentials::Keys { id, secret, token })
            }
            (Some(_), None) => Err(incomplete(
                "the access key has no secret",
                "set AWS_SECRET_ACCESS_KEY, name `secret_access_key_file` in [blobs], or run `tokamak secret set AWS_SECRET_ACCESS_KEY`",
            )),
            (None, Some(_)) => {
                Err(incomplete("the secret has no access key", "set AWS_ACCESS_KEY_ID, or `access_key_id` in [blobs]"))
            }
            (None, None) => {
                let role: Vec<_> =
                    ROLE_VARIABLES.iter().filter_map(|name| Some((name.to_lowercase(), variable(name)?))).collect();
                if role.is_empty() && own_endpoint {
                    let problem = "no credentials for the S3 storage are set".to_owned();
                    let hint =
                        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or store them with `tokamak secret set`";
                    return Err(Failure::Blobs { problem, hint });
                }
                Ok(Credentials::Role(role))
            }
        }
    }
}

impl std::fmt::Display for BlobsConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            BlobsPlace::Folder(folder) => write!(f, "{}", folder.display()),
            BlobsPlace::S3(location) => write!(f, "{location}"),
        }
    }
}

impl BlobsPlace {
    fn parse(text: &str) -> Result<Self, Failure> {
        if let Some(folder) = text.strip_prefix("file://") {
            return Ok(Self::Folder(folder.into()));
        }
        // A text with `://` is parsed as a place in S3, so that a wrong scheme is refused and is not taken for a folder.
        if text.is_empty() || text.contains("://") {
            Ok(Self::S3(Location::parse(text)?))
        } else {
            Ok(Self::Folder(text.into()))
        }
    }
}

/// Returns the place that the flags name, as a URL. More than one flag that names a place is an error.
fn place_of_flags(flags: &StorageArgs) -> Result<Option<String>, Failure> {
    let folder = flags.directory_path.as_ref().map(|folder| format!("file://{}", folder.display()));
    let bucket = flags.s3_bucket.as_ref().map(|name| format!("s3://{name}"));
    let given: Vec<_> = [("--blobs", flags.blobs.clone()), ("--directory-path", folder), ("--s3-bucket", bucket)]
        .into_iter()
        .filter_map(|(flag, url)| Some((flag, url?)))
        .collect();
    match given.as_slice() {
        [] => Ok(None),
        [(_, url)] => Ok(Some(url.clone())),
        several => {
            let names: Vec<_> = several.iter().map(|(flag, _)| *flag).collect();
            let problem = format!("the flags {} each name a place for blobs", names.join(" and "));
            let hint =
                "give one of these flags; for S3 with local copies, write --blobs s3://BUCKET/PREFIX --blob-cache DIR";
            Err(Failure::Blobs { problem, hint })
        }
    }
}

/// Refuses settings with a secret in clear text or with a number out of its range.
fn check(settings: &BlobsSettings) -> Result<(), Failure> {
    if settings.secret_access_key.is_some() {
        let problem =
            "`secret_access_key` of [blobs] is in the configuration file, where others can easily read it".to_owned();
        let hint = "remove it from the file; set AWS_SECRET_ACCESS_KEY, name `secret_access_key_file`, or run `tokamak secret set AWS_SECRET_ACCESS_KEY`";
        return Err(Failure::Blobs { problem, hint });
    }
    let bounded = [
        ("blobs.timeout_ms", settings.timeout_ms, 1, 300_000),
        ("blobs.retries", settings.retries as u64, 0, 20),
        ("blobs.cache_mb", settings.cache_mb, 1, 1 << 30),
    ];
    match bounded.into_iter().find(|(_, value, least, most)| value < least || value > most) {
        Some((name, value, least, most)) => Err(Failure::Bound { name, value, least, most }),
        None => Ok(()),
    }
}

/// Returns the random name with which a database marks its place in S3. The name is drawn once and stored in a file beside the database.
fn owner_name(database: &Path) -> Result<String, Failure> {
    let path = owner_file(database);
    let unwritable = |cause| Failure::Unwritable { path: path.clone(), cause };
    if let Ok(known) = std::fs::read_to_string(&path) {
        return Ok(known.trim().to_owned());
    }
    let mut drawn = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new("."))).map_err(unwritable)?;
    let id = base::InstanceId::from_random(SystemEntropy.bytes());
    writeln!(drawn, "{id}").and_then(|()| drawn.as_file().sync_all()).map_err(unwritable)?;
    match drawn.persist_noclobber(&path) {
        // If another process has stored a name first, that name is read and used.
        Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => Err(unwritable(error.error)),
        _ => std::fs::read_to_string(&path).map(|known| known.trim().to_owned()).map_err(unwritable),
    }
}

/// Returns the path of the file with the name of a database for S3.
fn owner_file(database: &Path) -> PathBuf {
    let mut name = database.file_name().unwrap_or_default().to_owned();
    name.push(".owner");
    database.with_file_name(name)
}

/// Returns whether a folder of blobs has a blob: a file in one of its subfolders `00` to `ff`.
fn has_blobs(folder: &Path) -> bool {
    let is_subfolder =
        |name: &std::ffi::OsStr| name.len() == 2 && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit);
    let subfolders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files = subfolders
        .filter(|entry| is_subfolder(&entry.file_name()))
        .flat_map(|entry| std::fs::read_dir(entry.path()).into_iter().flatten().flatten());
    files.next().is_some()
}

/// Returns the value of an environment variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(settings: &str, flags: &StorageArgs) -> Result<BlobsConfig, Failure> {
        BlobsConfig::read(toml::from_str(settings).unwrap(), flags, Path::new("/data"))
    }

    #[test]
    fn flags_beat_the_file_and_the_data_folder_is_the_default() {
        let none = StorageArgs::default();
        assert_eq!(read("", &none).unwrap().to_string(), "/data/blobs");
        let file = "url = \"s3://heaps/a\"\ncache = \"/cache\"";
        assert_eq!(read(file, &none).unwrap().to_string(), "s3://heaps/a");
        for (flags, expected) in [
            (StorageArgs { blobs: Some("s3://other".to_owned()), ..none.clone() }, "s3://other"),
            (StorageArgs { s3_bucket: Some("other".to_owned()), ..none.clone() }, "s3://other"),
        ] {
            let at = read(file, &flags).unwrap();
            assert_eq!((at.to_string().as_str(), at.is_remote()), (expected, true));
        }
        for flags in [
            StorageArgs { blobs: Some("/heaps".to_owned()), ..none.clone() },
            StorageArgs { blobs: Some("file:///heaps".to_owned()), ..none.clone() },
            StorageArgs { directory_path: Some("/heaps".into()), ..none },
        ] {
            let at = read("url = \"s3://heaps/a\"", &flags).unwrap();
            assert_eq!((at.to_string().as_str(), at.is_remote()), ("/heaps", false));
        }
    }

    #[test]
    fn contradicting_flags_and_bad_settings_are_refused() {
        let flags = StorageArgs {
            blobs: Some("s3://aaa".to_owned()),
            s3_bucket: Some("bbb".to_owned()),
            ..StorageArgs::default()
        };
        let message = read("", &flags).unwrap_err().to_string();
        assert!(message.contains("--blobs and --s3-bucket") && message.contains("--blob-cache"), "{message}");
        let flags = StorageArgs { blob_cache: Some("/cache".into()), ..StorageArgs::default() };
        assert!(read("", &flags).unwrap_err().to_string().contains("--blobs s3://"));
        for settings in
            ["url = \"gs://heaps\"", "url = \"\"", "url = \"s3://X\"", "timeout_ms = 0", "retries = 21", "cache_mb = 0"]
        {
            assert!(read(settings, &StorageArgs::default()).is_err(), "{settings}");
        }
    }

    #[test]
    fn a_database_keeps_the_name_that_was_drawn_first() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("rows.db");
        let name = owner_name(&database).unwrap();
        assert_eq!((name.len(), owner_name(&database).unwrap()), (36, name.clone()));
        assert!(folder.path().join("rows.db.owner").is_file());
        assert_ne!(owner_name(&folder.path().join("others.db")).unwrap(), name);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_secret_in_the_file_is_refused_and_not_repeated() {
        let error = read("secret_access_key = \"hunter2\"", &StorageArgs::default()).unwrap_err();
        assert!(
            error.to_string().contains("AWS_SECRET_ACCESS_KEY") && !format!("{error} {error:?}").contains("hunter2")
        );
    }
}
