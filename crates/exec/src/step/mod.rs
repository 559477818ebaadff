//! The run of one step of a plan, with a table from each kind of step to its code (`run_kind` and `pure::apply`).
//! Invariant: a step uses only its finished inputs and the API. It makes at most as many calls as the plan allows.

mod derive;
pub mod effect;
pub mod pure;
mod read;

use std::sync::Arc;

use catalog::{Capability, Catalog};
use futures::future::BoxFuture;
use lang::plan::{CapabilityRef, Expr, Step, StepKind};
use serde_json::{Map, Value};

use crate::budget::Allowance;
use crate::call::{self, ListPart, ReadContext, Target};
use crate::coverage::Coverage;
use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::{self, ListLimits};
use crate::value::template::TemplateSource;
use crate::value::view::{LITERAL_COLUMN, RowsView};
use crate::value::{CurrentRow, Inputs, ValueReader, ValueScope, step_name, template};
use effect::EffectLog;
use read::{follow, hydrate, lookup, per_row};

/// A step with the data that it may use.
pub struct StepWork<'a> {
    pub ctx: &'a Ctx<'a>,
    /// The steps of the plan, or the steps of a read inside a value.
    pub steps: &'a [Step],
    /// The index of the step in `steps`.
    pub index: usize,
    /// The row sets of the steps that this step needs.
    pub inputs: &'a Inputs,
    pub allowance: &'a Allowance<'a>,
    /// The receipts of the run. It is `None` for a read inside a value, because such a read must not contain an effect.
    pub effect_log: Option<&'a EffectLog>,
    /// The current row of the outer step, if this step is part of a read inside a value.
    pub outer: Option<CurrentRow<'a>>,
    /// Reports progress after each effect.
    pub report: &'a (dyn Fn() + Sync),
}

/// Runs one step and adds the coverage of all its inputs to the result.
pub async fn run(work: &StepWork<'_>) -> Result<Rowset, StepError> {
    let step = work.step()?;
    let mut rows = match run_pure(work, step)? {
        Some(rows) => rows,
        None => run_kind(work, step).await?,
    };
    if matches!(step.kind, StepKind::Effect { .. }) {
        // The result of an effect step consists of the API's answers and is not partial because of a partial input.
        return Ok(rows);
    }
    // The result already has the coverage of the main input. The coverage of the other inputs is added here.
    let main = step.kind.input();
    for (_, other) in work.inputs.iter().filter(|(index, _)| Some(**index) != main) {
        rows.leading &= other.coverage == Coverage::Complete;
        rows = rows.with_coverage(&other.coverage);
    }
    Ok(rows)
}

/// Runs a pure step. Returns `None` if the step is not pure.
fn run_pure(work: &StepWork<'_>, step: &Step) -> Result<Option<Rowset>, StepError> {
    let Ok(view) = work.view() else { return Ok(None) };
    let values = match &step.kind {
        StepKind::Filter { tests, .. } => {
            tests.iter().map(|t| work.scope().evaluate_known(&t.value)).collect::<Result<_, _>>()?
        }
        _ => Vec::new(),
    };
    let input_name = || step.kind.input().map(|input| step_name(work.steps, input)).unwrap_or_default();
    pure::apply(&step.kind, &view, &values, input_name).transpose()
}

/// Runs a step that waits for the API, for a blocking thread, or for another run.
async fn run_kind(work: &StepWork<'_>, step: &Step) -> Result<Rowset, StepError> {
    let ctx = work.ctx;
    let reads = &ReadContext::of(ctx, work.allowance);
    match &step.kind {
        StepKind::Query { call, args, limit, page_size, .. } => {
            let target = target_of(ctx, call)?;
            let wanted = ListLimits { rows: *limit, page_size: *page_size, pages: step.calls };
            let args = work.scope().args(target.capability, args).await?;
            paging::read_list(reads, target, &args, wanted).await
        }
        StepKind::Get { call, args, .. } => {
            let target = target_of(ctx, call)?;
            let args = work.scope().args(target.capability, args).await?;
            Ok(Rowset::complete(call::read(reads, target, &args, ListPart::WHOLE).await?.rows))
        }
        StepKind::Follow { relation, args, limit, page_size, .. } => {
            let view = work.view()?;
            let of = view.of.ok_or(StepError::NotRows)?;
            let args = work.known_args(args)?;
            let wanted = work.limits_per_row(*limit, *page_size);
            let relation_call = follow::RelationCall { relation, args: &args, wanted };
            follow::apply(reads, catalog_of(ctx, &of.catalog)?, &relation_call, &view).await
        }
        StepKind::QueryPerRow { call, args, limit, .. } => {
            let view = work.view()?;
            let target = target_of(ctx, call)?;
            let args = work.args_per_row(&view, target.capability, args).await?;
            per_row::read_lists(reads, target, args, view.rows, work.limits_per_row(*limit, None)).await
        }
        StepKind::Deref { field, limit, .. } => {
            let of = step.of.as_ref().ok_or(StepError::NotRows)?;
            let catalog = catalog_of(ctx, &of.catalog)?;
            lookup::deref(reads, catalog, &of.entity, work.view()?.rows, field, *limit).await
        }
        StepKind::Attach { field, entity, .. } => {
            lookup::attach(reads, catalog_of(ctx, &entity.catalog)?, &entity.entity, field, &work.view()?).await
        }
        StepKind::Hydrate { call, fields, .. } => {
            hydrate::apply(reads, target_of(ctx, call)?, fields, work.view()?.rows).await
        }
        StepKind::Page { handle, limit } => {
            // The page handle names the continuation of an unfinished list of an earlier run.
            let position = ctx.pages.and_then(|pages| pages.get(handle));
            let position = position.ok_or_else(|| StepError::NoPage(handle.clone()))?.clone();
            let wanted = ListLimits { rows: *limit, page_size: None, pages: step.calls };
            paging::continue_list(reads, target_of(ctx, &position.call)?, position, wanted).await
        }
        StepKind::Derive { object, .. } => derive::apply(&work.scope(), &work.view()?, object).await,
        StepKind::Template { source, names, .. } => render_template(work, TemplateSource { text: source, names }).await,
        StepKind::Rows { items } => literal_rows(&work.scope(), items),
        StepKind::Text { content } => Ok(one_row(TEXT_COLUMN, Value::String(content.clone()))),
        StepKind::Effect { call, args, each } => work.effect(call, args, each.is_some()).await,
        StepKind::Operation { handle, cancel } => {
            let missing = || crate::error::OperationError::NotThere(handle.clone());
            Ok(ctx.operations.ok_or_else(missing)?.answer(handle, *cancel).await?)
        }
        // `ValueReader::read` handles `OuterRows`, and `run_pure` handles the pure steps.
        _ => Err(StepError::NotRows),
    }
}

/// The name of the only column of a text result, which a template or a text literal produces.
const TEXT_COLUMN: &str = "content";

async fn render_template(work: &StepWork<'_>, source: TemplateSource<'_>) -> Result<Rowset, StepError> {
    let view = work.view()?;
    let job = template::over_rows(work.ctx.limits, source, &view);
    // A template may compute for a long time, so it must not run on a thread that serves other sessions.
    let text = tokio::task::spawn_blocking(|| job.render()).await;
    let text = text.map_err(|_| StepError::Interrupted("a template".to_owned()))??;
    Ok(one_row(TEXT_COLUMN, Value::String(text)).with_coverage(&view.rows.coverage))
}

fn literal_rows(scope: &ValueScope<'_>, items: &[Expr]) -> Result<Rowset, StepError> {
    let row = |item: &Expr| Ok(Map::from_iter([(LITERAL_COLUMN.to_owned(), scope.evaluate_known(item)?)]));
    items.iter().map(row).collect::<Result<_, StepError>>().map(Rowset::complete)
}

fn one_row(name: &str, value: Value) -> Rowset {
    Rowset::one(Map::from_iter([(name.to_owned(), value)]))
}

impl<'a> StepWork<'a> {
    fn step(&self) -> Result<&'a Step, StepError> {
        self.steps.get(self.index).ok_or(StepError::NotRows)
    }

    /// Returns the rows of the step's main input.
    fn view(&self) -> Result<RowsView<'a>, StepError> {
        let input = self.step()?.kind.input().ok_or(StepError::NotRows)?;
        let rows = self.inputs.get(&input).ok_or(StepError::NotRows)?;
        let planned = self.steps.get(input).ok_or(StepError::NotRows)?;
        Ok(RowsView::new(rows, planned, self.ctx.catalogs))
    }

    fn scope(&self) -> ValueScope<'_> {
        ValueScope { ctx: self.ctx, steps: self.steps, inputs: self.inputs, row: self.outer, reader: self.allowance }
    }

    /// Returns the arguments of a call without reads inside values. Arguments that are `null` are left out.
    fn known_args(&self, args: &lang::plan::Args) -> Result<catalog::Args, StepError> {
        let scope = self.scope();
        let values = args.iter().map(|(name, expr)| Ok((name.to_string(), scope.evaluate_known(expr)?)));
        values.filter(|pair| !matches!(pair, Ok((_, Value::Null)))).collect()
    }

    /// Returns the limits of each list in a step that reads one list per row. Each list may use an equal share of the step's
    /// calls: the calls divided by the largest number of input rows.
    fn limits_per_row(&self, rows: Option<usize>, page_size: Option<usize>) -> ListLimits {
        let calls = self.step().map_or(0, |s| s.calls);
        let input = self.step().ok().and_then(|s| s.kind.input()).and_then(|index| self.steps.get(index));
        ListLimits { rows, page_size, pages: (calls / input.map_or(1, |s| s.rows.max(1))).max(1) }
    }

    async fn args_per_row(
        &self,
        view: &RowsView<'_>,
        capability: &Capability,
        args: &lang::plan::Args,
    ) -> Result<Vec<catalog::Args>, StepError> {
        let mut args_per_row = Vec::with_capacity(view.rows.rows.len());
        for row in &view.rows.rows {
            args_per_row.push(self.scope().at(*view, row).args(capability, args).await?);
        }
        Ok(args_per_row)
    }

    async fn effect(&self, call: &CapabilityRef, args: &lang::plan::Args, per_row: bool) -> Result<Rowset, StepError> {
        let step = self.step()?;
        let target = target_of(self.ctx, call)?;
        let effect_step = effect::EffectStep {
            reads: ReadContext::of(self.ctx, self.allowance),
            budget: self.allowance.run,
            effect_log: self.effect_log.ok_or(StepError::NoReceipts)?,
            report: self.report,
            index: self.index,
            step,
            target,
        };
        if !per_row {
            let args = self.scope().args(target.capability, args).await?;
            return effect::apply(&effect_step, vec![args], &Rowset::default()).await;
        }
        let view = self.view()?;
        let args = self.args_per_row(&view, target.capability, args).await?;
        effect::apply(&effect_step, args, view.rows).await
    }
}

/// Runs the steps of a read inside a value, one after another. The calls are counted in the allowance of the step that contains
/// the value.
impl ValueReader for Allowance<'_> {
    fn read<'s>(&'s self, scope: ValueScope<'s>, steps: &'s [Step]) -> BoxFuture<'s, Result<Arc<Rowset>, StepError>> {
        Box::pin(async move {
            let mut done = Inputs::new();
            for (index, step) in steps.iter().enumerate() {
                if let StepKind::OuterRows { step } = &step.kind {
                    done.insert(index, outer_rows(&scope, *step)?);
                    continue;
                }
                let inputs: Inputs =
                    step.kind.inputs().iter().filter_map(|i| Some((*i, done.get(i)?.clone()))).collect();
                let work = StepWork {
                    ctx: scope.ctx,
                    steps,
                    index,
                    inputs: &inputs,
                    allowance: &Allowance::inside(self, step),
                    effect_log: None,
                    outer: scope.row,
                    report: &|| (),
                };
                done.insert(index, Arc::new(run(&work).await?));
            }
            Ok(done.pop_last().map(|(_, rows)| rows).unwrap_or_default())
        })
    }
}

/// Returns the rows of a step of the outer plan. If `step` is `None`, returns the current row as a row set.
fn outer_rows(scope: &ValueScope<'_>, step: Option<usize>) -> Result<Arc<Rowset>, StepError> {
    match (step, scope.row) {
        (Some(step), _) => scope.inputs.get(&step).cloned().ok_or(StepError::NotRows),
        (None, Some(current)) => {
            let attached = current.view.rows.attached.clone();
            Ok(Arc::new(Rowset { rows: vec![current.row.clone()], attached, ..Rowset::default() }))
        }
        (None, None) => Err(StepError::NotRows),
    }
}

fn catalog_of<'c>(ctx: &Ctx<'c>, id: &base::CatalogId) -> Result<&'c Arc<Catalog>, StepError> {
    ctx.catalogs.get(id).ok_or_else(|| StepError::Catalog(id.clone()))
}

/// Returns the catalog and the capability of a planned call.
pub fn target_of<'c>(ctx: &Ctx<'c>, call: &CapabilityRef) -> Result<Target<'c>, StepError> {
    let catalog = catalog_of(ctx, &call.catalog)?;
    let capability = catalog.capability(&call.capability).ok_or_else(|| StepError::Catalog(call.catalog.clone()))?;
    Ok(Target { catalog, capability })
}
