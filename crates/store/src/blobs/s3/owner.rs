//! The owner object `PREFIX/owner`, which reserves a prefix for one database. The object contains the name of the
//! database.
//!
//! Collection deletes the blobs that no row of its database names. Without the owner object, two databases on the same
//! prefix would delete each other's blobs after a day, without any error.
//! Invariant: no blob is written or deleted under a prefix whose owner is another database.

use std::error::Error as StdError;

use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use ports::blobs::{Error, RemoteProblem};

use super::S3Blobs;
use super::http_client::S3Refusal;

const OWNER_OBJECT_NAME: &str = "owner";
/// The largest size of an owner object. A larger object was not written by this program.
const MAX_OWNER_BYTES: u64 = 1_024;

/// Checks that the prefix belongs to this database, and claims a prefix that has no owner. The check is made once for
/// each `S3Blobs` value.
pub async fn check(blobs: &S3Blobs) -> Result<(), Error> {
    blobs.owner_checked.get_or_try_init(|| claim(blobs)).await.copied()
}

async fn claim(blobs: &S3Blobs) -> Result<(), Error> {
    if let Some(owner) = read(blobs).await? {
        return compare(blobs, &owner);
    }
    create(blobs).await?;
    // Another database may have claimed the prefix at the same moment. The object is read back: its name is the owner, and the other
    // database gets an error. A storage that ignores the condition of the upload has the name of the last upload.
    match read(blobs).await? {
        Some(owner) => compare(blobs, &owner),
        None => Err(blobs.error(OWNER_OBJECT_NAME, RemoteProblem::NotKept)),
    }
}

/// Uploads the owner object on the condition that there is none (`If-None-Match: *`), so that two claims cannot both succeed. An object that
/// exists is no error, because the caller reads it.
async fn create(blobs: &S3Blobs) -> Result<(), Error> {
    let payload = PutPayload::from(blobs.owner.clone().into_bytes());
    let request = async {
        let answer =
            blobs.client.put_opts(&blobs.key(OWNER_OBJECT_NAME), payload.clone(), PutMode::Create.into()).await;
        match answer {
            Ok(_) => Ok(true),
            Err(error) => match refusal_in(&error).map(|refusal| (refusal.status, refusal.code.as_str())) {
                Some((409 | 412, _)) => Ok(true),
                Some((501, _) | (_, "NotImplemented")) => Ok(false),
                _ => Err(error),
            },
        }
    };
    match blobs.request(OWNER_OBJECT_NAME, request).await? {
        Some(true) => Ok(()),
        // The storage does not know the condition, so the last upload wins.
        Some(false) => blobs.upload(OWNER_OBJECT_NAME, payload).await,
        None => Err(blobs.error(OWNER_OBJECT_NAME, RemoteProblem::NoBucket)),
    }
}

/// Returns the answer with which the storage refused the request. The client wraps it in several errors of its own.
fn refusal_in(error: &object_store::Error) -> Option<&S3Refusal> {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = next {
        if let Some(refusal) = cause.downcast_ref::<S3Refusal>() {
            return Some(refusal);
        }
        next = cause.source();
    }
    None
}

fn compare(blobs: &S3Blobs, owner: &[u8]) -> Result<(), Error> {
    if owner == blobs.owner.as_bytes() { Ok(()) } else { Err(blobs.error(OWNER_OBJECT_NAME, RemoteProblem::Taken)) }
}

async fn read(blobs: &S3Blobs) -> Result<Option<Vec<u8>>, Error> {
    let request = async {
        let answer = blobs.client.get(&blobs.key(OWNER_OBJECT_NAME)).await?;
        // An object that is too large counts as an empty name, which equals no database's name.
        if answer.meta.size > MAX_OWNER_BYTES { Ok(Vec::new()) } else { answer.bytes().await.map(Vec::from) }
    };
    blobs.request(OWNER_OBJECT_NAME, request).await
}
