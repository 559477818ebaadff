//! `[blobs]` of the settings, and its flags: where blobs are kept, and with which credentials.
//! Invariant: one place is meant, or it is an error that says which flags disagree; a secret is read where it is used and is in
//! no message.

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

use crate::args::Keep;
use crate::failure::Failure;
use crate::ports::{OperatorSecrets, SystemEntropy, key_file};

const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN: &str = "AWS_SESSION_TOKEN";
/// What tells a container, pod or machine of its role.
const ROLE: &[&str] = &[
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_ENDPOINT_URL_STS",
];

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlobsSettings {
    /// A folder, or s3://BUCKET/PREFIX; the data folder's own when left out.
    url: Option<String>,
    cache: Option<PathBuf>,
    cache_mb: u64,
    endpoint: Option<String>,
    region: Option<String>,
    allow_http: bool,
    path_style: Option<bool>,
    access_key_id: Option<String>,
    secret_access_key_file: Option<PathBuf>,
    /// Taken only to be refused without repeating it, as an unknown key would be.
    secret_access_key: Option<IgnoredAny>,
    timeout_ms: u64,
    retries: usize,
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

/// The settings with the flags applied, and the place they mean.
#[derive(Debug, Clone)]
pub struct BlobsAt {
    place: Place,
    settings: BlobsSettings,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Folder(PathBuf),
    S3(Location),
}

impl BlobsAt {
    pub fn read(mut settings: BlobsSettings, keep: &Keep, data: &Path) -> Result<Self, Failure> {
        check(&settings)?;
        if let Some(url) = chosen(keep)? {
            settings.url = Some(url);
        }
        settings.cache = keep.blob_cache.clone().or(settings.cache);
        let place = match &settings.url {
            Some(url) => Place::parse(url)?,
            None => return Self::without_s3(settings, data.join("blobs")),
        };
        match place {
            Place::Folder(folder) => Self::without_s3(settings, folder),
            place => Ok(Self { place, settings }),
        }
    }

    /// In a folder of its own, whatever the settings say.
    pub fn folder(data: &Path) -> Self {
        Self { place: Place::Folder(data.join("blobs")), settings: BlobsSettings::default() }
    }

    fn without_s3(settings: BlobsSettings, folder: PathBuf) -> Result<Self, Failure> {
        if settings.cache.is_some() {
            let what = "--blob-cache keeps copies of what is in S3, and blobs are kept in a folder";
            return Err(Failure::Blobs {
                what: what.to_owned(),
                hint: "add --blobs s3://BUCKET/PREFIX, or leave the cache out",
            });
        }
        Ok(Self { place: Place::Folder(folder), settings })
    }

    /// For this database, which is the only one to keep its blobs there.
    pub fn open(&self, database: &Path, secrets: &OperatorSecrets) -> Result<Arc<dyn Blobs>, Failure> {
        let location = match &self.place {
            Place::Folder(folder) => return Ok(Arc::new(FileBlobs::open(folder)?)),
            Place::S3(location) => location,
        };
        let far = Arc::new(S3Blobs::new(&self.options(location, owner(database)?, secrets)?)?);
        match &self.settings.cache {
            None => Ok(far),
            Some(folder) => Ok(Arc::new(CachedBlobs::open(far, folder, self.settings.cache_mb << 20)?)),
        }
    }

    pub fn is_remote(&self) -> bool {
        matches!(self.place, Place::S3(_))
    }

    fn options(&self, location: &Location, owner: String, secrets: &OperatorSecrets) -> Result<Options, Failure> {
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
            allow_http: settings.allow_http || variable("AWS_ALLOW_HTTP").is_some_and(|word| word == "true"),
            path_style: settings.path_style,
            timeout: Duration::from_millis(settings.timeout_ms),
            retries: settings.retries,
        })
    }

    fn credentials(&self, secrets: &OperatorSecrets, foreign: bool) -> Result<Credentials, Failure> {
        let find = |name: &str| match secrets.find(&TenantId::local(), name) {
            Ok(secret) => Ok(Some(secret)),
            Err(ports::secrets::Error::NotSet { .. }) => Ok(None),
            Err(problem) => Err(Failure::Secret(problem)),
        };
        let half =
            |what: &str, hint| Failure::Blobs { what: format!("the credentials of S3 are incomplete: {what}"), hint };
        let id = match &self.settings.access_key_id {
            Some(id) => Some(id.clone()),
            None => find(KEY_ID)?.map(|id| id.expose().to_owned()),
        };
        let secret = match &self.settings.secret_access_key_file {
            Some(path) => Some(key_file(path)?),
            None => find(SECRET)?,
        };
        match (id, secret) {
            (Some(id), Some(secret)) => {
                // A token belongs to the key it came with.
                let token = if self.settings.access_key_id.is_some() { None } else { find(TOKEN)? };
                Ok(Credentials::Keys { id, secret, token })
            }
            (Some(_), None) => Err(half(
                "there is an access key, and no secret to it",
                "set AWS_SECRET_ACCESS_KEY, name `secret_access_key_file` in [blobs], or run `tokamak secret set AWS_SECRET_ACCESS_KEY`",
            )),
            (None, Some(_)) => Err(half(
                "there is a secret, and no access key to it",
                "set AWS_ACCESS_KEY_ID, or `access_key_id` in [blobs]",
            )),
            (None, None) => {
                let role: Vec<_> =
                    ROLE.iter().filter_map(|name| Some((name.to_lowercase(), variable(name)?))).collect();
                if role.is_empty() && foreign {
                    let what = "there are no credentials for the S3 storage".to_owned();
                    let hint =
                        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or store them with `tokamak secret set`";
                    return Err(Failure::Blobs { what, hint });
                }
                Ok(Credentials::Role(role))
            }
        }
    }
}

impl std::fmt::Display for BlobsAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Place::Folder(folder) => write!(f, "{}", folder.display()),
            Place::S3(location) => write!(f, "{location}"),
        }
    }
}

impl Place {
    fn parse(text: &str) -> Result<Self, Failure> {
        if let Some(folder) = text.strip_prefix("file://") {
            return Ok(Self::Folder(folder.into()));
        }
        // A word with a scheme is never meant as a folder.
        if text.is_empty() || text.contains("://") {
            Ok(Self::S3(Location::parse(text)?))
        } else {
            Ok(Self::Folder(text.into()))
        }
    }
}

/// What the flags name, where they agree.
fn chosen(keep: &Keep) -> Result<Option<String>, Failure> {
    let folder = keep.directory_path.as_ref().map(|folder| format!("file://{}", folder.display()));
    let bucket = keep.s3_bucket.as_ref().map(|name| format!("s3://{name}"));
    let given: Vec<_> = [("--blobs", keep.blobs.clone()), ("--directory-path", folder), ("--s3-bucket", bucket)]
        .into_iter()
        .filter_map(|(flag, url)| Some((flag, url?)))
        .collect();
    match given.as_slice() {
        [] => Ok(None),
        [(_, url)] => Ok(Some(url.clone())),
        several => {
            let flags: Vec<_> = several.iter().map(|(flag, _)| *flag).collect();
            let what = format!("{} each say where blobs are kept", flags.join(" and "));
            let hint = "give one of them; for S3 with local copies, --blobs s3://BUCKET/PREFIX --blob-cache DIR";
            Err(Failure::Blobs { what, hint })
        }
    }
}

fn check(settings: &BlobsSettings) -> Result<(), Failure> {
    if settings.secret_access_key.is_some() {
        let what = "`secret_access_key` stands in the settings, where it is easily copied and shown".to_owned();
        let hint = "take it out; set AWS_SECRET_ACCESS_KEY, name `secret_access_key_file`, or run `tokamak secret set AWS_SECRET_ACCESS_KEY`";
        return Err(Failure::Blobs { what, hint });
    }
    let bounded = [
        ("blobs.timeout_ms", settings.timeout_ms, 1, 300_000),
        ("blobs.retries", settings.retries as u64, 0, 20),
        ("blobs.cache_mb", settings.cache_mb, 1, 1 << 30),
    ];
    match bounded.into_iter().find(|(_, value, least, most)| value < least || value > most) {
        Some((name, found, least, most)) => Err(Failure::Bound { name, found, least, most }),
        None => Ok(()),
    }
}

/// What the database is called where its blobs are: drawn once, kept in a file beside it.
fn owner(database: &Path) -> Result<String, Failure> {
    let mut name = database.file_name().unwrap_or_default().to_owned();
    name.push(".owner");
    let path = database.with_file_name(name);
    let wrong = |cause| Failure::Unwritable { path: path.clone(), cause };
    if let Ok(known) = std::fs::read_to_string(&path) {
        return Ok(known.trim().to_owned());
    }
    let mut drawn = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new("."))).map_err(wrong)?;
    let id = base::InstanceId::from_random(SystemEntropy.bytes());
    writeln!(drawn, "{id}").and_then(|()| drawn.as_file().sync_all()).map_err(wrong)?;
    match drawn.persist_noclobber(&path) {
        // Another process was faster: its name it is.
        Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => Err(wrong(error.error)),
        _ => std::fs::read_to_string(&path).map(|known| known.trim().to_owned()).map_err(wrong),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(settings: &str, keep: &Keep) -> Result<BlobsAt, Failure> {
        BlobsAt::read(toml::from_str(settings).unwrap(), keep, Path::new("/data"))
    }

    fn s3(at: &BlobsAt) -> bool {
        at.is_remote()
    }

    #[test]
    fn flags_beat_the_file_and_the_data_folder_is_the_default() {
        let none = Keep::default();
        assert_eq!(read("", &none).unwrap().to_string(), "/data/blobs");
        let file = "url = \"s3://heaps/a\"\ncache = \"/cache\"";
        assert_eq!(read(file, &none).unwrap().to_string(), "s3://heaps/a");
        for (keep, place) in [
            (Keep { blobs: Some("s3://other".to_owned()), ..none.clone() }, "s3://other"),
            (Keep { s3_bucket: Some("other".to_owned()), ..none.clone() }, "s3://other"),
        ] {
            let at = read(file, &keep).unwrap();
            assert_eq!((at.to_string().as_str(), s3(&at)), (place, true));
        }
        for keep in [
            Keep { blobs: Some("/heaps".to_owned()), ..none.clone() },
            Keep { blobs: Some("file:///heaps".to_owned()), ..none.clone() },
            Keep { directory_path: Some("/heaps".into()), ..none },
        ] {
            let at = read("url = \"s3://heaps/a\"", &keep).unwrap();
            assert_eq!((at.to_string().as_str(), s3(&at)), ("/heaps", false));
        }
    }

    #[test]
    fn what_does_not_go_together_is_told() {
        let keep = Keep { blobs: Some("s3://aaa".to_owned()), s3_bucket: Some("bbb".to_owned()), ..Keep::default() };
        let said = read("", &keep).unwrap_err().to_string();
        assert!(said.contains("--blobs and --s3-bucket") && said.contains("--blob-cache"), "{said}");
        let keep = Keep { blob_cache: Some("/cache".into()), ..Keep::default() };
        assert!(read("", &keep).unwrap_err().to_string().contains("--blobs s3://"));
        for wrong in
            ["url = \"gs://heaps\"", "url = \"\"", "url = \"s3://X\"", "timeout_ms = 0", "retries = 21", "cache_mb = 0"]
        {
            assert!(read(wrong, &Keep::default()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_database_has_one_name() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("rows.db");
        let name = owner(&database).unwrap();
        assert_eq!((name.len(), owner(&database).unwrap()), (36, name.clone()));
        assert!(folder.path().join("rows.db.owner").is_file());
        assert_ne!(owner(&folder.path().join("others.db")).unwrap(), name);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_secret_in_the_file_is_refused_and_not_repeated() {
        let said = read("secret_access_key = \"hunter2\"", &Keep::default()).unwrap_err();
        assert!(said.to_string().contains("AWS_SECRET_ACCESS_KEY") && !format!("{said} {said:?}").contains("hunter2"));
    }
}
