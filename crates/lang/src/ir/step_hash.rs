//! A number for a step, the same for equal steps and rarely for others, so that equal reads are found without writing them out.
//! Invariant: equal steps have equal marks; a mark says nothing by itself, whoever finds one compares the steps.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::{Aggregation, Args, Expr, Path, RowPart, StepKind};

pub(crate) fn step_hash(kind: &StepKind) -> u64 {
    let mut to = DefaultHasher::new();
    step(kind, &mut to);
    to.finish()
}

fn step(kind: &StepKind, to: &mut impl Hasher) {
    std::mem::discriminant(kind).hash(to);
    kind.input().hash(to);
    match kind {
        StepKind::Query { call, args: given, page_size, .. } => {
            (&call.capability, page_size).hash(to);
            args(given, to);
        }
        StepKind::Get { call, args: given, .. }
        | StepKind::QueryPerRow { call, args: given, .. }
        | StepKind::Effect { call, args: given, .. } => {
            call.capability.hash(to);
            args(given, to);
        }
        StepKind::Follow { relation, args: given, page_size, .. } => {
            (relation, page_size).hash(to);
            args(given, to);
        }
        StepKind::Deref { field, .. } => field.hash(to),
        StepKind::Attach { field, .. } => field.hash(to),
        StepKind::Hydrate { fields, .. } => fields.hash(to),
        StepKind::Filter { tests, .. } => tests.iter().for_each(|test| {
            (&test.path, test.op.sign()).hash(to);
            value(&test.value, to);
        }),
        StepKind::Sort { by, descending, .. } => (by, descending).hash(to),
        StepKind::Limit { count, .. } => count.hash(to),
        StepKind::Distinct { by, .. } => by.hash(to),
        StepKind::Aggregate { specs: made, .. } => specs(made, to),
        StepKind::GroupBy { by, specs: made, .. } => {
            by.iter().for_each(|named| named.path.hash(to));
            specs(made, to);
        }
        StepKind::Project { columns, .. } => columns.iter().for_each(|named| (&named.name, &named.path).hash(to)),
        StepKind::Derive { object, .. } => object.iter().for_each(|(name, made)| {
            name.hash(to);
            value(made, to);
        }),
        StepKind::Template { source, .. } => source.hash(to),
        StepKind::Rows { items } => items.iter().for_each(|item| value(item, to)),
        StepKind::Text { content } => content.hash(to),
        StepKind::Page { handle, limit } => (handle, limit).hash(to),
        StepKind::OuterRows { step } => step.hash(to),
        StepKind::Operation { handle, cancel } => (handle, cancel).hash(to),
        StepKind::First { .. } | StepKind::Last { .. } | StepKind::Singleton { .. } => {}
    }
}

fn args(args: &Args, to: &mut impl Hasher) {
    for (name, given) in args {
        name.hash(to);
        value(given, to);
    }
}

fn specs(specs: &[Aggregation], to: &mut impl Hasher) {
    for spec in specs {
        (&spec.name, spec.function as u8, &spec.path).hash(to);
    }
}

fn value(expr: &Expr, to: &mut impl Hasher) {
    match expr {
        Expr::Value(known) => json(known, to),
        Expr::Step { step, take, many } => {
            (step, many, path(take)).hash(to);
        }
        Expr::Row(take) => path(take).hash(to),
        Expr::List(items) => items.iter().for_each(|item| value(item, to)),
        Expr::Object(pairs) => pairs.iter().for_each(|(name, item)| {
            name.hash(to);
            value(item, to);
        }),
        Expr::Template { source, .. } => source.hash(to),
        Expr::Read { steps, take } => {
            steps.iter().for_each(|inner| step(&inner.kind, to));
            path(take).hash(to);
        }
    }
}

fn path(take: &RowPart) -> Option<&Path> {
    match take {
        RowPart::Path(path) => Some(path),
        RowPart::Key(_) => None,
    }
}

/// Objects as they are written: another order is sent as another order.
fn json(known: &Value, to: &mut impl Hasher) {
    match known {
        Value::Null => 0u8.hash(to),
        Value::Bool(flag) => flag.hash(to),
        Value::Number(number) => number.hash(to),
        Value::String(text) => text.hash(to),
        Value::Array(items) => items.iter().for_each(|item| json(item, to)),
        Value::Object(pairs) => pairs.iter().for_each(|(name, item)| {
            name.hash(to);
            json(item, to);
        }),
    }
}
