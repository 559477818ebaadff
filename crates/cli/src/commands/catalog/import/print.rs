//! The report of an import, for people and for programs.
//! Invariant: what is cut in the text is counted; the JSON has all of it.

use import::{Import, Update};
use serde_json::{Value, json};

use super::learn::Learned;
use crate::output::Output;

/// Reasons and guesses that a person reads at once.
const SHOWN: usize = 12;

pub fn value(made: &Import, learned: &Learned) -> Value {
    let report = &made.report;
    let largest: Vec<Value> = learned.largest.iter().map(|(name, n)| json!({"entity": name, "tokens": n})).collect();
    json!({
        "id": made.catalog.id,
        "title": made.catalog.title,
        "origin": made.catalog.origin,
        "operations": report.operations,
        "deprecated": report.deprecated,
        "left_out": report.left_out,
        "mapped": report.mapped,
        "share": report.share(),
        "unmapped": report.unmapped,
        "entities": report.entities,
        "capabilities": report.capabilities,
        "relations": report.relations,
        "references": report.references,
        "without_list": report.without_list,
        "without_get": report.without_get,
        "guesses": report.guesses,
        "tokens": {"total": learned.tokens, "per_capability": per_capability(made, learned), "largest": largest},
        "untaught": learned.dropped,
    })
}

fn per_capability(made: &Import, learned: &Learned) -> f64 {
    let each = learned.tokens as f64 / made.report.capabilities.max(1) as f64;
    (each * 10.0).round() / 10.0
}

pub fn text(made: &Import, learned: &Learned, output: &Output) -> String {
    let report = &made.report;
    let mut lines = vec![output.bold(&format!("{} · {}", made.catalog.id, made.catalog.title))];
    let all = report.mapped + report.unmapped.len();
    let mut says = format!("{} of {all} operations mapped ({:.1} %)", report.mapped, report.share() * 100.0);
    for (count, what) in [(report.deprecated, "deprecated"), (report.left_out, "not chosen")] {
        if count > 0 {
            says.push_str(&format!(", {count} {what} left out"));
        }
    }
    lines.push(says);
    lines.push(format!(
        "{} entities, {} capabilities, {} relations, {} references",
        report.entities, report.capabilities, report.relations, report.references
    ));
    lines.push(format!(
        "{} tokens to teach it all, {} for each capability",
        learned.tokens,
        per_capability(made, learned)
    ));
    let largest: Vec<String> = learned.largest.iter().map(|(name, n)| format!("{name} {n}")).collect();
    lines.push(format!("largest: {}", largest.join(", ")));
    section(&mut lines, output, "not mapped", report.unmapped.iter().map(|u| format!("{}: {}", u.operation, u.why)));
    section(&mut lines, output, "guesses", report.guesses.iter().map(|g| format!("{}: {}", g.at, g.what)));
    section(&mut lines, output, "no list", report.without_list.chunks(8).map(|some| some.join(", ")));
    section(&mut lines, output, "no get", report.without_get.chunks(8).map(|some| some.join(", ")));
    section(&mut lines, output, "lines that do not check (a mistake of the importer)", learned.dropped.iter().cloned());
    lines.join("\n")
}

/// What an update did.
pub fn update(update: &Update, output: &Output) -> String {
    let mut lines = vec![format!(
        "{} added, {} no longer in the specification, {} with other parameters",
        update.added.len(),
        update.gone.len(),
        update.changed.len()
    )];
    section(&mut lines, output, "added", update.added.iter().cloned());
    section(&mut lines, output, "no longer in the specification (kept; take them out)", update.gone.iter().cloned());
    section(&mut lines, output, "other parameters (kept as they are)", update.changed.iter().cloned());
    section(&mut lines, output, "not added", update.refused.iter().cloned());
    lines.join("\n")
}

fn section(lines: &mut Vec<String>, output: &Output, title: &str, all: impl Iterator<Item = String>) {
    let all: Vec<String> = all.collect();
    if all.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(output.bold(title));
    lines.extend(all.iter().take(SHOWN).map(|line| format!("  {line}")));
    if all.len() > SHOWN {
        lines.push(format!("  and {} more: --json has all", all.len() - SHOWN));
    }
}
