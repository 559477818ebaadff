//! Tests of blobs in files: the conformance suite, damaged files, and folders that are moved.
//! Invariant: no test relies on permissions, because root ignores them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Digest;
use ports::Blobs;
use ports::blobs::Error;
use store::OpenError;
use store::blobs::FileBlobs;

fn path_of(dir: &Path, digest: &Digest) -> PathBuf {
    let name = digest.to_string();
    dir.join(&name[..2]).join(&name[2..])
}

#[tokio::test]
async fn blob_files_conform() {
    let dir = tempfile::tempdir().unwrap();
    let next_folder = AtomicUsize::new(0);
    testkit::conformance::blobs(async || {
        let number = next_folder.fetch_add(1, Ordering::Relaxed);
        Arc::new(FileBlobs::open(&dir.path().join(number.to_string())).unwrap())
    })
    .await;
}

#[tokio::test]
async fn a_reopened_folder_has_its_blobs_and_no_temporary_files() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("deep/blobs");
    let digest = FileBlobs::open(&root).unwrap().put(b"kept").await.unwrap();
    assert_eq!(fs::read(path_of(&root, &digest)).unwrap(), b"kept");
    assert_eq!(FileBlobs::open(&root).unwrap().get(&digest).await.unwrap(), b"kept");
    assert_eq!(fs::read_dir(root.join("tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_second_put_renews_the_date_and_keeps_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    let digest = blobs.put(b"once").await.unwrap();
    let before = fs::metadata(path_of(dir.path(), &digest)).unwrap();
    blobs.put(b"once").await.unwrap();
    let after = fs::metadata(path_of(dir.path(), &digest)).unwrap();
    assert!(before.modified().unwrap() <= after.modified().unwrap(), "a put gives its caller time to name it");
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        assert_eq!(before.ino(), after.ino());
    }
}

#[tokio::test]
async fn a_damaged_blob_is_reported_once_moved_away_and_can_be_put_again() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    let other = blobs.put(b"other").await.unwrap();
    for bad in [b"precioux".as_slice(), b"", b"precious and more"] {
        let digest = blobs.put(b"precious").await.unwrap();
        fs::write(path_of(dir.path(), &digest), bad).unwrap();
        assert!(matches!(blobs.get(&digest).await, Err(Error::Damaged(d)) if d == digest));
        assert_eq!(fs::read(dir.path().join("damaged").join(digest.to_string())).unwrap(), bad);
        assert!(matches!(blobs.get(&digest).await, Err(Error::Missing(d)) if d == digest));
        assert_eq!(blobs.get(&other).await.unwrap(), b"other", "other blobs stay readable");
    }
}

#[tokio::test]
async fn a_put_replaces_a_damaged_blob() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    let digest = blobs.put(b"precious").await.unwrap();
    fs::write(path_of(dir.path(), &digest), b"precioux").unwrap();
    assert_eq!(blobs.put(b"precious").await.unwrap(), digest);
    assert_eq!(blobs.get(&digest).await.unwrap(), b"precious");
    assert_eq!(fs::read(dir.path().join("damaged").join(digest.to_string())).unwrap(), b"precioux");
}

#[tokio::test]
async fn a_folder_that_was_moved_away_and_back_is_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("blobs");
    let away = dir.path().join("away");
    let blobs = FileBlobs::open(&root).unwrap();
    let digest = blobs.put(b"x").await.unwrap();
    fs::rename(&root, &away).unwrap();
    // With a file in the folder's place, nothing can be read or created there.
    fs::write(&root, b"").unwrap();
    assert!(matches!(blobs.put(b"y").await, Err(Error::Unavailable(_))));
    assert!(matches!(blobs.get(&digest).await, Err(Error::Unavailable(_))));
    fs::remove_file(&root).unwrap();
    fs::rename(&away, &root).unwrap();
    assert_eq!(blobs.get(&digest).await.unwrap(), b"x");
    blobs.put(b"y").await.unwrap();
}

#[test]
fn a_folder_that_cannot_be_created_is_unwritable() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    for path in [file.clone(), file.join("sub")] {
        let error = FileBlobs::open(&path).unwrap_err();
        assert!(matches!(error, OpenError::Unwritable { .. }), "{error:?}");
    }
}
