//! The SQL statements that read and write rows.
//!
//! Invariants:
//! - Ids are compared as bytes. No statement uses LIKE or a collation.
//! - Every statement that reads or changes rows selects one tenant, except `tenants` and `probe`.
//! - A row whose checksum does not match is an error and is never returned.
//! - A row without index entries, before and after a write, costs no statement for them.

use base::TenantId;
use ports::index::IndexKey;
use ports::store::{Batch, Expect, Key, Range, Row, Table, Write};
use rusqlite::{Connection, OptionalExtension, params};

use super::error::SqliteError;
use super::index_rows::EntryChange;
use super::stored_row::{HAS_ENTRIES, StoredRow, checksum};

const SELECT_ROW: &str = "SELECT version, value, sum FROM row WHERE tenant = ?1 AND tbl = ?2 AND id = ?3";
const SELECT_ROWS_FROM: &str =
    "SELECT id, version, value, sum FROM row WHERE tenant = ?1 AND tbl = ?2 AND id >= ?3 ORDER BY id";
const SELECT_ROWS_AFTER: &str =
    "SELECT id, version, value, sum FROM row WHERE tenant = ?1 AND tbl = ?2 AND id > ?3 ORDER BY id";
/// `SELECT_IDS_FROM` and `SELECT_IDS_AFTER` read only the index, so they are fast for tables with large rows.
const SELECT_IDS_FROM: &str = "SELECT id FROM row WHERE tenant = ?1 AND tbl = ?2 AND id >= ?3 ORDER BY id";
const SELECT_IDS_AFTER: &str = "SELECT id FROM row WHERE tenant = ?1 AND tbl = ?2 AND id > ?3 ORDER BY id";
const SELECT_ROWID_AND_VERSION: &str = "SELECT rowid, version FROM row WHERE tenant = ?1 AND tbl = ?2 AND id = ?3";
const INSERT_ROW: &str = "INSERT INTO row (version, value, sum, tenant, tbl, id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const UPDATE_ROW: &str = "UPDATE row SET version = ?1, value = ?2, sum = ?3 WHERE rowid = ?4";
/// The two statements of rows with index entries also set `keys`, the list of the entries.
const INSERT_INDEXED_ROW: &str =
    "INSERT INTO row (version, value, sum, keys, tenant, tbl, id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const UPDATE_INDEXED_ROW: &str = "UPDATE row SET version = ?1, value = ?2, sum = ?3, keys = ?4 WHERE rowid = ?5";
const DELETE_ROW: &str = "DELETE FROM row WHERE rowid = ?1";

pub fn get(connection: &Connection, key: &Key) -> Result<Option<Row>, SqliteError> {
    let mut statement = connection.prepare_cached(SELECT_ROW)?;
    let parameters = params![key.tenant.as_str(), key.table.name(), key.id];
    let stored = statement.query_row(parameters, |row| StoredRow::read(row, 0)).optional()?;
    stored.map(|row| row.into_checked(&key.tenant, key.table, &key.id)).transpose()
}

pub fn scan(connection: &Connection, range: &Range) -> Result<Vec<(String, Row)>, SqliteError> {
    scan_range(connection, range, SELECT_ROWS_FROM, SELECT_ROWS_AFTER, |id, row| {
        StoredRow::read(row, 1)?.into_checked(&range.tenant, range.table, id)
    })
}

/// Returns the ids of a range, each with the row of the table `other` under the same id. All reads are in one
/// transaction: after another process has written, each new transaction would start with an empty cache.
pub fn scan_with(
    connection: &Connection,
    range: &Range,
    other: Table,
) -> Result<Vec<(String, Option<Row>)>, SqliteError> {
    // An error below leaves the transaction open. The caller closes the connection after an error (`readers.rs`),
    // because a later read in the open transaction would not see later commits.
    connection.prepare_cached("BEGIN")?.execute([])?;
    let mut pairs = scan_range(connection, range, SELECT_IDS_FROM, SELECT_IDS_AFTER, |_, _| Ok(None))?;
    for (id, row) in &mut pairs {
        *row = get(connection, &Key::new(&range.tenant, other, id.as_str()))?;
    }
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(pairs)
}

/// Returns all tenants that have rows. Each tenant costs one search in the index, because the other rows of the tenant
/// are skipped.
pub fn tenants(connection: &Connection) -> Result<Vec<TenantId>, SqliteError> {
    let mut statement = connection.prepare_cached("SELECT min(tenant) FROM row WHERE tenant > ?1")?;
    let mut tenants = Vec::new();
    let mut last = String::new();
    while let Some(tenant) = statement.query_row(params![last], |row| row.get::<_, Option<String>>(0))? {
        // A text that is not a valid tenant id is skipped. This program does not write such ids, so no caller can own
        // the row.
        tenants.extend(TenantId::parse(&tenant));
        last = tenant;
    }
    Ok(tenants)
}

/// Reads one row, to check that the database is readable.
pub fn probe(connection: &Connection) -> Result<(), SqliteError> {
    connection.prepare_cached("SELECT version FROM row LIMIT 1")?.query_row([], |_| Ok(())).optional()?;
    Ok(())
}

/// Applies the writes of a batch in order. If the expectation of a write is not met, the function returns the key of
/// that write, and the caller undoes the writes before it.
pub fn apply(connection: &Connection, batch: &Batch) -> rusqlite::Result<Result<(), Key>> {
    for write in &batch.writes {
        let key = write.key();
        let existing = connection
            .prepare_cached(SELECT_ROWID_AND_VERSION)?
            .query_row(params![key.tenant.as_str(), key.table.name(), key.id], |row| {
                Ok(ExistingRow::new(row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let is_met = match write.expect() {
            Expect::Any => true,
            Expect::Absent => existing.is_none(),
            Expect::Version(expected) => existing.is_some_and(|row| u64::try_from(row.version) == Ok(expected)),
        };
        if !is_met {
            return Ok(Err(key.clone()));
        }
        match write {
            Write::Put { value, .. } => put(connection, key, value, &[], existing)?,
            Write::PutIndexed { value, keys, .. } => put(connection, key, value, keys, existing)?,
            Write::Delete { .. } => {
                if let Some(row) = existing {
                    if row.has_entries {
                        EntryChange::plan(connection, key, Some(row.rowid), &[])?.apply(connection, key)?;
                    }
                    connection.prepare_cached(DELETE_ROW)?.execute(params![row.rowid])?;
                }
            }
            Write::Check { .. } => {}
        }
    }
    Ok(Ok(()))
}

/// The part of a stored row that a write needs.
#[derive(Debug, Clone, Copy)]
struct ExistingRow {
    rowid: i64,
    version: i64,
    has_entries: bool,
}

impl ExistingRow {
    fn new(rowid: i64, stored_version: i64) -> Self {
        Self { rowid, version: stored_version & !HAS_ENTRIES, has_entries: stored_version & HAS_ENTRIES != 0 }
    }
}

/// Writes a row, and replaces its index entries by those of `keys`.
fn put(
    connection: &Connection,
    key: &Key,
    value: &[u8],
    keys: &[IndexKey],
    existing: Option<ExistingRow>,
) -> rusqlite::Result<()> {
    let version = existing.map_or(0, |row| row.version) + 1;
    let version = if keys.is_empty() { version } else { version | HAS_ENTRIES };
    let sum = checksum(&key.tenant, key.table, &key.id, version, value);
    let (tenant, table, id) = (key.tenant.as_str(), key.table.name(), &key.id);
    let indexed_rowid = existing.filter(|row| row.has_entries).map(|row| row.rowid);
    if indexed_rowid.is_none() && keys.is_empty() {
        match existing {
            Some(row) => connection.prepare_cached(UPDATE_ROW)?.execute(params![version, value, sum, row.rowid])?,
            None => connection.prepare_cached(INSERT_ROW)?.execute(params![version, value, sum, tenant, table, id])?,
        };
        return Ok(());
    }
    let change = EntryChange::plan(connection, key, indexed_rowid, keys)?;
    let list = change.list(key);
    match existing {
        Some(row) => {
            connection.prepare_cached(UPDATE_INDEXED_ROW)?.execute(params![version, value, sum, list, row.rowid])?
        }
        None => {
            let parameters = params![version, value, sum, list, tenant, table, id];
            connection.prepare_cached(INSERT_INDEXED_ROW)?.execute(parameters)?
        }
    };
    change.apply(connection, key)
}

/// Reads a range with `sql_from`, which begins at an id, or with `sql_after`, which begins after an id. Returns each id
/// with the result of `read` for its row.
fn scan_range<T>(
    connection: &Connection,
    range: &Range,
    sql_from: &str,
    sql_after: &str,
    mut read: impl FnMut(&str, &rusqlite::Row<'_>) -> Result<T, SqliteError>,
) -> Result<Vec<(String, T)>, SqliteError> {
    let (sql, start) = match &range.after {
        Some(after) if *after >= range.prefix => (sql_after, after),
        // `after` is before the prefix, so no id of the range is excluded.
        _ => (sql_from, &range.prefix),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![range.tenant.as_str(), range.table.name(), start])?;
    let mut items = Vec::new();
    while items.len() < range.limit {
        let Some(row) = rows.next()? else { break };
        let id: String = row.get(0)?;
        // In the order of bytes, all ids with the prefix are neighbours, so the first id without the prefix ends the
        // range.
        if !id.starts_with(&range.prefix) {
            break;
        }
        let item = read(&id, row)?;
        items.push((id, item));
    }
    Ok(items)
}
