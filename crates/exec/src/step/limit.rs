//! The first rows of what was read in full because others need it too.
//! Invariant: asked for and got is complete; fewer than asked for is as complete as what was read.

use crate::coverage::Coverage;
use crate::outcome::Rowset;

pub fn apply(input: &Rowset, count: usize) -> Rowset {
    let coverage = if input.rows.len() >= count { Coverage::Complete } else { input.coverage.clone() };
    Rowset { rows: input.rows.iter().take(count).cloned().collect(), coverage }
}
