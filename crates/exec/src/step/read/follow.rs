//! Follows a declared relation from each input row.
//! Invariant: a row that cannot fill the relation's scope leads nowhere; an embedded relation costs no call.

use std::sync::Arc;

use catalog::{Args, Catalog, Relation, Row, Via};

use super::{fan, lookup};
use crate::call::{Reads, Target};
use crate::coverage::{Coverage, PartialReason};
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::ListLimits;
use crate::value::view::View;

/// The relation to follow.
pub struct Hop<'a> {
    pub relation: &'a str,
    pub args: &'a Args,
    pub want: ListLimits,
}

pub async fn apply(
    reads: &Reads<'_>,
    catalog: &Arc<Catalog>,
    hop: &Hop<'_>,
    view: &View<'_>,
) -> Result<Rowset, StepError> {
    let lacking = || StepError::Catalog(catalog.id.clone());
    let parent = view.of.and_then(|of| catalog.entity(&of.entity)).ok_or(StepError::NotRows)?;
    let relation: &Relation = parent.relations.get(hop.relation).ok_or_else(lacking)?;
    match &relation.via {
        Via::Key { field } => lookup::deref(reads, catalog, &relation.target, view.rows, field, hop.want.rows).await,
        Via::Embedded { .. } => Ok(embedded(reads, hop, view.rows)),
        Via::Call { capability, fill } => {
            let capability = catalog.capability(capability).ok_or_else(lacking)?;
            // A call without its scope would make the API answer with all rows, so such a row is dropped.
            let args_of = |row: &Arc<Row>| -> Option<Args> {
                let mut args = hop.args.clone();
                for (param, field) in fill {
                    let value = match field {
                        Some(field) => row.get(field).cloned(),
                        None => parent.reference(row),
                    };
                    args.insert(param.clone(), value.filter(|v| !v.is_null())?);
                }
                Some(args)
            };
            let each = view.rows.rows.iter().filter_map(args_of).collect();
            fan::lists(reads, Target { catalog, capability }, each, view.rows, hop.want).await
        }
    }
}

fn embedded(reads: &Reads<'_>, hop: &Hop<'_>, input: &Rowset) -> Rowset {
    let held = input.rows.iter().filter_map(|row| row.get(hop.relation)?.as_array());
    let rows = held.flatten().filter_map(|row| row.as_object().cloned());
    let mut all = input.derived(rows.collect());
    all.rest = None;
    if let Some(limit) = hop.want.rows {
        all = all.first_rows(limit);
    }
    let allowed = reads.ctx.limits.rows.min(reads.allowance.rows.max(1));
    if all.rows.len() > allowed {
        all.rows.truncate(allowed);
        all.coverage = all.coverage.and(Coverage::partial(PartialReason::RowBudget));
    }
    all
}
