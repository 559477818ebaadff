//! Deletes a blob in S3, safely against a `put` of the same bytes at the same moment.
//!
//! S3 cannot delete an object on the condition that it was not put again: the tag of an object depends on its bytes only,
//! and a second `put` has the same bytes. So a removal first writes a marker, the empty object `PREFIX/removing/DIGEST/ID`.
//! Then it checks the age of the blob, deletes the blob and deletes the marker. A `put` looks for markers after its upload,
//! waits until they are gone, and uploads again. In every order one of the two sees the other: an upload before the check
//! makes the blob young, and an upload after the check finds the marker.
//!
//! Invariants:
//! - A blob is deleted only under a marker of this removal that is less than `MARKER_VALID` old.
//! - Ages are differences of dates that the storage itself gave, so clocks of machines do not matter.
//! - A marker older than `MARKER_ABANDONED` belongs to a process that died, and a `put` deletes it.
//!
//! One case is not covered: a process that is halted for `MARKER_ABANDONED - MARKER_VALID` inside the request that deletes.

use std::time::{Duration, Instant, SystemTime};

use base::Digest;
use object_store::{ObjectMeta, ObjectStoreExt, PutPayload};
use ports::blobs::{Error, RemoteProblem};

use super::{S3Blobs, idle_time};

const FOLDER: &str = "removing";
/// The time in which the deletion must begin after its marker was written.
const MARKER_VALID: Duration = Duration::from_secs(60);
const MARKER_ABANDONED: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Markers of one blob that are listed at a time. The loop lists again until none is left.
const MARKERS_PER_LIST: usize = 100;

/// Deletes the blob if its last `put` is at least `min_idle` ago, and returns whether it did.
pub async fn remove(blobs: &S3Blobs, digest: &Digest, min_idle: Duration) -> Result<bool, Error> {
    let name = digest.to_string();
    // A first look by this machine's clock saves the marker for most blobs. The decision below uses the storage's dates.
    match blobs.metadata(&name).await? {
        Some(object) if idle_time(&object, SystemTime::now()) >= min_idle => {}
        Some(_) | None => return Ok(false),
    }
    let marker = format!("{FOLDER}/{name}/{}", random_id()?);
    // Taken before the upload, so that the marker is at most as old as this says.
    let marked_at = Instant::now();
    blobs.upload(&marker, PutPayload::default()).await?;
    let removed = remove_marked(blobs, &name, &marker, marked_at, min_idle).await;
    // The marker is deleted after a failure too: this removal will not continue, and every `put` would wait for it.
    blobs.request(&marker, blobs.client.delete(&blobs.key(&marker))).await?;
    removed
}

async fn remove_marked(
    blobs: &S3Blobs,
    name: &str,
    marker: &str,
    marked_at: Instant,
    min_idle: Duration,
) -> Result<bool, Error> {
    // A storage that does not keep the marker would not show it to a `put` either. Its date is the storage's current time.
    let now = blobs.metadata(marker).await?.ok_or_else(|| blobs.error(marker, RemoteProblem::NotKept))?;
    let Some(blob) = blobs.metadata(name).await? else { return Ok(false) };
    // An old marker may be taken for abandoned, so a slow removal must give up.
    if age(&blob, &now) < min_idle || marked_at.elapsed() > MARKER_VALID {
        return Ok(false);
    }
    blobs.request(name, blobs.client.delete(&blobs.key(name))).await?;
    Ok(true)
}

/// Waits until no removal of this blob is under way. Returns whether one was: then the upload before this call may be
/// deleted, and the caller uploads again.
pub async fn wait_for_removals(blobs: &S3Blobs, digest: &Digest) -> Result<bool, Error> {
    let name = digest.to_string();
    let folder = blobs.location.key(&format!("{FOLDER}/{name}/"));
    let started = Instant::now();
    let mut removal_seen = false;
    loop {
        let page = blobs.list_page(&folder, None, None, MARKERS_PER_LIST).await?;
        if page.objects.is_empty() {
            return Ok(removal_seen);
        }
        // The blob was just uploaded, so its date is the storage's current time. If the blob is missing, it was deleted.
        let Some(now) = blobs.metadata(&name).await? else { return Ok(true) };
        let (abandoned, valid): (Vec<_>, Vec<_>) =
            page.objects.into_iter().partition(|marker| age(marker, &now) > MARKER_ABANDONED);
        for marker in abandoned {
            blobs.request(&name, blobs.client.delete(&marker.location)).await?;
        }
        removal_seen |= !valid.is_empty();
        if started.elapsed() > blobs.timeout {
            return Err(blobs.error(&name, RemoteProblem::Slow { ms: blobs.timeout.as_millis() }));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the age of `object` at the moment when `now` was written, by the storage's dates.
fn age(object: &ObjectMeta, now: &ObjectMeta) -> Duration {
    let ms = now.last_modified.timestamp_millis() - object.last_modified.timestamp_millis();
    Duration::from_millis(ms.try_into().unwrap_or(0))
}

/// Returns 128 random bits, so that two removals of one blob have a marker each.
fn random_id() -> Result<String, Error> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|cause| Error::Unavailable(Box::new(std::io::Error::from(cause))))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
