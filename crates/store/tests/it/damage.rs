//! Tests of SQLite databases with damaged pages and rows, and of a database of an older format.
//! Invariant: an error names the damaged row, other rows stay readable, and no row is returned that was not written.

use std::fs;
use std::path::{Path, PathBuf};

use base::TenantId;
use ports::Store;
use ports::store::{Batch, Error, Expect, Key, Range, Table};
use rusqlite::Connection;
use store::sqlite::{FILE_NAME, SqliteStore};

const ROWS: usize = 200;
const PAGE: usize = 4096;

fn key(number: usize) -> Key {
    Key::new(&TenantId::local(), Table::Run, format!("{number:03}"))
}

/// Returns a value so large that the rows are spread over many pages.
fn value(number: usize) -> Vec<u8> {
    format!("row {number:03} {}", "x".repeat(300)).into_bytes()
}

async fn filled_database() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let store = SqliteStore::open(&path).unwrap();
    for number in 0..ROWS {
        store.commit(Batch::default().put(key(number), value(number), Expect::Absent)).await.unwrap();
    }
    (dir, path)
}

/// The result of reading all rows.
#[derive(Debug, PartialEq, Eq)]
struct ReadBack {
    /// The number of rows whose value equals the written value.
    intact: usize,
    /// The error messages of the other rows.
    errors: Vec<String>,
}

/// Reads all rows. A row with another value than was written fails the test.
async fn read_all(store: &SqliteStore) -> ReadBack {
    let mut intact = 0;
    let mut errors = Vec::new();
    for number in 0..ROWS {
        match store.get(&key(number)).await {
            Ok(Some(row)) => {
                assert_eq!(row.value, value(number), "row {number} is another one");
                intact += 1;
            }
            Err(error @ Error::Damaged { .. }) => errors.push(error.to_string()),
            Ok(None) => errors.push(format!("row {number} is missing")),
            Err(error) => panic!("row {number}: {error:?}"),
        }
    }
    ReadBack { intact, errors }
}

/// Flips a bit of the byte at `offset`.
fn damage_byte(path: &Path, offset: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[offset] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_changed_byte_of_a_row_is_named_and_the_others_read() {
    let (_dir, path) = filled_database().await;
    let bytes = fs::read(&path).unwrap();
    let value_offset = bytes.windows(7).position(|window| window == b"row 077").unwrap();
    damage_byte(&path, value_offset + 10);
    let store = SqliteStore::open(&path).unwrap();
    let errors = vec!["row run/077 of tenant local in storage is damaged".to_owned()];
    assert_eq!(read_all(&store).await, ReadBack { intact: ROWS - 1, errors });
    store.commit(Batch::default().put(key(500), b"new".to_vec(), Expect::Absent)).await.unwrap();
    // A new write of the row repairs it.
    store.commit(Batch::default().put(key(77), value(77), Expect::Any)).await.unwrap();
    assert_eq!(read_all(&store).await.intact, ROWS);
}

#[tokio::test]
async fn a_row_under_the_key_of_another_is_damage() {
    let (_dir, path) = filled_database().await;
    let swap =
        "UPDATE row SET value = (SELECT value FROM row WHERE id = '001'), sum = (SELECT sum FROM row WHERE id = '001')
        WHERE id = '002'";
    Connection::open(&path).unwrap().execute(swap, []).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    assert!(matches!(store.get(&key(2)).await, Err(Error::Damaged { .. })));
    assert!(store.get(&key(1)).await.unwrap().is_some());
}

/// A read that fails inside a transaction must not leave it open: later reads on that connection would not see later commits.
#[tokio::test]
async fn after_a_scan_found_a_damaged_row_reads_see_later_commits() {
    let (_dir, path) = filled_database().await;
    let store = SqliteStore::open(&path).unwrap();
    let key_in = |table, id: &str| Key::new(&TenantId::local(), table, id);
    let put = |table, id: &str, value: &[u8]| Batch::default().put(key_in(table, id), value.to_vec(), Expect::Any);
    for id in ["a", "b"] {
        store.commit(put(Table::OpenExecution, id, b"")).await.unwrap();
        store.commit(put(Table::Execution, id, b"first")).await.unwrap();
    }
    let range =
        Range { tenant: TenantId::local(), table: Table::OpenExecution, prefix: String::new(), after: None, limit: 9 };
    assert_eq!(store.scan_with(&range, Table::Execution).await.unwrap().len(), 2);
    let damage = "UPDATE row SET value = x'00' WHERE tbl = 'execution' AND id = 'a'";
    assert_eq!(Connection::open(&path).unwrap().execute(damage, []).unwrap(), 1);
    for round in ["second", "third"] {
        assert!(matches!(store.scan_with(&range, Table::Execution).await, Err(Error::Damaged { .. })));
        store.commit(put(Table::Execution, "b", round.as_bytes())).await.unwrap();
        let row = store.get(&key_in(Table::Execution, "b")).await.unwrap().unwrap();
        assert_eq!(row.value, round.as_bytes());
    }
    store.commit(put(Table::Execution, "a", b"mended")).await.unwrap();
    let pairs = store.scan_with(&range, Table::Execution).await.unwrap();
    let values: Vec<_> = pairs.into_iter().map(|(_, row)| row.unwrap().value).collect();
    assert_eq!(values, [b"mended".to_vec(), b"third".to_vec()]);
}

/// Damages every page except the first, one after the other. No wrong row is returned, and most rows stay readable.
#[tokio::test]
async fn a_broken_page_costs_only_its_own_rows() {
    let (dir, path) = filled_database().await;
    let whole = fs::read(&path).unwrap();
    let pages = whole.len() / PAGE;
    let mut noticed = 0;
    let mut mostly_readable = 0;
    assert!(pages > 10, "{pages} pages are too few to tell");
    for page in 1..pages {
        let broken = dir.path().join(format!("{page}.db"));
        let mut bytes = whole.clone();
        bytes[page * PAGE..(page + 1) * PAGE].iter_mut().for_each(|byte| *byte = 0xa5);
        fs::write(&broken, bytes).unwrap();
        let Ok(store) = SqliteStore::open(&broken) else {
            noticed += 1;
            continue;
        };
        let ReadBack { intact, errors } = read_all(&store).await;
        noticed += usize::from(!errors.is_empty());
        let names_the_part = |text: &String| text.contains("run/") || text.contains(FILE_NAME);
        assert!(errors.iter().all(names_the_part), "page {page}: {errors:?}");
        mostly_readable += usize::from(intact > ROWS - 40);
    }
    // A leaf page contains about a dozen rows. The few pages above the leaves lead to many rows.
    assert!(mostly_readable > pages * 3 / 4, "only {mostly_readable} of {pages} broken pages left most rows readable");
    assert!(noticed > pages / 2, "only {noticed} of {pages} broken pages were noticed");
}

#[tokio::test]
async fn a_database_of_the_first_format_is_migrated() {
    let (_dir, path) = filled_database().await;
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE first (
            tenant TEXT NOT NULL, tbl TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL,
            PRIMARY KEY (tenant, tbl, id)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO first SELECT tenant, tbl, id, version, value FROM row;
        DROP TABLE row;
        DROP TABLE row_index;
        ALTER TABLE first RENAME TO row;
        PRAGMA user_version = 1",
    )
    .unwrap();
    drop(old);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(read_all(&store).await, ReadBack { intact: ROWS, errors: Vec::new() });
    store.commit(Batch::default().put(key(7), value(7), Expect::Version(1))).await.unwrap();
    drop(store);
    let count = "SELECT count(*) FROM row WHERE sum IS NOT NULL";
    let rows_with_sum: i64 = Connection::open(&path).unwrap().query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(rows_with_sum, 1, "a row gets its checksum when it is written");
}
