//! The type `S3Blobs`: each blob is the object `PREFIX/DIGEST` in an S3 storage.
//!
//! A `put` uploads the bytes with their SHA-256, waits for removals of the same blob, and reads the whole object back.
//! Only the read proves that the storage has the blob: some S3-compatible storages answer 200 and store nothing or
//! other bytes. A row must not name a blob that is not stored.
//!
//! Invariants:
//! - `put` returns `Ok` only after the object was read back and its bytes equal the uploaded bytes.
//! - `get` returns bytes only after their digest was verified.
//! - Only objects under the prefix whose name is a digest are blobs. Other objects are neither listed nor deleted.
//! - Each operation sends a bounded number of requests in a bounded time, and reads a bounded number of bytes, whatever the
//!   storage answers.

mod errors;
mod http_client;
mod options;
mod owner;
mod removal;

use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use base::Digest;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectMeta, ObjectStoreExt, PutPayload, RetryConfig};
use ports::blobs::{Blobs, Error, RemoteProblem, StoredBlob};
use tokio::sync::OnceCell;

pub use options::{Credentials, Location, Options, SettingsError};

use super::BlobRead;
use http_client::S3HttpClients;

/// The largest number of uploads in one `put` and of reads in one `get`. Bytes that were damaged on the way may arrive
/// intact at the next attempt.
const MAX_ATTEMPTS: usize = 3;
/// A larger object is not a blob of this server. The object is not read, because its bytes would be in memory.
const MAX_BLOB_BYTES: u64 = 4 << 30;
/// The largest number of objects in one answer to a list request, as S3 defines it.
const MAX_LIST_OBJECTS: usize = 1_000;
/// The largest number of uploads in one `put`, including those that are repeated because of a removal.
const MAX_UPLOADS: usize = 10;
/// The largest number of pages that one `list` reads to find a blob. A storage that cannot start a list after a key lists
/// all earlier blobs first, so this is a bound on a storage of ten million blobs.
const MAX_LIST_PAGES: usize = 10_000;
/// The largest number of consecutive pages without any object.
const MAX_EMPTY_PAGES: usize = 100;
/// The time limit of one operation that sends several requests, as a multiple of the time limit of a request.
const OPERATION_TIMEOUTS: u32 = 10;

/// Blobs in an S3 storage.
pub struct S3Blobs {
    client: AmazonS3,
    location: Location,
    /// The time limit of one request, including its retries.
    timeout: Duration,
    /// The name of the database whose rows refer to these blobs.
    owner: String,
    /// Set after the check that the prefix belongs to `owner`. Only `put` and `delete` need the check.
    owner_checked: OnceCell<()>,
}

/// One answer to a list request.
struct ListPage {
    objects: Vec<ObjectMeta>,
    /// The token that continues the list. `None` means that the list has ended.
    next_token: Option<String>,
}

// `Debug` is written by hand, because the `Debug` of the client could show credentials.
impl fmt::Debug for S3Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3Blobs({})", self.location)
    }
}

impl S3Blobs {
    /// Creates the client and sends no request. An unreachable storage is an error of the first call.
    pub fn new(options: &Options) -> Result<Self, SettingsError> {
        let endpoint = options.endpoint_url()?;
        let bucket_in_host = options.bucket_in_host();
        let bucket = &options.location.bucket;
        let host = match &endpoint {
            Some(url) => url.host_str().unwrap_or_default().to_owned(),
            None if bucket_in_host => format!("{bucket}.s3.{}.amazonaws.com", options.region),
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
            .with_virtual_hosted_style_request(bucket_in_host)
            .with_allow_http(true) // `Options::endpoint_url` has refused HTTP where it is not allowed.
            .with_checksum_algorithm(Checksum::SHA256)
            // Each object is deleted by its own request, because not every storage supports the bulk request.
            .with_disable_bulk_delete(true)
            .with_retry(retry)
            .with_client_options(ClientOptions::new())
            .with_http_connector(S3HttpClients::new(options, host)?);
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
        let client = builder.build().map_err(|cause| {
            tracing::error!(%cause, "the S3 client cannot be created from the settings in [blobs]");
            SettingsError::Client
        })?;
        Ok(Self {
            client,
            location: options.location.clone(),
            timeout: options.timeout,
            owner: options.owner.clone(),
            owner_checked: OnceCell::new(),
        })
    }

    /// Returns the bucket and prefix of the blobs.
    pub fn location(&self) -> &Location {
        &self.location
    }

    fn key(&self, name: &str) -> Path {
        Path::from(self.location.key(name))
    }

    /// Waits for a request about the object `name`. Returns `None` if the object does not exist.
    async fn request<T>(
        &self,
        name: &str,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<Option<T>, Error> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(object_store::Error::NotFound { .. })) => Ok(None),
            Ok(Err(cause)) => Err(errors::from_client(self.location.address_of(name), cause, self.timeout)),
            Err(_) => Err(self.error(name, RemoteProblem::Slow { ms: self.timeout.as_millis() })),
        }
    }

    /// Returns an error that contains the address of the object `name`.
    fn error(&self, name: &str, problem: RemoteProblem) -> Error {
        errors::remote_error(self.location.address_of(name), problem, None)
    }

    /// Returns the time limit of an operation that sends several requests.
    fn operation_timeout(&self) -> Duration {
        self.timeout.saturating_mul(OPERATION_TIMEOUTS)
    }

    async fn upload(&self, name: &str, bytes: PutPayload) -> Result<(), Error> {
        let answer = self.request(name, self.client.put(&self.key(name), bytes)).await?;
        // `None` means that the bucket does not exist, because an upload needs no other existing object.
        answer.map(|_| ()).ok_or_else(|| self.error(name, RemoteProblem::NoBucket))
    }

    /// Reads a blob. `length` is the number of its bytes, if the caller knows it: an answer of another length is damaged
    /// and is not read.
    async fn read(&self, digest: &Digest, length: Option<usize>) -> Result<BlobRead, Error> {
        let name = digest.to_string();
        let request = async {
            let answer = self.client.get(&self.key(&name)).await?;
            let has_other_length = length.is_some_and(|length| answer.meta.size != length as u64);
            let is_unusable = has_other_length || answer.meta.size > MAX_BLOB_BYTES;
            if is_unusable { Ok(None) } else { answer.bytes().await.map(Some) }
        };
        Ok(match self.request(&name, request).await? {
            Some(Some(bytes)) if Digest::of(&bytes) == *digest => BlobRead::Intact(bytes.into()),
            Some(_) => BlobRead::Damaged,
            None => BlobRead::Missing,
        })
    }

    async fn metadata(&self, name: &str) -> Result<Option<ObjectMeta>, Error> {
        self.request(name, self.client.head(&self.key(name))).await
    }

    /// Lists the objects directly under `folder` whose key is after `after`. `page_token` continues the list after an
    /// earlier page.
    async fn list_page(
        &self,
        folder: &str,
        after: Option<String>,
        page_token: Option<String>,
        limit: usize,
    ) -> Result<ListPage, Error> {
        let options = PaginatedListOptions {
            offset: after,
            // With a delimiter, the objects in subfolders (`removing/…`) are left out.
            delimiter: Some("/".into()),
            max_keys: Some(limit.min(MAX_LIST_OBJECTS)),
            page_token,
            ..PaginatedListOptions::default()
        };
        let prefix = Some(folder).filter(|folder| !folder.is_empty());
        let answer = self.request("", self.client.list_paginated(prefix, options)).await?;
        // Only a missing bucket has no answer. The list of an empty bucket is an empty answer.
        let answer = answer.ok_or_else(|| self.error("", RemoteProblem::NoBucket))?;
        Ok(ListPage { objects: answer.result.objects, next_token: answer.page_token })
    }

    /// Returns the digest in the name of the object, or `None` if the object is not a blob.
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
        let name = digest.to_string();
        let payload = PutPayload::from(bytes.to_vec());
        let started = Instant::now();
        let (mut attempt, mut uploads) = (0, 0);
        while attempt < MAX_ATTEMPTS {
            if uploads == MAX_UPLOADS || started.elapsed() > self.operation_timeout() {
                return Err(self.error(&name, RemoteProblem::Endless("removals of a blob that is stored again")));
            }
            uploads += 1;
            self.upload(&name, payload.clone()).await?;
            if removal::wait_for_removals(self, &digest).await? {
                // A removal may have deleted the object after the upload. The removal has ended, so the object is
                // uploaded again. The storage made no mistake, so this does not count as an attempt.
                continue;
            }
            attempt += 1;
            match self.read(&digest, Some(bytes.len())).await? {
                BlobRead::Intact(_) => return Ok(digest),
                BlobRead::Damaged => {
                    tracing::error!(%digest, attempt, "{} stored other bytes than were uploaded", self.location);
                }
                BlobRead::Missing => {
                    tracing::error!(%digest, attempt, "{} confirmed an upload but does not have the object", self.location);
                }
            }
        }
        Err(self.error(&name, RemoteProblem::NotKept))
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        for attempt in 1..=MAX_ATTEMPTS {
            match self.read(digest, None).await? {
                BlobRead::Intact(bytes) => return Ok(bytes),
                BlobRead::Missing => return Err(Error::Missing(*digest)),
                BlobRead::Damaged => {
                    let address = self.location.address_of(&digest.to_string());
                    tracing::error!(
                        attempt,
                        "the object {address} is damaged: the digest of its bytes differs from its name"
                    );
                }
            }
        }
        Err(Error::Damaged(*digest))
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>, Error> {
        let folder = self.location.folder();
        let now = SystemTime::now();
        let after_key = after.map(|digest| self.location.key(&digest.to_string()));
        let mut page_token = None;
        let mut blobs = Vec::new();
        let started = Instant::now();
        let (mut pages, mut empty_pages) = (0, 0);
        // A page may contain no blobs. The next page is then read, because an empty result would tell the caller that
        // the list has ended.
        while blobs.is_empty() && limit > 0 {
            if pages == MAX_LIST_PAGES || empty_pages == MAX_EMPTY_PAGES || started.elapsed() > self.operation_timeout()
            {
                return Err(self.error("", RemoteProblem::Endless("a list without blobs")));
            }
            pages += 1;
            let page = self.list_page(&folder, after_key.clone(), page_token.clone(), limit).await?;
            empty_pages = if page.objects.is_empty() { empty_pages + 1 } else { 0 };
            if page.next_token.is_some() && page.next_token == page_token {
                return Err(self.error("", RemoteProblem::Endless("a list that continues where it was")));
            }
            blobs.extend(page.objects.iter().filter_map(|object| {
                let digest = self.digest_of(object)?;
                // Earlier digests are filtered out, because not every storage supports the parameter that starts a list
                // after a key.
                let is_later = after.is_none_or(|after| digest.to_string() > after.to_string());
                is_later.then(|| StoredBlob { digest, bytes: object.size, idle: idle_time(object, now) })
            }));
            page_token = page.next_token;
            if page_token.is_none() {
                break;
            }
        }
        // The port `ports::Blobs` promises the order of digests, and a storage may answer in another order.
        blobs.sort_by_key(|blob| blob.digest.to_string());
        blobs.truncate(limit);
        Ok(blobs)
    }

    async fn delete(&self, digest: &Digest, min_idle: Duration) -> Result<bool, Error> {
        owner::check(self).await?;
        removal::remove(self, digest, min_idle).await
    }
}

/// Returns the time since the object was put, by this machine's clock. This is exact enough to select objects for a
/// removal, because a removal compares the dates of the storage.
fn idle_time(object: &ObjectMeta, now: SystemTime) -> Duration {
    let put =
        SystemTime::UNIX_EPOCH + Duration::from_millis(object.last_modified.timestamp_millis().try_into().unwrap_or(0));
    now.duration_since(put).unwrap_or_default()
}
