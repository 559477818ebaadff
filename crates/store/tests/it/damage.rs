//! A database that is not what was written, and one that an older version wrote.
//! Invariant: what is damaged is named, the rest can be used, and nothing else than what was written is ever given out.

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

/// Larger than a line of a page, so that rows are spread over many.
fn value(number: usize) -> Vec<u8> {
    format!("row {number:03} {}", "x".repeat(300)).into_bytes()
}

async fn filled() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let store = SqliteStore::open(&path).unwrap();
    for number in 0..ROWS {
        store.commit(Batch::default().put(key(number), value(number), Expect::Absent)).await.unwrap();
    }
    (dir, path)
}

/// How many rows read back, and what is said of the others; a row that reads back as something else fails the test.
async fn read_all(store: &SqliteStore) -> (usize, Vec<String>) {
    let (mut sound, mut said) = (0, Vec::new());
    for number in 0..ROWS {
        match store.get(&key(number)).await {
            Ok(Some(row)) => {
                assert_eq!(row.value, value(number), "row {number} is another one");
                sound += 1;
            }
            Err(error @ Error::Damaged { .. }) => said.push(error.to_string()),
            Ok(None) => said.push(format!("row {number} is not there")),
            Err(error) => panic!("row {number}: {error:?}"),
        }
    }
    (sound, said)
}

fn change(path: &Path, at: usize, change: impl Fn(&mut [u8])) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes[at..at + PAGE.min(16)]);
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_changed_byte_of_a_row_is_named_and_the_others_read() {
    let (_dir, path) = filled().await;
    let bytes = fs::read(&path).unwrap();
    let at = bytes.windows(7).position(|window| window == b"row 077").unwrap();
    change(&path, at, |bytes| bytes[10] ^= 1);
    let store = SqliteStore::open(&path).unwrap();
    let (sound, said) = read_all(&store).await;
    assert_eq!((sound, said), (ROWS - 1, vec!["row run/077 of tenant local in storage is damaged".to_owned()]));
    store.commit(Batch::default().put(key(500), b"new".to_vec(), Expect::Absent)).await.unwrap();
    // Written again, it is whole again.
    store.commit(Batch::default().put(key(77), value(77), Expect::Any)).await.unwrap();
    assert_eq!(read_all(&store).await.0, ROWS);
}

#[tokio::test]
async fn a_row_under_the_key_of_another_is_damage() {
    let (_dir, path) = filled().await;
    let swap =
        "UPDATE row SET value = (SELECT value FROM row WHERE id = '001'), sum = (SELECT sum FROM row WHERE id = '001')
        WHERE id = '002'";
    Connection::open(&path).unwrap().execute(swap, []).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    assert!(matches!(store.get(&key(2)).await, Err(Error::Damaged { .. })));
    assert!(store.get(&key(1)).await.unwrap().is_some());
}

/// What failed in the middle of a transaction leaves none open: later reads would see what was there then.
#[tokio::test]
async fn after_a_damaged_row_among_others_reads_see_what_is_new() {
    let (_dir, path) = filled().await;
    let store = SqliteStore::open(&path).unwrap();
    let at = |table, id: &str| Key::new(&TenantId::local(), table, id);
    let put = |table, id: &str, value: &[u8]| Batch::default().put(at(table, id), value.to_vec(), Expect::Any);
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
        let found = store.get(&at(Table::Execution, "b")).await.unwrap().unwrap();
        assert_eq!(found.value, round.as_bytes());
    }
    store.commit(put(Table::Execution, "a", b"mended")).await.unwrap();
    let found = store.scan_with(&range, Table::Execution).await.unwrap();
    let values: Vec<_> = found.into_iter().map(|(_, row)| row.unwrap().value).collect();
    assert_eq!(values, [b"mended".to_vec(), b"third".to_vec()]);
}

/// Every page but the first, one after the other: nothing wrong is ever given out and most rows can still be read.
#[tokio::test]
async fn a_broken_page_costs_the_rows_in_it() {
    let (dir, path) = filled().await;
    let whole = fs::read(&path).unwrap();
    let (mut noticed, mut cheap, pages) = (0, 0, whole.len() / PAGE);
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
        let (sound, said) = read_all(&store).await;
        noticed += usize::from(!said.is_empty());
        let says_what = |text: &String| text.contains("run/") || text.contains(FILE_NAME);
        assert!(said.iter().all(says_what), "page {page}: {said:?}");
        cheap += usize::from(sound > ROWS - 40);
    }
    // A leaf holds about a dozen rows; the few pages above them lead to many.
    assert!(cheap > pages * 3 / 4, "only {cheap} of {pages} broken pages left most rows readable");
    assert!(noticed > pages / 2, "only {noticed} of {pages} broken pages were noticed");
}

#[tokio::test]
async fn a_database_of_the_first_format_is_read_and_brought_up_to_date() {
    let (_dir, path) = filled().await;
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE first (
            tenant TEXT NOT NULL, tbl TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL,
            PRIMARY KEY (tenant, tbl, id)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO first SELECT tenant, tbl, id, version, value FROM row;
        DROP TABLE row;
        ALTER TABLE first RENAME TO row;
        PRAGMA user_version = 1",
    )
    .unwrap();
    drop(old);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(read_all(&store).await, (ROWS, Vec::new()));
    store.commit(Batch::default().put(key(7), value(7), Expect::Version(1))).await.unwrap();
    drop(store);
    let summed = "SELECT count(*) FROM row WHERE sum IS NOT NULL";
    let summed: i64 = Connection::open(&path).unwrap().query_row(summed, [], |row| row.get(0)).unwrap();
    assert_eq!(summed, 1, "a row has its sum from when it is written");
}
