//! Runs one step. Each kind of step has a file; the match is only a table.
//! Invariant: a step sees its finished inputs and the API, and nothing else; it makes no more calls than the plan
//! allows.

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
use crate::call::{self, Part, Reads, Target};
use crate::coverage::Coverage;
use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;
use crate::paging::{self, ListLimits};
use crate::value::view::{VALUE, View};
use crate::value::{CurrentRow, Inputs, Reader, Scope, step_name, template};
use effect::Ledger;
use read::{attach, fan, follow, hydrate, lookup, page};

/// One step and everything that it may use.
pub struct Work<'a> {
    pub ctx: &'a Ctx<'a>,
    pub steps: &'a [Step],
    pub at: usize,
    pub inputs: &'a Inputs,
    pub allowance: &'a Allowance<'a>,
    /// `None` inside the read of a value, which may contain no effect.
    pub ledger: Option<&'a Ledger>,
    /// The row for which a value's read is made.
    pub outer: Option<CurrentRow<'a>>,
    /// Reports progress after each effect.
    pub report: &'a (dyn Fn() + Sync),
}

/// Runs one step and combines the coverage of all its inputs.
pub async fn run(work: &Work<'_>) -> Result<Rowset, StepError> {
    let step = work.step()?;
    let mut rows = match pure(work, step)? {
        Some(rows) => rows,
        None => table(work, step).await?,
    };
    // Every input counts: a result made with the help of a partial row set is partial.
    let main = step.kind.input();
    if matches!(step.kind, StepKind::Effect { .. }) {
        // The rows of an effect are the API's own answers. A partial input does not make them partial.
        return Ok(rows);
    }
    for other in work.inputs.iter().filter(|(at, _)| Some(**at) != main).map(|(_, rows)| &rows.coverage) {
        rows.leading &= *other == Coverage::Complete;
        rows = rows.with_coverage(other);
    }
    Ok(rows)
}

/// Runs a step that only transforms rows. `None` for any other step.
fn pure(work: &Work<'_>, step: &Step) -> Result<Option<Rowset>, StepError> {
    let Ok(view) = work.view() else { return Ok(None) };
    let values = match &step.kind {
        StepKind::Filter { tests, .. } => {
            tests.iter().map(|t| work.scope().known(&t.value)).collect::<Result<_, _>>()?
        }
        _ => Vec::new(),
    };
    let name = || step.kind.input().map(|input| step_name(work.steps, input)).unwrap_or_default();
    pure::apply(&step.kind, &view, &values, name).transpose()
}

async fn table(work: &Work<'_>, step: &Step) -> Result<Rowset, StepError> {
    let ctx = work.ctx;
    let reads = &Reads::of(ctx, work.allowance);
    match &step.kind {
        StepKind::Query { call, args, limit, page_size, .. } => {
            let target = called(ctx, call)?;
            let want = ListLimits { rows: *limit, page_size: *page_size, pages: step.calls };
            paging::list(reads, target, &work.scope().args(target.capability, args).await?, want).await
        }
        StepKind::Get { call, args, .. } => {
            let target = called(ctx, call)?;
            let args = work.scope().args(target.capability, args).await?;
            Ok(Rowset::complete(call::read(reads, target, &args, Part::WHOLE).await?.rows))
        }
        StepKind::Follow { relation, args, limit, page_size, .. } => {
            let view = work.view()?;
            let of = view.of.ok_or(StepError::NotRows)?;
            let args = work.known(args)?;
            let want = work.each_want(*limit, *page_size);
            let hop = follow::Hop { relation, args: &args, want };
            follow::apply(reads, catalog_of(ctx, &of.catalog)?, &hop, &view).await
        }
        StepKind::QueryPerRow { call, args, limit, .. } => {
            let (view, target) = (work.view()?, called(ctx, call)?);
            let each = work.for_each(&view, target.capability, args).await?;
            fan::lists(reads, target, each, view.rows, work.each_want(*limit, None)).await
        }
        StepKind::Deref { field, limit, .. } => {
            let of = step.of.as_ref().ok_or(StepError::NotRows)?;
            let catalog = catalog_of(ctx, &of.catalog)?;
            lookup::deref(reads, catalog, &of.entity, work.view()?.rows, field, *limit).await
        }
        StepKind::Attach { field, entity, .. } => {
            attach::apply(reads, catalog_of(ctx, &entity.catalog)?, &entity.entity, field, &work.view()?).await
        }
        StepKind::Hydrate { call, fields, .. } => {
            hydrate::apply(reads, called(ctx, call)?, fields, work.view()?.rows).await
        }
        StepKind::Page { handle, limit } => {
            page::apply(reads, handle, ListLimits { rows: *limit, page_size: None, pages: step.calls }).await
        }
        StepKind::Derive { object, .. } => derive::apply(&work.scope(), &work.view()?, object).await,
        StepKind::Template { source, names, .. } => rendered(work, (source, names)).await,
        StepKind::Rows { items } => literals(&work.scope(), items),
        StepKind::Text { content } => Ok(one_row(CONTENT, Value::String(content.clone()))),
        StepKind::Effect { call, args, each } => work.effect(call, args, each.is_some()).await,
        StepKind::Operation { handle, cancel } => {
            let missing = || crate::error::OperationError::NotThere(handle.clone());
            Ok(ctx.operations.ok_or_else(missing)?.ask(handle, *cancel).await?)
        }
        // `Given` is filled in before its read runs, and the pure steps were handled by `pure`.
        _ => Err(StepError::NotRows),
    }
}

const CONTENT: &str = "content";

async fn rendered(work: &Work<'_>, source: template::Source<'_>) -> Result<Rowset, StepError> {
    let view = work.view()?;
    let job = template::over_rows(work.ctx.limits, source, &view);
    // A template may use all of its fuel, so it must not run on a thread that serves other sessions.
    let text = tokio::task::spawn_blocking(|| job.render()).await;
    let text = text.map_err(|_| StepError::Interrupted("a template".to_owned()))??;
    Ok(one_row(CONTENT, Value::String(text)).with_coverage(&view.rows.coverage))
}

fn literals(scope: &Scope<'_>, items: &[Expr]) -> Result<Rowset, StepError> {
    let row = |item: &Expr| Ok(Map::from_iter([(VALUE.to_owned(), scope.known(item)?)]));
    items.iter().map(row).collect::<Result<_, StepError>>().map(Rowset::complete)
}

fn one_row(name: &str, value: Value) -> Rowset {
    Rowset::one(Map::from_iter([(name.to_owned(), value)]))
}

impl<'a> Work<'a> {
    fn step(&self) -> Result<&'a Step, StepError> {
        self.steps.get(self.at).ok_or(StepError::NotRows)
    }

    /// Returns the rows of the step's main input.
    fn view(&self) -> Result<View<'a>, StepError> {
        let input = self.step()?.kind.input().ok_or(StepError::NotRows)?;
        let rows = self.inputs.get(&input).ok_or(StepError::NotRows)?;
        let planned = self.steps.get(input).ok_or(StepError::NotRows)?;
        Ok(View::new(rows, planned, self.ctx.catalogs))
    }

    fn scope(&self) -> Scope<'_> {
        Scope { ctx: self.ctx, steps: self.steps, inputs: self.inputs, row: self.outer, reader: self.allowance }
    }

    fn known(&self, args: &lang::plan::Args) -> Result<catalog::Args, StepError> {
        let scope = self.scope();
        let values = args.iter().map(|(name, expr)| Ok((name.to_string(), scope.known(expr)?)));
        values.filter(|pair| !matches!(pair, Ok((_, Value::Null)))).collect()
    }

    /// Returns the bound of a step that calls once per row: the plan's calls divided by the rows it may start from.
    fn each_want(&self, rows: Option<usize>, page_size: Option<usize>) -> ListLimits {
        let calls = self.step().map_or(0, |s| s.calls);
        let from = self.step().ok().and_then(|s| s.kind.input()).and_then(|at| self.steps.get(at));
        ListLimits { rows, page_size, pages: (calls / from.map_or(1, |s| s.rows.max(1))).max(1) }
    }

    async fn for_each(
        &self,
        view: &View<'_>,
        capability: &Capability,
        args: &lang::plan::Args,
    ) -> Result<Vec<catalog::Args>, StepError> {
        let mut each = Vec::with_capacity(view.rows.rows.len());
        for row in &view.rows.rows {
            each.push(self.scope().at(*view, row).args(capability, args).await?);
        }
        Ok(each)
    }

    async fn effect(&self, call: &CapabilityRef, args: &lang::plan::Args, per_row: bool) -> Result<Rowset, StepError> {
        let (step, target) = (self.step()?, called(self.ctx, call)?);
        let reads = Reads::of(self.ctx, self.allowance);
        let doing = effect::EffectStep {
            reads,
            budget: self.allowance.run,
            ledger: self.ledger.ok_or(StepError::NoReceipts)?,
            report: self.report,
            at: self.at,
            step,
            target,
        };
        if !per_row {
            let args = self.scope().args(target.capability, args).await?;
            return effect::apply(&doing, vec![args], &Rowset::default()).await;
        }
        let view = self.view()?;
        let each = self.for_each(&view, target.capability, args).await?;
        effect::apply(&doing, each, view.rows).await
    }
}

/// Runs the steps of a value's own read one after another. Their calls count against the step that the value belongs
/// to.
impl Reader for Allowance<'_> {
    fn read<'s>(&'s self, scope: Scope<'s>, steps: &'s [Step]) -> BoxFuture<'s, Result<Arc<Rowset>, StepError>> {
        Box::pin(async move {
            let mut done = Inputs::new();
            for (at, step) in steps.iter().enumerate() {
                let allowance = Allowance::inside(self, step);
                let inputs: Inputs =
                    step.kind.inputs().iter().filter_map(|i| Some((*i, done.get(i)?.clone()))).collect();
                let (ctx, inputs, allowance) = (scope.ctx, &inputs, &allowance);
                let work = Work { ctx, steps, at, inputs, allowance, ledger: None, outer: scope.row, report: &|| () };
                let rows = match &step.kind {
                    StepKind::OuterRows { step } => given(&scope, *step)?,
                    _ => Arc::new(run(&work).await?),
                };
                done.insert(at, rows);
            }
            Ok(done.pop_last().map(|(_, rows)| rows).unwrap_or_default())
        })
    }
}

/// Returns the rows of an outer step, or the current row as a row set of one.
fn given(scope: &Scope<'_>, step: Option<usize>) -> Result<Arc<Rowset>, StepError> {
    match (step, scope.row) {
        (Some(step), _) => scope.inputs.get(&step).cloned().ok_or(StepError::NotRows),
        (None, Some(at)) => {
            let attached = at.view.rows.attached.clone();
            Ok(Arc::new(Rowset { rows: vec![at.row.clone()], attached, ..Rowset::default() }))
        }
        (None, None) => Err(StepError::NotRows),
    }
}

fn catalog_of<'c>(ctx: &Ctx<'c>, id: &base::CatalogId) -> Result<&'c Arc<Catalog>, StepError> {
    ctx.catalogs.get(id).ok_or_else(|| StepError::Catalog(id.clone()))
}

/// Returns the catalog and the capability that a call of the plan names.
pub fn called<'c>(ctx: &Ctx<'c>, call: &CapabilityRef) -> Result<Target<'c>, StepError> {
    let catalog = catalog_of(ctx, &call.catalog)?;
    let capability = catalog.capability(&call.capability).ok_or_else(|| StepError::Catalog(call.catalog.clone()))?;
    Ok(Target { catalog, capability })
}
