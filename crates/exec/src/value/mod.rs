//! The evaluation of a plan's values: literals, and references to finished steps and to the current row.
//! Invariant: a reference is replaced by data, never by text spliced into text. A missing value is an error that names it.

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
use crate::value::view::{RowsView, VALUE};

/// The finished steps that a step needs, by number.
pub type Inputs = BTreeMap<usize, Arc<Rowset>>;

/// The data that a value may refer to.
#[derive(Clone, Copy)]
pub struct ValueScope<'a> {
    pub ctx: &'a Ctx<'a>,
    pub steps: &'a [Step],
    pub inputs: &'a Inputs,
    /// The current row of a `=>` or of a relation, which `_` stands for.
    pub row: Option<CurrentRow<'a>>,
    /// Runs the reads that a value makes itself.
    pub reader: &'a dyn ValueReader,
}

/// A row with the types of its columns.
#[derive(Clone, Copy)]
pub struct CurrentRow<'a> {
    pub view: RowsView<'a>,
    pub row: &'a Arc<Row>,
}

/// Runs the steps of a read that a value makes for a row.
pub trait ValueReader: Sync {
    /// Returns the rows of the last step.
    fn read<'s>(&'s self, scope: ValueScope<'s>, steps: &'s [Step]) -> BoxFuture<'s, Result<Arc<Rowset>, StepError>>;
}

/// A value with the coverage of the reads that it was made from.
pub type CoveredValue = (Value, Coverage);

impl<'a> ValueScope<'a> {
    /// Returns the same scope with another current row.
    pub fn at(self, view: RowsView<'a>, row: &'a Arc<Row>) -> Self {
        Self { row: Some(CurrentRow { view, row }), ..self }
    }

    /// Returns the arguments of a call. A `null` is sent if it empties the parameter, is an error for a required parameter, and
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

    /// Returns a value, reading the API if the expression contains a read.
    pub async fn value(&self, expr: &Expr) -> Result<CoveredValue, StepError> {
        if !expr.reads_api() {
            return self.known(expr).map(|value| (value, Coverage::Complete));
        }
        self.read(expr).await
    }

    /// Returns a value that needs no read of its own.
    pub fn known(&self, expr: &Expr) -> Result<Value, StepError> {
        match expr {
            Expr::Value(value) => Ok(value.clone()),
            Expr::Step { step, take, many } => self.value_of_step(*step, take, *many),
            Expr::Row(take) => {
                let CurrentRow { view, row } = self.row.ok_or_else(|| missing("_", "a step without rows"))?;
                take_from(&view, row, take)
            }
            Expr::List(items) => items.iter().map(|item| self.known(item)).collect::<Result<_, _>>().map(Value::Array),
            Expr::Object(pairs) => {
                let pair = |(name, item): &(String, Expr)| Ok((name.clone(), self.known(item)?));
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

    /// Returns a value that contains a read. It is boxed, because lists and objects contain further values.
    fn read<'s>(&'s self, expr: &'s Expr) -> BoxFuture<'s, Result<CoveredValue, StepError>> {
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
                other => self.known(other)?,
            };
            Ok((value, coverage))
        })
    }

    /// Returns a value of a finished step: of its only row, or with `many` a list of the values of all rows.
    fn value_of_step(&self, step: usize, take: &RowPart, many: bool) -> Result<Value, StepError> {
        let rows = self.inputs.get(&step).ok_or(StepError::NotRows)?;
        let planned = self.steps.get(step).ok_or(StepError::NotRows)?;
        let view = RowsView::new(rows, planned, self.ctx.catalogs);
        if many {
            return take_from_all(&view, take);
        }
        match rows.rows.as_slice() {
            [row] => take_from(&view, row, take),
            [] => Err(missing(&path_of(take), &format!("{}, which has no rows", step_name(self.steps, step)))),
            several => Err(StepError::NotOne { what: step_name(self.steps, step), found: several.len() }),
        }
    }

    /// Returns the origin of a value, for an error message.
    fn origin(&self, expr: &Expr) -> String {
        match expr {
            Expr::Step { step, take, .. } => format!("{}.{}", step_name(self.steps, *step), path_of(take)),
            Expr::Row(take) => format!("`_.{}`", path_of(take)),
            _ => "the program".to_owned(),
        }
    }
}

/// Returns the values of all rows for a list, or the value of the first row otherwise.
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
    rows.rows.first().map_or(Ok(Value::Null), |row| take_from(&view, row, take))
}

/// Returns the value of each row. Rows without a value are skipped.
fn take_from_all(view: &RowsView<'_>, take: &RowPart) -> Result<Value, StepError> {
    let values = view.rows.rows.iter().map(|row| take_from(view, row, take));
    values.filter(|v| !matches!(v, Ok(Value::Null))).collect::<Result<_, _>>().map(Value::Array)
}

/// Returns the step's name in the program, or its number.
pub fn step_name(steps: &[Step], index: usize) -> String {
    let label = steps.get(index).and_then(|s| s.label.as_ref()).map(|label| format!("`{label}`"));
    label.unwrap_or_else(|| format!("step {:02}", index + 1))
}

/// Returns a part of a row: the row itself, the value at a path, or the row's key.
fn take_from(view: &RowsView<'_>, row: &Arc<Row>, take: &RowPart) -> Result<Value, StepError> {
    match take {
        RowPart::Path(path) if path.is_empty() && view.is_literal() => Ok(row.get(VALUE).cloned().unwrap_or_default()),
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
