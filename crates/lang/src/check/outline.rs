//! Prints a checked program as lines, one for each node. The output is for debugging.
//! Invariant: the nodes are printed in order, and no code parses the output.

use super::{Checked, CheckedNode};
use crate::ir::{Args, Path, StepKind, describe_value};

/// Returns one line for each node, and a last line with the results.
pub fn outline(checked: &Checked) -> String {
    let mut lines = Vec::new();
    for (at, node) in checked.nodes().iter().enumerate() {
        let rows = &node.rows;
        let entity = rows.entity_ref().map_or("rows".to_owned(), |of| format!("{}:{}", of.catalog, of.entity));
        let shape = if rows.many { format!("[{entity}]") } else { entity };
        let label = node.label.as_ref().map(|l| format!(" ({l})")).unwrap_or_default();
        let after = node.after.map(|effect| format!(" after n{}", effect.0)).unwrap_or_default();
        let columns: Vec<&str> = rows.columns.iter().map(|c| c.name.as_str()).collect();
        lines.push(format!("n{at}{label} {}{after} : {shape} {{{}}}", describe_operation(node), columns.join(", ")));
    }
    let returns: Vec<String> = checked.returns().iter().map(|r| format!("{} = n{}", r.label, r.node.0)).collect();
    lines.push(format!("returns {}", returns.join(", ")));
    lines.join("\n")
}

fn describe_operation(node: &CheckedNode) -> String {
    let joined = |paths: &[Path]| paths.iter().map(|p| p.join(".")).collect::<Vec<_>>().join(", ");
    match &node.kind {
        StepKind::Query { call, args, page_size, .. } => {
            let pages = page_size.map(|n| format!(" by {n}")).unwrap_or_default();
            format!("query {} {}{pages}", call.capability, describe_args(args))
        }
        StepKind::Get { call, args, .. } => format!("get {} {}", call.capability, describe_args(args)),
        StepKind::Follow { input, relation, args, .. } => {
            format!("follow n{input} .{relation} {}", describe_args(args))
        }
        StepKind::QueryPerRow { input, call, args, .. } => {
            format!("each n{input} {} {}", call.capability, describe_args(args))
        }
        StepKind::Deref { input, field, .. } => format!("deref n{input} .{field}"),
        StepKind::Attach { input, field, entity } => format!("attach n{input} .{} {}", field.join("."), entity.entity),
        StepKind::Filter { input, tests } => {
            let describe_test =
                |t: &crate::ir::FilterTest| format!("{}{}{}", t.path.join("."), t.op.sign(), describe_value(&t.value));
            format!("filter n{input} {{{}}}", tests.iter().map(describe_test).collect::<Vec<_>>().join(", "))
        }
        StepKind::Sort { input, by, descending } => {
            format!("sort n{input} {} {}", by.join("."), if *descending { "desc" } else { "asc" })
        }
        StepKind::Limit { input, count } => format!("limit n{input} {count}"),
        StepKind::Distinct { input, by } => format!("distinct n{input} ({})", joined(by)),
        StepKind::Aggregate { input, specs } => {
            format!("aggregate n{input} {}", crate::ir::describe_aggregations(specs))
        }
        StepKind::GroupBy { input, by, specs } => {
            let by: Vec<String> = by.iter().map(|p| p.path.join(".")).collect();
            format!("group n{input} ({}) {}", by.join(", "), crate::ir::describe_aggregations(specs))
        }
        StepKind::Project { input, columns } => {
            let columns: Vec<String> = columns.iter().map(|c| c.path.join(".")).collect();
            format!("project n{input} [{}]", columns.join(", "))
        }
        StepKind::Derive { input, object } => {
            let pairs: Vec<String> =
                object.iter().map(|(name, value)| format!("{name}: {}", describe_value(value))).collect();
            format!("derive n{input} {{{}}}", pairs.join(", "))
        }
        StepKind::Template { input, .. } => format!("render n{input}"),
        StepKind::Rows { items } => {
            format!("rows [{}]", items.iter().map(describe_value).collect::<Vec<_>>().join(", "))
        }
        StepKind::Text { content } => format!("text {content:?}"),
        StepKind::Effect { call, args, each } => {
            let each = each.map(|rows| format!(" for each n{rows}")).unwrap_or_default();
            format!("effect {} {}{each}", call.capability, describe_args(args))
        }
        StepKind::Page { handle, limit } => match limit {
            Some(limit) => format!("page {handle} {limit}"),
            None => format!("page {handle}"),
        },
        StepKind::Operation { handle, cancel } => format!("{} {handle}", if *cancel { "cancel" } else { "wait" }),
        other => match other.input() {
            Some(input) => format!("{} n{input}", other.word()),
            None => other.word().to_owned(),
        },
    }
}

/// Returns arguments as an object. A known value is printed as JSON, any other value as its source.
fn describe_args(args: &Args) -> String {
    let pairs: Vec<String> = args.iter().map(|(name, value)| format!("\"{name}\":{}", describe_value(value))).collect();
    format!("{{{}}}", pairs.join(","))
}
