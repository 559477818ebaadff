//! The statements.
//! Invariant: ids are compared as bytes, never with LIKE or a collation; every statement names its tenant; a row that is not
//! what was written is never given out.

use base::TenantId;
use ports::store::{Batch, Expect, Key, Range, Row, Table, Write};
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::Fault;

const GET: &str = "SELECT version, value, sum FROM row WHERE tenant = ?1 AND tbl = ?2 AND id = ?3";
const SCAN_FROM: &str =
    "SELECT id, version, value, sum FROM row WHERE tenant = ?1 AND tbl = ?2 AND id >= ?3 ORDER BY id";
const SCAN_AFTER: &str =
    "SELECT id, version, value, sum FROM row WHERE tenant = ?1 AND tbl = ?2 AND id > ?3 ORDER BY id";
/// Of the index alone: no row is read.
const IDS_FROM: &str = "SELECT id FROM row WHERE tenant = ?1 AND tbl = ?2 AND id >= ?3 ORDER BY id";
const IDS_AFTER: &str = "SELECT id FROM row WHERE tenant = ?1 AND tbl = ?2 AND id > ?3 ORDER BY id";
const AT: &str = "SELECT rowid, version FROM row WHERE tenant = ?1 AND tbl = ?2 AND id = ?3";
const ADD: &str = "INSERT INTO row (version, value, sum, tenant, tbl, id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const CHANGE: &str = "UPDATE row SET version = ?1, value = ?2, sum = ?3 WHERE rowid = ?4";
const DELETE: &str = "DELETE FROM row WHERE rowid = ?1";

pub fn get(connection: &Connection, key: &Key) -> Result<Option<Row>, Fault> {
    let mut statement = connection.prepare_cached(GET)?;
    let found = statement.query_row(params![key.tenant.as_str(), key.table.name(), key.id], |row| read(row, 0));
    found.optional()?.map(|read| read.checked(&key.tenant, key.table, &key.id)).transpose()
}

pub fn scan(connection: &Connection, range: &Range) -> Result<Vec<(String, Row)>, Fault> {
    each(connection, range, [SCAN_FROM, SCAN_AFTER], |id, row| read(row, 1)?.checked(&range.tenant, range.table, id))
}

/// What `take` makes of every row of a range, by one of two statements: from its prefix on, or after a place.
fn each<T>(
    connection: &Connection,
    range: &Range,
    [from, after]: [&str; 2],
    mut take: impl FnMut(&str, &rusqlite::Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<(String, T)>, Fault> {
    let (sql, start) = match &range.after {
        Some(place) if *place >= range.prefix => (after, place),
        _ => (from, &range.prefix),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![range.tenant.as_str(), range.table.name(), start])?;
    let mut found = Vec::new();
    while found.len() < range.limit {
        let Some(row) = rows.next()? else { break };
        let id: String = row.get(0)?;
        // In the order of bytes, the ids with the prefix stand together: the first without it ends them.
        if !id.starts_with(&range.prefix) {
            break;
        }
        let taken = take(&id, row)?;
        found.push((id, taken));
    }
    Ok(found)
}

/// In one transaction: after another process has written, each begins with an empty cache.
pub fn scan_with(connection: &Connection, range: &Range, other: Table) -> Result<Vec<(String, Option<Row>)>, Fault> {
    // Where it fails in between, the connection is closed (`readers.rs`).
    connection.prepare_cached("BEGIN")?.execute([])?;
    let mut found = each(connection, range, [IDS_FROM, IDS_AFTER], |_, _| Ok(None))?;
    for (id, row) in &mut found {
        *row = get(connection, &Key::new(&range.tenant, other, id.as_str()))?;
    }
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(found)
}

/// One step of the index for each.
pub fn tenants(connection: &Connection) -> Result<Vec<TenantId>, Fault> {
    let mut next = connection.prepare_cached("SELECT min(tenant) FROM row WHERE tenant > ?1")?;
    let (mut found, mut last) = (Vec::new(), String::new());
    while let Some(tenant) = next.query_row(params![last], |row| row.get::<_, Option<String>>(0))? {
        // What no version of ours wrote is nobody's.
        found.extend(TenantId::parse(&tenant));
        last = tenant;
    }
    Ok(found)
}

/// Reads from the table's pages.
pub fn probe(connection: &Connection) -> Result<(), Fault> {
    connection.prepare_cached("SELECT version FROM row LIMIT 1")?.query_row([], |_| Ok(())).optional()?;
    Ok(())
}

/// Applies the batch's writes in order; stops at the first whose expectation is not met and gives its key.
/// The caller takes back what was applied before it.
pub fn apply(connection: &Connection, batch: &Batch) -> rusqlite::Result<Result<(), Key>> {
    for write in &batch.writes {
        let key = write.key();
        let (tenant, table) = (key.tenant.as_str(), key.table.name());
        let found: Option<(i64, i64)> = connection
            .prepare_cached(AT)?
            .query_row(params![tenant, table, key.id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let met = match write.expect() {
            Expect::Any => true,
            Expect::Absent => found.is_none(),
            Expect::Version(wanted) => found.is_some_and(|(_, version)| u64::try_from(version) == Ok(wanted)),
        };
        if !met {
            return Ok(Err(key.clone()));
        }
        let sum = |version: i64, value: &[u8]| sum(&key.tenant, key.table, &key.id, version, value);
        match (write, found) {
            (Write::Put { value, .. }, Some((at, version))) => {
                let (version, sum) = (version + 1, sum(version + 1, value));
                connection.prepare_cached(CHANGE)?.execute(params![version, value, sum, at])?;
            }
            (Write::Put { value, .. }, None) => {
                let added = params![1, value, sum(1, value), tenant, table, key.id];
                connection.prepare_cached(ADD)?.execute(added)?;
            }
            (Write::Delete { .. }, Some((at, _))) => {
                connection.prepare_cached(DELETE)?.execute(params![at])?;
            }
            (Write::Delete { .. }, None) => {}
        }
    }
    Ok(Ok(()))
}

/// A row as it stands in the file.
struct Read {
    version: i64,
    value: Vec<u8>,
    sum: Option<i64>,
}

fn read(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Read> {
    Ok(Read { version: row.get(at)?, value: row.get(at + 1)?, sum: row.get(at + 2)? })
}

impl Read {
    fn checked(self, tenant: &TenantId, table: Table, id: &str) -> Result<Row, Fault> {
        let as_written = self.sum.is_none_or(|kept| kept == sum(tenant, table, id, self.version, &self.value));
        match u64::try_from(self.version) {
            Ok(version) if as_written => Ok(Row { version, value: self.value }),
            _ => {
                let what = format!("row {}/{id} of tenant {}", table.name(), tenant.as_str());
                tracing::error!(row = what, "a stored row is not what was written");
                Err(Fault::damaged(what))
            }
        }
    }
}

/// SQLite notices a page whose structure is broken, not one whose content is. The key is part of it: content that ended up
/// under another row's key is damage too. Against accidents; whoever can write the file can write this as well.
fn sum(tenant: &TenantId, table: Table, id: &str, version: i64, value: &[u8]) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [tenant.as_str().as_bytes(), &[0], table.name().as_bytes(), &[0], id.as_bytes(), &[0]] {
        hasher.update(part);
    }
    hasher.update(&version.to_le_bytes());
    hasher.update(value);
    i64::from(hasher.finalize())
}
