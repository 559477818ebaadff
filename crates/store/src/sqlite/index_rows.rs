//! The SQL statements of index entries, and the list of its entries that each row has.
//!
//! An entry is a row of the table `row_index`. The column `keys` of a row repeats the entries of the row, so that a put
//! or a delete finds them without a second tree over the entries, and a scan can tell a damaged entry from a good one.
//!
//! Invariants:
//! - Entries and `keys` change in the transaction of their row.
//! - A scan reads no row that it does not return.
//! - Texts are compared as bytes, and every statement selects one index and one tenant, except `next_tenant`.

use std::collections::BTreeSet;

use base::TenantId;
use ports::index::{Index, IndexKey, Order};
use ports::store::{IndexEntry, IndexPosition, IndexRange, Key, MaintenanceRange, Table};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use super::error::SqliteError;
use super::stored_row::StoredRow;

const SELECT_KEYS: &str = "SELECT keys FROM row WHERE rowid = ?1";
/// An entry that is there already is not an error: it was left by damage, and is right again.
const INSERT_ENTRY: &str = "INSERT OR IGNORE INTO row_index (idx, tenant, sort, tbl, id) VALUES (?1, ?2, ?3, ?4, ?5)";
const DELETE_ENTRY: &str =
    "DELETE FROM row_index WHERE idx = ?1 AND tenant = ?2 AND sort = ?3 AND tbl = ?4 AND id = ?5";
/// Finds the entries of a row without its list, which reads all entries. It is only for a list that is damaged.
const DELETE_ENTRIES_OF_ROW: &str = "DELETE FROM row_index WHERE tenant = ?1 AND tbl = ?2 AND id = ?3";

/// The two scans compare one end of the range by three columns, because many entries may have the same sort text. The
/// join is a `LEFT JOIN`, so that the entries are read in their order and an entry without its row is noticed.
const SELECT_ASCENDING: &str = "
    SELECT entry.sort, entry.tbl, entry.id, row.version, row.value, row.sum, row.keys
    FROM row_index AS entry
    LEFT JOIN row ON row.tenant = entry.tenant AND row.tbl = entry.tbl AND row.id = entry.id
    WHERE entry.idx = ?1 AND entry.tenant = ?2
        AND (entry.sort, entry.tbl, entry.id) > (?3, ?4, ?5) AND entry.sort < ?6
    ORDER BY entry.sort, entry.tbl, entry.id";
const SELECT_DESCENDING: &str = "
    SELECT entry.sort, entry.tbl, entry.id, row.version, row.value, row.sum, row.keys
    FROM row_index AS entry
    LEFT JOIN row ON row.tenant = entry.tenant AND row.tbl = entry.tbl AND row.id = entry.id
    WHERE entry.idx = ?1 AND entry.tenant = ?2
        AND (entry.sort, entry.tbl, entry.id) < (?3, ?4, ?5) AND entry.sort >= ?6
    ORDER BY entry.sort DESC, entry.tbl DESC, entry.id DESC";
const SELECT_NEXT_TENANT: &str = "SELECT min(tenant) FROM row_index WHERE idx = ?1 AND tenant > ?2";

/// SQLite orders every BLOB after every TEXT, so the empty BLOB is the end of a range without an upper bound.
const END_OF_TEXTS: ValueRef<'static> = ValueRef::Blob(&[]);

/// The change of the entries of one row.
pub struct EntryChange {
    old: BTreeSet<Listed>,
    new: BTreeSet<Listed>,
}

impl EntryChange {
    /// Reads the entries that the row has, and plans to replace them by those of `keys`. `rowid` is `None` for a row
    /// that does not exist or has no entries.
    pub fn plan(connection: &Connection, key: &Key, rowid: Option<i64>, keys: &[IndexKey]) -> rusqlite::Result<Self> {
        let old = rowid.map(|rowid| listed(connection, key, rowid)).transpose()?.unwrap_or_default();
        Ok(Self { old, new: keys.iter().map(Listed::from).collect() })
    }

    /// Returns the new value of the column `keys`.
    pub fn list(&self, key: &Key) -> Option<Vec<u8>> {
        (!self.new.is_empty()).then(|| encode(key, &self.new))
    }

    /// Changes the entries. Those that stay are not touched.
    pub fn apply(&self, connection: &Connection, key: &Key) -> rusqlite::Result<()> {
        for entry in self.old.difference(&self.new) {
            execute(connection, DELETE_ENTRY, key, entry)?;
        }
        for entry in self.new.difference(&self.old) {
            execute(connection, INSERT_ENTRY, key, entry)?;
        }
        Ok(())
    }
}

fn execute(connection: &Connection, sql: &str, key: &Key, entry: &Listed) -> rusqlite::Result<()> {
    let parameters = params![entry.index, key.tenant.as_str(), entry.sort, key.table.name(), key.id];
    connection.prepare_cached(sql)?.execute(parameters).map(|_| ())
}

/// Returns the entries of a range with their rows.
pub fn scan(connection: &Connection, range: &IndexRange) -> Result<Vec<IndexEntry>, SqliteError> {
    let end = range.end();
    let end_of_range = end.as_deref().map_or(END_OF_TEXTS, |end| ValueRef::Text(end.as_bytes()));
    let after = range.after.as_ref();
    let (sql, start, other_end) = match range.order {
        Order::Ascending => {
            let start = after.filter(|after| after.sort >= range.prefix).map(Start::After);
            (SELECT_ASCENDING, start.unwrap_or(Start::At(ValueRef::Text(range.prefix.as_bytes()))), end_of_range)
        }
        Order::Descending => {
            let start = after.filter(|after| end.as_ref().is_none_or(|end| after.sort < *end)).map(Start::After);
            (SELECT_DESCENDING, start.unwrap_or(Start::At(end_of_range)), ValueRef::Text(range.prefix.as_bytes()))
        }
    };
    let (sort, table, id) = match start {
        Start::At(sort) => (sort, "", ""),
        Start::After(at) => (ValueRef::Text(at.sort.as_bytes()), at.key.table.name(), at.key.id.as_str()),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let (index, tenant) = (range.index.name(), range.tenant.as_str());
    let mut rows = statement.query(params![index, tenant, Raw(sort), table, id, Raw(other_end)])?;
    let mut entries = Vec::new();
    // The statement makes one row at a time, so it has no LIMIT.
    while entries.len() < range.limit {
        let Some(row) = rows.next()? else { break };
        entries.extend(read_entry(row, &range.tenant, range.index)?);
    }
    Ok(entries)
}

/// Returns the entries of a range of all tenants. All reads are in one transaction, as in `rows::scan_with`.
pub fn scan_all_tenants(connection: &Connection, range: &MaintenanceRange) -> Result<Vec<IndexEntry>, SqliteError> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let mut entries = Vec::new();
    let mut after = range.after.clone();
    let mut tenant = after.as_ref().map(|after| after.key.tenant.as_str().to_owned());
    if tenant.is_none() {
        tenant = next_tenant(connection, range.index, "")?;
    }
    while let Some(name) = tenant
        && entries.len() < range.limit
    {
        // An entry of a text that is not a tenant id belongs to no caller, as in `rows::tenants`.
        if let Ok(id) = TenantId::parse(&name) {
            let own = IndexRange::new(&id, range.index, range.limit - entries.len());
            entries.extend(scan(connection, &IndexRange { before: range.before.clone(), after: after.take(), ..own })?);
        }
        tenant = next_tenant(connection, range.index, &name)?;
    }
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(entries)
}

/// Returns the first tenant after `tenant` that has an entry in the index. The other entries are skipped.
fn next_tenant(connection: &Connection, index: Index, tenant: &str) -> rusqlite::Result<Option<String>> {
    connection.prepare_cached(SELECT_NEXT_TENANT)?.query_row(params![index.name(), tenant], |row| row.get(0))
}

/// The place at which a scan begins.
enum Start<'a> {
    /// At the first entry on this side of a sort text.
    At(ValueRef<'a>),
    After(&'a IndexPosition),
}

/// A parameter of a statement that is either a text or a BLOB.
struct Raw<'a>(ValueRef<'a>);

impl rusqlite::ToSql for Raw<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(rusqlite::types::ToSqlOutput::Borrowed(self.0))
    }
}

/// Reads an entry with its row. Returns `None` for a row of a table that only a newer version knows.
fn read_entry(row: &rusqlite::Row<'_>, tenant: &TenantId, index: Index) -> Result<Option<IndexEntry>, SqliteError> {
    let (sort, table_name, id): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let Some(table) = Table::ALL.into_iter().find(|table| table.name() == table_name) else { return Ok(None) };
    let key = Key::new(tenant, table, id);
    let is_there = row.get_ref(3)? != ValueRef::Null;
    let is_listed = || -> rusqlite::Result<bool> {
        let list: Option<Vec<u8>> = row.get(6)?;
        let listed = list.and_then(|list| decode(&key, &list)).unwrap_or_default();
        Ok(listed.iter().any(|entry| entry.index == index.name() && entry.sort == sort))
    };
    if !is_there || !is_listed()? {
        let entry = format!("the entry of row {table_name}/{} in the index {}", key.id, index.name());
        tracing::error!(entry, %tenant, "an index entry does not match its row; restore the database from a backup");
        return Err(SqliteError::damaged_row(entry));
    }
    let row = StoredRow::read(row, 3)?.into_checked(tenant, table, &key.id)?;
    Ok(Some(IndexEntry { sort, key, row }))
}

/// An entry as a row lists it. The index is a name and not an [`Index`], because a newer version may have written the
/// entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    index: String,
    sort: String,
}

impl From<&IndexKey> for Listed {
    fn from(key: &IndexKey) -> Self {
        Self { index: key.index().name().to_owned(), sort: key.sort().to_owned() }
    }
}

/// Returns the entries that a row lists. If the list is damaged, all entries of the row are removed, and the list is
/// taken as empty.
fn listed(connection: &Connection, key: &Key, rowid: i64) -> rusqlite::Result<BTreeSet<Listed>> {
    let list: Option<Vec<u8>> =
        connection.prepare_cached(SELECT_KEYS)?.query_row(params![rowid], |row| row.get(0)).optional()?.flatten();
    if let Some(entries) = list.and_then(|list| decode(key, &list)) {
        return Ok(entries);
    }
    tracing::error!(table = key.table.name(), id = key.id, tenant = %key.tenant, "the list of a row's index entries is damaged; its entries are removed one by one");
    let parameters = params![key.tenant.as_str(), key.table.name(), key.id];
    connection.prepare_cached(DELETE_ENTRIES_OF_ROW)?.execute(parameters)?;
    Ok(BTreeSet::new())
}

/// Returns the list in its stored form: a checksum, then for each entry the length and the bytes of the index name and
/// of the sort text.
fn encode(key: &Key, entries: &BTreeSet<Listed>) -> Vec<u8> {
    let mut list = vec![0; 4];
    for text in entries.iter().flat_map(|entry| [&entry.index, &entry.sort]) {
        // `IndexKey` bounds sort texts, and the names of indexes are short, so each length fits.
        list.extend((text.len() as u16).to_le_bytes());
        list.extend(text.as_bytes());
    }
    let sum = checksum(key, &list[4..]);
    list[..4].copy_from_slice(&sum.to_le_bytes());
    list
}

/// Reads a stored list. Returns `None` if it is damaged or belongs to another row.
fn decode(key: &Key, list: &[u8]) -> Option<BTreeSet<Listed>> {
    let (sum, mut rest) = list.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*sum) != checksum(key, rest) {
        return None;
    }
    let mut next_text = || {
        let (length, tail) = rest.split_first_chunk::<2>()?;
        let (text, tail) = tail.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        let text = str::from_utf8(text).ok()?.to_owned();
        rest = tail;
        Some(text)
    };
    let mut entries = BTreeSet::new();
    while let Some(index) = next_text() {
        entries.insert(Listed { index, sort: next_text()? });
    }
    rest.is_empty().then_some(entries)
}

/// Returns the CRC-32 of a list and of the key of its row, so that the list of another row is noticed.
fn checksum(key: &Key, list: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [key.tenant.as_str(), key.table.name(), &key.id] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    hasher.update(list);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use ports::index::sort_time;
    use ports::store::{Batch, Expect};
    use rusqlite::StatementStatus;

    use super::*;
    use crate::sqlite::{migration, rows};
    use base::Timestamp;

    fn database() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.set_prepared_statement_cache_capacity(64);
        migration::create_schema(&mut connection).unwrap();
        connection
    }

    fn key(id: &str) -> Key {
        Key::new(&TenantId::local(), Table::LogicalSession, id)
    }

    fn apply(connection: &Connection, batch: &Batch) {
        connection.execute_batch("BEGIN").unwrap();
        assert_eq!(rows::apply(connection, batch).unwrap(), Ok(()));
        connection.execute_batch("COMMIT").unwrap();
    }

    /// Puts `count` rows, of which every tenth failed.
    fn fill(connection: &Connection, count: i64) {
        let batch = (0..count).fold(Batch::default(), |batch, number| {
            let state = if number % 10 == 0 { "failed" } else { "done" };
            let sort = format!("{state}/{}", sort_time(Timestamp(number)));
            let keys = vec![IndexKey::new(Index::State, sort)];
            batch.put_indexed(key(&number.to_string()), b"{}".to_vec(), Expect::Absent, keys)
        });
        apply(connection, &batch);
    }

    fn newest_failed(limit: usize) -> IndexRange {
        let range = IndexRange::new(&TenantId::local(), Index::State, limit);
        IndexRange { prefix: "failed/".to_owned(), order: Order::Descending, ..range }
    }

    /// Returns the value of a counter of a cached statement, and sets it to zero.
    fn counted(connection: &Connection, sql: &str, counter: StatementStatus) -> i32 {
        connection.prepare_cached(sql).unwrap().reset_status(counter)
    }

    /// A list is read in as many steps of SQLite's machine in a large store as in a small one.
    #[test]
    fn a_list_reads_only_the_rows_that_it_returns() {
        let steps = |count: i64, range: &IndexRange| {
            let connection = database();
            fill(&connection, count);
            let found = scan(&connection, range).unwrap();
            let sql = if range.order == Order::Ascending { SELECT_ASCENDING } else { SELECT_DESCENDING };
            assert_eq!(counted(&connection, sql, StatementStatus::FullscanStep), 0);
            assert_eq!(counted(&connection, sql, StatementStatus::Sort), 0);
            (found.len(), counted(&connection, sql, StatementStatus::VmStep))
        };
        let first = newest_failed(20);
        let next = |number: i64| {
            let sort = format!("failed/{}", sort_time(Timestamp(number)));
            IndexRange { after: Some(IndexPosition { sort, key: key(&number.to_string()) }), ..newest_failed(20) }
        };
        let oldest = IndexRange { order: Order::Ascending, ..newest_failed(20) };
        for (small, large) in [(&first, &first), (&next(900), &next(9_000)), (&oldest, &oldest)] {
            let (found_small, steps_small) = steps(1_000, small);
            let (found_large, steps_large) = steps(10_000, large);
            assert_eq!((found_small, found_large), (20, 20));
            assert_eq!(steps_small, steps_large, "the number of steps depends on the size of the store");
            assert!(steps_large < 20 * 40, "{steps_large} steps for 20 rows");
        }
        // A range that ends reads no row behind its end.
        let none = IndexRange { before: Some("failed/".to_owned()), ..oldest };
        let (found, steps) = steps(1_000, &none);
        assert!(found == 0 && steps < 40, "{found} rows in {steps} steps");
    }

    #[test]
    fn maintenance_skips_the_entries_of_other_tenants() {
        let connection = database();
        fill(&connection, 5_000);
        let batch = ["a", "m", "z"].into_iter().fold(Batch::default(), |batch, name| {
            let key = Key::new(&TenantId::parse(name).unwrap(), Table::LogicalSession, "x");
            batch.put_indexed(key, Vec::new(), Expect::Absent, vec![IndexKey::new(Index::State, "a")])
        });
        apply(&connection, &batch);
        let range = MaintenanceRange { index: Index::State, before: Some("b".to_owned()), after: None, limit: 10 };
        assert_eq!(scan_all_tenants(&connection, &range).unwrap().len(), 3);
        let steps = counted(&connection, SELECT_ASCENDING, StatementStatus::VmStep)
            + counted(&connection, SELECT_NEXT_TENANT, StatementStatus::VmStep);
        assert!(steps < 400, "{steps} steps for three rows of four tenants");
        assert_eq!(counted(&connection, SELECT_NEXT_TENANT, StatementStatus::FullscanStep), 0);
    }

    #[test]
    fn plans_use_the_primary_key_without_sorting() {
        let connection = database();
        for (sql, bound) in [(SELECT_ASCENDING, "sort<?"), (SELECT_DESCENDING, "sort>?")] {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let empty = params!["", "", "", "", "", ""];
            let plan: Vec<String> =
                statement.query_map(empty, |row| row.get(3)).unwrap().map(|line| line.unwrap()).collect();
            let plan = plan.join("\n");
            assert!(plan.contains("SEARCH entry USING PRIMARY KEY (idx=? AND tenant=? AND "), "{plan}");
            assert!(plan.contains("(sort,tbl,id)") && plan.contains(bound), "{plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP"), "{plan}");
        }
    }

    #[test]
    fn rows_without_entries_cost_no_statement_for_entries() {
        let connection = database();
        let plain = |id: &str| Batch::default().put(key(id), b"x".to_vec(), Expect::Any);
        for _ in 0..3 {
            apply(&connection, &plain("a").put_indexed(key("b"), b"x".to_vec(), Expect::Any, Vec::new()));
        }
        apply(&connection, &Batch::default().delete(key("a"), Expect::Any).check(key("b"), Expect::Version(3)));
        for sql in [SELECT_KEYS, INSERT_ENTRY, DELETE_ENTRY, DELETE_ENTRIES_OF_ROW] {
            assert_eq!(counted(&connection, sql, StatementStatus::Run), 0, "{sql}");
        }
        // A row whose entries stay writes none of them.
        let indexed = |sort| {
            Batch::default().put_indexed(key("c"), b"x".to_vec(), Expect::Any, vec![IndexKey::new(Index::State, sort)])
        };
        for _ in 0..3 {
            apply(&connection, &indexed("same"));
        }
        assert_eq!(counted(&connection, INSERT_ENTRY, StatementStatus::Run), 1);
        assert_eq!(counted(&connection, DELETE_ENTRY, StatementStatus::Run), 0);
        apply(&connection, &indexed("other"));
        assert_eq!(counted(&connection, INSERT_ENTRY, StatementStatus::Run), 1);
        assert_eq!(counted(&connection, DELETE_ENTRY, StatementStatus::Run), 1);
        assert_eq!(counted(&connection, DELETE_ENTRIES_OF_ROW, StatementStatus::Run), 0);
    }

    #[test]
    fn a_list_of_entries_is_read_back_and_damage_is_noticed() {
        let entries: BTreeSet<Listed> = [("state", ""), ("state", "é\u{10ffff}"), ("lease_end", "a\0b")]
            .into_iter()
            .map(|(index, sort)| Listed { index: index.to_owned(), sort: sort.to_owned() })
            .collect();
        let list = encode(&key("a"), &entries);
        assert_eq!(decode(&key("a"), &list), Some(entries));
        assert_eq!(decode(&key("b"), &list), None, "the list of another row");
        assert_eq!(decode(&key("a"), &encode(&key("a"), &BTreeSet::new())), Some(BTreeSet::new()));
        for at in 0..list.len() {
            let mut damaged = list.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&key("a"), &damaged), None, "byte {at}");
            assert_eq!(decode(&key("a"), &list[..at]), None, "cut at {at}");
        }
    }
}
