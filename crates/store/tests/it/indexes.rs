//! Tests of index entries in SQLite files: after a reopen, after damage, and of several handles.
//! Invariant: a scan returns no row by an entry that the row does not have.

use std::path::{Path, PathBuf};

use base::TenantId;
use ports::Store;
use ports::index::{Index, IndexKey, Order};
use ports::store::{Batch, Error, Expect, IndexEntry, IndexPosition, IndexRange, Key, MaintenanceRange, Table};
use rusqlite::Connection;
use store::sqlite::{FILE_NAME, SqliteStore};
use testkit::memory::MemoryStore;

fn key(id: &str) -> Key {
    Key::new(&TenantId::local(), Table::Run, id)
}

fn put(id: &str, sort: &str) -> Batch {
    Batch::default().put_indexed(key(id), b"x".to_vec(), Expect::Any, vec![IndexKey::new(Index::State, sort)])
}

fn range() -> IndexRange {
    IndexRange::new(&TenantId::local(), Index::State, 100)
}

async fn sorts(store: &SqliteStore) -> Vec<String> {
    store.scan_index(&range()).await.unwrap().into_iter().map(|entry| entry.sort).collect()
}

async fn filled() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let store = SqliteStore::open(&path).unwrap();
    for (id, sort) in [("a", "1"), ("b", "2"), ("c", "3")] {
        store.commit(put(id, sort)).await.unwrap();
    }
    (dir, path)
}

fn change(path: &Path, sql: &str) {
    assert_eq!(Connection::open(path).unwrap().execute(sql, []).unwrap(), 1, "{sql}");
}

#[tokio::test]
async fn entries_survive_a_reopen_and_are_replaced_after_it() {
    let (_dir, path) = filled().await;
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(sorts(&store).await, ["1", "2", "3"]);
    store.commit(put("a", "4").delete(key("b"), Expect::Version(1))).await.unwrap();
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(sorts(&store).await, ["3", "4"]);
    assert_eq!(store.get(&key("a")).await.unwrap().unwrap().version, 2);
}

#[tokio::test]
async fn two_handles_see_each_others_entries() {
    let (_dir, path) = filled().await;
    let (one, two) = (SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap());
    one.commit(put("a", "9")).await.unwrap();
    assert_eq!(sorts(&two).await, ["2", "3", "9"]);
    two.commit(put("a", "0")).await.unwrap();
    assert_eq!(sorts(&one).await, ["0", "2", "3"]);
}

#[tokio::test]
async fn an_entry_that_its_row_does_not_list_is_damage() {
    let damages = [
        ("UPDATE row_index SET sort = '0' WHERE id = 'b'", "an entry under another sort text"),
        ("UPDATE row_index SET id = 'nothing' WHERE id = 'b'", "an entry without its row"),
        ("UPDATE row SET keys = x'00000000' WHERE id = 'b'", "a list that does not match its checksum"),
        ("UPDATE row SET keys = (SELECT keys FROM row WHERE id = 'a') WHERE id = 'b'", "the list of another row"),
        ("UPDATE row SET keys = NULL WHERE id = 'b'", "a lost list"),
        ("UPDATE row SET version = 1 WHERE id = 'b'", "a row that lost the mark that it has entries"),
    ];
    for (sql, what) in damages {
        let (_dir, path) = filled().await;
        change(&path, sql);
        let store = SqliteStore::open(&path).unwrap();
        let result = store.scan_index(&range()).await;
        assert!(matches!(result, Err(Error::Damaged { .. })), "{what}: {result:?}");
        let others = IndexRange { prefix: "3".to_owned(), ..range() };
        assert_eq!(store.scan_index(&others).await.unwrap().len(), 1, "{what}: the other entries can be read");
    }
}

#[tokio::test]
async fn a_write_repairs_a_damaged_list() {
    for sql in ["UPDATE row SET keys = x'00000000' WHERE id = 'b'", "UPDATE row SET keys = NULL WHERE id = 'b'"] {
        let (_dir, path) = filled().await;
        change(&path, sql);
        let store = SqliteStore::open(&path).unwrap();
        store.commit(put("b", "5")).await.unwrap();
        assert_eq!(sorts(&store).await, ["1", "3", "5"], "the old entry is gone although no list named it");
        change(&path, sql);
        store.commit(Batch::default().delete(key("b"), Expect::Any)).await.unwrap();
        assert_eq!(sorts(&store).await, ["1", "3"]);
    }
}

#[tokio::test]
async fn an_entry_of_an_unknown_index_is_removed_with_its_row() {
    let (_dir, path) = filled().await;
    // A newer version, which has one index more, wrote the row; its list names that index.
    let connection = Connection::open(&path).unwrap();
    let list: Vec<u8> = {
        let mut body = Vec::new();
        for text in ["by_colour", "red", "state", "2"] {
            body.extend((text.len() as u16).to_le_bytes());
            body.extend(text.as_bytes());
        }
        let sum = crc32fast::hash(&[b"local\0run\0b\0".as_slice(), &body].concat());
        [sum.to_le_bytes().as_slice(), &body].concat()
    };
    connection.execute("UPDATE row SET keys = ?1 WHERE id = 'b'", [list]).unwrap();
    connection.execute("INSERT INTO row_index VALUES ('by_colour', 'local', 'red', 'run', 'b')", []).unwrap();
    connection
        .execute("INSERT INTO row_index VALUES ('state', 'local', '0', 'table_of_a_newer_version', 'x')", [])
        .unwrap();
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(sorts(&store).await, ["1", "2", "3"], "a row of an unknown table is left out");
    let first = IndexRange { limit: 1, ..range() };
    assert_eq!(store.scan_index(&first).await.unwrap().len(), 1, "it does not count for the limit");
    store.commit(put("b", "4")).await.unwrap();
    let count = "SELECT count(*) FROM row_index WHERE idx = 'by_colour'";
    assert_eq!(connection.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

/// A deterministic sequence of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

const SORTS: [&str; 8] = ["", "a", "a/1", "a/2", "b", "a\u{10ffff}", "\u{10ffff}", "é"];
const TABLES: [Table; 3] = [Table::Run, Table::Artifact, Table::Intent];

fn random_key(numbers: &mut Numbers) -> Key {
    let tenant = TenantId::parse(numbers.pick(&["acme", "b", "local"])).unwrap();
    Key::new(&tenant, numbers.pick(&TABLES), numbers.pick(&["1", "2", "10", ""]))
}

fn random_batch(numbers: &mut Numbers) -> Batch {
    (0..1 + numbers.below(4)).fold(Batch::default(), |batch, _| {
        let key = random_key(numbers);
        let expect = numbers.pick(&[Expect::Any, Expect::Any, Expect::Any, Expect::Absent, Expect::Version(1)]);
        let value = vec![b'x'; numbers.pick(&[0, 3, 9_000])];
        let keys = (0..numbers.below(4))
            .map(|_| IndexKey::new(numbers.pick(&[Index::State, Index::LeaseEnd]), numbers.pick(&SORTS)))
            .collect();
        match numbers.below(8) {
            0 => batch.delete(key, expect),
            1 => batch.check(key, expect),
            2 => batch.put(key, value, expect),
            _ => batch.put_indexed(key, value, expect, keys),
        }
    })
}

async fn scans(store: &dyn Store, numbers: &mut Numbers) -> (Vec<IndexEntry>, Vec<IndexEntry>) {
    let position = |numbers: &mut Numbers| {
        let sort = numbers.pick(&SORTS).to_owned();
        (numbers.below(2) == 0).then(|| IndexPosition { sort, key: random_key(numbers) })
    };
    let index = numbers.pick(&[Index::State, Index::LeaseEnd]);
    let before = numbers.pick(&[None, None, Some("a/2"), Some("é"), Some("")]).map(str::to_owned);
    let limit = numbers.pick(&[0, 1, 2, 100]);
    let own = IndexRange {
        tenant: random_key(numbers).tenant,
        index,
        prefix: numbers.pick(&["", "", "a", "a/", "\u{10ffff}"]).to_owned(),
        before: before.clone(),
        after: position(numbers),
        order: numbers.pick(&[Order::Ascending, Order::Descending]),
        limit,
    };
    let all = MaintenanceRange { index, before, after: position(numbers), limit };
    (store.scan_index(&own).await.unwrap(), store.scan_index_of_all_tenants(&all).await.unwrap())
}

#[tokio::test]
async fn sqlite_and_memory_agree_on_random_batches_and_scans() {
    let dir = tempfile::tempdir().unwrap();
    let mut found = 0;
    for seed in 0..6u64 {
        let (memory, sqlite) =
            (MemoryStore::new(), SqliteStore::open(&dir.path().join(seed.to_string()).join(FILE_NAME)).unwrap());
        let mut numbers = Numbers(seed * 7_919);
        for step in 0..150 {
            let batch = random_batch(&mut numbers);
            let outcomes = (memory.commit(batch.clone()).await, sqlite.commit(batch).await);
            match outcomes {
                (Ok(()), Ok(())) => {}
                (Err(Error::Conflict(one)), Err(Error::Conflict(other))) => assert_eq!(one, other, "{seed}/{step}"),
                outcomes => panic!("{seed}/{step}: {outcomes:?}"),
            }
            for _ in 0..4 {
                let start = numbers.0;
                let in_memory = scans(&memory, &mut Numbers(start)).await;
                let in_sqlite = scans(&sqlite, &mut Numbers(start)).await;
                numbers.below(1);
                assert_eq!(in_memory, in_sqlite, "{seed}/{step}");
                found += in_memory.0.len();
            }
        }
    }
    assert!(found > 1_000, "only {found} entries were compared");
}
