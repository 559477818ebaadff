//! The follow step: it reads the rows that a declared relation connects to each input row.
//! Invariant: an input row without the values that the relation's call needs has no related rows. An embedded relation costs no
//! call.

use std::sync::Arc;

use catalog::{Args, Catalog, Relation, Row, Via};

use super::{lookup, per_row};
use crate::call::{ReadContext, Target};
use crate::coverage::{Coverage, PartialReason};
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::{ListLimits, allowed_rows};
use crate::value::view::RowsView;

/// The relation to follow.
pub struct RelationCall<'a> {
    pub relation: &'a str,
    /// The additional arguments of the program, such as filters.
    pub args: &'a Args,
    pub wanted: ListLimits,
}

pub async fn apply(
    reads: &ReadContext<'_>,
    catalog: &Arc<Catalog>,
    relation_call: &RelationCall<'_>,
    view: &RowsView<'_>,
) -> Result<Rowset, StepError> {
    let not_in_catalog = || StepError::Catalog(catalog.id.clone());
    let parent = view.of.and_then(|of| catalog.entity(&of.entity)).ok_or(StepError::NotRows)?;
    let relation: &Relation = parent.relations.get(relation_call.relation).ok_or_else(not_in_catalog)?;
    match &relation.via {
        Via::Key { field } => {
            lookup::deref(reads, catalog, &relation.target, view.rows, field, relation_call.wanted.rows).await
        }
        Via::Embedded { .. } => Ok(embedded_rows(reads, relation_call, view.rows)),
        Via::Call { capability, fill } => {
            let capability = catalog.capability(capability).ok_or_else(not_in_catalog)?;
            // Without the value that identifies the parent, the API would return the rows of all parents. An input row without
            // this value is skipped.
            let args_of = |row: &Arc<Row>| -> Option<Args> {
                let mut args = relation_call.args.clone();
                for (param, field) in fill {
                    let value = match field {
                        Some(field) => row.get(field).cloned(),
                        None => parent.reference(row),
                    };
                    args.insert(param.clone(), value.filter(|v| !v.is_null())?);
                }
                Some(args)
            };
            let args_per_row = view.rows.rows.iter().filter_map(args_of).collect();
            per_row::read_lists(reads, Target { catalog, capability }, args_per_row, view.rows, relation_call.wanted)
                .await
        }
    }
}

fn embedded_rows(reads: &ReadContext<'_>, relation_call: &RelationCall<'_>, input: &Rowset) -> Rowset {
    let embedded = input.rows.iter().filter_map(|row| row.get(relation_call.relation)?.as_array());
    let rows = embedded.flatten().filter_map(|row| row.as_object().cloned());
    let mut all = input.with_new_rows(rows.collect());
    all.rest = None;
    if let Some(limit) = relation_call.wanted.rows {
        all = all.first_rows(limit);
    }
    let allowed = allowed_rows(reads);
    if all.rows.len() > allowed {
        all.rows.truncate(allowed);
        all.coverage = all.coverage.and(Coverage::partial(PartialReason::RowBudget));
    }
    all
}
