//! The conformance suite of the port `Store`: checks that every implementation must pass.
//! Invariant: each check starts with a new, empty store, so no check depends on another.

use std::sync::Arc;

use base::TenantId;
use ports::Store;
use ports::store::{Batch, Error, Expect, Key, Range, Row, Table};

/// Runs every check, and panics at the first check that fails. Each call of `make` must return a new, empty store.
pub async fn store<S: Store + ?Sized + 'static>(make: impl AsyncFn() -> Arc<S>) {
    rows_are_put_read_and_deleted(&*make().await).await;
    versions_count_writes(&*make().await).await;
    a_write_succeeds_only_if_it_finds_what_it_expects(&*make().await).await;
    a_batch_is_all_or_nothing(&*make().await).await;
    writes_of_one_key_are_in_order(&*make().await).await;
    a_check_guards_its_batch_and_changes_nothing(&*make().await).await;
    a_check_sees_earlier_writes_of_its_batch(&*make().await).await;
    a_checked_row_cannot_change_before_the_commit(make().await).await;
    tenants_and_tables_are_separate(&*make().await).await;
    scans_are_in_the_order_of_bytes(&*make().await).await;
    prefixes_are_plain_text(&*make().await).await;
    a_scan_continues_after_a_position(&*make().await).await;
    a_scan_finds_rows_of_another_table(&*make().await).await;
    any_bytes_and_long_ids_fit(&*make().await).await;
    concurrent_increments_are_all_counted(make().await).await;
    every_tenant_with_a_row_is_known(&*make().await).await;
}

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}

fn key(id: &str) -> Key {
    Key::new(&tenant("acme"), Table::Run, id)
}

fn put(key: &Key, value: &[u8], expect: Expect) -> Batch {
    Batch::default().put(key.clone(), value.to_vec(), expect)
}

async fn write<S: Store + ?Sized>(store: &S, batch: Batch) {
    store.commit(batch).await.expect("a commit that conflicts with nothing");
}

async fn read<S: Store + ?Sized>(store: &S, key: &Key) -> Option<Row> {
    store.get(key).await.expect("a get")
}

/// Commits a batch that must be refused with a conflict at this key.
async fn refused<S: Store + ?Sized>(store: &S, batch: Batch, at: &Key) {
    match store.commit(batch).await {
        Err(Error::Conflict(key)) => assert_eq!(&key, at, "the conflict names the wrong key"),
        other => panic!("expected a conflict at {at:?}, got {other:?}"),
    }
}

fn row(version: u64, value: &[u8]) -> Option<Row> {
    Some(Row { version, value: value.to_vec() })
}

async fn rows_are_put_read_and_deleted<S: Store + ?Sized>(store: &S) {
    store.ping().await.expect("ping");
    write(store, Batch::default()).await;
    assert_eq!(read(store, &key("a")).await, None);
    write(store, put(&key("a"), b"1", Expect::Any)).await;
    assert_eq!(read(store, &key("a")).await, row(1, b"1"));
    write(store, Batch::default().delete(key("a"), Expect::Any)).await;
    assert_eq!(read(store, &key("a")).await, None);
    write(store, Batch::default().delete(key("a"), Expect::Any)).await;
    store.ping().await.expect("ping");
}

async fn versions_count_writes<S: Store + ?Sized>(store: &S) {
    for version in 1..=3 {
        write(store, put(&key("a"), b"same", Expect::Any)).await;
        assert_eq!(read(store, &key("a")).await, row(version, b"same"), "each write counts, also of equal bytes");
    }
    write(store, put(&key("b"), b"", Expect::Any)).await;
    assert_eq!(read(store, &key("b")).await, row(1, b""), "each key counts for itself");
    write(store, Batch::default().delete(key("a"), Expect::Version(3))).await;
    write(store, put(&key("a"), b"new", Expect::Absent)).await;
    assert_eq!(read(store, &key("a")).await, row(1, b"new"), "a key made again starts at 1 again");
}

async fn a_write_succeeds_only_if_it_finds_what_it_expects<S: Store + ?Sized>(store: &S) {
    let a = key("a");
    refused(store, put(&a, b"x", Expect::Version(1)), &a).await;
    refused(store, put(&a, b"x", Expect::Version(0)), &a).await;
    refused(store, Batch::default().delete(a.clone(), Expect::Version(1)), &a).await;
    write(store, Batch::default().delete(a.clone(), Expect::Absent)).await;
    assert_eq!(read(store, &a).await, None);

    write(store, put(&a, b"1", Expect::Absent)).await;
    refused(store, put(&a, b"x", Expect::Absent), &a).await;
    refused(store, Batch::default().delete(a.clone(), Expect::Absent), &a).await;
    for wrong in [0, 2, u64::MAX, i64::MAX as u64 + 2] {
        refused(store, put(&a, b"x", Expect::Version(wrong)), &a).await;
        refused(store, Batch::default().delete(a.clone(), Expect::Version(wrong)), &a).await;
    }
    assert_eq!(read(store, &a).await, row(1, b"1"));

    write(store, put(&a, b"2", Expect::Version(1))).await;
    write(store, put(&a, b"3", Expect::Any)).await;
    write(store, Batch::default().delete(a.clone(), Expect::Version(3))).await;
    assert_eq!(read(store, &a).await, None);
}

async fn a_batch_is_all_or_nothing<S: Store + ?Sized>(store: &S) {
    write(store, put(&key("old"), b"old", Expect::Any)).await;
    let batch = put(&key("a"), b"1", Expect::Absent)
        .put(key("old"), b"new".to_vec(), Expect::Any)
        .delete(key("old"), Expect::Version(2))
        .put(key("b"), b"1".to_vec(), Expect::Version(7))
        .put(key("c"), b"1".to_vec(), Expect::Any);
    refused(store, batch, &key("b")).await;
    assert_eq!(read(store, &key("old")).await, row(1, b"old"));
    for id in ["a", "b", "c"] {
        assert_eq!(read(store, &key(id)).await, None, "{id}");
    }
    let batch = put(&key("a"), b"1", Expect::Absent)
        .put(Key::new(&tenant("other"), Table::Connection, "a"), b"2".to_vec(), Expect::Absent)
        .delete(key("old"), Expect::Version(1));
    write(store, batch).await;
    assert_eq!(read(store, &key("a")).await, row(1, b"1"));
    assert_eq!(read(store, &Key::new(&tenant("other"), Table::Connection, "a")).await, row(1, b"2"));
    assert_eq!(read(store, &key("old")).await, None);
}

async fn writes_of_one_key_are_in_order<S: Store + ?Sized>(store: &S) {
    let a = key("a");
    write(store, put(&a, b"1", Expect::Absent).put(a.clone(), b"2".to_vec(), Expect::Version(1))).await;
    assert_eq!(read(store, &a).await, row(2, b"2"));
    refused(store, put(&a, b"3", Expect::Version(2)).put(a.clone(), b"4".to_vec(), Expect::Version(2)), &a).await;
    assert_eq!(read(store, &a).await, row(2, b"2"), "the first of the two is taken back");
    write(store, Batch::default().delete(a.clone(), Expect::Version(2)).put(a.clone(), b"5".to_vec(), Expect::Absent))
        .await;
    assert_eq!(read(store, &a).await, row(1, b"5"), "made again within one batch, it starts at 1");
    write(store, put(&a, b"6", Expect::Any).delete(a.clone(), Expect::Version(2))).await;
    assert_eq!(read(store, &a).await, None);
}

async fn a_check_guards_its_batch_and_changes_nothing<S: Store + ?Sized>(store: &S) {
    let (lease, other) = (key("lease"), Key::new(&tenant("other"), Table::Connection, "lease"));
    write(store, put(&lease, b"epoch 1", Expect::Absent)).await;
    for wrong in [Expect::Absent, Expect::Version(0), Expect::Version(2), Expect::Version(u64::MAX)] {
        let before = put(&key("a"), b"1", Expect::Any).check(lease.clone(), wrong);
        refused(store, before, &lease).await;
        let after = Batch::default().check(lease.clone(), wrong).put(key("a"), b"1".to_vec(), Expect::Any);
        refused(store, after, &lease).await;
        refused(store, Batch::default().check(lease.clone(), wrong), &lease).await;
        assert_eq!(read(store, &key("a")).await, None, "{wrong:?}: a batch whose check fails is not applied");
    }
    refused(store, put(&key("a"), b"1", Expect::Any).check(other.clone(), Expect::Version(1)), &other).await;
    let batch = Batch::default()
        .check(lease.clone(), Expect::Version(1))
        .check(other.clone(), Expect::Absent)
        .check(other.clone(), Expect::Any)
        .put(key("a"), b"1".to_vec(), Expect::Absent);
    write(store, batch.clone()).await;
    assert_eq!(read(store, &key("a")).await, row(1, b"1"));
    assert_eq!(read(store, &lease).await, row(1, b"epoch 1"), "a check does not count as a write");
    assert_eq!(read(store, &other).await, None, "a check creates no row");
    refused(store, batch, &key("a")).await;
    write(store, put(&lease, b"epoch 2", Expect::Version(1))).await;
    let late = put(&key("b"), b"1", Expect::Any).check(lease.clone(), Expect::Version(1));
    refused(store, late, &lease).await;
    assert_eq!(read(store, &key("b")).await, None);
}

async fn a_check_sees_earlier_writes_of_its_batch<S: Store + ?Sized>(store: &S) {
    let a = key("a");
    let put_and_check = put(&a, b"1", Expect::Absent).check(a.clone(), Expect::Version(1));
    write(store, put_and_check.clone().put(a.clone(), b"2".to_vec(), Expect::Version(1))).await;
    assert_eq!(read(store, &a).await, row(2, b"2"));
    let stale = put(&a, b"3", Expect::Version(2)).check(a.clone(), Expect::Version(2));
    refused(store, stale, &a).await;
    assert_eq!(read(store, &a).await, row(2, b"2"), "the write before the check is taken back");
    let early = Batch::default().check(a.clone(), Expect::Version(3)).put(a.clone(), b"3".to_vec(), Expect::Any);
    refused(store, early, &a).await;
    let deleted = Batch::default().delete(a.clone(), Expect::Any).check(a.clone(), Expect::Absent);
    write(store, deleted.put(key("b"), b"1".to_vec(), Expect::Absent)).await;
    assert_eq!(read(store, &a).await, None);
    write(store, put_and_check).await;
    assert_eq!(read(store, &a).await, row(1, b"1"));
}

/// An owner writes under a lease while another one takes the lease over. After the takeover no write of the first
/// owner may succeed.
async fn a_checked_row_cannot_change_before_the_commit<S: Store + ?Sized + 'static>(store: Arc<S>) {
    write(&*store, put(&key("lease"), b"first", Expect::Absent)).await;
    let writer = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut written = 0u32;
            loop {
                let batch = put(&key("progress"), (written + 1).to_string().as_bytes(), Expect::Any)
                    .check(key("lease"), Expect::Version(1));
                match store.commit(batch).await {
                    Ok(()) => written += 1,
                    Err(Error::Conflict(at)) => break assert_eq!(at, key("lease")),
                    Err(error) => panic!("a checked write failed: {error:?}"),
                }
                tokio::task::yield_now().await;
            }
        })
    };
    while read(&*store, &key("progress")).await.is_none() {
        tokio::task::yield_now().await;
    }
    write(&*store, put(&key("lease"), b"second", Expect::Version(1))).await;
    let at_takeover = read(&*store, &key("progress")).await;
    writer.await.expect("the first owner");
    assert_eq!(read(&*store, &key("progress")).await, at_takeover, "the old owner wrote after the takeover");
}

async fn tenants_and_tables_are_separate<S: Store + ?Sized>(store: &S) {
    let keys = [
        ("acme", Table::Run),
        ("acme", Table::Connection),
        ("acme.", Table::Run),
        ("Acme", Table::Run),
        ("b", Table::Run),
    ];
    for (index, (name, table)) in keys.into_iter().enumerate() {
        write(store, put(&Key::new(&tenant(name), table, "same"), &[index as u8], Expect::Absent)).await;
    }
    for (index, (name, table)) in keys.into_iter().enumerate() {
        assert_eq!(read(store, &Key::new(&tenant(name), table, "same")).await, row(1, &[index as u8]), "{name}");
        let range = Range { tenant: tenant(name), table, prefix: String::new(), after: None, limit: 100 };
        let rows = store.scan(&range).await.expect("a scan");
        assert_eq!(rows, [("same".to_owned(), row(1, &[index as u8]).expect("a row"))], "{name}");
    }
    write(store, Batch::default().delete(Key::new(&tenant("b"), Table::Run, "same"), Expect::Any)).await;
    assert_eq!(read(store, &key("same")).await, row(1, &[0]));
    for table in Table::ALL {
        let absent = Range { tenant: tenant("nobody"), table, prefix: String::new(), after: None, limit: 100 };
        assert_eq!(store.scan(&absent).await.expect("a scan"), []);
    }
}

async fn scan<S: Store + ?Sized>(store: &S, prefix: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    let after = after.map(str::to_owned);
    let range = Range { tenant: tenant("acme"), table: Table::Run, prefix: prefix.to_owned(), after, limit };
    store.scan(&range).await.expect("a scan").into_iter().map(|(id, _)| id).collect()
}

async fn fill<S: Store + ?Sized>(store: &S, ids: &[&str]) {
    let batch =
        ids.iter().fold(Batch::default(), |batch, id| batch.put(key(id), id.as_bytes().to_vec(), Expect::Absent));
    write(store, batch).await;
}

async fn scans_are_in_the_order_of_bytes<S: Store + ?Sized>(store: &S) {
    let mut ids: Vec<&str> = "! 10 2 A Z _ a a/1 a/10 a/2 aa z é ﬀ 𝄞 \u{10ffff}".split(' ').collect();
    ids.insert(0, "");
    let mut shuffled = ids.clone();
    shuffled.reverse();
    shuffled.swap(0, 7);
    fill(store, &shuffled).await;
    assert_eq!(scan(store, "", None, 100).await, ids);
    let values = store
        .scan(&Range { tenant: tenant("acme"), table: Table::Run, prefix: "a/".to_owned(), after: None, limit: 1 })
        .await
        .expect("a scan");
    assert_eq!(values, [("a/1".to_owned(), row(1, b"a/1").expect("a row"))], "a scan gives whole rows");
}

async fn prefixes_are_plain_text<S: Store + ?Sized>(store: &S) {
    let words = "a% a%b a' a'b a\\ a\\b a_ a_b aX aXb a* a[b] a\u{d7ff} a\u{e000} aé aéb a\u{10ffff} a\u{10ffff}b \
                 \u{10ffff} \u{10ffff}\u{10ffff} b";
    let ids: Vec<&str> = words.split(' ').collect();
    fill(store, &ids).await;
    let prefixes = "a% a' a\\ a_ aX a* a[ a\u{d7ff} aé a\u{10ffff} \u{10ffff} a A c a%b%";
    for prefix in prefixes.split(' ').chain([""]) {
        let mut expected: Vec<&str> = ids.iter().copied().filter(|id| id.starts_with(prefix)).collect();
        expected.sort_unstable();
        assert_eq!(scan(store, prefix, None, 100).await, expected, "prefix {prefix:?}");
    }
}

async fn a_scan_finds_rows_of_another_table<S: Store + ?Sized>(store: &S) {
    let key_in = |tenant_name: &str, table, id: &str| Key::new(&tenant(tenant_name), table, id);
    let mut batch = Batch::default();
    for (table, id) in [(Table::OpenExecution, "a"), (Table::OpenExecution, "b"), (Table::OpenExecution, "c")] {
        batch = batch.put(key_in("acme", table, id), Vec::new(), Expect::Absent);
    }
    for (name, id) in [("acme", "a"), ("acme", "c"), ("acme", "d"), ("other", "b")] {
        batch = batch.put(key_in(name, Table::Execution, id), id.as_bytes().to_vec(), Expect::Absent);
    }
    write(store, batch).await;
    write(store, put(&key_in("acme", Table::Execution, "c"), b"again", Expect::Version(1))).await;
    let scan_with = async |after: Option<&str>, limit| {
        let (prefix, after) = (String::new(), after.map(str::to_owned));
        let range = Range { tenant: tenant("acme"), table: Table::OpenExecution, prefix, after, limit };
        store.scan_with(&range, Table::Execution).await.expect("a scan")
    };
    let all = [("a".to_owned(), row(1, b"a")), ("b".to_owned(), None), ("c".to_owned(), row(2, b"again"))];
    assert_eq!(scan_with(None, 9).await, all, "the row of another tenant is not found");
    assert_eq!(scan_with(None, 1).await, all[..1]);
    assert_eq!(scan_with(Some("a"), 100).await, all[1..], "also more than are read at once");
}

async fn a_scan_continues_after_a_position<S: Store + ?Sized>(store: &S) {
    fill(store, &["a", "b/1", "b/2", "b/3", "c"]).await;
    assert_eq!(scan(store, "", None, 0).await, [""; 0]);
    assert_eq!(scan(store, "", None, 2).await, ["a", "b/1"]);
    assert_eq!(scan(store, "", Some("b/1"), 2).await, ["b/2", "b/3"]);
    assert_eq!(scan(store, "", Some("b/10"), 2).await, ["b/2", "b/3"], "a position without a row");
    assert_eq!(scan(store, "b/", Some("b/2"), usize::MAX).await, ["b/3"]);
    assert_eq!(scan(store, "b/", Some("a"), 9).await, ["b/1", "b/2", "b/3"], "a position before the prefix");
    assert_eq!(scan(store, "b/", Some("c"), 9).await, [""; 0], "a position after the prefix");
    assert_eq!(scan(store, "b/1", Some("b/1"), 9).await, [""; 0], "the row at the position is left out");
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = scan(store, "", after.as_deref(), 2).await;
        after = page.last().cloned();
        if page.is_empty() {
            break;
        }
        pages.extend(page);
    }
    assert_eq!(pages, ["a", "b/1", "b/2", "b/3", "c"]);
}

async fn any_bytes_and_long_ids_fit<S: Store + ?Sized>(store: &S) {
    let large: Vec<u8> = (0..1024 * 1024u32).map(|at| (at % 251) as u8).collect();
    let values: [&[u8]; 5] = [b"", b"\0", b"a\0b\0", &[0xff, 0xfe, 0x80], &large];
    for (index, value) in values.into_iter().enumerate() {
        let key = key(&format!("value/{index}"));
        write(store, put(&key, value, Expect::Absent)).await;
        assert!(read(store, &key).await == row(1, value), "value {index} changed");
    }
    let long = [format!("{}a", "x".repeat(1023)), format!("{}b", "x".repeat(1023)), "é".repeat(512)];
    for id in &long {
        write(store, put(&key(id), id.as_bytes(), Expect::Absent)).await;
    }
    for id in &long {
        assert_eq!(read(store, &key(id)).await, row(1, id.as_bytes()));
    }
    assert_eq!(scan(store, &"x".repeat(1023), None, 9).await, long[..2]);
}

async fn concurrent_increments_are_all_counted<S: Store + ?Sized + 'static>(store: Arc<S>) {
    let tasks: Vec<_> = (0..32).map(|_| tokio::spawn(increment(Arc::clone(&store)))).collect();
    for task in tasks {
        task.await.expect("an increment");
    }
    assert_eq!(read(&*store, &key("counter")).await, row(32, b"32"), "an increment was lost");
}

async fn every_tenant_with_a_row_is_known<S: Store + ?Sized>(store: &S) {
    assert_eq!(store.tenants().await.expect("tenants"), []);
    for (name, table) in [("b", Table::Run), ("acme", Table::Page), ("acme", Table::Run), ("Acme", Table::Intent)] {
        write(store, put(&Key::new(&tenant(name), table, "x"), b"1", Expect::Any)).await;
    }
    assert_eq!(store.tenants().await.expect("tenants"), [tenant("Acme"), tenant("acme"), tenant("b")]);
    write(store, Batch::default().delete(Key::new(&tenant("b"), Table::Run, "x"), Expect::Any)).await;
    assert_eq!(store.tenants().await.expect("tenants"), [tenant("Acme"), tenant("acme")]);
}

/// Adds one to the row of a counter, and tries again after each conflict.
async fn increment<S: Store + ?Sized>(store: Arc<S>) {
    let counter = key("counter");
    loop {
        let old = read(&*store, &counter).await;
        let expect = old.as_ref().map_or(Expect::Absent, |row| Expect::Version(row.version));
        let text = old.map(|row| String::from_utf8(row.value).expect("digits")).unwrap_or_default();
        let next = text.parse::<u32>().unwrap_or(0) + 1;
        match store.commit(put(&counter, next.to_string().as_bytes(), expect)).await {
            Ok(()) => return,
            Err(Error::Conflict(key)) => assert_eq!(key, counter),
            Err(error) => panic!("an increment failed: {error:?}"),
        }
        tokio::task::yield_now().await;
    }
}
