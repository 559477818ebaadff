//! The stored form of a row: its version with a mark, its value, and the checksum of both.
//! Invariant: a row whose checksum does not match is an error and is never returned.

use base::TenantId;
use ports::store::{Row, Table};

use super::error::SqliteError;

/// This bit of a stored version is set if the row has index entries. A write reads the version anyway, so it learns
/// without another read whether there are entries to remove. A column behind the value could lie in overflow pages.
pub const HAS_ENTRIES: i64 = 1 << 62;

/// A row as it was read from the file. Its checksum is not checked yet.
pub struct StoredRow {
    /// The version as it is stored, with the bit `HAS_ENTRIES`. The checksum covers the bit, too.
    version: i64,
    value: Vec<u8>,
    /// The checksum of the row. A row that was written by the first schema version has no checksum until it is written
    /// again.
    sum: Option<i64>,
}

impl StoredRow {
    /// Reads version, value and checksum from the columns that begin at `first_column`.
    pub fn read(row: &rusqlite::Row<'_>, first_column: usize) -> rusqlite::Result<Self> {
        Ok(Self { version: row.get(first_column)?, value: row.get(first_column + 1)?, sum: row.get(first_column + 2)? })
    }

    pub fn into_checked(self, tenant: &TenantId, table: Table, id: &str) -> Result<Row, SqliteError> {
        let is_intact = self.sum.is_none_or(|sum| sum == checksum(tenant, table, id, self.version, &self.value));
        match u64::try_from(self.version & !HAS_ENTRIES) {
            Ok(version) if is_intact => Ok(Row { version, value: self.value }),
            _ => {
                let row = format!("row {}/{id} of tenant {}", table.name(), tenant.as_str());
                tracing::error!(
                    row,
                    "the checksum of a stored row does not match its content; restore the database from a backup"
                );
                Err(SqliteError::damaged_row(row))
            }
        }
    }
}

/// Returns the CRC-32 of a row. SQLite notices a page with a broken structure, but not a page with changed content. The
/// checksum covers the key too, so that a value under the key of another row is found. The checksum protects against
/// accidents only: a person who can write the file can also write a matching checksum.
pub fn checksum(tenant: &TenantId, table: Table, id: &str, version: i64, value: &[u8]) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    // A zero byte ends each text. The texts contain no zero bytes, so two different keys never give the same bytes.
    for part in [tenant.as_str().as_bytes(), &[0], table.name().as_bytes(), &[0], id.as_bytes(), &[0]] {
        hasher.update(part);
    }
    hasher.update(&version.to_le_bytes());
    hasher.update(value);
    i64::from(hasher.finalize())
}
