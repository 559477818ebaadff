//! Tests of migrations from a database that an earlier version made: whole, interrupted at each event, beside another
//! process, and on a full disk.
//! Invariant: `fixtures/format-3.db` was made by commit 67c8bc53 and is never written.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::TenantId;
use ports::Store;
use ports::index::{Index, IndexKey};
use ports::store::{Batch, Expect, IndexRange, Key, Range, Row, Table};
use rusqlite::Connection;
use store::OpenError;
use store::sqlite::{FILE_NAME, MigrationEvent, Options, SqliteStore};

/// The format of the fixture, and that of this version.
const OLD: i64 = 3;
const NEW: i64 = 4;
/// Environment variables that only the parent sets: the database to migrate, and the number of the event at which the
/// process is killed.
const DATABASE: &str = "TOKAMAK_MIGRATION_TEST_DATABASE";
const KILL_AT: &str = "TOKAMAK_MIGRATION_TEST_KILL_AT";

fn old_database() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/format-3.db"), &path).unwrap();
    (dir, path)
}

/// Returns a database of the first format with a few rows. Three steps lead from it to the current format.
fn first_database() -> (tempfile::TempDir, PathBuf) {
    let (dir, path) = old_database();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE first (
                tenant TEXT NOT NULL, tbl TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL,
                value BLOB NOT NULL, PRIMARY KEY (tenant, tbl, id)
            ) STRICT, WITHOUT ROWID;
            INSERT INTO first SELECT tenant, tbl, id, version, value FROM row;
            DROP TABLE row;
            ALTER TABLE first RENAME TO row;
            PRAGMA user_version = 1",
        )
        .unwrap();
    (dir, path)
}

fn version_of(path: &Path) -> i64 {
    Connection::open(path).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

fn copy_of(path: &Path, version: i64) -> PathBuf {
    path.with_file_name(format!("{FILE_NAME}.format-{version}"))
}

/// Returns the names of the files beside the database.
fn files(path: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn names<const N: usize>(suffixes: [&str; N]) -> BTreeSet<String> {
    suffixes.into_iter().map(|suffix| format!("{FILE_NAME}{suffix}")).collect()
}

/// Checks every row of the fixture: two tenants with three rows in each of the 26 tables, and one large row.
async fn check_rows(store: &SqliteStore) {
    for name in ["acme", "local"] {
        let tenant = TenantId::parse(name).unwrap();
        // Later versions add their tables at the end.
        for table in Table::ALL.into_iter().take(26) {
            let range = Range { tenant: tenant.clone(), table, prefix: String::new(), after: None, limit: 100 };
            let mut expected: Vec<(String, Row)> = (1..=3u64)
                .map(|version| {
                    let id = format!("{}/{}", table.name(), version - 1);
                    let value =
                        format!("{{\"tenant\":\"{name}\",\"table\":\"{}\",\"version\":{version}}}", table.name());
                    (id, Row { version, value: value.into_bytes() })
                })
                .collect();
            if table == Table::Artifact {
                expected.push(("large".to_owned(), Row { version: 1, value: vec![b'x'; 20_000] }));
            }
            assert_eq!(store.scan(&range).await.unwrap(), expected, "{name}/{}", table.name());
        }
    }
}

fn key(id: &str) -> Key {
    Key::new(&TenantId::local(), Table::Run, id)
}

/// Gives an old row index entries, and finds it by them.
async fn use_index(store: &SqliteStore) {
    let keys = vec![IndexKey::new(Index::State, "failed/1")];
    let old = store.get(&key("run/2")).await.unwrap().unwrap();
    store
        .commit(Batch::default().put_indexed(key("run/2"), old.value, Expect::Version(old.version), keys))
        .await
        .unwrap();
    let found = store.scan_index(&IndexRange::new(&TenantId::local(), Index::State, 9)).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].key.clone(), found[0].row.version), (key("run/2"), old.version + 1));
}

#[tokio::test]
async fn an_old_database_is_migrated_and_its_copy_stays_until_a_clean_stop() {
    let (_dir, path) = old_database();
    let store = SqliteStore::open(&path).unwrap();
    check_rows(&store).await;
    assert_eq!(files(&path), names(["", "-shm", "-wal", ".format-3"]));
    // The copy has the old format, and all rows.
    let copy = Connection::open(copy_of(&path, OLD)).unwrap();
    let number = |sql: &str| copy.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((number("PRAGMA user_version"), number("SELECT count(*) FROM row")), (OLD, 2 * (26 * 3 + 1)));
    copy.close().unwrap();
    // A stop without a write is no reason to remove it: nothing would be lost by going back.
    drop(store);
    assert_eq!(files(&path), names(["", ".format-3"]));
    let store = SqliteStore::open(&path).unwrap();
    use_index(&store).await;
    assert!(copy_of(&path, OLD).exists(), "the store is still open");
    drop(store);
    assert_eq!(files(&path), names([""]));
    assert_eq!(version_of(&path), NEW);
}

#[tokio::test]
async fn the_copy_is_a_database_of_its_own() {
    let (_dir, path) = old_database();
    drop(SqliteStore::open(&path).unwrap());
    fs::remove_file(&path).unwrap();
    fs::rename(copy_of(&path, OLD), &path).unwrap();
    assert_eq!(version_of(&path), OLD);
    check_rows(&SqliteStore::open(&path).unwrap()).await;
}

/// At each event, every file of a migration is for this user only: the database, its WAL, the lock, and the copy under both of its names.
#[cfg(unix)]
#[test]
fn the_files_of_a_migration_are_for_this_user_only() {
    use std::os::unix::fs::PermissionsExt;
    thread_local! {
        static FOLDER: std::cell::RefCell<PathBuf> = const { std::cell::RefCell::new(PathBuf::new()) };
        static MODES: std::cell::RefCell<BTreeSet<(String, u32)>> = const { std::cell::RefCell::new(BTreeSet::new()) };
    }
    fn look(_: &MigrationEvent) {
        for entry in FOLDER.with_borrow(|folder| fs::read_dir(folder).unwrap()) {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            MODES.with_borrow_mut(|modes| modes.insert((entry.file_name().into_string().unwrap(), mode)));
        }
    }
    for mode in [0o600, 0o644, 0o666] {
        let (dir, path) = old_database();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        FOLDER.set(dir.path().to_owned());
        drop(SqliteStore::open_with(&path, &Options { on_migration: look, ..Options::default() }).unwrap());
        look(&MigrationEvent::Finished);
        let modes = MODES.take();
        let seen: BTreeSet<String> = modes.iter().map(|(name, _)| name.clone()).collect();
        assert!(seen.is_superset(&names(["", "-wal", ".migrating", ".format-3", ".format-3.new"])), "{seen:?}");
        assert!(modes.iter().all(|(_, found)| *found == 0o600), "{mode:o}: {modes:?}");
    }
}

#[test]
fn the_events_of_a_migration_are_in_order() {
    thread_local! {
        static EVENTS: std::cell::RefCell<Vec<MigrationEvent>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let (_dir, path) = first_database();
    let on_migration = |event: &MigrationEvent| EVENTS.with_borrow_mut(|events| events.push(*event));
    drop(SqliteStore::open_with(&path, &Options { on_migration, ..Options::default() }).unwrap());
    let events = EVENTS.take();
    assert_eq!(events[0], MigrationEvent::Started { from: 1, to: NEW });
    assert!(matches!(events[1], MigrationEvent::Copying { pages_done, pages } if pages_done == pages && pages > 10));
    assert_eq!(events[2], MigrationEvent::Copied);
    let steps: Vec<i64> = events
        .iter()
        .filter_map(|event| if let MigrationEvent::StepCommitted { step, .. } = event { Some(*step) } else { None })
        .collect();
    assert_eq!(steps, [2, 3, 4]);
    assert_eq!(events.last(), Some(&MigrationEvent::Finished));
    drop(SqliteStore::open_with(&path, &Options { on_migration, ..Options::default() }).unwrap());
    assert_eq!(EVENTS.take(), [], "a current database is not migrated");
}

/// The body of the process that is killed during its migration. It is a test function so that the parent can run it by
/// name in a child process.
#[test]
#[ignore = "run by a_migration_that_is_killed_anywhere_goes_on"]
fn child_that_migrates() {
    static EVENTS: AtomicUsize = AtomicUsize::new(0);
    let (Ok(path), Ok(_)) = (std::env::var(DATABASE), std::env::var(KILL_AT)) else { return };
    let on_migration = |_: &MigrationEvent| {
        let number: usize = std::env::var(KILL_AT).unwrap().parse().unwrap();
        if EVENTS.fetch_add(1, Ordering::Relaxed) == number {
            // Nothing is unwound or closed, as after `kill -9`.
            std::process::abort();
        }
    };
    SqliteStore::open_with(Path::new(&path), &Options { on_migration, ..Options::default() }).unwrap();
}

#[tokio::test]
async fn a_migration_that_is_killed_anywhere_goes_on() {
    for make in [old_database, first_database] {
        let mut kill_at = 0;
        loop {
            let (_dir, path) = make();
            let original = version_of(&path);
            let was_killed = !run_child(&path, kill_at);
            if !was_killed {
                break;
            }
            // The format is the old one with all old rows, or the database is refused by the old version.
            let version = version_of(&path);
            assert!(version == original || version == NEW, "killed at event {kill_at}: format {version}");
            if version == NEW {
                assert!(copy_of(&path, original).exists(), "killed at event {kill_at}: there is no copy");
            }
            let store = SqliteStore::open(&path).unwrap();
            check_rows(&store).await;
            use_index(&store).await;
            let copy = Connection::open(copy_of(&path, original)).ok();
            let count = copy.map(|copy| copy.query_row("SELECT count(*) FROM row", [], |row| row.get::<_, i64>(0)));
            assert_eq!(count.unwrap().unwrap(), 2 * (26 * 3 + 1), "killed at event {kill_at}: the copy is whole");
            drop(store);
            assert_eq!(files(&path), names([""]), "killed at event {kill_at}: a file is left");
            kill_at += 1;
        }
        assert!(kill_at >= 7, "only {kill_at} events were tested");
    }
}

/// Runs a child that migrates, and returns whether it ended by itself.
fn run_child(path: &Path, kill_at: usize) -> bool {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "migration::child_that_migrates", "--ignored"])
        .env(DATABASE, path)
        .env(KILL_AT, kill_at.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    status.success()
}

#[tokio::test]
async fn an_old_process_on_the_database_stops_the_migration() {
    let (_dir, path) = old_database();
    // A connection of an older version: it has read once, and holds its lock for as long as it is open.
    let old = Connection::open(&path).unwrap();
    old.query_row("SELECT count(*) FROM row", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = fs::read(&path).unwrap();
    let options = Options { busy_timeout: Duration::from_millis(50), ..Options::default() };
    let error = SqliteStore::open_with(&path, &options).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
    assert!(error.to_string().contains("end every Tokamak process"), "{error}");
    assert_eq!(version_of(&path), OLD);
    assert!(!copy_of(&path, OLD).exists(), "nothing was begun");
    assert!(fs::read(&path).unwrap() == before);
    old.execute("UPDATE row SET version = version WHERE id = 'run/0'", []).unwrap();
    old.close().unwrap();
    check_rows(&SqliteStore::open_with(&path, &options).unwrap()).await;
}

/// Holds a database of the old format open, as a server of an older version does, until its input ends.
#[test]
#[ignore = "run by the_error_names_the_process_that_is_in_the_way"]
fn child_that_holds() {
    let Ok(path) = std::env::var(DATABASE) else { return };
    let connection = Connection::open(path).unwrap();
    connection.query_row("SELECT count(*) FROM row", [], |row| row.get::<_, i64>(0)).unwrap();
    writeln!(std::io::stdout(), "\nholding").unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[cfg(target_os = "linux")]
#[test]
fn the_error_names_the_process_that_is_in_the_way() {
    use std::io::{BufRead, BufReader};
    let (_dir, path) = old_database();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "migration::child_that_holds", "--ignored", "--nocapture"])
        .env(DATABASE, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"));
    let options = Options { busy_timeout: Duration::from_millis(50), ..Options::default() };
    let error = SqliteStore::open_with(&path, &options).unwrap_err();
    let OpenError::InUse { holders, .. } = &error else { panic!("{error:?}") };
    assert_eq!(holders.as_slice(), [child.id()]);
    assert!(error.to_string().contains(&format!("process {} still uses it", child.id())), "{error}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    SqliteStore::open_with(&path, &options).unwrap();
}

#[test]
fn several_processes_may_open_an_old_database_at_once() {
    let (_dir, path) = old_database();
    let path = Arc::new(path);
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let path = Arc::clone(&path);
            std::thread::spawn(move || SqliteStore::open(&path).map(drop))
        })
        .collect();
    for opener in openers {
        opener.join().unwrap().unwrap();
    }
    assert_eq!(files(&path), names(["", ".format-3"]));
}

#[test]
fn a_disk_without_room_for_the_copy_leaves_the_database_as_it_is() {
    let (_dir, path) = old_database();
    // A folder in the place of the copy fails like a full disk: the copy cannot get its name.
    fs::create_dir(copy_of(&path, OLD)).unwrap();
    fs::write(copy_of(&path, OLD).join("file"), b"x").unwrap();
    assert!(matches!(SqliteStore::open(&path), Err(OpenError::Unwritable { .. })));
    assert_eq!(version_of(&path), OLD);
    fs::remove_dir_all(copy_of(&path, OLD)).unwrap();
    drop(SqliteStore::open(&path).unwrap());
    assert_eq!(version_of(&path), NEW);
}

#[test]
fn a_full_database_file_undoes_the_step() {
    let (_dir, path) = old_database();
    let options = Options { max_pages: Some(1), ..Options::default() };
    let error = SqliteStore::open_with(&path, &options).unwrap_err();
    assert!(matches!(error, OpenError::Full { .. }), "{error:?}");
    assert_eq!(version_of(&path), OLD);
    drop(SqliteStore::open(&path).unwrap());
    assert_eq!(version_of(&path), NEW);
}
