//! Blobs as objects of an S3 storage: `PREFIX/DIGEST`.
//!
//! A `put` is an upload that carries its SHA-256, a look whether someone is removing the same blob, and a read of the whole
//! object back. The read is what makes it worth its name: a storage that answers 200 and keeps nothing, or keeps other bytes,
//! is found out before anything names the blob, whatever it says about sizes and checksums.
//!
//! Invariants: `put` returns only after the object was read back and was the bytes that were put; bytes leave `get` only after
//! their digest was verified; only objects under the prefix, and of those only digests, are listed or removed.

mod options;
mod owner;
mod problem;
mod removal;
mod wire;

use std::fmt;
use std::future::Future;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use base::Digest;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectMeta, ObjectStoreExt, PutPayload, RetryConfig};
use ports::blobs::{Blobs, Error, Problem, Stored};
use tokio::sync::OnceCell;

pub use options::{Credentials, Location, Options, SettingsError};

use wire::Wire;

/// Uploads of one `put`, and reads of one `get`: what was damaged on its way may come whole the next time.
const ATTEMPTS: usize = 3;
/// More is no blob of ours, and would have to be held in memory.
const MOST_BYTES: u64 = 4 << 30;
/// Objects in one list, as S3 has it.
const PAGE: usize = 1_000;

pub struct S3Blobs {
    store: AmazonS3,
    location: Location,
    timeout: Duration,
    /// The database whose blobs these are.
    owner: String,
    owned: OnceCell<()>,
}

/// What is inside knows the credentials.
impl fmt::Debug for S3Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3Blobs({})", self.location)
    }
}

impl S3Blobs {
    /// Asks nobody: whether the storage answers is seen by the first call.
    pub fn new(options: &Options) -> Result<Self, SettingsError> {
        let (endpoint, in_host) = options.address()?;
        let bucket = &options.location.bucket;
        let host = match &endpoint {
            Some(url) => url.host_str().unwrap_or_default().to_owned(),
            None if in_host => format!("{bucket}.s3.{}.amazonaws.com", options.region),
            None => format!("s3.{}.amazonaws.com", options.region),
        };
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(2),
                base: 2.0,
            },
            max_retries: options.retries,
            retry_timeout: options.timeout,
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&options.region)
            .with_virtual_hosted_style_request(in_host)
            .with_allow_http(true) // Checked already: `Options::address`.
            .with_checksum_algorithm(Checksum::SHA256)
            // One object is one DELETE, which every storage knows.
            .with_disable_bulk_delete(true)
            .with_retry(retry)
            .with_client_options(ClientOptions::new())
            .with_http_connector(Wire::new(options, host)?);
        if let Some(url) = endpoint {
            builder = builder.with_endpoint(url.as_str().trim_end_matches('/'));
        }
        builder = match &options.credentials {
            Credentials::Keys { id, secret, token } => {
                let builder = builder.with_access_key_id(id).with_secret_access_key(secret.expose());
                match token {
                    Some(token) => builder.with_token(token.expose()),
                    None => builder,
                }
            }
            Credentials::Role(settings) => {
                settings.iter().fold(builder, |builder, (name, value)| match name.parse::<AmazonS3ConfigKey>() {
                    Ok(key) => builder.with_config(key, value),
                    Err(_) => builder,
                })
            }
        };
        let store = builder.build().map_err(|cause| {
            tracing::error!(%cause, "the S3 client cannot be made");
            SettingsError::Client
        })?;
        Ok(Self {
            store,
            location: options.location.clone(),
            timeout: options.timeout,
            owner: options.owner.clone(),
            owned: OnceCell::new(),
        })
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    fn key(&self, name: &str) -> Path {
        Path::from(self.location.key(name))
    }

    /// One request about `name`; `None` where there is no such object.
    async fn ask<T>(
        &self,
        name: &str,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<Option<T>, Error> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(object_store::Error::NotFound { .. })) => Ok(None),
            Ok(Err(cause)) => Err(problem::error(self.location.place(name), cause, self.timeout)),
            Err(_) => Err(self.wrong(name, Problem::Slow { ms: self.timeout.as_millis() })),
        }
    }

    fn wrong(&self, name: &str, problem: Problem) -> Error {
        problem::remote(self.location.place(name), problem, None)
    }

    async fn upload(&self, name: &str, bytes: PutPayload) -> Result<(), Error> {
        let answer = self.ask(name, self.store.put(&self.key(name), bytes)).await?;
        // A bucket that is gone says so; nothing else can be missing.
        answer.map(|_| ()).ok_or_else(|| self.wrong(name, Problem::NoBucket))
    }

    async fn read(&self, digest: &Digest) -> Result<Found, Error> {
        let name = digest.to_string();
        let request = async {
            let answer = self.store.get(&self.key(&name)).await?;
            if answer.meta.size > MOST_BYTES { Ok(None) } else { answer.bytes().await.map(Some) }
        };
        Ok(match self.ask(&name, request).await? {
            Some(Some(bytes)) if Digest::of(&bytes) == *digest => Found::Sound(bytes.into()),
            Some(_) => Found::Damaged,
            None => Found::Nothing,
        })
    }

    async fn look(&self, name: &str) -> Result<Option<ObjectMeta>, Error> {
        self.ask(name, self.store.head(&self.key(name))).await
    }

    /// Objects directly under `folder`, after the key `after`; and what continues the list.
    async fn page(
        &self,
        folder: &str,
        after: Option<String>,
        (token, limit): (Option<String>, usize),
    ) -> Result<(Vec<ObjectMeta>, Option<String>), Error> {
        let options = PaginatedListOptions {
            offset: after,
            delimiter: Some("/".into()),
            max_keys: Some(limit.min(PAGE)),
            page_token: token,
            ..PaginatedListOptions::default()
        };
        let prefix = Some(folder).filter(|folder| !folder.is_empty());
        let found = self.ask("", self.store.list_paginated(prefix, options)).await?;
        let found = found.ok_or_else(|| self.wrong("", Problem::NoBucket))?;
        Ok((found.result.objects, found.page_token))
    }

    /// Our own objects only: whatever else lies there is not a blob.
    fn digest_of(&self, object: &ObjectMeta) -> Option<Digest> {
        let folder = self.location.folder();
        Digest::parse(object.location.as_ref().strip_prefix(folder.as_str())?).ok()
    }
}

#[async_trait]
impl Blobs for S3Blobs {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        owner::check(self).await?;
        let digest = Digest::of(bytes);
        let (name, payload) = (digest.to_string(), PutPayload::from(bytes.to_vec()));
        let mut attempt = 0;
        while attempt < ATTEMPTS {
            self.upload(&name, payload.clone()).await?;
            if removal::met(self, &digest).await? {
                // It may have gone between the upload and now; whoever removes it has ended.
                continue;
            }
            attempt += 1;
            match self.read(&digest).await? {
                Found::Sound(_) => return Ok(digest),
                Found::Damaged => {
                    tracing::error!(%digest, attempt, "{} keeps other bytes than were put", self.location)
                }
                Found::Nothing => tracing::error!(%digest, attempt, "{} does not keep what was put", self.location),
            }
        }
        Err(self.wrong(&name, Problem::NotKept))
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        for attempt in 1..=ATTEMPTS {
            match self.read(digest).await? {
                Found::Sound(bytes) => return Ok(bytes),
                Found::Nothing => return Err(Error::Missing(*digest)),
                Found::Damaged => {
                    tracing::error!(
                        attempt,
                        "{} does not have the bytes of its name",
                        self.location.place(&digest.to_string())
                    );
                }
            }
        }
        Err(Error::Damaged(*digest))
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<Stored>, Error> {
        let (folder, now) = (self.location.folder(), SystemTime::now());
        let offset = after.map(|digest| self.location.key(&digest.to_string()));
        let mut token = None;
        let mut found = Vec::new();
        // A page may hold nothing of ours; only the end of the list is the end.
        while found.is_empty() && limit > 0 {
            let (objects, next) = self.page(&folder, offset.clone(), (token.take(), limit)).await?;
            let blobs = objects.iter().filter_map(|object| {
                let digest = self.digest_of(object)?;
                // Not every storage knows where to start.
                let later = after.is_none_or(|after| digest.to_string() > after.to_string());
                later.then(|| Stored { digest, bytes: object.size, idle: idle(object, now) })
            });
            found.extend(blobs);
            token = next;
            if token.is_none() {
                break;
            }
        }
        found.sort_by_key(|stored| stored.digest.to_string());
        found.truncate(limit);
        Ok(found)
    }

    async fn delete(&self, digest: &Digest, idle: Duration) -> Result<bool, Error> {
        owner::check(self).await?;
        removal::remove(self, digest, idle).await
    }
}

enum Found {
    Sound(Vec<u8>),
    Damaged,
    Nothing,
}

/// By this machine's clock: good enough to look closer.
fn idle(object: &ObjectMeta, now: SystemTime) -> Duration {
    let put =
        SystemTime::UNIX_EPOCH + Duration::from_millis(object.last_modified.timestamp_millis().try_into().unwrap_or(0));
    now.duration_since(put).unwrap_or_default()
}
