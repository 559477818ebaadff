//! Deletes a blob in S3 so that a concurrent `put` of the same bytes is not lost. A removal is one such deletion with
//! its marker object.
//!
//! S3 cannot delete an object on the condition that it was not uploaded again: the tag of an object depends on its
//! bytes only, and a second `put` uploads the same bytes. So a removal first writes a marker, the empty object
//! `PREFIX/removing/DIGEST/ID`. Then the removal checks the age of the blob, deletes the blob and deletes the marker. A
//! `put` looks for markers after its upload, waits until they are gone, and uploads again. In every order one of the
//! two notices the other: an upload before the check makes the blob young, and a `put` whose upload comes after the
//! check finds the marker.
//!
//! Invariants:
//! - A removal deletes a blob only while its own marker is younger than `MARKER_VALID`.
//! - An age is the difference of two dates that the storage returned, so the clocks of the machines need not agree.
//! - A marker that is older than `MARKER_ABANDONED` belongs to a process that has ended, and a `put` deletes the
//!   marker.
//!
//! One case is not covered: the process is halted for `MARKER_ABANDONED - MARKER_VALID` while its delete request is
//! under way.

use std::time::{Duration, Instant, SystemTime};

use base::Digest;
use object_store::{ObjectMeta, ObjectStoreExt, PutPayload};
use ports::blobs::{Error, RemoteProblem};

use super::{S3Blobs, idle_time};

const MARKER_FOLDER: &str = "removing";
/// The time after the upload of the marker in which the deletion must begin.
const MARKER_VALID: Duration = Duration::from_secs(60);
const MARKER_ABANDONED: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The number of markers of one blob in one list request. The loop lists again until no marker is left.
const MARKERS_PER_LIST: usize = 100;

/// Deletes the blob if its last `put` is at least `min_idle` ago. Returns whether the blob was deleted.
pub async fn remove(blobs: &S3Blobs, digest: &Digest, min_idle: Duration) -> Result<bool, Error> {
    let name = digest.to_string();
    // A first check with this machine's clock avoids writing a marker for most blobs. The final check in
    // `remove_marked` compares dates of the storage.
    match blobs.metadata(&name).await? {
        Some(object) if idle_time(&object, SystemTime::now()) >= min_idle => {}
        Some(_) | None => return Ok(false),
    }
    let marker = format!("{MARKER_FOLDER}/{name}/{}", random_marker_id()?);
    // The time is read before the upload, so that `marked_at` is never later than the upload of the marker.
    let marked_at = Instant::now();
    blobs.upload(&marker, PutPayload::default()).await?;
    let removed = remove_marked(blobs, &name, &marker, marked_at, min_idle).await;
    // The marker is deleted after a failure too, because every `put` of this blob would wait for the marker.
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
    // The marker is read back, because a storage that did not store the marker would not show it to a `put` either. The
    // date of the marker is the current time of the storage.
    let now = blobs.metadata(marker).await?.ok_or_else(|| blobs.error(marker, RemoteProblem::NotKept))?;
    let Some(blob) = blobs.metadata(name).await? else { return Ok(false) };
    // A `put` deletes an old marker as abandoned, so a removal that is too slow must give up.
    if age(&blob, &now) < min_idle || marked_at.elapsed() > MARKER_VALID {
        return Ok(false);
    }
    blobs.request(name, blobs.client.delete(&blobs.key(name))).await?;
    Ok(true)
}

/// Waits until no removal of this blob is under way. Returns whether a removal was under way. It may have deleted the
/// object that the caller uploaded, so the caller must then upload again.
pub async fn wait_for_removals(blobs: &S3Blobs, digest: &Digest) -> Result<bool, Error> {
    let name = digest.to_string();
    let folder = blobs.location.key(&format!("{MARKER_FOLDER}/{name}/"));
    let started = Instant::now();
    let mut removal_seen = false;
    loop {
        let page = blobs.list_page(&folder, None, None, MARKERS_PER_LIST).await?;
        if page.objects.is_empty() {
            return Ok(removal_seen);
        }
        // The blob was just uploaded, so its date is the current time of the storage. A missing blob was deleted by a
        // removal.
        let Some(now) = blobs.metadata(&name).await? else { return Ok(true) };
        let (abandoned, valid): (Vec<_>, Vec<_>) =
            page.objects.into_iter().partition(|marker| age(marker, &now) > MARKER_ABANDONED);
        for marker in abandoned {
            if started.elapsed() > blobs.timeout {
                break;
            }
            blobs.request(&name, blobs.client.delete(&marker.location)).await?;
        }
        removal_seen |= !valid.is_empty();
        if started.elapsed() > blobs.timeout {
            return Err(blobs.error(&name, RemoteProblem::Slow { ms: blobs.timeout.as_millis() }));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the age of `object` at the time when the object `now` was written, by the dates of the storage.
fn age(object: &ObjectMeta, now: &ObjectMeta) -> Duration {
    let ms = now.last_modified.timestamp_millis() - object.last_modified.timestamp_millis();
    Duration::from_millis(ms.try_into().unwrap_or(0))
}

/// Returns 128 random bits in hex, so that two removals of one blob have different markers.
fn random_marker_id() -> Result<String, Error> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|cause| Error::Unavailable(Box::new(std::io::Error::from(cause))))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
