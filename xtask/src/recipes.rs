//! Checks that the files and texts which the recipes of CONTRIBUTING.md name exist in this tree.
//! Invariant: a recipe is a section with a heading of level 3 below `## How to add`, and has at least one row that names a file.
//!
//! Each recipe has a table with the columns file, anchor and change. A path with `<name>` stands for a new file: its folder must
//! exist. An anchor is text in backticks that must occur in the file, so that a reader can search for it.

use std::path::Path;

const HEADING: &str = "## How to add";

/// A row of a recipe with a missing file or anchor, or a recipe without rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub text: String,
}

/// Compares all recipes of the page with the tree at `root`.
pub fn check(root: &Path, page: &str) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut recipe: Option<Recipe> = None;
    let mut inside = false;
    for (index, line) in page.lines().enumerate() {
        let number = index + 1;
        if line.starts_with("## ") {
            inside = line.starts_with(HEADING);
        }
        if line.starts_with("## ") || line.starts_with("### ") {
            mistakes.extend(recipe.take().and_then(without_rows));
        }
        if !inside {
            continue;
        }
        if let Some(title) = line.strip_prefix("### ") {
            recipe = Some(Recipe { line: number, title, rows: 0 });
        } else if let Some(row) = row(line)
            && let Some(current) = &mut recipe
        {
            current.rows += 1;
            mistakes.extend(apply(root, &row).map(|text| Mistake { line: number, text }));
        }
    }
    mistakes.extend(recipe.and_then(without_rows));
    mistakes
}

/// The recipe whose rows are being read.
struct Recipe<'a> {
    /// The line number of the recipe's heading.
    line: usize,
    title: &'a str,
    /// The number of rows with a file that were read so far.
    rows: usize,
}

/// Returns a mistake if the recipe names no file.
fn without_rows(recipe: Recipe<'_>) -> Option<Mistake> {
    let text = format!("the recipe `{}` names no file", recipe.title);
    (recipe.rows == 0).then_some(Mistake { line: recipe.line, text })
}

struct Row<'a> {
    path: &'a str,
    anchor: Option<&'a str>,
}

/// Parses a table row whose first cell is a path in backticks.
fn row(line: &str) -> Option<Row<'_>> {
    let mut cells = line.trim().strip_prefix('|')?.split('|').map(str::trim);
    let path = code(cells.next()?)?;
    Some(Row { path, anchor: cells.next().and_then(code) })
}

fn code(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

/// Compares a row with the tree, and returns a description of the mistake if there is one.
fn apply(root: &Path, row: &Row<'_>) -> Option<String> {
    if let Some((before, _)) = row.path.split_once('<') {
        let folder = before.rsplit_once('/').map_or("", |(folder, _)| folder);
        return (!root.join(folder).is_dir()).then(|| format!("the folder {folder} does not exist"));
    }
    let path = root.join(row.path);
    if !path.exists() {
        return Some(format!("{} does not exist", row.path));
    }
    let anchor = row.anchor?;
    match std::fs::read_to_string(&path) {
        Ok(text) if text.contains(anchor) => None,
        Ok(_) => Some(format!("{} does not contain `{anchor}`", row.path)),
        Err(error) => Some(format!("{} cannot be read: {error}", row.path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(rows: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = format!(
            "# C\n\n| `absent` | |\n\n## How to add\n\n### A thing\n\n| file | anchor | change |\n|---|---|---|\n{rows}\n## Next\n"
        );
        check(root, &page).into_iter().map(|mistake| format!("{}: {}", mistake.line, mistake.text)).collect()
    }

    #[test]
    fn existing_files_and_anchors_pass() {
        let rows = "| `src/recipes.rs` | `const HEADING` | x |\n| `src/<name>.rs` | | new |\n| `src` | | x |\n";
        assert_eq!(findings(rows), [""; 0]);
    }

    #[test]
    fn missing_files_anchors_and_rows_are_found() {
        assert_eq!(findings("| `src/absent.rs` | | x |\n"), ["11: src/absent.rs does not exist"]);
        assert_eq!(findings("| `absent/<name>.rs` | | x |\n"), ["11: the folder absent does not exist"]);
        let anchor = concat!("not in ", "the file");
        assert_eq!(
            findings(&format!("| `src/recipes.rs` | `{anchor}` | x |\n")),
            [format!("11: src/recipes.rs does not contain `{anchor}`")]
        );
        assert_eq!(findings("Text.\n"), ["7: the recipe `A thing` names no file"]);
    }
}
