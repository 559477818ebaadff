//! The evaluation of the expressions in a plan: literals, and references to finished steps and to the current row.
//! Invariant: a reference is replaced by a JSON value and never spliced as text. A missing value is an error that names the
//! reference.

mod fence;
mod meter;
pub mod template;
pub mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{Capability, Row};
use futures::future::BoxFuture;
use lang::plan::{Args, Expr, RowPart, Shape, Step};
use serde_json::{Map, Value};

use crate::coverage::Coverage;
use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::value::template::TemplateSource;
use crate::value::view::{LITERAL_COLUMN, RowsView};

/// The row sets of the finished steps that a step needs, by step index.
pub type Inputs = BTreeMap<usize, Arc<Rowset>>;

/// The data to which an expression may refer.
#[derive(Clone, Copy)]
pub struct ValueScope<'a> {
    pub ctx: &'a Ctx<'a>,
    pub steps: &'a [Step],
    pub inputs: &'a Inputs,
    /// The current row of a `=>` or of a relation. `_` in the expression refers to it.
    pub row: Option<CurrentRow<'a>>,
    /// Runs the reads inside expressions.
    pub reader: &'a dyn ValueReader,
}

/// A row with the types of its columns.
#[derive(Clone, Copy)]
pub struct CurrentRow<'a> {
    pub view: RowsView<'a>,
    pub row: &'a Arc<Row>,
}

/// Runs the steps of a read that an expression contains.
pub trait ValueReader: Sync {
    /// Returns the rows of the last step.
    fn read<'s>(&'s self, scope: ValueScope<'s>, steps: &'s [Step]) -> BoxFuture<'s, Result<Arc<Rowset>, StepError>>;
}

/// A value with the coverage of the reads that produced it.
pub type CoveredValue = (Value, Coverage);

impl<'a> ValueScope<'a> {
    /// Returns the same scope with another current row.
    pub fn at(self, view: RowsView<'a>, row: &'a Arc<Row>) -> Self {
        Self { row: Some(CurrentRow { view, row }), ..self }
    }

    /// Returns the arguments of a call. A `null` is sent if the parameter accepts it, is an error for a required parameter, and
    /// is left out otherwise.
    pub async fn args(&self, capability: &Capability, args: &Args) -> Result<catalog::Args, StepError> {
        let mut out = catalog::Args::new();
        for (name, expr) in args {
            let value = self.value(expr).await?.0;
            if !value.is_null() || capability.accepts_null(name.as_str()) {
                out.insert(name.to_string(), value);
            } else if capability.params.get(name.as_str()).is_some_and(|p| p.required)
                || capability.anchor.iter().any(|part| part == name)
            {
                return Err(StepError::Missing { what: name.to_string(), of: Some(self.origin(expr)) });
            }
        }
        Ok(out)
    }

    /// Evaluates an expression. It may call the API, if the expression contains a read.
    pub async fn value(&self, expr: &Expr) -> Result<CoveredValue, StepError> {
        if !expr.reads_api() {
            return self.evaluate_known(expr).map(|value| (value, Coverage::Complete));
        }
        self.evaluate_with_reads(expr).await
    }

    /// Evaluates an expression without reads. It never waits.
    pub fn evaluate_known(&self, expr: &Expr) -> Result<Value, StepError> {
        match expr {
            Expr::Value(value) => Ok(value.clone()),
            Expr::Step { step, take, many } => self.value_of_step(*step, take, *many),
            Expr::Row(take) => {
                let CurrentRow { view, row } = self.row.ok_or_else(|| missing("_", "a step without rows"))?;
                take_row_part(&view, row, take)
            }
            Expr::List(items) => {
                items.iter().map(|item| self.evaluate_known(item)).collect::<Result<_, _>>().map(Value::Array)
            }
            Expr::Object(pairs) => {
                let pair = |(name, item): &(String, Expr)| Ok((name.clone(), self.evaluate_known(item)?));
                pairs.iter().map(pair).collect::<Result<Map<_, _>, StepError>>().map(Value::Object)
            }
            Expr::Template { source, names } => {
                let CurrentRow { view, row } = self.row.ok_or_else(|| missing("_", "a template without a row"))?;
                let source = TemplateSource { text: source, names };
                template::render_row(self.ctx.limits, source, &view, row).map(Value::String)
            }
            Expr::Read { .. } => Err(StepError::NotRows),
        }
    }

    /// Evaluates an expression with reads. The future is boxed, because the function calls itself for lists and objects.
    fn evaluate_with_reads<'s>(&'s self, expr: &'s Expr) -> BoxFuture<'s, Result<CoveredValue, StepError>> {
        Box::pin(async move {
            let mut coverage = Coverage::Complete;
            let value = match expr {
                Expr::Read { steps, take } => {
                    let rows = self.reader.read(*self, steps).await?;
                    coverage = rows.coverage.clone();
                    take_from_result(steps.last(), &rows, take, self.ctx.catalogs)?
                }
                Expr::List(items) => {
                    let mut out = Vec::with_capacity(items.len());
                    for item in items {
                        let (value, item_coverage) = self.value(item).await?;
                        coverage = coverage.and(item_coverage);
                        out.push(value);
                    }
                    Value::Array(out)
                }
                Expr::Object(pairs) => {
                    let mut out = Map::with_capacity(pairs.len());
                    for (name, item) in pairs {
                        let (value, item_coverage) = self.value(item).await?;
                        coverage = coverage.and(item_coverage);
                        out.insert(name.to_string(), value);
                    }
                    Value::Object(out)
                }
                other => self.evaluate_known(other)?,
            };
            Ok((value, coverage))
        })
    }

    /// Returns a part of a finished step's rows. If `many` is true, the result is a list with the value of each row; otherwise
    /// the step must have exactly one row.
    fn value_of_step(&self, step: usize, take: &RowPart, many: bool) -> Result<Value, StepError> {
        let rows = self.inputs.get(&step).ok_or(StepError::NotRows)?;
        let planned = self.steps.get(step).ok_or(StepError::NotRows)?;
        let view = RowsView::new(rows, planned, self.ctx.catalogs);
        if many {
            return take_from_all(&view, take);
        }
        match rows.rows.as_slice() {
            [row] => take_row_part(&view, row, take),
            [] => Err(missing(&path_of(take), &format!("{}, which has no rows", step_name(self.steps, step)))),
            several => Err(StepError::NotOne { what: step_name(self.steps, step), found: several.len() }),
        }
    }

    /// Returns the name of the step or row to which an expression refers, for an error message.
    fn origin(&self, expr: &Expr) -> String {
        match expr {
            Expr::Step { step, take, .. } => format!("{}.{}", step_name(self.steps, *step), path_of(take)),
            Expr::Row(take) => format!("`_.{}`", path_of(take)),
            _ => "the program".to_owned(),
        }
    }
}

/// Returns the values of all rows as a list, or the value of the first row.
fn take_from_result(
    step: Option<&Step>,
    rows: &Rowset,
    take: &RowPart,
    catalogs: &view::Catalogs,
) -> Result<Value, StepError> {
    let Some(step) = step else { return Ok(Value::Null) };
    let view = RowsView::new(rows, step, catalogs);
    if step.shape == Shape::List {
        return take_from_all(&view, take);
    }
    rows.rows.first().map_or(Ok(Value::Null), |row| take_row_part(&view, row, take))
}

/// Returns a list with the value of each row. Rows without a value are skipped.
fn take_from_all(view: &RowsView<'_>, take: &RowPart) -> Result<Value, StepError> {
    let values = view.rows.rows.iter().map(|row| take_row_part(view, row, take));
    values.filter(|v| !matches!(v, Ok(Value::Null))).collect::<Result<_, _>>().map(Value::Array)
}

/// Returns the label of a step in the program, or its number if it has no label.
pub fn step_name(steps: &[Step], index: usize) -> String {
    let label = steps.get(index).and_then(|s| s.label.as_ref()).map(|label| format!("`{label}`"));
    label.unwrap_or_else(|| format!("step {:02}", index + 1))
}

/// Returns a part of a row: the row itself, the value at a path, or the row's key.
fn take_row_part(view: &RowsView<'_>, row: &Arc<Row>, take: &RowPart) -> Result<Value, StepError> {
    match take {
        RowPart::Path(path) if path.is_empty() && view.is_literal() => {
            Ok(row.get(LITERAL_COLUMN).cloned().unwrap_or_default())
        }
        RowPart::Path(path) if path.is_empty() => Ok(Value::Object(Row::clone(row))),
        RowPart::Path(path) => Ok(view.walk(path).find(row).cloned().unwrap_or_default()),
        RowPart::Key(of) => {
            let entity = view.catalogs.get(&of.catalog).and_then(|c| c.entity(&of.entity));
            let entity = entity.ok_or_else(|| StepError::Catalog(of.catalog.clone()))?;
            entity.reference(row).ok_or_else(|| missing(&entity.key.join(", "), &format!("a row of {}", of.entity)))
        }
    }
}

fn path_of(take: &RowPart) -> String {
    match take {
        RowPart::Path(path) => path.join("."),
        RowPart::Key(of) => format!("the key of {}", of.entity),
    }
}

fn missing(what: &str, of: &str) -> StepError {
    StepError::Missing { what: what.to_owned(), of: Some(of.to_owned()) }
}
