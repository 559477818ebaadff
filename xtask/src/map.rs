//! `cargo xtask map`: writes docs/map.md, which has one line for each source file: the first sentence of the file's header.
//! Invariant: the page depends only on the files, so `tidy` can check whether it is up to date.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::prose::comments;
use crate::source::Tree;

pub const PAGE: &str = "docs/map.md";

const INTRODUCTION: &str = "\
# Map

One line for each source file: the first sentence of its header. `cargo xtask map` writes this page, and `cargo xtask tidy`
compares it with the files. [ARCHITECTURE.md](../ARCHITECTURE.md) has the layers and the paths of the calls, and
[symptoms.md](symptoms.md) says where to look when an answer is wrong.
";

/// Writes the page, and returns the line to print.
pub fn write(root: &Path) -> Result<String> {
    let tree = Tree::read(root)?;
    let page = page(&tree);
    std::fs::write(root.join(PAGE), &page).with_context(|| format!("{PAGE} cannot be written"))?;
    Ok(format!("map: {PAGE} has {} lines", page.lines().count()))
}

/// Returns the text of the page for this tree.
pub fn page(tree: &Tree) -> String {
    let mut folders: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    let files = tree.files.iter().map(|file| (file.path.as_str(), file.text.as_str()));
    let texts = tree.texts.iter().chain(&tree.scripts).map(|(path, text)| (path.as_str(), text.as_str()));
    for (path, text) in files.chain(texts) {
        if let Some((folder, name)) = path.rsplit_once('/')
            && let Some(entry) = entry(path, text)
        {
            folders.entry(folder).or_default().push((name, entry));
        }
    }
    let mut page = INTRODUCTION.to_owned();
    let mut part = String::new();
    for (folder, mut files) in folders {
        let crate_of = crate_folder(folder);
        if part != crate_of {
            part = crate_of.to_owned();
            let _ = write!(page, "\n## {part}\n");
        }
        if folder != part {
            let _ = write!(page, "\n### {}\n", &folder[part.len() + 1..]);
        }
        page.push('\n');
        files.sort_by_key(|(name, _)| (!matches!(*name, "lib.rs" | "main.rs" | "mod.rs"), *name));
        for (name, entry) in files {
            let _ = writeln!(page, "- `{name}`: {entry}");
        }
    }
    page
}

/// Returns `crates/x` or `crates/testkit/x` for a folder of a crate, and otherwise the first folder of the path.
fn crate_folder(folder: &str) -> &str {
    let inside = ["/src", "/tests", "/build", "/guest", "/prelude", "/benches"];
    if folder.starts_with("crates/") {
        let end = inside.iter().filter_map(|part| folder.find(part)).min();
        return &folder[..end.unwrap_or(folder.len())];
    }
    folder.split('/').next().unwrap_or(folder)
}

/// Returns the first sentence of a file's first comment, or `None` for a file without one.
fn entry(path: &str, text: &str) -> Option<String> {
    let ending = path.rsplit('.').next().unwrap_or_default();
    // The words of discovery are data with a header.
    let described = matches!(ending, "rs" | "h" | "c" | "js" | "mjs" | "py" | "sh") || path.ends_with("synonyms.txt");
    if !described {
        return None;
    }
    if ending == "txt" {
        return text.lines().next().map(|line| first_sentence(line.trim_start_matches('#').trim()));
    }
    let blocks = comments::blocks(path, text)?;
    let lines = blocks.first()?.lines.iter().map(|(_, line)| line.trim());
    let paragraph = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    Some(first_sentence(&paragraph.collect::<Vec<_>>().join(" "))).filter(|entry| !entry.is_empty())
}

fn first_sentence(text: &str) -> String {
    let mut in_code = false;
    for (position, c) in text.char_indices() {
        in_code ^= c == '`';
        let after = &text[position + c.len_utf8()..];
        let next = after.trim_start().chars().next();
        let abbreviated = text[..position].ends_with("e.g") || text[..position].ends_with("i.e");
        if c == '.'
            && !in_code
            && !abbreviated
            && after.starts_with(' ')
            && next.is_some_and(|next| next.is_uppercase() || next == '`')
        {
            return text[..=position].to_owned();
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample::tree;

    #[test]
    fn each_file_has_its_first_sentence() {
        let page = page(&tree(&[
            ("crates/a/src/lib.rs", "//! Does a, e.g. `x. Y`, over\n//! two lines. And more.\n//! Invariant: none.\n"),
            ("crates/a/src/deep/x.rs", "//! Does x.\n"),
            ("crates/a/src/deep/mod.rs", "//! Holds x.\n\nfn f() {}"),
            ("xtask/src/main.rs", "//! Does chores.\n"),
        ]));
        let expected = "\n## crates/a\n\n### src\n\n- `lib.rs`: Does a, e.g. `x. Y`, over two lines.\n\n### src/deep\n\n\
                        - `mod.rs`: Holds x.\n- `x.rs`: Does x.\n\n## xtask\n\n### src\n\n- `main.rs`: Does chores.\n";
        assert_eq!(page, format!("{INTRODUCTION}{expected}"));
    }
}
