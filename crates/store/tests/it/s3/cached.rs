//! Tests of `CachedBlobs`: local copies of blobs are made, verified, replaced, bounded and shared between processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base::Digest;
use ports::Blobs;
use ports::blobs::Error;
use store::blobs::CachedBlobs;

use super::server::{Fault, Storage};

fn copy_of(folder: &Path, digest: &Digest) -> PathBuf {
    let name = digest.to_string();
    folder.join(&name[..2]).join(&name[2..])
}

fn open(storage: &Storage, folder: &Path, most: u64) -> CachedBlobs {
    CachedBlobs::open(Arc::new(storage.blobs("s3://heaps/a")), folder, most).unwrap()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let subfolders = std::fs::read_dir(folder).unwrap().flatten();
    let files_of = |path: PathBuf| std::fs::read_dir(path).unwrap().flatten().map(|file| file.path());
    subfolders.flat_map(|subfolder| files_of(subfolder.path())).collect()
}

#[tokio::test]
async fn a_copy_is_made_only_of_a_kept_blob_and_is_read_without_the_storage() {
    let storage = Storage::start().await;
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&storage, folder.path(), 1 << 20);
    storage.inject("PUT", Fault::Swallow, usize::MAX);
    assert!(blobs.put(b"not kept").await.is_err());
    assert_eq!(files_in(folder.path()), Vec::<PathBuf>::new(), "a blob that the storage does not keep has no copy");
    storage.clear_faults();
    let digest = blobs.put(b"kept").await.unwrap();
    assert_eq!(std::fs::read(copy_of(folder.path(), &digest)).unwrap(), b"kept");
    storage.stop().await;
    assert_eq!(blobs.get(&digest).await.unwrap(), b"kept");
    assert!(matches!(blobs.put(b"new").await, Err(Error::Remote(_))), "a blob is never kept as a copy only");
    assert_eq!(files_in(folder.path()).len(), 1, "no temporary file stays");
}

#[tokio::test]
async fn a_damaged_or_missing_copy_is_read_from_the_storage() {
    let storage = Storage::start().await;
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&storage, folder.path(), 1 << 20);
    let digest = blobs.put(b"precious").await.unwrap();
    let copy = copy_of(folder.path(), &digest);
    for bad in [Some(&b"precioux"[..]), Some(b""), Some(b"precious and more"), None] {
        match bad {
            Some(bytes) => std::fs::write(&copy, bytes).unwrap(),
            None => std::fs::remove_dir_all(folder.path()).unwrap(),
        }
        storage.take_request_count("GET");
        assert_eq!(blobs.get(&digest).await.unwrap(), b"precious");
        assert_eq!(storage.take_request_count("GET"), 1);
        assert_eq!(std::fs::read(&copy).unwrap(), b"precious", "the copy was replaced");
        assert_eq!(blobs.get(&digest).await.unwrap(), b"precious");
        assert_eq!(storage.take_request_count("GET"), 0, "the next read uses the copy");
    }
    std::fs::write(&copy, b"precioux").unwrap();
    storage.stop().await;
    assert!(matches!(blobs.get(&digest).await, Err(Error::Remote(_))), "the damaged copy is not returned");
}

#[tokio::test]
async fn without_a_usable_folder_blobs_are_read_from_the_storage() {
    let storage = Storage::start().await;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("copies");
    let blobs = open(&storage, &root, 1 << 20);
    std::fs::remove_dir_all(&root).unwrap();
    // With a file in the folder's place, nothing can be created there.
    std::fs::write(&root, b"").unwrap();
    let digest = blobs.put(b"x").await.unwrap();
    assert_eq!(blobs.get(&digest).await.unwrap(), b"x");
    assert!(CachedBlobs::open(Arc::new(storage.blobs("s3://heaps/a")), &root, 1).is_err());
}

#[tokio::test]
async fn copies_stay_within_their_bound_and_the_least_recently_read_are_deleted_first() {
    let storage = Storage::start().await;
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&storage, folder.path(), 100_000);
    let often_read = blobs.put(&[255; 5_000]).await.unwrap();
    for n in 0..60u8 {
        let digest = blobs.put(&[n; 5_000]).await.unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(10_000 - u64::from(n));
        if let Ok(copy) = std::fs::File::options().write(true).open(copy_of(folder.path(), &digest)) {
            copy.set_modified(long_ago).unwrap();
        }
        blobs.get(&often_read).await.unwrap();
    }
    let bytes: u64 = files_in(folder.path()).iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!((50_000..=110_000).contains(&bytes), "{bytes}");
    assert!(copy_of(folder.path(), &often_read).exists(), "its last read is never old");
    let huge = blobs.put(&vec![1; 200_000]).await.unwrap();
    assert!(!copy_of(folder.path(), &huge).exists(), "a blob larger than the bound has no copy");
    assert_eq!(blobs.get(&huge).await.unwrap().len(), 200_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_caches_may_share_a_folder() {
    let storage = Storage::start().await;
    let folder = tempfile::tempdir().unwrap();
    // The size limit is so low that each cache deletes copies that another cache reads.
    let tasks: Vec<_> = (0..4u8)
        .map(|_| {
            let blobs = open(&storage, folder.path(), 60_000);
            tokio::spawn(async move {
                for n in 0..40u8 {
                    let bytes = vec![n % 10; 10_000 + usize::from(n % 10)];
                    let digest = blobs.put(&bytes).await.unwrap();
                    assert!(blobs.get(&digest).await.unwrap() == bytes);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_deleted_blob_has_no_copy() {
    let storage = Storage::start().await;
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&storage, folder.path(), 1 << 20);
    let digest = blobs.put(b"x").await.unwrap();
    assert!(!blobs.delete(&digest, Duration::from_secs(60)).await.unwrap());
    assert!(copy_of(folder.path(), &digest).exists());
    assert!(blobs.delete(&digest, Duration::ZERO).await.unwrap());
    assert!(!copy_of(folder.path(), &digest).exists());
    assert!(matches!(blobs.get(&digest).await, Err(Error::Missing(_))));
}
