//! The object `PREFIX/owner`, which reserves a prefix for one database.
//!
//! Collection deletes the blobs that its database does not name. Without this object, a second database on the same prefix
//! would lose its blobs after a day, and no error would say so. The object holds the name of the first database.
//! Invariant: nothing is written or deleted under a prefix whose owner is another database.

use object_store::{ObjectStoreExt, PutPayload};
use ports::blobs::{Error, RemoteProblem};

use super::S3Blobs;

const NAME: &str = "owner";
/// A longer object does not hold a name of a database.
const MAX_BYTES: u64 = 1_024;

/// Checks that the prefix belongs to this database, and claims a prefix without an owner. The check is made once for each
/// handle.
pub async fn check(blobs: &S3Blobs) -> Result<(), Error> {
    blobs.owner_checked.get_or_try_init(|| claim(blobs)).await.copied()
}

async fn claim(blobs: &S3Blobs) -> Result<(), Error> {
    if let Some(owner) = read(blobs).await? {
        return compare(blobs, &owner);
    }
    blobs.upload(NAME, PutPayload::from(blobs.owner.clone().into_bytes())).await?;
    // Another database may have claimed the prefix at the same moment. The last upload wins, and the other one reads a
    // foreign name here.
    match read(blobs).await? {
        Some(owner) => compare(blobs, &owner),
        None => Err(blobs.error(NAME, RemoteProblem::NotKept)),
    }
}

fn compare(blobs: &S3Blobs, owner: &[u8]) -> Result<(), Error> {
    if owner == blobs.owner.as_bytes() { Ok(()) } else { Err(blobs.error(NAME, RemoteProblem::Taken)) }
}

async fn read(blobs: &S3Blobs) -> Result<Option<Vec<u8>>, Error> {
    let request = async {
        let answer = blobs.client.get(&blobs.key(NAME)).await?;
        // An empty name is no database's, so the comparison fails.
        if answer.meta.size > MAX_BYTES { Ok(Vec::new()) } else { answer.bytes().await.map(Vec::from) }
    };
    blobs.request(NAME, request).await
}
