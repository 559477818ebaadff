//! The result of a run: a heading and a TSV table for each return, cut where it is too long for a model.
//! Invariant: a cut falls after a whole row and is said; what was cut is in the artifact, whose name stands below.

use std::borrow::Borrow;
use std::sync::Arc;

use catalog::Row;
use exec::{Coverage, Outcome, ReturnResult};

use super::cell::cell;

/// Longer cells go to the artifact when space is short.
const LONG_CELL: usize = 200;
const IN_ARTIFACT: &str = "(in artifact)";

/// A result as shown, and what the showing left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub text: String,
    /// For each return, the columns whose cells were replaced.
    pub lossy: Vec<Vec<String>>,
}

/// All returns of a run within `budget` characters; `artifact` is where the whole is.
pub fn run_result(outcome: &Outcome, artifact: &str, budget: usize) -> Shown {
    let several = outcome.returns.len() > 1;
    let share = budget / outcome.returns.len().max(1);
    let mut out = String::new();
    if several {
        out.push_str("# Results\n\n");
    }
    let mut lossy = Vec::new();
    let mut cut = false;
    for finished in &outcome.returns {
        let table = one_return(finished, share, several);
        cut |= table.cut;
        lossy.push(table.lossy);
        out.push_str(&table.text);
        out.push('\n');
    }
    if cut {
        out.push_str(&format!("all of it: read_artifact {artifact}\n"));
    }
    Shown { text: out.trim_end().to_owned(), lossy }
}

struct Table {
    text: String,
    lossy: Vec<String>,
    cut: bool,
}

fn one_return(finished: &ReturnResult, budget: usize, several: bool) -> Table {
    let marks = if several { "###" } else { "##" };
    let label = &finished.label;
    let rowset = match &finished.result {
        Ok(rowset) => rowset,
        Err(error) => {
            return Table { text: format!("{marks} {label} (failed)\n{error}\n"), lossy: Vec::new(), cut: false };
        }
    };
    if finished.effect && rowset.rows.is_empty() {
        // What came of it is said by its receipts.
        return Table { text: format!("{marks} {label} (no rows)\n"), lossy: Vec::new(), cut: false };
    }
    let count = if rowset.rows.len() == 1 { "1 row".to_owned() } else { format!("{} rows", rowset.rows.len()) };
    let coverage = match &rowset.coverage {
        Coverage::Complete => String::new(),
        other => format!(", {other}"),
    };
    let heading = format!("{marks} {label} ({count}{coverage})\n");
    let fitted = fit(finished, &rowset.rows, budget.saturating_sub(heading.len()));
    let shown = if fitted.rows < rowset.rows.len() {
        format!("({} of {} rows shown)\n", fitted.rows, rowset.rows.len())
    } else {
        String::new()
    };
    let cut = fitted.rows < rowset.rows.len() || !fitted.lossy.is_empty();
    Table { text: format!("{heading}{}{shown}", fitted.text), lossy: fitted.lossy, cut }
}

struct Fitted {
    text: String,
    rows: usize,
    lossy: Vec<String>,
}

/// First whole; then without the long columns; then without long cells; then without the last rows.
fn fit(finished: &ReturnResult, rows: &[Arc<Row>], budget: usize) -> Fitted {
    let whole = rows_table(&finished.columns, rows, |_, _| false);
    if whole.chars().count() <= budget {
        return Fitted { text: whole, rows: rows.len(), lossy: Vec::new() };
    }
    let is_long_column = |column: &str| finished.long_columns.iter().any(|c| c == column);
    let lean = rows_table(&finished.columns, rows, |column, text| is_long_column(column) && !text.is_empty());
    if lean.chars().count() <= budget {
        let lossy = finished.long_columns.clone();
        return Fitted { text: lean, rows: rows.len(), lossy };
    }
    let replaced =
        |column: &str, text: &str| (is_long_column(column) && !text.is_empty()) || text.chars().count() > LONG_CELL;
    let leanest = rows_table(&finished.columns, rows, replaced);
    let lossy = finished
        .columns
        .iter()
        .filter(|c| rows.iter().any(|row| row.get(*c).is_some_and(|v| replaced(c, &cell(v)))))
        .cloned()
        .collect();
    let (text, shown) = whole_rows(&leanest, budget);
    Fitted { text, rows: shown.min(rows.len()), lossy }
}

/// The header, and as many lines as fit; always the first row.
fn whole_rows(table: &str, budget: usize) -> (String, usize) {
    let mut out = String::new();
    let mut used = 0;
    let mut rows = 0;
    for (at, line) in table.split_inclusive('\n').enumerate() {
        used += line.chars().count();
        if at > 1 && used > budget {
            break;
        }
        out.push_str(line);
        rows = at;
    }
    (out, rows)
}

/// TSV with a header; `replaced` says which cells read `(in artifact)`.
pub fn rows_table(columns: &[String], rows: &[impl Borrow<Row>], replaced: impl Fn(&str, &str) -> bool) -> String {
    let mut out = columns.join("\t");
    out.push('\n');
    for row in rows {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| {
                let text = row.borrow().get(column).map(cell).unwrap_or_default();
                if replaced(column, &text) { IN_ARTIFACT.to_owned() } else { text }
            })
            .collect();
        out.push_str(&cells.join("\t"));
        out.push('\n');
    }
    out
}
