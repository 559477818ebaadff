//! An emitter of readable YAML: JSON values as text with unquoted words, short lines and comments.
//! Invariant: a YAML parser reads each written value back as the same value. The emitter has no knowledge of catalog keys.

use serde_json::{Map, Value};

/// The maximum line length in characters. A longer map is written with one entry per line.
const MAX_LINE_CHARS: usize = 118;

/// The length in characters at which a comment line is cut, because a comment may quote long texts of a specification.
const MAX_COMMENT_CHARS: usize = 300;

/// Words that YAML 1.1 or a common YAML parser reads as a boolean, null or a number. They are quoted.
const RESERVED_WORDS: [&str; 12] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "~", "nan", "inf"];

/// Writes a YAML document from top to bottom. A `depth` of 1 is an indentation of two spaces.
pub struct Emitter<'k> {
    text: String,
    /// The number of the next line, starting at 1.
    next_line: usize,
    /// Keys whose maps are always written with one entry per line.
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
            let printable: String = line.chars().filter(|c| !c.is_control()).take(MAX_COMMENT_CHARS).collect();
            self.line(depth, &format!("# {printable}"));
        }
    }

    /// Writes the key of a map. The caller then writes the map's entries one level deeper.
    pub fn open(&mut self, depth: usize, key: &str) {
        self.line(depth, &format!("{}:", flow_text(key)));
    }

    /// Writes the entries of a map in order.
    pub fn entries(&mut self, depth: usize, entries: &Map<String, Value>) {
        for (key, value) in entries {
            self.entry(depth, key, value);
        }
    }

    /// Writes one entry. A map that is too long for a line is written with one line per entry. Those lines are never broken
    /// again, because a long line is easier to read than a nested block.
    pub fn entry(&mut self, depth: usize, key: &str, value: &Value) {
        let line = format!("{}: {}", flow_text(key), block_value(value));
        if let Value::Object(map) = value
            && !map.is_empty()
            && (self.expanded_keys.contains(&key) || 2 * depth + line.chars().count() > MAX_LINE_CHARS)
        {
            self.open(depth, key);
            for (inner_key, inner) in map {
                self.line(depth + 1, &format!("{}: {}", flow_text(inner_key), block_value(inner)));
            }
            return;
        }
        self.line(depth, &line);
    }

    /// Writes a line. `line` contains no line break, because texts with line breaks are quoted.
    fn line(&mut self, depth: usize, line: &str) {
        if !line.is_empty() {
            self.text.push_str(&"  ".repeat(depth));
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.next_line += 1;
    }
}

/// Returns the YAML of a value after `key: ` in a block.
fn block_value(value: &Value) -> String {
    match value {
        Value::String(text) => block_text(text),
        other => flow_value(other),
    }
}

/// Returns the YAML of a value in flow style: `{a: b, c: [d]}`.
fn flow_value(value: &Value) -> String {
    match value {
        Value::String(text) => flow_text(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow_value).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, value)| format!("{}: {}", flow_text(key), flow_value(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Returns a text for block style. Sentences, URLs and paths with placeholders stay unquoted: `GET
/// /tickets/{number}?state={state}`.
fn block_text(text: &str) -> String {
    let indicator = |c: char| is_unprintable(c) || "#\"'*!|>%@`\\".contains(c);
    // A brace next to a space is valid YAML, but a person would read it as a map: `query { viewer }`.
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

/// Returns a text for flow style and for keys, where only words of letters, digits and a few signs stay unquoted.
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

/// Returns whether YAML requires an escape for this character.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn quoted(text: &str) -> String {
    // A JSON string is a valid double-quoted YAML string, except for characters that JSON prints and YAML forbids.
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
