//! The blob files, looked through in the order of their digests.
//! Invariant: whatever else lies in the folder is not a blob.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::Duration;

use base::Digest;
use ports::blobs::Stored;

/// The first `limit` after `after`.
pub fn list(root: &Path, after: Option<&Digest>, limit: usize) -> io::Result<Vec<Stored>> {
    let after = after.map(ToString::to_string).unwrap_or_default();
    let first_shelf = after.get(..2).unwrap_or_default();
    let mut found = Vec::new();
    for shelf in names(root)?.iter().filter(|name| name.len() == 2 && name.as_str() >= first_shelf) {
        let folder = root.join(shelf);
        for name in names(&folder)? {
            let Ok(digest) = Digest::parse(&format!("{shelf}{name}")) else { continue };
            if digest.to_string() <= after {
                continue;
            }
            if found.len() == limit {
                return Ok(found);
            }
            // One that was removed in between is not stored.
            let Ok(metadata) = std::fs::metadata(folder.join(&name)) else { continue };
            found.push(Stored { digest, bytes: metadata.len(), idle: idle(&metadata) });
        }
    }
    Ok(found)
}

/// Since it was written or renewed; a date in the future is now.
pub fn idle(metadata: &Metadata) -> Duration {
    metadata.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default()
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            for entry in entries {
                names.extend(entry?.file_name().into_string());
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    names.sort_unstable();
    Ok(names)
}
