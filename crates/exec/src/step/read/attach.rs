//! The input's rows with what one of their references leads to beside them, so that paths can lead into it.
//! Invariant: no row is copied or lost; a row without a reference, or whose reference leads to nothing, has nothing there.

use std::sync::Arc;

use catalog::Catalog;
use serde_json::Value;
use smol_str::SmolStr;

use super::lookup::{self, references};
use crate::call::Reads;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::value::view::View;

pub async fn apply(
    reads: &Reads<'_>,
    catalog: &Arc<Catalog>,
    entity: &str,
    field: &[SmolStr],
    view: &View<'_>,
) -> Result<Rowset, StepError> {
    let walk = view.walk(field);
    let held: Vec<&Value> = view.rows.rows.iter().filter_map(|row| walk.find(row)).flat_map(references).collect();
    let found = lookup::read(&reads.whole(), catalog, entity, (field.to_vec(), &held)).await?;
    let mut rows = view.rows.clone().covered(&found.coverage);
    rows.attached.push(Arc::new(found.table));
    Ok(rows)
}
