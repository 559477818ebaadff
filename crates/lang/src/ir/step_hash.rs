//! Hashes steps, so that the checker finds equal reads quickly.
//! Invariant: equal steps have equal hashes. Different steps may have the same hash, so the caller compares the steps
//! as well.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::{Aggregation, Args, Expr, Path, RowPart, StepKind};

/// Returns the hash of a step. Hashes are compared only within one process, so they may change between versions.
pub(crate) fn step_hash(kind: &StepKind) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_step(kind, &mut hasher);
    hasher.finish()
}

fn hash_step(kind: &StepKind, hasher: &mut impl Hasher) {
    std::mem::discriminant(kind).hash(hasher);
    kind.input().hash(hasher);
    match kind {
        StepKind::Query { call, args, page_size, .. } => {
            (&call.capability, page_size).hash(hasher);
            hash_args(args, hasher);
        }
        StepKind::Get { call, args, .. }
        | StepKind::QueryPerRow { call, args, .. }
        | StepKind::Effect { call, args, .. } => {
            call.capability.hash(hasher);
            hash_args(args, hasher);
        }
        StepKind::Follow { relation, args, page_size, .. } => {
            (relation, page_size).hash(hasher);
            hash_args(args, hasher);
        }
        StepKind::Deref { field, .. } => field.hash(hasher),
        StepKind::Attach { field, .. } => field.hash(hasher),
        StepKind::Hydrate { fields, .. } => fields.hash(hasher),
        StepKind::Filter { tests, .. } => tests.iter().for_each(|test| {
            (&test.path, test.op.sign()).hash(hasher);
            hash_value(&test.value, hasher);
        }),
        StepKind::Sort { by, descending, .. } => (by, descending).hash(hasher),
        StepKind::Limit { count, .. } => count.hash(hasher),
        StepKind::Distinct { by, .. } => by.hash(hasher),
        StepKind::Aggregate { specs: value, .. } => hash_specs(value, hasher),
        StepKind::GroupBy { by, specs: value, .. } => {
            by.iter().for_each(|column| column.path.hash(hasher));
            hash_specs(value, hasher);
        }
        StepKind::Project { columns, .. } => {
            columns.iter().for_each(|column| (&column.name, &column.path).hash(hasher))
        }
        StepKind::Derive { object, .. } => object.iter().for_each(|(name, value)| {
            name.hash(hasher);
            hash_value(value, hasher);
        }),
        StepKind::Template { source, .. } => source.hash(hasher),
        StepKind::Rows { items } => items.iter().for_each(|item| hash_value(item, hasher)),
        StepKind::Text { content } => content.hash(hasher),
        StepKind::Page { handle, limit } => (handle, limit).hash(hasher),
        StepKind::OuterRows { step } => step.hash(hasher),
        StepKind::Operation { handle, cancel } => (handle, cancel).hash(hasher),
        StepKind::First { .. } | StepKind::Last { .. } | StepKind::Singleton { .. } => {}
    }
}

fn hash_args(args: &Args, hasher: &mut impl Hasher) {
    for (name, args) in args {
        name.hash(hasher);
        hash_value(args, hasher);
    }
}

fn hash_specs(specs: &[Aggregation], hasher: &mut impl Hasher) {
    for spec in specs {
        (&spec.name, spec.function as u8, &spec.path).hash(hasher);
    }
}

fn hash_value(expr: &Expr, hasher: &mut impl Hasher) {
    match expr {
        Expr::Value(known) => hash_json(known, hasher),
        Expr::Step { step, take, many } => {
            (step, many, path_of(take)).hash(hasher);
        }
        Expr::Row(take) => path_of(take).hash(hasher),
        Expr::List(items) => items.iter().for_each(|item| hash_value(item, hasher)),
        Expr::Object(pairs) => pairs.iter().for_each(|(name, item)| {
            name.hash(hasher);
            hash_value(item, hasher);
        }),
        Expr::Template { source, .. } => source.hash(hasher),
        Expr::Read { steps, take } => {
            steps.iter().for_each(|inner| hash_step(&inner.kind, hasher));
            path_of(take).hash(hasher);
        }
    }
}

/// Returns the path of a row part. A key is not hashed, which can only make two different steps have one hash.
fn path_of(take: &RowPart) -> Option<&Path> {
    match take {
        RowPart::Path(path) => Some(path),
        RowPart::Key(_) => None,
    }
}

/// Hashes a known value. The order of an object's keys is significant, because the object is sent to the API in that
/// order.
fn hash_json(known: &Value, hasher: &mut impl Hasher) {
    match known {
        Value::Null => 0u8.hash(hasher),
        Value::Bool(flag) => flag.hash(hasher),
        Value::Number(number) => number.hash(hasher),
        Value::String(text) => text.hash(hasher),
        Value::Array(items) => items.iter().for_each(|item| hash_json(item, hasher)),
        Value::Object(pairs) => pairs.iter().for_each(|(name, item)| {
            name.hash(hasher);
            hash_json(item, hasher);
        }),
    }
}
