//! Tests of the SQLite store: the conformance suite, group commit, several stores on one file, faults, and refused
//! databases.
//! Invariant: no test relies on permissions, because root ignores them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::TenantId;
use ports::Store;
use ports::index::{Index, IndexKey};
use ports::store::{Batch, Error, Expect, IndexRange, Key, MaintenanceRange, Range, Table};
use rusqlite::Connection;
use store::OpenError;
use store::sqlite::{FILE_NAME, Options, SqliteStore};

fn key(id: &str) -> Key {
    Key::new(&TenantId::local(), Table::Run, id)
}

fn put(id: &str, value: &[u8]) -> Batch {
    Batch::default().put(key(id), value.to_vec(), Expect::Any)
}

async fn ids(store: &SqliteStore) -> Vec<String> {
    let range =
        Range { tenant: TenantId::local(), table: Table::Run, prefix: String::new(), after: None, limit: usize::MAX };
    store.scan(&range).await.unwrap().into_iter().map(|(id, _)| id).collect()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    (dir, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_conforms() {
    let dir = tempfile::tempdir().unwrap();
    let next_folder = AtomicUsize::new(0);
    let make = async || {
        let number = next_folder.fetch_add(1, Ordering::Relaxed);
        Arc::new(SqliteStore::open(&dir.path().join(number.to_string()).join(FILE_NAME)).unwrap())
    };
    testkit::conformance::store(make).await;
    testkit::conformance::indexes(make).await;
    testkit::conformance::blob_rows(make).await;
}

#[tokio::test]
async fn a_reopened_database_has_all_rows() {
    let (_dir, path) = folder();
    for round in 1..=3u64 {
        let store = SqliteStore::open(&path).unwrap();
        store
            .commit(put(&format!("round/{round}"), b"x").put(key("counter"), b"y".to_vec(), Expect::Any))
            .await
            .unwrap();
        assert_eq!(ids(&store).await.len() as u64, round + 1);
        assert_eq!(store.get(&key("counter")).await.unwrap().unwrap().version, round);
    }
    let wal = path.with_file_name(format!("{FILE_NAME}-wal"));
    assert!(!wal.exists(), "the last handle to close folds the WAL into the database");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_handles_on_one_file_commit_and_see_each_others_rows() {
    let (_dir, path) = folder();
    let stores: Vec<_> = (0..3).map(|_| Arc::new(SqliteStore::open(&path).unwrap())).collect();
    let tasks: Vec<_> = stores
        .iter()
        .enumerate()
        .flat_map(|(handle, store)| (0..4).map(move |task| (handle, task, Arc::clone(store))))
        .map(|(handle, task, store)| {
            tokio::spawn(async move {
                for number in 0..20 {
                    let id = format!("{handle}/{task}/{number}");
                    store.commit(put(&id, b"x")).await.unwrap();
                    assert!(store.get(&key(&id)).await.unwrap().is_some(), "{id} was answered");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for store in &stores {
        assert_eq!(ids(store).await.len(), 3 * 4 * 20);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_batch_of_a_group_has_its_own_outcome() {
    let (_dir, path) = folder();
    let store = Arc::new(SqliteStore::open(&path).unwrap());
    store.commit(put("taken", b"x")).await.unwrap();
    // While another connection holds the lock, the batches wait and become one group.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let tasks: Vec<_> = (0..60)
        .map(|number| {
            let store = Arc::clone(&store);
            let wanted = if number % 3 == 0 { "taken".to_owned() } else { format!("free/{number}") };
            let batch = put(&format!("row/{number:02}"), b"x").put(key(&wanted), Vec::new(), Expect::Absent);
            tokio::spawn(async move { (number, store.commit(batch).await) })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(ids(&store).await, ["taken"], "reads do not wait for the writer");
    other.execute_batch("COMMIT").unwrap();
    for task in tasks {
        let (number, result) = task.await.unwrap();
        match result {
            Err(Error::Conflict(conflict)) => assert!(number % 3 == 0 && conflict == key("taken")),
            result => assert!(number % 3 != 0 && result.is_ok(), "{number}: {result:?}"),
        }
        let is_stored = store.get(&key(&format!("row/{number:02}"))).await.unwrap().is_some();
        assert_eq!(is_stored, number % 3 != 0, "{number}: a batch is applied whole or not at all");
    }
}

#[tokio::test]
async fn a_lock_that_is_held_too_long_is_unavailable_until_it_is_released() {
    let (_dir, path) = folder();
    let options = Options { busy_timeout: Duration::from_millis(50), ..Options::default() };
    let store = SqliteStore::open_with(&path, &options).unwrap();
    store.commit(put("a", b"x")).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(store.commit(put("b", b"x")).await, Err(Error::Unavailable(_))));
    assert!(matches!(store.ping().await, Err(Error::Unavailable(_))));
    assert_eq!(ids(&store).await, ["a"]);
    other.execute_batch("ROLLBACK").unwrap();
    store.ping().await.unwrap();
    store.commit(put("b", b"x")).await.unwrap();
    assert_eq!(ids(&store).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fails_only_the_batch_that_does_not_fit() {
    let (_dir, path) = folder();
    let options = Options { max_pages: Some(60), ..Options::default() };
    let store = Arc::new(SqliteStore::open_with(&path, &options).unwrap());
    store.commit(put("ballast", &[1; 100_000])).await.unwrap();
    assert!(matches!(store.commit(put("large", &[2; 200_000])).await, Err(Error::Full(_))));
    assert_eq!(ids(&store).await, ["ballast"]);

    // In one group, the neighbours of the batch that does not fit are committed.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let commits = [("a", 10), ("b", 10), ("large", 200_000), ("c", 10)].map(|(id, size)| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.commit(put(id, &vec![3; size])).await })
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    other.execute_batch("COMMIT").unwrap();
    let mut results = Vec::new();
    for commit in commits {
        results.push(commit.await.unwrap().map_err(|error| matches!(error, Error::Full(_))));
    }
    assert_eq!(results, [Ok(()), Ok(()), Err(true), Ok(())]);
    assert_eq!(ids(&store).await, ["a", "b", "ballast", "c"]);

    store.commit(Batch::default().delete(key("ballast"), Expect::Any)).await.unwrap();
    store.commit(put("large", &[2; 200_000])).await.unwrap();
    drop((store, other));
    let store = SqliteStore::open(&path).unwrap();
    store.commit(put("larger", &[4; 1_000_000])).await.unwrap();
    assert_eq!(ids(&store).await, ["a", "b", "c", "large", "larger"]);
}

#[tokio::test]
async fn a_database_that_was_moved_away_is_unavailable_until_it_is_back() {
    let (dir, path) = folder();
    let away = tempfile::tempdir_in(dir.path()).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    store.commit(put("a", b"x")).await.unwrap();
    assert_eq!(ids(&store).await, ["a"]);
    let files = ["", "-wal", "-shm"].map(|suffix| format!("{FILE_NAME}{suffix}"));
    let move_files = |from: &Path, to: &Path| {
        files
            .iter()
            .filter(|name| from.join(name).exists())
            .for_each(|name| fs::rename(from.join(name), to.join(name)).unwrap());
    };
    move_files(dir.path(), away.path());
    assert!(matches!(store.commit(put("b", b"x")).await, Err(Error::Unavailable(_))));
    assert!(matches!(store.get(&key("a")).await, Err(Error::Unavailable(_))));
    assert!(matches!(store.ping().await, Err(Error::Unavailable(_))));
    assert!(!path.exists(), "no empty database takes the place of the lost one");
    move_files(away.path(), dir.path());
    assert_eq!(ids(&store).await, ["a"]);
    store.commit(put("b", b"x")).await.unwrap();
    assert_eq!(ids(&store).await, ["a", "b"]);
    drop(store);
    assert_eq!(ids(&SqliteStore::open(&path).unwrap()).await, ["a", "b"]);
}

#[tokio::test]
async fn a_handle_uses_the_database_that_replaced_its_file() {
    let (dir, path) = folder();
    let backup = dir.path().join("backup.db");
    let store = SqliteStore::open(&path).unwrap();
    store.commit(put("early", b"x")).await.unwrap();
    Connection::open(&path).unwrap().execute("VACUUM INTO ?1", [backup.to_str().unwrap()]).unwrap();
    store.commit(put("late", b"x")).await.unwrap();
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(dir.path().join(format!("{FILE_NAME}{suffix}"))).unwrap();
    }
    fs::rename(&backup, &path).unwrap();
    // Another process uses the new file, and its commits are still in the WAL.
    let other = SqliteStore::open(&path).unwrap();
    other.commit(put("other", b"x")).await.unwrap();
    store.commit(put("after", b"x")).await.unwrap();
    assert_eq!(ids(&store).await, ["after", "early", "other"]);
    assert_eq!(ids(&other).await, ["after", "early", "other"]);
    drop((store, other));
    assert_eq!(ids(&SqliteStore::open(&path).unwrap()).await, ["after", "early", "other"]);
}

#[tokio::test]
async fn dropping_the_store_commits_the_waiting_batches() {
    let (_dir, path) = folder();
    for _ in 0..20 {
        let store = SqliteStore::open(&path).unwrap();
        // The commit is polled once and then dropped: the batch is handed over, and no caller waits for it.
        tokio::select! {
            biased;
            result = store.commit(put("left", b"x")) => result.unwrap(),
            () = std::future::ready(()) => {}
        }
        drop(store);
    }
    assert_eq!(ids(&SqliteStore::open(&path).unwrap()).await, ["left"]);
}

#[test]
fn a_path_that_cannot_be_opened_has_an_error_with_the_reason() {
    let (dir, path) = folder();
    let open = |path: &Path| SqliteStore::open(path).unwrap_err();

    let error = open(dir.path());
    assert!(matches!(error, OpenError::IsFolder { .. }), "{error:?}");
    assert!(error.to_string().contains(FILE_NAME), "{error}");

    fs::write(dir.path().join("file"), b"not a folder").unwrap();
    let error = open(&dir.path().join("file/sub").join(FILE_NAME));
    assert!(matches!(error, OpenError::Unwritable { .. }), "{error:?}");

    drop(SqliteStore::open(&path).unwrap());
    let bytes = fs::read(&path).unwrap();
    let garbage: [Vec<u8>; 3] = [
        b"This is a text, not a database, and it is longer than a header of one hundred bytes would be. ".repeat(90),
        // The header of the file is intact, and the tree of the first page is damaged.
        [&bytes[..100], &vec![0xff; bytes.len() - 100]].concat(),
        bytes[..bytes.len() / 2].to_vec(),
    ];
    for (index, bytes) in garbage.into_iter().enumerate() {
        let path = dir.path().join(format!("garbage-{index}.db"));
        fs::write(&path, &bytes).unwrap();
        let error = open(&path);
        assert!(matches!(error, OpenError::Damaged { .. }), "{index}: {error:?}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "a damaged file is left as it is");
    }
}

#[test]
fn newer_and_foreign_databases_are_refused_and_left_alone() {
    let (dir, path) = folder();
    drop(SqliteStore::open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, known: 4, .. }), "{error:?}");
    assert!(error.to_string().contains("newer version"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);

    let foreign = dir.path().join("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE music (title TEXT)").unwrap();
    let error = SqliteStore::open(&foreign).unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
    let mode: String =
        Connection::open(&foreign).unwrap().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete", "another program's database stays as it is");
}

#[test]
fn several_threads_may_create_the_database_at_once() {
    let (_dir, path) = folder();
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || SqliteStore::open(&path).map(drop))
        })
        .collect();
    for opener in openers {
        opener.join().unwrap().unwrap();
    }
}

#[test]
fn a_new_database_is_in_wal_mode_and_has_the_newest_schema() {
    let (_dir, path) = folder();
    drop(SqliteStore::open(&path).unwrap());
    let connection = Connection::open(&path).unwrap();
    let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("PRAGMA journal_mode"), "wal");
    assert_eq!(text("SELECT user_version || '' FROM pragma_user_version"), "4");
    assert_eq!(text("SELECT group_concat(name) FROM pragma_table_info('row')"), "tenant,tbl,id,version,value,sum,keys");
    assert_eq!(text("SELECT group_concat(name) FROM pragma_table_info('row_index')"), "idx,tenant,sort,tbl,id");
}

#[cfg(unix)]
#[tokio::test]
async fn the_files_of_the_database_are_for_this_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, path) = folder();
    let modes = || {
        ["", "-wal", "-shm"].map(|suffix| {
            let file = dir.path().join(format!("{FILE_NAME}{suffix}"));
            fs::metadata(file).unwrap().permissions().mode() & 0o777
        })
    };
    let store = SqliteStore::open(&path).unwrap();
    store.commit(put("a", b"x")).await.unwrap();
    assert_eq!(modes(), [0o600; 3]);
    for suffix in ["", "-wal", "-shm"] {
        let file = dir.path().join(format!("{FILE_NAME}{suffix}"));
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let other = SqliteStore::open(&path).unwrap();
    assert_eq!(modes(), [0o600; 3], "an open database is repaired");
    drop((store, other));
}

#[test]
fn a_database_on_a_network_file_system_is_refused_before_a_file_is_made() {
    let (_dir, path) = folder();
    type FileSystemType = fn(&Path) -> std::io::Result<u64>;
    let file_systems: [(FileSystemType, &str); 11] = [
        (|_| Ok(0x6969), "NFS"),
        (|_| Ok(0x517b), "SMB"),
        (|_| Ok(0xff53_4d42), "SMB"),
        (|_| Ok(0xfe53_4d42), "SMB"),
        (|_| Ok(0x6573_5546), "FUSE"),
        (|_| Ok(0x0102_1997), "9P"),
        (|_| Ok(0x00c3_6400), "Ceph"),
        (|_| Ok(0x0bd0_0bd0), "Lustre"),
        (|_| Ok(0x5346_414f), "AFS"),
        (|_| Ok(0x7375_7245), "Coda"),
        (|_| Ok(0x564c), "NCP"),
    ];
    for (file_system_type, name) in file_systems {
        let error = SqliteStore::open_with(&path, &Options { file_system_type, ..Options::default() }).unwrap_err();
        assert!(matches!(error, OpenError::NetworkFileSystem { kind, .. } if kind == name), "{error:?}");
        assert!(error.to_string().contains("--session-db-path") && !path.exists(), "{error}");
    }
}

/// A commit that was acknowledged after a file had been deleted was lost, because it went to a file without a name.
#[tokio::test]
async fn a_deleted_wal_or_memory_file_is_noticed_before_the_next_acknowledgement() {
    for deleted in [vec!["-wal"], vec!["-shm"], vec!["-wal", "-shm"]] {
        let (dir, path) = folder();
        let store = SqliteStore::open(&path).unwrap();
        let reader = SqliteStore::open(&path).unwrap();
        drop(reader);
        for number in 0..20 {
            store.commit(put(&format!("before/{number:02}"), b"x")).await.unwrap();
        }
        assert_eq!(ids(&store).await.len(), 20);
        for suffix in &deleted {
            fs::remove_file(dir.path().join(format!("{FILE_NAME}{suffix}"))).unwrap();
        }
        let mut acknowledged = Vec::new();
        for number in 0..40 {
            let id = format!("later/{number:02}");
            if store.commit(put(&id, b"x")).await.is_ok() {
                acknowledged.push(id);
            }
        }
        assert!(acknowledged.len() >= 39, "{deleted:?}: {}", acknowledged.len());
        // Another process sees what was acknowledged, and it stays when the store ends without closing its files.
        let other = SqliteStore::open(&path).unwrap();
        let found = ids(&other).await;
        assert_eq!(found.len(), 20 + acknowledged.len(), "{deleted:?}: {found:?}");
        assert_eq!(ids(&store).await, found, "{deleted:?}");
        std::mem::forget(store);
        assert_eq!(ids(&SqliteStore::open(&path).unwrap()).await, found, "{deleted:?}");
    }
}

/// A backup that `VACUUM INTO` made has no WAL until its first read in WAL mode.
#[tokio::test]
async fn a_database_in_another_journal_mode_is_opened_and_comes_into_wal_mode() {
    let (dir, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    store.commit(put("a", b"x")).await.unwrap();
    drop(store);
    let backup = dir.path().join("backup.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute("VACUUM INTO ?1", [backup.to_str().unwrap()]).unwrap();
    drop(connection);
    fs::rename(&backup, &path).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    store.commit(put("b", b"x")).await.unwrap();
    assert_eq!(ids(&store).await, ["a", "b"]);
    assert!(dir.path().join(format!("{FILE_NAME}-wal")).exists());
}

/// Every kind of read finds the files that are there, also one that no other read has prepared.
#[tokio::test]
async fn a_scan_of_an_index_finds_the_files_that_are_there() {
    let indexed = |id: &str| {
        Batch::default().put_indexed(key(id), b"x".to_vec(), Expect::Any, vec![IndexKey::new(Index::State, id)])
    };
    let other_dir = tempfile::tempdir().unwrap();
    let other_path = other_dir.path().join(FILE_NAME);
    let other = SqliteStore::open(&other_path).unwrap();
    other.commit(indexed("new")).await.unwrap();
    drop(other);
    for of_all_tenants in [false, true] {
        let (_dir, path) = folder();
        let store = SqliteStore::open(&path).unwrap();
        store.commit(indexed("old")).await.unwrap();
        let scan = async || {
            let found = if of_all_tenants {
                let range = MaintenanceRange { index: Index::State, before: None, after: None, limit: 9 };
                store.scan_index_of_all_tenants(&range).await
            } else {
                store.scan_index(&IndexRange::new(&TenantId::local(), Index::State, 9)).await
            };
            found.unwrap().into_iter().map(|entry| entry.key.id).collect::<Vec<_>>()
        };
        assert_eq!(scan().await, ["old"]);
        for suffix in ["-wal", "-shm"] {
            fs::remove_file(path.with_file_name(format!("{FILE_NAME}{suffix}"))).unwrap();
        }
        assert_eq!(scan().await, ["old"], "the WAL was deleted");
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(path.with_file_name(format!("{FILE_NAME}{suffix}")));
        }
        let copy = path.with_file_name("copy.db");
        fs::copy(&other_path, &copy).unwrap();
        fs::rename(&copy, &path).unwrap();
        assert_eq!(scan().await, ["new"], "the database was replaced");
    }
}

/// The files of a foreign database must not get the commits of the old WAL.
#[tokio::test]
async fn a_wal_that_was_replaced_gets_nothing_of_the_old_one() {
    let (dir, path) = folder();
    let store = SqliteStore::open(&path).unwrap();
    store.commit(put("old", b"x")).await.unwrap();
    let other_dir = tempfile::tempdir().unwrap();
    let other_path = other_dir.path().join(FILE_NAME);
    let other = SqliteStore::open(&other_path).unwrap();
    other.commit(put("other", b"x")).await.unwrap();
    for suffix in ["-wal", "-shm", ""] {
        let name = format!("{FILE_NAME}{suffix}");
        fs::rename(other_dir.path().join(&name), dir.path().join(&name)).unwrap();
    }
    store.commit(put("after", b"x")).await.unwrap();
    assert_eq!(ids(&store).await, ["after", "other"]);
    drop(store);
    assert_eq!(ids(&SqliteStore::open(&path).unwrap()).await, ["after", "other"]);
    std::mem::forget(other);
}
