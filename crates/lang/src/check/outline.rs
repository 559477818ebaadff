//! A checked program as lines, for people who look between the stages.
//! Invariant: one line a node, in order; nothing parses it.

use super::{Checked, Op};

pub fn outline(checked: &Checked) -> String {
    let mut lines = Vec::new();
    for (at, node) in checked.nodes().iter().enumerate() {
        let op = match &node.op {
            Op::Query { capability, args } => format!("query {capability} {}", json(args)),
            Op::Get { capability, args } => format!("get {capability} {}", json(args)),
            Op::Follow { input, relation, args } => format!("follow n{} .{relation} {}", input.0, json(args)),
            Op::Deref { input, field } => format!("deref n{} .{field}", input.0),
            Op::Project { input, columns } => format!("project n{} [{}]", input.0, columns.join(", ")),
            Op::Limit { input, count } => format!("limit n{} {count}", input.0),
        };
        let rows = &node.rows;
        let entity = format!("{}:{}", rows.catalog.id, rows.entity);
        let shape = if rows.many { format!("[{entity}]") } else { entity };
        let label = node.label.as_ref().map(|l| format!(" ({l})")).unwrap_or_default();
        lines.push(format!("n{at}{label} {op} : {shape} {{{}}}", rows.columns.join(", ")));
    }
    let returns: Vec<String> = checked.returns().iter().map(|r| format!("{} = n{}", r.label, r.node.0)).collect();
    lines.push(format!("returns {}", returns.join(", ")));
    lines.join("\n")
}

fn json(args: &catalog::Args) -> String {
    serde_json::to_string(args).unwrap_or_default()
}
