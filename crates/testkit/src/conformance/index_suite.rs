//! The conformance suite of the indexes of the port `Store`: checks that every implementation must pass.
//! Invariant: each check starts with a new, empty store, so no check depends on another.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::TenantId;
use ports::Store;
use ports::index::{Index, IndexKey, Order};
use ports::store::{Batch, Error, Expect, IndexEntry, IndexPosition, IndexRange, Key, MaintenanceRange, Table};

/// Runs every check, and panics at the first check that fails. Each call of `make` must return a new, empty store.
pub async fn indexes<S: Store + ?Sized + 'static>(make: impl AsyncFn() -> Arc<S>) {
    entries_are_in_the_order_of_their_sort_texts(&*make().await).await;
    equal_sort_texts_are_in_the_order_of_table_and_id(&*make().await).await;
    prefixes_and_bounds_select_entries(&*make().await).await;
    pages_continue_in_both_directions(&*make().await).await;
    each_put_replaces_the_entries_of_its_row(&*make().await).await;
    a_delete_removes_the_entries_of_its_row(&*make().await).await;
    a_row_may_have_several_entries(&*make().await).await;
    tenants_and_indexes_are_separate(&*make().await).await;
    maintenance_reads_every_tenant(&*make().await).await;
    a_refused_batch_changes_no_entry(&*make().await).await;
    the_last_write_of_a_batch_decides_the_entries(&*make().await).await;
    hostile_texts_are_plain_texts(&*make().await).await;
    large_rows_have_entries_too(&*make().await).await;
    concurrent_moves_leave_one_entry(make().await).await;
}

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}

fn key(id: &str) -> Key {
    Key::new(&tenant("acme"), Table::Run, id)
}

fn state(sort: &str) -> Vec<IndexKey> {
    vec![IndexKey::new(Index::State, sort)]
}

async fn write<S: Store + ?Sized>(store: &S, batch: Batch) {
    store.commit(batch).await.expect("a commit that conflicts with nothing");
}

async fn put<S: Store + ?Sized>(store: &S, id: &str, keys: Vec<IndexKey>) {
    write(store, Batch::default().put_indexed(key(id), id.as_bytes().to_vec(), Expect::Any, keys)).await;
}

/// Puts one row for each sort text. The id of a row is its sort text.
async fn fill<S: Store + ?Sized>(store: &S, sorts: &[&str]) {
    let batch = sorts.iter().fold(Batch::default(), |batch, sort| {
        batch.put_indexed(key(sort), sort.as_bytes().to_vec(), Expect::Absent, state(sort))
    });
    write(store, batch).await;
}

fn range(limit: usize) -> IndexRange {
    IndexRange::new(&tenant("acme"), Index::State, limit)
}

async fn entries<S: Store + ?Sized>(store: &S, range: &IndexRange) -> Vec<IndexEntry> {
    let entries = store.scan_index(range).await.expect("a scan of an index");
    assert!(entries.len() <= range.limit, "{} entries for the limit {}", entries.len(), range.limit);
    for entry in &entries {
        let row = store.get(&entry.key).await.expect("a get");
        assert_eq!(row.as_ref(), Some(&entry.row), "an entry comes with its row");
    }
    entries
}

async fn sorts<S: Store + ?Sized>(store: &S, range: &IndexRange) -> Vec<String> {
    entries(store, range).await.into_iter().map(|entry| entry.sort).collect()
}

async fn all<S: Store + ?Sized>(store: &S) -> Vec<(String, String)> {
    entries(store, &range(1000)).await.into_iter().map(|entry| (entry.sort, entry.key.id)).collect()
}

fn pair(sort: &str, id: &str) -> (String, String) {
    (sort.to_owned(), id.to_owned())
}

fn reversed(range: &IndexRange) -> IndexRange {
    IndexRange { order: Order::Descending, ..range.clone() }
}

async fn entries_are_in_the_order_of_their_sort_texts<S: Store + ?Sized>(store: &S) {
    assert_eq!(sorts(store, &range(10)).await, [""; 0], "an empty store has no entries");
    let mut expected: Vec<&str> = "! 10 2 A Z _ a a/1 a/10 a/2 aa z é ﬀ 𝄞 \u{10ffff}".split(' ').collect();
    let mut shuffled = expected.clone();
    shuffled.reverse();
    shuffled.swap(0, 7);
    fill(store, &shuffled).await;
    put(store, "the empty text", state("")).await;
    write(store, Batch::default().put(key("without keys"), b"x".to_vec(), Expect::Any)).await;
    expected.insert(0, "");
    assert_eq!(sorts(store, &range(100)).await, expected);
    assert_eq!(sorts(store, &range(3)).await, expected[..3]);
    assert_eq!(sorts(store, &range(0)).await, [""; 0]);
    expected.reverse();
    assert_eq!(sorts(store, &reversed(&range(usize::MAX))).await, expected);
    assert_eq!(sorts(store, &reversed(&range(3))).await, expected[..3]);
}

async fn equal_sort_texts_are_in_the_order_of_table_and_id<S: Store + ?Sized>(store: &S) {
    let places = [(Table::Artifact, "z"), (Table::Intent, "a"), (Table::LogicalSession, "b"), (Table::Run, "a")];
    let mut expected = Vec::new();
    for (table, id) in places {
        for id in [id.to_owned(), format!("{id}/1"), format!("{id}/2")] {
            expected.push(Key::new(&tenant("acme"), table, id));
        }
    }
    for key in expected.iter().rev() {
        write(store, Batch::default().put_indexed(key.clone(), Vec::new(), Expect::Absent, state("same"))).await;
    }
    let keys = async |range: &IndexRange| -> Vec<Key> {
        entries(store, range).await.into_iter().map(|entry| entry.key).collect()
    };
    assert_eq!(keys(&range(100)).await, expected, "table names are compared, and not the order of their declaration");
    let mut paged = Vec::new();
    let mut next = range(5);
    loop {
        let page = entries(store, &next).await;
        let Some(last) = page.last() else { break };
        next.after = Some(last.position());
        paged.extend(page.into_iter().map(|entry| entry.key));
    }
    assert_eq!(paged, expected, "no entry is lost between pages of equal sort texts");
    expected.reverse();
    assert_eq!(keys(&reversed(&range(100))).await, expected);
}

async fn prefixes_and_bounds_select_entries<S: Store + ?Sized>(store: &S) {
    let words = "a% a%b a' a'b a\\ a_ a_b aX a* a[b] a\u{d7ff} a\u{e000} aé aéb a\u{10ffff} a\u{10ffff}b \
                 \u{10ffff} \u{10ffff}\u{10ffff} b done/1 done/2 failed/1 failed/2 failed/3 failed0";
    let words: Vec<&str> = words.split(' ').collect();
    fill(store, &words).await;
    let bounds = [None, Some(""), Some("a"), Some("a'b"), Some("failed/2"), Some("failed/20"), Some("\u{10ffff}")];
    for prefix in "a% a' a_ a[ a\u{d7ff} aé a\u{10ffff} \u{10ffff} a A c failed/ failed".split(' ').chain([""]) {
        for before in bounds {
            let mut expected: Vec<&str> = words.clone();
            expected.retain(|word| word.starts_with(prefix) && before.is_none_or(|before| *word < before));
            expected.sort_unstable();
            let selected = IndexRange { prefix: prefix.to_owned(), before: before.map(str::to_owned), ..range(100) };
            assert_eq!(sorts(store, &selected).await, expected, "prefix {prefix:?}, before {before:?}");
            expected.reverse();
            assert_eq!(sorts(store, &reversed(&selected)).await, expected, "prefix {prefix:?}, before {before:?}");
        }
    }
    let newest_failed = IndexRange { prefix: "failed/".to_owned(), ..reversed(&range(2)) };
    assert_eq!(sorts(store, &newest_failed).await, ["failed/3", "failed/2"]);
}

async fn pages_continue_in_both_directions<S: Store + ?Sized>(store: &S) {
    fill(store, &["a", "b/1", "b/2", "b/3", "c"]).await;
    let after = |sort: &str, id: &str| Some(IndexPosition { sort: sort.to_owned(), key: key(id) });
    let with_prefix = |prefix: &str| IndexRange { prefix: prefix.to_owned(), ..range(9) };
    let from = |range: IndexRange, after| IndexRange { after, ..range };
    let read = async |range: IndexRange| sorts(store, &range).await;

    assert_eq!(read(from(range(2), after("b/1", "b/1"))).await, ["b/2", "b/3"]);
    assert_eq!(read(from(range(2), after("b/1", "b/0"))).await, ["b/1", "b/2"], "a position before an equal sort text");
    assert_eq!(read(from(range(2), after("b/10", "x"))).await, ["b/2", "b/3"], "a position without an entry");
    assert_eq!(read(from(with_prefix("b/"), after("b/2", "b/2"))).await, ["b/3"]);
    assert_eq!(read(from(with_prefix("b/"), after("a", "a"))).await, ["b/1", "b/2", "b/3"], "before the prefix");
    assert_eq!(read(from(with_prefix("b/"), after("c", "c"))).await, [""; 0], "behind the prefix");

    assert_eq!(read(from(reversed(&range(2)), after("b/2", "b/2"))).await, ["b/1", "a"]);
    assert_eq!(read(from(reversed(&range(2)), after("b/2", "b/3"))).await, ["b/2", "b/1"]);
    assert_eq!(read(from(reversed(&with_prefix("b/")), after("b/2", "b/2"))).await, ["b/1"]);
    assert_eq!(read(from(reversed(&with_prefix("b/")), after("c", "c"))).await, ["b/3", "b/2", "b/1"]);
    assert_eq!(read(from(reversed(&with_prefix("b/")), after("a", "a"))).await, [""; 0]);

    for direction in [range(2), reversed(&range(2))] {
        let mut next = direction;
        let mut pages = Vec::new();
        loop {
            let page = entries(store, &next).await;
            let Some(last) = page.last() else { break };
            next.after = Some(last.position());
            pages.extend(page.into_iter().map(|entry| entry.sort));
        }
        let mut expected = ["a", "b/1", "b/2", "b/3", "c"];
        if next.order == Order::Descending {
            expected.reverse();
        }
        assert_eq!(pages, expected);
    }
}

async fn each_put_replaces_the_entries_of_its_row<S: Store + ?Sized>(store: &S) {
    put(store, "a", state("running")).await;
    put(store, "b", state("running")).await;
    put(store, "a", state("failed")).await;
    assert_eq!(all(store).await, [pair("failed", "a"), pair("running", "b")]);
    put(store, "a", state("failed")).await;
    assert_eq!(all(store).await, [pair("failed", "a"), pair("running", "b")], "the same entry stays");
    write(store, Batch::default().put(key("a"), b"x".to_vec(), Expect::Version(3))).await;
    assert_eq!(all(store).await, [pair("running", "b")], "a put without keys removes the entries");
    write(store, Batch::default().put(key("a"), b"y".to_vec(), Expect::Version(4))).await;
    put(store, "a", state("done")).await;
    put(store, "b", Vec::new()).await;
    assert_eq!(all(store).await, [pair("done", "a")], "an empty list of keys is a list without keys");
    let row = store.get(&key("a")).await.expect("a get").expect("a row");
    assert_eq!((row.version, row.value.as_slice()), (6, b"a".as_slice()), "versions count as without entries");
    write(store, Batch::default().check(key("a"), Expect::Version(6))).await;
    assert_eq!(all(store).await, [pair("done", "a")], "a check changes no entry");
}

async fn a_delete_removes_the_entries_of_its_row<S: Store + ?Sized>(store: &S) {
    fill(store, &["a", "b"]).await;
    write(store, Batch::default().delete(key("a"), Expect::Version(1))).await;
    assert_eq!(all(store).await, [pair("b", "b")]);
    write(store, Batch::default().delete(key("a"), Expect::Any)).await;
    write(store, Batch::default().put(key("a"), b"x".to_vec(), Expect::Absent)).await;
    assert_eq!(all(store).await, [pair("b", "b")], "a row that is made again has no entries of the one before");
    write(store, Batch::default().delete(key("a"), Expect::Any).delete(key("b"), Expect::Any)).await;
    assert_eq!(all(store).await, []);
}

async fn a_row_may_have_several_entries<S: Store + ?Sized>(store: &S) {
    let many = ["tag/x", "tag/y", "tag/x", "z"].map(|sort| IndexKey::new(Index::State, sort)).to_vec();
    let lease = IndexKey::new(Index::LeaseEnd, "5");
    put(store, "a", [many.clone(), vec![lease.clone()]].concat()).await;
    assert_eq!(all(store).await, [pair("tag/x", "a"), pair("tag/y", "a"), pair("z", "a")], "equal keys are one entry");
    let leases = IndexRange { index: Index::LeaseEnd, ..range(10) };
    assert_eq!(sorts(store, &leases).await, ["5"]);
    put(store, "a", vec![many[1].clone(), lease]).await;
    assert_eq!(all(store).await, [pair("tag/y", "a")]);
    assert_eq!(sorts(store, &leases).await, ["5"]);
    write(store, Batch::default().delete(key("a"), Expect::Any)).await;
    assert_eq!((all(store).await, sorts(store, &leases).await), (Vec::new(), Vec::new()));
}

async fn tenants_and_indexes_are_separate<S: Store + ?Sized>(store: &S) {
    let tenants = ["acme", "acme.", "Acme", "b"];
    for (name, index) in tenants.into_iter().flat_map(|name| Index::ALL.map(|index| (name, index))) {
        let id = format!("{name}/{}", index.name());
        let key = Key::new(&tenant(name), Table::Run, id.as_str());
        write(store, Batch::default().put_indexed(key, Vec::new(), Expect::Absent, vec![IndexKey::new(index, "s")]))
            .await;
    }
    let read = async |name: &str, index| -> Vec<(TenantId, String)> {
        let range = IndexRange::new(&tenant(name), index, 100);
        let mut found = entries(store, &range).await;
        assert_eq!(found, {
            let mut backwards = entries(store, &reversed(&range)).await;
            backwards.reverse();
            backwards
        });
        found.drain(..).map(|entry| (entry.key.tenant, entry.key.id)).collect()
    };
    for name in tenants {
        for index in Index::ALL {
            assert_eq!(read(name, index).await, [(tenant(name), format!("{name}/{}", index.name()))]);
        }
    }
    assert_eq!(read("nobody", Index::State).await, []);
    write(store, Batch::default().delete(Key::new(&tenant("b"), Table::Run, "b/state"), Expect::Any)).await;
    assert_eq!(read("b", Index::State).await, []);
    assert_eq!(read("acme", Index::State).await.len(), 1);
    assert_eq!(read("b", Index::LeaseEnd).await.len(), 1);
}

async fn maintenance_reads_every_tenant<S: Store + ?Sized>(store: &S) {
    let maintenance = |before: Option<&str>, limit| MaintenanceRange {
        index: Index::LeaseEnd,
        before: before.map(str::to_owned),
        after: None,
        limit,
    };
    assert_eq!(store.scan_index_of_all_tenants(&maintenance(None, 9)).await.expect("a scan"), []);
    let rows = [
        ("b", "1", "x"),
        ("acme", "3", "y"),
        ("acme", "1", "z"),
        ("acme", "1", "a"),
        ("Acme", "9", "x"),
        ("c", "2", "x"),
    ];
    for (name, sort, id) in rows {
        let key = Key::new(&tenant(name), Table::Run, id);
        let keys = vec![IndexKey::new(Index::LeaseEnd, sort), IndexKey::new(Index::State, "0")];
        write(store, Batch::default().put_indexed(key, id.as_bytes().to_vec(), Expect::Absent, keys)).await;
    }
    let read = async |range: &MaintenanceRange| -> Vec<String> {
        let entries = store.scan_index_of_all_tenants(range).await.expect("a scan");
        assert!(entries.len() <= range.limit);
        for entry in &entries {
            assert_eq!(entry.row.value, entry.key.id.as_bytes(), "an entry comes with its row");
        }
        entries.iter().map(|entry| format!("{}/{}/{}", entry.key.tenant, entry.sort, entry.key.id)).collect()
    };
    assert_eq!(read(&maintenance(None, 9)).await, ["Acme/9/x", "acme/1/a", "acme/1/z", "acme/3/y", "b/1/x", "c/2/x"]);
    let expired = ["acme/1/a", "acme/1/z", "b/1/x"];
    assert_eq!(read(&maintenance(Some("2"), 9)).await, expired, "the bound holds for each tenant");
    assert_eq!(read(&maintenance(Some("2"), 0)).await, [""; 0]);
    assert_eq!(read(&maintenance(Some("0"), 9)).await, [""; 0]);
    for page_size in 1..=4 {
        let mut next = maintenance(Some("2"), page_size);
        let mut pages = Vec::new();
        loop {
            let page = store.scan_index_of_all_tenants(&next).await.expect("a scan");
            let Some(last) = page.last() else { break };
            next.after = Some(last.position());
            pages.extend(page.iter().map(|entry| format!("{}/{}/{}", entry.key.tenant, entry.sort, entry.key.id)));
        }
        assert_eq!(pages, expected_pages(&expired), "pages of {page_size}");
    }
    let gone = IndexPosition { sort: "7".to_owned(), key: Key::new(&tenant("b"), Table::Run, "x") };
    assert_eq!(read(&MaintenanceRange { after: Some(gone), ..maintenance(None, 9) }).await, ["c/2/x"]);
}

fn expected_pages(expected: &[&str]) -> Vec<String> {
    expected.iter().map(|&text| text.to_owned()).collect()
}

async fn a_refused_batch_changes_no_entry<S: Store + ?Sized>(store: &S) {
    fill(store, &["a", "b"]).await;
    let batch = Batch::default()
        .put_indexed(key("a"), b"x".to_vec(), Expect::Version(1), state("moved"))
        .delete(key("b"), Expect::Version(1))
        .put_indexed(key("new"), b"x".to_vec(), Expect::Absent, state("new"))
        .check(key("nothing"), Expect::Version(1));
    match store.commit(batch).await {
        Err(Error::Conflict(at)) => assert_eq!(at, key("nothing")),
        other => panic!("expected a conflict, got {other:?}"),
    }
    assert_eq!(all(store).await, [pair("a", "a"), pair("b", "b")]);
    let stale = Batch::default().put_indexed(key("a"), b"x".to_vec(), Expect::Version(7), state("moved"));
    assert!(matches!(store.commit(stale).await, Err(Error::Conflict(_))));
    assert_eq!(all(store).await, [pair("a", "a"), pair("b", "b")]);
}

async fn the_last_write_of_a_batch_decides_the_entries<S: Store + ?Sized>(store: &S) {
    let batch = Batch::default()
        .put_indexed(key("a"), b"1".to_vec(), Expect::Absent, state("first"))
        .put_indexed(key("a"), b"2".to_vec(), Expect::Version(1), state("second"))
        .put_indexed(key("b"), b"1".to_vec(), Expect::Absent, state("gone"))
        .delete(key("b"), Expect::Version(1))
        .put_indexed(key("c"), b"1".to_vec(), Expect::Absent, state("gone"))
        .put(key("c"), b"2".to_vec(), Expect::Version(1));
    write(store, batch).await;
    assert_eq!(all(store).await, [pair("second", "a")]);
    let again = Batch::default().delete(key("a"), Expect::Version(2)).put_indexed(
        key("a"),
        b"3".to_vec(),
        Expect::Absent,
        state("third"),
    );
    write(store, again).await;
    assert_eq!(all(store).await, [pair("third", "a")]);
}

async fn hostile_texts_are_plain_texts<S: Store + ?Sized>(store: &S) {
    let ids = ["", "'", "\"; DROP TABLE row; --", "%", "_", "\\", "a/b", "\u{feff}", "\u{202e}x", "\u{10ffff}", " "];
    let long = "x".repeat(1023);
    let longest = [format!("{long}a"), format!("{long}b")];
    let mut texts: BTreeSet<&str> = ids.into_iter().chain(longest.iter().map(String::as_str)).collect();
    for text in &texts {
        put(store, text, state(text)).await;
    }
    let expected: Vec<_> = texts.iter().map(|text| pair(text, text)).collect();
    assert_eq!(all(store).await, expected);
    for text in &texts {
        let own = IndexRange { prefix: (*text).to_owned(), ..range(100) };
        let expected: Vec<&str> = texts.iter().copied().filter(|other| other.starts_with(text)).collect();
        assert_eq!(sorts(store, &own).await, expected, "prefix {text:?}");
    }
    // Sort texts beyond the bound are cut, and their rows are found nevertheless.
    put(store, "cut/2", state(&"y".repeat(5000))).await;
    put(store, "cut/1", state(&"y".repeat(6000))).await;
    let cut = IndexRange { prefix: "yy".to_owned(), ..range(9) };
    let found = entries(store, &cut).await;
    assert_eq!(found.iter().map(|entry| entry.key.id.as_str()).collect::<Vec<_>>(), ["cut/1", "cut/2"]);
    for text in std::mem::take(&mut texts) {
        write(store, Batch::default().delete(key(text), Expect::Version(1))).await;
    }
    write(store, Batch::default().delete(key("cut/1"), Expect::Any).delete(key("cut/2"), Expect::Any)).await;
    assert_eq!(all(store).await, []);
}

async fn large_rows_have_entries_too<S: Store + ?Sized>(store: &S) {
    let large = vec![7u8; 300_000];
    for round in 0..3 {
        let keys = state(&format!("round/{round}"));
        write(store, Batch::default().put_indexed(key("large"), large.clone(), Expect::Any, keys)).await;
    }
    let found = entries(store, &range(9)).await;
    assert_eq!(found.len(), 1);
    assert!(found[0].sort == "round/2" && found[0].row.value == large);
    write(store, Batch::default().put(key("large"), large, Expect::Version(3))).await;
    assert_eq!(all(store).await, []);
}

/// Several writers move one row between states. In the end the row has exactly one entry.
async fn concurrent_moves_leave_one_entry<S: Store + ?Sized + 'static>(store: Arc<S>) {
    let tasks: Vec<_> = (0..8)
        .map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for round in 0..10 {
                    put(&*store, "moved", state(&format!("{round}/{writer}"))).await;
                    let here = entries_of(&*store).await;
                    assert_eq!(here.len(), 1, "{here:?}");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a writer");
    }
    let last = entries_of(&*store).await;
    assert!(last.len() == 1 && last[0].row.version == 80, "{last:?}");
}

async fn entries_of<S: Store + ?Sized>(store: &S) -> Vec<IndexEntry> {
    store.scan_index(&range(100)).await.expect("a scan of an index")
}
