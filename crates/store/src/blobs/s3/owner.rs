//! Whose prefix this is. A pass of gc removes what its database does not name, so a second database on one prefix would lose
//! its blobs after a day, in silence. `PREFIX/owner` says which database came first.
//! Invariant: nothing is written or removed under a prefix that says another name.

use object_store::{ObjectStoreExt, PutPayload};
use ports::blobs::{Error, Problem};

use super::S3Blobs;

const NAME: &str = "owner";
/// Longer is no name of ours.
const MOST_BYTES: u64 = 1_024;

/// Looks once for each handle; takes a prefix that is nobody's.
pub async fn check(blobs: &S3Blobs) -> Result<(), Error> {
    blobs.owned.get_or_try_init(|| claim(blobs)).await.copied()
}

async fn claim(blobs: &S3Blobs) -> Result<(), Error> {
    if let Some(found) = read(blobs).await? {
        return compare(blobs, &found);
    }
    blobs.upload(NAME, PutPayload::from(blobs.owner.clone().into_bytes())).await?;
    // Another may have come at the same moment; the last one has it.
    match read(blobs).await? {
        Some(found) => compare(blobs, &found),
        None => Err(blobs.wrong(NAME, Problem::NotKept)),
    }
}

fn compare(blobs: &S3Blobs, found: &[u8]) -> Result<(), Error> {
    if found == blobs.owner.as_bytes() { Ok(()) } else { Err(blobs.wrong(NAME, Problem::Taken)) }
}

async fn read(blobs: &S3Blobs) -> Result<Option<Vec<u8>>, Error> {
    let request = async {
        let answer = blobs.store.get(&blobs.key(NAME)).await?;
        if answer.meta.size > MOST_BYTES { Ok(Vec::new()) } else { answer.bytes().await.map(Vec::from) }
    };
    blobs.ask(NAME, request).await
}
