//! Adds to the input's rows the rows that one of their references leads to, so that paths can lead into them.
//! Invariant: no row is copied or lost; a row without a reference, or with a dangling one, has nothing attached.

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
    let references_of_rows: Vec<&Value> =
        view.rows.rows.iter().filter_map(|row| walk.find(row)).flat_map(references).collect();
    let found = lookup::read(&reads.all_fields(), catalog, entity, field.to_vec(), &references_of_rows).await?;
    let mut rows = view.rows.clone().with_coverage(&found.coverage);
    rows.attached.push(Arc::new(found.table));
    Ok(rows)
}
