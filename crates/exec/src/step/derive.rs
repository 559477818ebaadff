//! Makes a new row from each row.
//! Invariant: one row out for each row in, in order; a value that reads the API stays within the plan's bound.

use std::sync::Arc;

use catalog::Row;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use lang::plan::Expr;

use crate::coverage::Coverage;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::value::Scope;
use crate::value::view::View;

pub async fn apply(scope: &Scope<'_>, view: &View<'_>, object: &[(String, Expr)]) -> Result<Rowset, StepError> {
    let rows = &view.rows.rows;
    if !object.iter().any(|(_, expr)| expr.reads_api()) {
        let one = |row: &Arc<Row>| -> Result<Row, StepError> {
            let scope = scope.at(*view, row);
            object.iter().map(|(name, expr)| Ok((name.clone(), scope.known(expr)?))).collect()
        };
        return Ok(view.rows.derived(rows.iter().map(one).collect::<Result<_, _>>()?));
    }
    let work: Vec<_> = rows.iter().map(|row| one(scope.at(*view, row), object).boxed()).collect();
    let mut derived_rows = stream::iter(work).buffered(scope.ctx.limits.calls_per_origin.max(1));
    let (mut out, mut coverage) = (Vec::with_capacity(rows.len()), Coverage::Complete);
    while let Some((row, covered)) = derived_rows.try_next().await? {
        out.push(row);
        coverage = coverage.and(covered);
    }
    Ok(view.rows.derived(out).with_coverage(&coverage))
}

async fn one(scope: Scope<'_>, object: &[(String, Expr)]) -> Result<(Row, Coverage), StepError> {
    let (mut row, mut coverage) = (Row::with_capacity(object.len()), Coverage::Complete);
    for (name, expr) in object {
        let (value, covered) = scope.value(expr).await?;
        row.insert(name.clone(), value);
        coverage = coverage.and(covered);
    }
    Ok((row, coverage))
}
