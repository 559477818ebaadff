//! The parsed path of an operation. A placeholder is the part of a path that a parameter fills, such as `{id}`.
//! The pieces are the text and the placeholders that are sent; the steps are the words and placeholders that show which entity
//! the path belongs to.
//! Invariant: the joined pieces are the original path. The steps omit decoration (`.json`, `()`).

use crate::names;

/// A part of the path as it is sent in a request.
#[derive(Debug, Clone, PartialEq)]
pub enum PathPiece {
    Text(String),
    /// The index of the placeholder in `OperationPath::placeholders`.
    Placeholder(usize),
}

/// A part of the path that helps to find the entity: a word or a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub enum PathStep {
    Word(String),
    /// The index of the placeholder in `OperationPath::placeholders`.
    Placeholder(usize),
}

/// A placeholder of the path, with the path parameter that fills it.
#[derive(Debug, Clone, PartialEq)]
pub struct PathPlaceholder {
    /// The name of the path parameter in the specification.
    pub name: String,
    /// Whether the value may contain slashes and so span several path segments.
    pub takes_segments: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperationPath {
    pieces: Vec<PathPiece>,
    pub steps: Vec<PathStep>,
    pub placeholders: Vec<PathPlaceholder>,
    /// The steps as text in lower case, with `{}` for each placeholder. Two paths with equal keys address the same rows.
    pub keys: Vec<String>,
}

impl OperationPath {
    pub fn parse(text: &str) -> Self {
        let mut path = OperationPath::default();
        // Some specifications add a `#` or `?` suffix to tell operations of one URL apart. The suffix is not sent.
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
                PathStep::Placeholder(_) => "{}".to_owned(),
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
        let mut after_placeholder = false;
        while let Some(open) = rest.find('{') {
            let Some(close) = rest[open..].find('}') else { break };
            self.push_literal(&rest[..open], after_placeholder);
            let inside = &rest[open + 1..open + close];
            let name = inside.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
            let name = if name.is_empty() { "value" } else { name };
            // `{+name}` and `{/name*}` are URI templates: the value may hold slashes.
            let takes_segments = inside.starts_with(['+', '/']) || inside.ends_with('*');
            self.pieces.push(PathPiece::Placeholder(self.placeholders.len()));
            self.steps.push(PathStep::Placeholder(self.placeholders.len()));
            self.placeholders.push(PathPlaceholder { name: name.to_owned(), takes_segments });
            rest = &rest[open + close + 1..];
            after_placeholder = true;
        }
        self.push_literal(rest, after_placeholder);
    }

    /// Adds the text between placeholders of one segment as a piece, and its words as steps.
    fn push_literal(&mut self, text: &str, after_placeholder: bool) {
        if text.is_empty() {
            return;
        }
        self.push_text(text);
        let bare = text.trim_end_matches("()");
        let bare = [".json", ".xml", ".php", ".aspx"].iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
        // In `users(id='{id}')`, only `users` is a step. The text `(id='` is decoration.
        let bare = bare.split('(').next().unwrap_or_default();
        if after_placeholder && !text.starts_with([':', '.', '_']) {
            return;
        }
        // `microsoft.graph.assignLicense` is one word after a namespace; `chat.postMessage` is two words.
        let has_namespace = bare.starts_with("microsoft.");
        let parts: Vec<&str> = bare.split(['.', ':', '!', '@']).filter(|part| !part.is_empty()).collect();
        let parts = if has_namespace { &parts[parts.len().saturating_sub(1)..] } else { &parts[..] };
        // A version such as `v1.1` is one step although it contains a dot.
        let is_version = bare.starts_with(|c: char| c.is_ascii_digit() || c == 'v');
        if is_version && bare.len() < 6 {
            self.steps.push(PathStep::Word(bare.to_owned()));
            return;
        }
        for part in parts.iter().filter(|part| part.chars().any(|c| c.is_ascii_alphanumeric())) {
            self.steps.push(PathStep::Word((*part).to_owned()));
        }
    }

    /// Returns the path as a catalog writes it, with these names in the placeholders.
    pub fn template(&self, placeholders: &[String]) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                PathPiece::Text(text) => out.push_str(&percent_encoded(text)),
                PathPiece::Placeholder(at) => {
                    let name = placeholders.get(*at).map(String::as_str).unwrap_or("value");
                    let plus = if self.placeholders.get(*at).is_some_and(|placeholder| placeholder.takes_segments) {
                        "+"
                    } else {
                        ""
                    };
                    out.push_str(&format!("{{{plus}{name}}}"));
                }
            }
        }
        out
    }

    pub fn ends_in_placeholder(&self) -> bool {
        matches!(self.steps.last(), Some(PathStep::Placeholder(_)))
    }

    /// Returns the words of the path in order, without the placeholders.
    pub fn words(&self) -> impl DoubleEndedIterator<Item = &str> {
        words_of(&self.steps)
    }

    /// Returns the last word of the path, or an empty text if the path has no words.
    pub fn last_word(&self) -> &str {
        self.words().next_back().unwrap_or_default()
    }

    /// Returns the last word before a placeholder: `tickets` in `/tickets/{id}`. The word often names the entity that the
    /// placeholder identifies. It is empty if there is no word.
    pub fn word_before(&self, placeholder: usize) -> &str {
        let at = self.steps.iter().position(|step| *step == PathStep::Placeholder(placeholder)).unwrap_or(0);
        words_of(&self.steps[..at]).next_back().unwrap_or_default()
    }
}

fn words_of(steps: &[PathStep]) -> impl DoubleEndedIterator<Item = &str> {
    steps.iter().filter_map(|step| match step {
        PathStep::Word(word) => Some(word.as_str()),
        PathStep::Placeholder(_) => None,
    })
}

/// Percent-encodes the characters that must not appear in the path of a URL.
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

/// Returns whether a path word is a version (`v1`) or a general root (`api`). Such words do not name an entity.
pub fn is_root_word(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let version = lower.strip_prefix('v').unwrap_or(&lower);
    let is_number = version.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b'.' || b == b'_');
    let is_preview =
        version.starts_with(|c: char| c.is_ascii_digit()) && (version.contains("beta") || version.contains("alpha"));
    is_number || is_preview || matches!(lower.as_str(), "api" | "apis" | "rest" | "services" | "public")
}

/// Returns the words of a placeholder's name. All words except the last are in the singular: `projectsId` has `project`, `id`.
pub fn placeholder_words(name: &str) -> Vec<String> {
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
