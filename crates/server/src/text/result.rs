//! The result of a run: a heading and a TSV table for each return, cut if it is too long for a model.
//! Invariant: a cut falls after a whole row and is announced, with the URI of the artifact that holds the rest.

use std::borrow::Borrow;
use std::sync::Arc;

use catalog::Row;
use exec::{Coverage, Outcome, ReturnResult};
use serde_json::Value;

/// Longer cells are left to the artifact if space is short.
const LONG_CELL_CHARS: usize = 200;
/// Stands in a table for a cell that only the artifact has.
const IN_ARTIFACT: &str = "(in artifact)";

/// A result as a model reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownResult {
    pub text: String,
    /// For each return, the columns of which some cells are only in the artifact.
    pub lossy: Vec<Vec<String>>,
}

/// Renders all returns of a run within `budget` characters. `artifact` is the URI of the whole result.
pub fn run_result(outcome: &Outcome, artifact: &str, budget: usize) -> ShownResult {
    let several = outcome.returns.len() > 1;
    // Each return gets an equal share, so that a long one cannot push the others out.
    let share = budget / outcome.returns.len().max(1);
    let mut out = String::new();
    if several {
        out.push_str("# Results\n\n");
    }
    let mut lossy = Vec::new();
    let mut cut = false;
    for returned in &outcome.returns {
        let table = return_table(returned, share, several);
        cut |= table.cut;
        lossy.push(table.lossy);
        out.push_str(&table.text);
        out.push('\n');
    }
    if cut {
        out.push_str(&format!("all of it: read_artifact {artifact}\n"));
    }
    ShownResult { text: out.trim_end().to_owned(), lossy }
}

/// One return as text.
struct ReturnTable {
    text: String,
    /// Columns of which some cells are only in the artifact.
    lossy: Vec<String>,
    /// Whether rows or cells were left out.
    cut: bool,
}

/// Renders one return within a budget. `several` says that the program has other returns, which makes the heading smaller.
fn return_table(returned: &ReturnResult, budget: usize, several: bool) -> ReturnTable {
    let marks = if several { "###" } else { "##" };
    let label = &returned.label;
    let rowset = match &returned.result {
        Ok(rowset) => rowset,
        Err(error) => {
            return ReturnTable { text: format!("{marks} {label} (failed)\n{error}\n"), lossy: Vec::new(), cut: false };
        }
    };
    if returned.effect && rowset.rows.is_empty() {
        // The receipts below the tables say whether the effect is done.
        return ReturnTable { text: format!("{marks} {label} (no rows)\n"), lossy: Vec::new(), cut: false };
    }
    let count = if rowset.rows.len() == 1 { "1 row".to_owned() } else { format!("{} rows", rowset.rows.len()) };
    let coverage = match &rowset.coverage {
        Coverage::Complete => String::new(),
        other => format!(", {other}"),
    };
    let heading = format!("{marks} {label} ({count}{coverage})\n");
    let fitted = fit(returned, &rowset.rows, budget.saturating_sub(heading.len()));
    let shown = if fitted.rows < rowset.rows.len() {
        format!("({} of {} rows shown)\n", fitted.rows, rowset.rows.len())
    } else {
        String::new()
    };
    let cut = fitted.rows < rowset.rows.len() || !fitted.lossy.is_empty();
    ReturnTable { text: format!("{heading}{}{shown}", fitted.text), lossy: fitted.lossy, cut }
}

/// The rows of a return that fit into a budget.
struct FittedRows {
    /// The table.
    text: String,
    /// The number of rows in the table.
    rows: usize,
    /// Columns of which some cells are only in the artifact.
    lossy: Vec<String>,
}

/// Fits rows into a budget: whole if possible, else without the long columns, else also without long cells, else also without
/// the last rows.
fn fit(returned: &ReturnResult, rows: &[Arc<Row>], budget: usize) -> FittedRows {
    let whole = rows_table(&returned.columns, rows, |_, _| false);
    if whole.chars().count() <= budget {
        return FittedRows { text: whole, rows: rows.len(), lossy: Vec::new() };
    }
    let is_long_column = |column: &str| returned.long_columns.iter().any(|long| long == column);
    let lean = rows_table(&returned.columns, rows, |column, text| is_long_column(column) && !text.is_empty());
    if lean.chars().count() <= budget {
        let lossy = returned.long_columns.clone();
        return FittedRows { text: lean, rows: rows.len(), lossy };
    }
    let replaced = |column: &str, text: &str| {
        (is_long_column(column) && !text.is_empty()) || text.chars().count() > LONG_CELL_CHARS
    };
    let leanest = rows_table(&returned.columns, rows, replaced);
    let lossy = returned
        .columns
        .iter()
        .filter(|column| rows.iter().any(|row| row.get(*column).is_some_and(|value| replaced(column, &cell(value)))))
        .cloned()
        .collect();
    let (text, shown) = whole_rows(&leanest, budget);
    FittedRows { text, rows: shown.min(rows.len()), lossy }
}

/// Cuts a table to as many whole lines as fit, but at least the header and the first row. Also returns the number of rows.
fn whole_rows(table: &str, budget: usize) -> (String, usize) {
    let mut out = String::new();
    let mut used = 0;
    let mut rows = 0;
    // Line 0 is the header, so the index of a line is the number of rows up to it.
    for (index, line) in table.split_inclusive('\n').enumerate() {
        used += line.chars().count();
        if index > 1 && used > budget {
            break;
        }
        out.push_str(line);
        rows = index;
    }
    (out, rows)
}

/// Renders rows as TSV with a header. `replaced` decides by column and text which cells read `(in artifact)`.
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

/// Renders a value as one cell. The cell has no tab and no line break, so that a row stays one line.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => escape(text),
        other => escape(&other.to_string()),
    }
}

fn escape(text: &str) -> String {
    if !text.contains(['\t', '\n', '\r']) {
        return text.to_owned();
    }
    text.replace('\t', "\\t").replace("\r\n", "\\n").replace(['\n', '\r'], "\\n")
}

#[cfg(test)]
mod tests {
    use super::cell;
    use serde_json::json;

    #[test]
    fn a_cell_has_no_tab_and_no_line_break() {
        assert_eq!(cell(&json!("a\tb\r\nc\n")), "a\\tb\\nc\\n");
        assert_eq!(cell(&json!(null)), "");
        assert_eq!(cell(&json!(["x", 1])), "[\"x\",1]");
        assert_eq!(cell(&json!("a\\nb")), "a\\nb");
    }
}
