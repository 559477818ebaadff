//! Extracts the comments and documentation of a file: Rust, Python, shell, TOML, C, JavaScript and Markdown.
//! Invariant: text inside string literals is never taken for a comment, and each line keeps its number in the file.

/// The kind of a block of text. The rule about verbs applies only to some kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A doc comment (`///`) of a function or method.
    Function,
    /// A doc comment (`///`) of another item, or a header (`//!`).
    Item,
    /// A `//` comment on its own lines.
    Inner,
    /// A comment after code on the same line, often a label.
    Trailing,
    /// Text of a Markdown file, or a comment of a language other than Rust.
    Page,
}

/// The text of consecutive comment lines.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    pub kind: Kind,
    /// Each line with its number in the file (counted from 1) and its text without comment marks.
    pub lines: Vec<(usize, String)>,
}

/// Returns the blocks of a file, or `None` if files with this extension are not read.
pub fn blocks(path: &str, text: &str) -> Option<Vec<Block>> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.').map_or(name, |(_, ending)| ending) {
        "rs" => Some(rust(text)),
        "js" | "mjs" | "ts" | "c" | "h" => Some(c_like(text)),
        "py" => Some(python(text)),
        "sh" | "toml" | "Makefile" => Some(hash(text)),
        "md" => Some(vec![Block { kind: Kind::Page, lines: numbered(text) }]),
        _ => None,
    }
}

fn numbered(text: &str) -> Vec<(usize, String)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line.to_owned())).collect()
}

/// One comment of the source.
struct Comment {
    line: usize,
    text: String,
    /// Whether code precedes the comment on its line.
    after_code: bool,
}

fn rust(text: &str) -> Vec<Block> {
    let source: Vec<&str> = text.lines().collect();
    let mut blocks: Vec<Block> = Vec::new();
    let mut previous: Option<(usize, &str)> = None;
    for comment in scan(text, true) {
        let (mark, body) = rust_mark(&comment.text);
        let continues = previous == Some((comment.line - 1, mark)) && !comment.after_code;
        let line = (comment.line, body.to_owned());
        previous = Some((comment.line, mark));
        if let Some(last) = blocks.last_mut().filter(|block| continues && block.kind != Kind::Trailing) {
            last.lines.push(line);
            continue;
        }
        let kind = match mark {
            _ if comment.after_code => Kind::Trailing,
            "///" | "/**" if documents_function(&source[comment.line.min(source.len())..]) => Kind::Function,
            "//" | "/*" => Kind::Inner,
            _ => Kind::Item,
        };
        blocks.push(Block { kind, lines: vec![line] });
    }
    blocks
}

fn rust_mark(comment: &str) -> (&'static str, &str) {
    for mark in ["//!", "///", "//", "/**", "/*!", "/*"] {
        if let Some(body) = comment.strip_prefix(mark) {
            return (mark, body.trim_end_matches("*/").trim());
        }
    }
    ("//", comment.trim_end_matches("*/").trim_start_matches(['*', ' ']).trim_end())
}

/// Returns whether the first code line after a doc comment starts a function. Attributes and further comment lines are skipped.
fn documents_function(following: &[&str]) -> bool {
    let mut depth = 0i32;
    for line in following.iter().map(|line| line.trim()) {
        if depth > 0 || line.starts_with("#[") {
            depth += line.matches('[').count() as i32 - line.matches(']').count() as i32;
        } else if !line.is_empty() && !line.starts_with("//") {
            let mut words = line.split_whitespace().skip_while(|word| {
                word.starts_with("pub")
                    || matches!(*word, "const" | "async" | "unsafe" | "extern" | "\"C\"" | "crate)" | "in")
            });
            return words.next() == Some("fn");
        }
    }
    false
}

fn c_like(text: &str) -> Vec<Block> {
    let comments = scan(text, false).into_iter().map(|comment| {
        let body = comment.text.trim_start_matches(['/', '*', '!']).trim_end_matches("*/").trim().to_owned();
        (comment.line, body, comment.after_code)
    });
    join(comments)
}

/// Reads the comments and docstrings of Python. A string of several lines is a docstring if its first line begins with the quotes.
fn python(text: &str) -> Vec<Block> {
    let mut code = String::new();
    let mut docstrings: Vec<Block> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let begins = !inside && trimmed.starts_with("\"\"\"");
        if !begins && !inside {
            code.push_str(line);
            code.push('\n');
            continue;
        }
        // Each line of a docstring is replaced by an empty line, so that the other lines keep their numbers.
        code.push('\n');
        let body = if begins { &trimmed[3..] } else { trimmed };
        let entry = (index + 1, body.trim_end_matches("\"\"\"").trim().to_owned());
        match docstrings.last_mut().filter(|_| inside) {
            Some(block) => block.lines.push(entry),
            None => docstrings.push(Block { kind: Kind::Page, lines: vec![entry] }),
        }
        inside = !body.contains("\"\"\"");
    }
    let mut blocks = hash(&code);
    blocks.append(&mut docstrings);
    blocks.sort_by_key(|block| block.lines[0].0);
    blocks
}

/// Reads comments that begin with `#`, for shell, TOML, make and Python. A `#` begins a comment at the start of a line or of a word,
/// outside of quotes. Here-documents and strings of several lines are not recognized, so single lines in them may be read wrongly.
fn hash(text: &str) -> Vec<Block> {
    let comments = text.lines().enumerate().filter_map(|(index, line)| {
        let at = hash_at(line)?;
        let body = line[at..].trim_start_matches('#');
        let shebang = index == 0 && body.starts_with('!');
        (!shebang).then(|| (index + 1, body.trim().to_owned(), !line[..at].trim().is_empty()))
    });
    join(comments)
}

fn hash_at(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open && before != '\\' => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c == '#' && before.is_whitespace() => return Some(at),
            None => {}
        }
        before = c;
    }
    None
}

/// Joins comments on consecutive lines to blocks. A comment after code is a block of its own.
fn join(comments: impl Iterator<Item = (usize, String, bool)>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (number, text, after_code) in comments {
        let continued = blocks
            .last_mut()
            .filter(|block| !after_code && block.lines.last().is_some_and(|(last, _)| last + 1 == number));
        match continued {
            Some(block) => block.lines.push((number, text)),
            None => blocks.push(Block { kind: Kind::Page, lines: vec![(number, text)] }),
        }
    }
    blocks
}

/// Finds `//` and `/* */` comments outside of literals. Each line of a block comment is one entry of the result.
fn scan(text: &str, rust: bool) -> Vec<Comment> {
    let bytes = text.as_bytes();
    let mut comments = Vec::new();
    let (mut at, mut line, mut after_code) = (0, 1, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = match rest {
            [b'\n', ..] => {
                line += 1;
                after_code = false;
                at += 1;
                continue;
            }
            [b'/', b'/', ..] => {
                let end = at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                comments.push(Comment { line, text: text[at..end].to_owned(), after_code });
                at = end;
                continue;
            }
            [b'/', b'*', ..] => {
                let end = block_end(bytes, at, rust);
                for (index, part) in text[at..end].lines().enumerate() {
                    comments.push(Comment { line: line + index, text: part.trim().to_owned(), after_code });
                }
                line += text[at..end].matches('\n').count();
                at = end;
                continue;
            }
            [b'r' | b'b' | b'c', ..] if rust && !is_word(bytes, at) => raw_end(bytes, at).unwrap_or(at + 1),
            [b'"', ..] => quoted_end(bytes, at, b'"'),
            [b'`', ..] if !rust => quoted_end(bytes, at, b'`'),
            [b'\'', ..] if rust => char_end(text, at),
            [b'\'', ..] => quoted_end(bytes, at, b'\''),
            _ => at + 1,
        };
        after_code |= !bytes[at].is_ascii_whitespace();
        line += bytes[at..end].iter().filter(|byte| **byte == b'\n').count();
        at = end;
    }
    comments
}

fn is_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
}

/// Returns the end of a block comment. With `nested` the comment may contain block comments, as in Rust.
fn block_end(bytes: &[u8], start: usize, nested: bool) -> usize {
    let (mut at, mut depth) = (start + 2, 1);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            b"/*" if nested => {
                depth += 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the end of a raw string such as `r"…"`, `r#"…"#` or `br"…"`, or `None` if no raw string begins at `start`.
fn raw_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + usize::from(matches!(bytes[start], b'b' | b'c'));
    if bytes.get(at) != Some(&b'r') {
        return None;
    }
    at += 1;
    let hashes = bytes[at..].iter().take_while(|byte| **byte == b'#').count();
    at += hashes;
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let length = bytes[at + 1..].windows(close.len()).position(|window| window == close)?;
    Some(at + 1 + length + close.len())
}

fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the end of a character literal. For a lifetime such as `'a`, the result is the position after the quote.
fn char_end(text: &str, start: usize) -> usize {
    let mut chars = text[start + 1..].char_indices();
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some(_)) => quoted_end(text.as_bytes(), start, b'\''),
        (Some(_), Some((at, '\''))) => start + 1 + at + 1,
        _ => start + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, text: &str) -> Vec<(Kind, usize, String)> {
        let joined = |block: Block| {
            let words: Vec<String> = block.lines.iter().map(|(_, text)| text.clone()).collect();
            (block.kind, block.lines[0].0, words.join(" "))
        };
        blocks(path, text).unwrap().into_iter().map(joined).collect()
    }

    #[test]
    fn rust_comments_have_a_kind_and_a_line() {
        let text = "//! Header.\n\n/// Doc\n/// goes on.\n#[cfg(\n  unix\n)]\npub(crate) async fn f() {\n  // Inner.\n  g(); // tail\n}\n\
                    /// A type.\nstruct S;\n";
        let expected = [
            (Kind::Item, 1, "Header."),
            (Kind::Function, 3, "Doc goes on."),
            (Kind::Inner, 9, "Inner."),
            (Kind::Trailing, 10, "tail"),
            (Kind::Item, 12, "A type."),
        ];
        assert_eq!(read("x.rs", text), expected.map(|(kind, line, text)| (kind, line, text.to_owned())));
    }

    #[test]
    fn literals_hold_no_comments() {
        let text = "const A: &str = \"// no\\\" // no\";\nconst B: &str = r#\"\n// \"no\n\"#;\nconst C: char = '\"'; // yes\n\
                    fn f<'a>(x: &'a str) {} // too\nconst D: &[u8] = br\"//no\"; const E: char = '\\''; /* and this */\n";
        let comments: Vec<(usize, String)> =
            read("x.rs", text).into_iter().map(|(_, line, text)| (line, text)).collect();
        assert_eq!(comments, [(5, "yes".to_owned()), (6, "too".to_owned()), (7, "and this".to_owned())]);
    }

    #[test]
    fn other_languages_are_read() {
        let shell = "#!/bin/sh\n# One\n# two.\necho \"# no\" ${x#y} # tail\n";
        assert_eq!(read("x.sh", shell), [(Kind::Page, 2, "One two.".to_owned()), (Kind::Page, 4, "tail".to_owned())]);
        let python = "#!/usr/bin/env python3\n\"\"\"One\ntwo.\n\"\"\"\ndef f():\n    \"\"\"Does f.\"\"\"\n    x = \"\"\"no\"\"\" # tail\n";
        let expected = [(2, "One two. "), (6, "Does f."), (7, "tail")];
        assert_eq!(read("x.py", python), expected.map(|(line, text)| (Kind::Page, line, text.to_owned())));
        assert_eq!(read("x.h", "/* One\n * two. */\nint x; // tail\n")[0], (Kind::Page, 1, "One two.".to_owned()));
        assert!(blocks("x.json", "// no").is_none());
    }
}
