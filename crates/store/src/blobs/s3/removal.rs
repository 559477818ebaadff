//! The end of a blob, against a `put` of the same bytes at the same moment.
//!
//! S3 cannot remove an object on the condition that nobody has put it again: its tag is that of equal bytes. So who removes
//! says so first, with an empty object `PREFIX/removing/DIGEST/ID`, then looks how old the blob is, removes it, and takes the
//! word back. Who puts looks for such words after the upload, waits until they are gone and uploads again. Whichever way the
//! two meet, one of them sees the other: an upload before the look makes the blob young, one after it finds the word.
//!
//! Invariants: a blob is removed only under a word of its own that is less than `WITHIN` old; ages are differences of the storage's
//! own moments; a word that is older than `ABANDONED` belongs to a process that died. What is left to luck: a process that is
//! halted for `ABANDONED - WITHIN` within the one request that removes.

use std::time::{Duration, Instant};

use base::Digest;
use object_store::{ObjectMeta, ObjectStoreExt, PutPayload};
use ports::blobs::{Error, Problem};

use super::{S3Blobs, idle};

const FOLDER: &str = "removing";
/// From the word to the request that removes.
const WITHIN: Duration = Duration::from_secs(60);
const ABANDONED: Duration = Duration::from_secs(600);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Words about one blob that are looked at.
const WORDS: usize = 100;

/// Removes the blob where nobody has put it for so long; whether it did.
pub async fn remove(blobs: &S3Blobs, digest: &Digest, least: Duration) -> Result<bool, Error> {
    let name = digest.to_string();
    match blobs.look(&name).await? {
        Some(found) if idle(&found, std::time::SystemTime::now()) >= least => {}
        Some(_) | None => return Ok(false),
    }
    let word = format!("{FOLDER}/{name}/{}", id()?);
    let said = Instant::now();
    blobs.upload(&word, PutPayload::default()).await?;
    let removed = under(blobs, (&name, &word), (least, said)).await;
    // Also after a failure: what was not done will not be done.
    blobs.ask(&word, blobs.store.delete(&blobs.key(&word))).await?;
    removed
}

async fn under(blobs: &S3Blobs, (name, word): (&str, &str), (least, said): (Duration, Instant)) -> Result<bool, Error> {
    // A storage that does not keep the word would not show it to who puts, either.
    let now = blobs.look(word).await?.ok_or_else(|| blobs.wrong(word, Problem::NotKept))?;
    let Some(found) = blobs.look(name).await? else { return Ok(false) };
    if age(&found, &now) < least || said.elapsed() > WITHIN {
        return Ok(false);
    }
    blobs.ask(name, blobs.store.delete(&blobs.key(name))).await?;
    Ok(true)
}

/// Whether someone was removing this blob; returns when nobody is any more.
pub async fn met(blobs: &S3Blobs, digest: &Digest) -> Result<bool, Error> {
    let name = digest.to_string();
    let folder = blobs.location.key(&format!("{FOLDER}/{name}/"));
    let begun = Instant::now();
    let mut met = false;
    loop {
        let (words, _) = blobs.page(&folder, None, (None, WORDS)).await?;
        if words.is_empty() {
            return Ok(met);
        }
        // Just uploaded, so its date is the storage's now; where it has gone already, the word was no empty one.
        let Some(now) = blobs.look(&name).await? else { return Ok(true) };
        let (old, new): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| age(word, &now) > ABANDONED);
        for word in old {
            blobs.ask(&name, blobs.store.delete(&word.location)).await?;
        }
        met |= !new.is_empty();
        if begun.elapsed() > blobs.timeout {
            return Err(blobs.wrong(&name, Problem::Slow { ms: blobs.timeout.as_millis() }));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn age(object: &ObjectMeta, now: &ObjectMeta) -> Duration {
    let passed = now.last_modified.timestamp_millis() - object.last_modified.timestamp_millis();
    Duration::from_millis(passed.try_into().unwrap_or(0))
}

fn id() -> Result<String, Error> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|cause| Error::Unavailable(Box::new(std::io::Error::from(cause))))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
