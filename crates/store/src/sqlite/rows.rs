//! The statements.
//! Invariant: ids are compared as bytes, never with LIKE or a collation; every statement names its tenant.

use base::TenantId;
use ports::store::{Batch, Expect, Key, Range, Row, Write};
use rusqlite::{Connection, OptionalExtension, params};

const GET: &str = "SELECT version, value FROM row WHERE tenant = ?1 AND tbl = ?2 AND id = ?3";
const SCAN_FROM: &str = "SELECT id, version, value FROM row WHERE tenant = ?1 AND tbl = ?2 AND id >= ?3 ORDER BY id";
const SCAN_AFTER: &str = "SELECT id, version, value FROM row WHERE tenant = ?1 AND tbl = ?2 AND id > ?3 ORDER BY id";
const VERSION: &str = "SELECT version FROM row WHERE tenant = ?1 AND tbl = ?2 AND id = ?3";
const PUT: &str = "INSERT INTO row (tenant, tbl, id, version, value) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET version = excluded.version, value = excluded.value";
const DELETE: &str = "DELETE FROM row WHERE tenant = ?1 AND tbl = ?2 AND id = ?3";

pub fn get(connection: &Connection, key: &Key) -> rusqlite::Result<Option<Row>> {
    let mut statement = connection.prepare_cached(GET)?;
    let found = statement.query_row(params![key.tenant.as_str(), key.table.name(), key.id], |row| read(row, 0));
    found.optional()
}

pub fn scan(connection: &Connection, range: &Range) -> rusqlite::Result<Vec<(String, Row)>> {
    let (sql, start) = match &range.after {
        Some(after) if *after >= range.prefix => (SCAN_AFTER, after),
        _ => (SCAN_FROM, &range.prefix),
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
        found.push((id, read(row, 1)?));
    }
    Ok(found)
}

/// One step of the index for each.
pub fn tenants(connection: &Connection) -> rusqlite::Result<Vec<TenantId>> {
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
pub fn probe(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("SELECT version FROM row LIMIT 1")?.query_row([], |_| Ok(())).optional().map(|_| ())
}

/// Applies the batch's writes in order; stops at the first whose expectation is not met and gives its key.
/// The caller takes back what was applied before it.
pub fn apply(connection: &Connection, batch: &Batch) -> rusqlite::Result<Result<(), Key>> {
    for write in &batch.writes {
        let key = write.key();
        let (tenant, table) = (key.tenant.as_str(), key.table.name());
        let current: Option<i64> = connection
            .prepare_cached(VERSION)?
            .query_row(params![tenant, table, key.id], |row| row.get(0))
            .optional()?;
        let met = match write.expect() {
            Expect::Any => true,
            Expect::Absent => current.is_none(),
            Expect::Version(wanted) => current.is_some_and(|version| u64::try_from(version) == Ok(wanted)),
        };
        if !met {
            return Ok(Err(key.clone()));
        }
        match write {
            Write::Put { value, .. } => {
                let version = current.unwrap_or(0) + 1;
                connection.prepare_cached(PUT)?.execute(params![tenant, table, key.id, version, value])?;
            }
            Write::Delete { .. } => {
                connection.prepare_cached(DELETE)?.execute(params![tenant, table, key.id])?;
            }
        }
    }
    Ok(Ok(()))
}

fn read(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Row> {
    let version: i64 = row.get(at)?;
    let version = u64::try_from(version).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(at, version))?;
    Ok(Row { version, value: row.get(at + 1)? })
}
