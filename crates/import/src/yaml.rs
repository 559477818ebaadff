//! An emitter of YAML for people: a tree of values as text with plain words, short lines and comments.
//! Invariant: each value reads back as the same value, in a block and inside `{}` or `[]`. No key of any format is known here.

use serde_json::{Map, Value};

/// The length of a line above which a map is written with one entry on each line.
const MAX_WIDTH: usize = 118;

/// The length at which a line of a comment is cut, since a comment may quote any specification.
const MAX_COMMENT: usize = 300;

/// Words that YAML 1.1, or some reader of YAML, takes for a boolean, null or a number.
const RESERVED_WORDS: [&str; 12] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "~", "nan", "inf"];

/// Writes a document from top to bottom. Depth counts levels of two spaces.
pub struct Emitter<'k> {
    text: String,
    /// The number of the line that is written next, from 1.
    next_line: usize,
    /// Keys whose maps have one entry on each line even if they fit on one.
    expanded_keys: &'k [&'k str],
}

impl<'k> Emitter<'k> {
    pub fn new(expanded_keys: &'k [&'k str]) -> Self {
        Self { text: String::new(), next_line: 1, expanded_keys }
    }

    pub fn next_line(&self) -> usize {
        self.next_line
    }

    pub fn finish(self) -> String {
        self.text
    }

    pub fn blank_line(&mut self) {
        self.line(0, "");
    }

    pub fn comment(&mut self, depth: usize, text: &str) {
        for line in text.lines() {
            let printable: String = line.chars().filter(|c| !c.is_control()).take(MAX_COMMENT).collect();
            self.line(depth, &format!("# {printable}"));
        }
    }

    /// Opens a map whose entries the caller writes one level deeper.
    pub fn open(&mut self, depth: usize, key: &str) {
        self.line(depth, &format!("{}:", flow_text(key)));
    }

    /// Writes the entries of a map, in their order.
    pub fn entries(&mut self, depth: usize, entries: &Map<String, Value>) {
        for (key, value) in entries {
            self.entry(depth, key, value);
        }
    }

    /// Writes one entry on its line. A map that is too long for a line gets a line for each of its entries; those stay on one
    /// line, since a type that is torn into a block is harder to read than a long line.
    pub fn entry(&mut self, depth: usize, key: &str, value: &Value) {
        let line = format!("{}: {}", flow_text(key), block(value));
        if let Value::Object(map) = value
            && !map.is_empty()
            && (self.expanded_keys.contains(&key) || 2 * depth + line.chars().count() > MAX_WIDTH)
        {
            self.open(depth, key);
            for (inner_key, inner) in map {
                self.line(depth + 1, &format!("{}: {}", flow_text(inner_key), block(inner)));
            }
            return;
        }
        self.line(depth, &line);
    }

    /// `line` has no line break: texts with one are quoted.
    fn line(&mut self, depth: usize, line: &str) {
        if !line.is_empty() {
            self.text.push_str(&"  ".repeat(depth));
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.next_line += 1;
    }
}

/// Returns a value as it stands after `key: ` in a block.
fn block(value: &Value) -> String {
    match value {
        Value::String(text) => block_text(text),
        other => flow(other),
    }
}

/// Returns a value as it stands inside `{}` or `[]`: `{a: b, c: [d]}`.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => flow_text(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, value)| format!("{}: {}", flow_text(key), flow(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// In a block, a sentence, an address and a path with holes stay plain: `GET /tickets/{number}?state={state}`.
fn block_text(text: &str) -> String {
    let indicator = |c: char| is_unprintable(c) || "#\"'*!|>%@`\\".contains(c);
    // A brace beside a space is valid, but looks like a map of YAML: `query { viewer }`.
    let looks_like_map = text.contains("{ ") || text.contains(" }");
    let looks_like_key = text.contains(": ") || text.ends_with(':');
    let is_plain = text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.trim() == text
        && !text.contains(indicator)
        && !looks_like_map
        && !looks_like_key
        && !is_reserved(text);
    if is_plain { text.to_owned() } else { quoted(text) }
}

/// Inside `{}` and `[]`, and as a key, only words of a few characters stay plain.
fn flow_text(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b))
        && !text.ends_with('.')
        && !is_reserved(text);
    if is_plain { text.to_owned() } else { quoted(text) }
}

fn is_reserved(text: &str) -> bool {
    RESERVED_WORDS.contains(&text.to_ascii_lowercase().as_str())
}

/// Returns whether YAML wants this character escaped.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn quoted(text: &str) -> String {
    // A JSON string is a double-quoted one of YAML, except for the characters that JSON prints and YAML does not.
    let json = Value::String(text.to_owned()).to_string();
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unprintable(c) {
            out.push_str(&format!("\\u{:04x}", c as u32));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_text_reads_back() {
        let texts = [
            "a",
            "true",
            "No",
            "1",
            "1e3",
            "",
            " x",
            "a: b",
            "a:",
            "a:b",
            "a #b",
            "a{b}",
            "{a}",
            "a [b], c",
            "[x]",
            "é\u{85}",
            "a\u{2028}b",
            "\u{7f}",
            "a\nb",
            "a\tb",
            "-",
            "- a",
            "~",
            "null",
            "0x1",
            "x,y",
            "'",
            "\"",
            "@a",
            "*a",
            "&a",
            "a & b",
            "!a",
            "%a",
            "a\\b",
            "?",
            "a?b",
            "2026-01-01",
            "\u{2028}",
            "GET /a/{+b}?c[d]={e}&f=g",
            "https://a.example:8443/b",
        ];
        for text in texts {
            let inside: Vec<String> = serde_saphyr::from_str(&format!("[{}]", flow_text(text))).unwrap();
            assert_eq!(inside, [text]);
            let in_block: BTreeMap<String, String> =
                serde_saphyr::from_str(&format!("k: {}\n", block_text(text))).unwrap();
            assert_eq!(in_block["k"], text);
        }
    }

    #[test]
    fn a_long_map_has_a_line_for_each_entry() {
        let short = json!({"a": {"b": 1, "c": []}});
        let long = json!({"a": {"b": {"c": "x".repeat(60)}, "d": "y".repeat(60)}});
        let text = |value: &Value, expanded: &[&str]| {
            let mut emitter = Emitter::new(expanded);
            emitter.entries(1, value.as_object().unwrap());
            emitter.finish()
        };
        assert_eq!(text(&short, &[]), "  a: {b: 1, c: []}\n");
        assert_eq!(text(&short, &["a"]), "  a:\n    b: 1\n    c: []\n");
        let expected = format!("  a:\n    b: {{c: {}}}\n    d: {}\n", "x".repeat(60), "y".repeat(60));
        assert_eq!(text(&long, &[]), expected);
    }
}
