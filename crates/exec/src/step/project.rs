//! Rows with some of their columns.
//! Invariant: columns come out in the order asked for; coverage stays.

use lang::plan::NamedPath;

use crate::outcome::Rowset;

pub fn apply(input: &Rowset, columns: &[NamedPath]) -> Rowset {
    let pick = |row: &catalog::Row| {
        columns.iter().map(|c| (c.name.clone(), row.get(&c.name).cloned().unwrap_or_default())).collect()
    };
    Rowset { rows: input.rows.iter().map(pick).collect(), coverage: input.coverage.clone() }
}
