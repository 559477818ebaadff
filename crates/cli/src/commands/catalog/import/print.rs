//! Renders the report of an import as text and as JSON.
//! Invariant: if the text shows only part of a list, it has the number of the other entries. The JSON has all entries.

use import::{Import, Update};
use serde_json::{Value, json};

use super::teaching_cost::TeachingCost;
use crate::output::Output;

/// The largest number of entries of one list that the text shows.
const SHOWN_ENTRIES: usize = 12;

pub fn value(import: &Import, cost: &TeachingCost) -> Value {
    let report = &import.report;
    let largest: Vec<Value> = cost.largest.iter().map(|(name, n)| json!({"entity": name, "tokens": n})).collect();
    json!({
        "id": import.catalog.id,
        "title": import.catalog.title,
        "origin": import.catalog.origin,
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
        "tokens": {"total": cost.tokens, "per_capability": per_capability(import, cost), "largest": largest},
        "untaught": cost.dropped,
    })
}

/// Returns the average number of tokens that teach one capability, with one decimal place.
fn per_capability(import: &Import, cost: &TeachingCost) -> f64 {
    let each = cost.tokens as f64 / import.report.capabilities.max(1) as f64;
    (each * 10.0).round() / 10.0
}

pub fn text(import: &Import, cost: &TeachingCost, output: &Output) -> String {
    let report = &import.report;
    let mut lines = vec![output.bold(&format!("{} · {}", import.catalog.id, import.catalog.title))];
    let all = report.mapped + report.unmapped.len();
    let mut summary = format!("{} of {all} operations mapped ({:.1} %)", report.mapped, report.share() * 100.0);
    for (count, what) in [(report.deprecated, "deprecated"), (report.left_out, "not chosen")] {
        if count > 0 {
            summary.push_str(&format!(", {count} {what} left out"));
        }
    }
    lines.push(summary);
    lines.push(format!(
        "{} entities, {} capabilities, {} relations, {} references",
        report.entities, report.capabilities, report.relations, report.references
    ));
    lines.push(format!("{} tokens to teach it all, {} for each capability", cost.tokens, per_capability(import, cost)));
    let largest: Vec<String> = cost.largest.iter().map(|(name, n)| format!("{name} {n}")).collect();
    lines.push(format!("largest: {}", largest.join(", ")));
    section(&mut lines, output, "not mapped", report.unmapped.iter().map(|u| format!("{}: {}", u.operation, u.why)));
    section(&mut lines, output, "guesses", report.guesses.iter().map(|g| format!("{}: {}", g.at, g.what)));
    section(&mut lines, output, "entities without a list", report.without_list.chunks(8).map(|some| some.join(", ")));
    section(&mut lines, output, "entities without a get", report.without_get.chunks(8).map(|some| some.join(", ")));
    section(
        &mut lines,
        output,
        "lines that are not valid and not taught (a defect of the importer)",
        cost.dropped.iter().cloned(),
    );
    lines.join("\n")
}

/// Renders the report of `--update`: the added, missing and changed operations.
pub fn update_text(update: &Update, output: &Output) -> String {
    let mut lines = vec![format!(
        "{} added, {} no longer in the specification, {} with other parameters",
        update.added.len(),
        update.gone.len(),
        update.changed.len()
    )];
    section(&mut lines, output, "added", update.added.iter().cloned());
    section(
        &mut lines,
        output,
        "no longer in the specification (kept in the catalog; remove them by hand)",
        update.gone.iter().cloned(),
    );
    section(&mut lines, output, "other parameters (kept as they are)", update.changed.iter().cloned());
    section(&mut lines, output, "not added", update.refused.iter().cloned());
    lines.join("\n")
}

/// Adds a list with a title, unless it is empty.
fn section(lines: &mut Vec<String>, output: &Output, title: &str, all: impl Iterator<Item = String>) {
    let all: Vec<String> = all.collect();
    if all.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(output.bold(title));
    lines.extend(all.iter().take(SHOWN_ENTRIES).map(|line| format!("  {line}")));
    if all.len() > SHOWN_ENTRIES {
        lines.push(format!("  and {} more; --json prints all", all.len() - SHOWN_ENTRIES));
    }
}
