//! The derive step (`=> {…}`): it makes one new row from each input row.
//! Invariant: the result has one row for each input row, in the same order. Reads inside values stay within the plan's bound on
//! calls.

use std::sync::Arc;

use catalog::Row;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use lang::plan::Expr;

use crate::coverage::Coverage;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::value::ValueScope;
use crate::value::view::RowsView;

pub async fn apply(
    scope: &ValueScope<'_>,
    view: &RowsView<'_>,
    object: &[(String, Expr)],
) -> Result<Rowset, StepError> {
    let rows = &view.rows.rows;
    if !object.iter().any(|(_, expr)| expr.reads_api()) {
        let derive = |row: &Arc<Row>| -> Result<Row, StepError> {
            let scope = scope.at(*view, row);
            object.iter().map(|(name, expr)| Ok((name.clone(), scope.evaluate_known(expr)?))).collect()
        };
        return Ok(view.rows.with_new_rows(rows.iter().map(derive).collect::<Result<_, _>>()?));
    }
    let derivations: Vec<_> = rows.iter().map(|row| derive_reading(scope.at(*view, row), object).boxed()).collect();
    let mut derived_rows = stream::iter(derivations).buffered(scope.ctx.limits.calls_per_origin.max(1));
    let mut out = Vec::with_capacity(rows.len());
    let mut coverage = Coverage::Complete;
    while let Some((row, row_coverage)) = derived_rows.try_next().await? {
        out.push(row);
        coverage = coverage.and(row_coverage);
    }
    Ok(view.rows.with_new_rows(out).with_coverage(&coverage))
}

/// Makes one row whose values may contain API reads.
async fn derive_reading(scope: ValueScope<'_>, object: &[(String, Expr)]) -> Result<(Row, Coverage), StepError> {
    let mut row = Row::with_capacity(object.len());
    let mut coverage = Coverage::Complete;
    for (name, expr) in object {
        let (value, value_coverage) = scope.value(expr).await?;
        row.insert(name.clone(), value);
        coverage = coverage.and(value_coverage);
    }
    Ok((row, coverage))
}
