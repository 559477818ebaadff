//! A path in parts: the text and holes that are sent, and the steps that tell which entity it leads to.
//! Invariant: the pieces joined are the path again. The steps leave out decoration (`.json`, `()`).

use crate::names;

/// A part of the path as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum PathPiece {
    Text(String),
    /// The index of a hole.
    Hole(usize),
}

/// A part of the path that tells what it leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum PathStep {
    Word(String),
    /// The index of a hole.
    Hole(usize),
}

/// A parameter of the path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathHole {
    /// The name in the specification.
    pub name: String,
    /// Whether the value may be several segments.
    pub takes_segments: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperationPath {
    pieces: Vec<PathPiece>,
    pub steps: Vec<PathStep>,
    pub holes: Vec<PathHole>,
    /// The steps as text in lower case, with `{}` for a hole. Paths are compared by them.
    pub keys: Vec<String>,
}

impl OperationPath {
    pub fn parse(text: &str) -> Self {
        let mut path = OperationPath::default();
        // Some specifications distinguish operations of one address by a `#` or a `?` in the path. That part is not sent.
        let sent = text.split(['#', '?']).next().unwrap_or_default();
        for segment in sent.split('/').filter(|segment| !segment.is_empty()) {
            path.push_text("/");
            path.push_segment(segment);
        }
        if path.pieces.is_empty() || (sent.len() > 1 && sent.ends_with('/')) {
            path.push_text("/");
        }
        path.keys = path
            .steps
            .iter()
            .map(|step| match step {
                PathStep::Word(word) => word.to_ascii_lowercase(),
                PathStep::Hole(_) => "{}".to_owned(),
            })
            .collect();
        path
    }

    fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(PathPiece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(PathPiece::Text(text.to_owned())),
        }
    }

    fn push_segment(&mut self, segment: &str) {
        let mut rest = segment;
        let mut after_hole = false;
        while let Some(open) = rest.find('{') {
            let Some(close) = rest[open..].find('}') else { break };
            self.push_literal(&rest[..open], after_hole);
            let inside = &rest[open + 1..open + close];
            let name = inside.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
            let name = if name.is_empty() { "value" } else { name };
            // `{+name}` and `{/name*}` are URI templates: the value may hold slashes.
            let takes_segments = inside.starts_with(['+', '/']) || inside.ends_with('*');
            self.pieces.push(PathPiece::Hole(self.holes.len()));
            self.steps.push(PathStep::Hole(self.holes.len()));
            self.holes.push(PathHole { name: name.to_owned(), takes_segments });
            rest = &rest[open + close + 1..];
            after_hole = true;
        }
        self.push_literal(rest, after_hole);
    }

    /// Adds text between holes of one segment, and the words in it as steps.
    fn push_literal(&mut self, text: &str, after_hole: bool) {
        if text.is_empty() {
            return;
        }
        self.push_text(text);
        let bare = text.trim_end_matches("()");
        let bare = [".json", ".xml", ".php", ".aspx"].iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
        // In `users(id='{id}')`, `users` is a step, and the decoration around the hole is none.
        let bare = bare.split('(').next().unwrap_or_default();
        if after_hole && !text.starts_with([':', '.', '_']) {
            return;
        }
        // `microsoft.graph.assignLicense` is one word with a namespace before it; `chat.postMessage` is two.
        let has_namespace = bare.starts_with("microsoft.");
        let parts: Vec<&str> = bare.split(['.', ':', '!', '@']).filter(|part| !part.is_empty()).collect();
        let parts = if has_namespace { &parts[parts.len().saturating_sub(1)..] } else { &parts[..] };
        // `v1.1` is one step, although it has a dot.
        let is_version = bare.starts_with(|c: char| c.is_ascii_digit() || c == 'v');
        if is_version && bare.len() < 6 {
            self.steps.push(PathStep::Word(bare.to_owned()));
            return;
        }
        for part in parts.iter().filter(|part| part.chars().any(|c| c.is_ascii_alphanumeric())) {
            self.steps.push(PathStep::Word((*part).to_owned()));
        }
    }

    /// Returns the path as a template of a catalog, with these names in its holes.
    pub fn template(&self, holes: &[String]) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                PathPiece::Text(text) => out.push_str(&percent_encoded(text)),
                PathPiece::Hole(at) => {
                    let name = holes.get(*at).map(String::as_str).unwrap_or("value");
                    let plus = if self.holes.get(*at).is_some_and(|hole| hole.takes_segments) { "+" } else { "" };
                    out.push_str(&format!("{{{plus}{name}}}"));
                }
            }
        }
        out
    }

    pub fn ends_in_hole(&self) -> bool {
        matches!(self.steps.last(), Some(PathStep::Hole(_)))
    }

    /// Returns the words of the path without its holes, in their order.
    pub fn words(&self) -> impl DoubleEndedIterator<Item = &str> {
        words_of(&self.steps)
    }

    /// Returns the last word of the path; empty where it has none.
    pub fn last_word(&self) -> &str {
        self.words().next_back().unwrap_or_default()
    }

    /// Returns the last word before a hole, which often says what the hole identifies; empty where there is none.
    pub fn word_before(&self, hole: usize) -> &str {
        let at = self.steps.iter().position(|step| *step == PathStep::Hole(hole)).unwrap_or(0);
        words_of(&self.steps[..at]).next_back().unwrap_or_default()
    }
}

fn words_of(steps: &[PathStep]) -> impl DoubleEndedIterator<Item = &str> {
    steps.iter().filter_map(|step| match step {
        PathStep::Word(word) => Some(word.as_str()),
        PathStep::Hole(_) => None,
    })
}

/// Encodes every character that a client would have to encode in a path.
fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_graphic() && !"#?\\\"<>^`|{}%".contains(c) => out.push(c),
            '%' => out.push_str("%25"),
            c => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    out.push_str(&format!("%{byte:02X}"));
                }
            }
        }
    }
    out
}

/// Returns whether a word of a path is a version or a root, which name nothing.
pub fn is_root_word(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let version = lower.strip_prefix('v').unwrap_or(&lower);
    let is_number = version.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b'.' || b == b'_');
    let is_preview =
        version.starts_with(|c: char| c.is_ascii_digit()) && (version.contains("beta") || version.contains("alpha"));
    is_number || is_preview || matches!(lower.as_str(), "api" | "apis" | "rest" | "services" | "public")
}

/// Returns the words of a hole's name, with each but the last in the singular: `projectsId` has `project`, `id`.
pub fn hole_words(name: &str) -> Vec<String> {
    let mut words = names::words(name);
    let last = words.len().saturating_sub(1);
    for word in &mut words[..last] {
        *word = names::singular(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> String {
        OperationPath::parse(text).keys.join(" ")
    }

    #[test]
    fn steps_leave_out_decoration() {
        assert_eq!(keys("/repos/{owner}/{repo}/issues"), "repos {} {} issues");
        assert_eq!(keys("/2010-04-01/Accounts/{Sid}.json"), "2010-04-01 accounts {}");
        assert_eq!(keys("/chat.postMessage"), "chat postmessage");
        assert_eq!(keys("/v1/{name}:cancel"), "v1 {} cancel");
        assert_eq!(keys("/users/{user-id}/microsoft.graph.range(address='{address}')"), "users {} range {}");
        assert_eq!(keys("/#X-Amz-Target=A.B"), "");
        assert_eq!(keys("/a{"), "a{");
    }

    #[test]
    fn a_template_is_the_path_with_other_names() {
        let path = OperationPath::parse("/a/{x}/b.json");
        assert_eq!(path.template(&["y".to_owned()]), "/a/{y}/b.json");
        assert_eq!(OperationPath::parse("/v1/{+name}").template(&["name".to_owned()]), "/v1/{+name}");
        assert_eq!(OperationPath::parse("").template(&[]), "/");
        assert_eq!(OperationPath::parse("/a b|c").template(&[]), "/a%20b%7C\u{63}");
    }
}
