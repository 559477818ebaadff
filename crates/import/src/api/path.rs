//! A path taken apart: the text and holes that are sent, and the steps that say what it leads to.
//! Invariant: the pieces, with their holes, are the path again; steps leave out what only decorates it (`.json`, `()`).

use crate::names;

#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Text(String),
    Hole(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Word(String),
    Hole(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hole {
    /// As the specification writes it.
    pub name: String,
    /// Takes several segments.
    pub several: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    pub pieces: Vec<Piece>,
    pub steps: Vec<Step>,
    pub holes: Vec<Hole>,
    /// The steps as text, `{}` for a hole, for comparing.
    pub keys: Vec<String>,
}

impl Path {
    pub fn parse(text: &str) -> Self {
        let mut path = Path::default();
        // What follows a `#` tells operations of one address apart, and is not sent; so is what follows a `?`.
        let sent = text.split(['#', '?']).next().unwrap_or_default();
        for segment in sent.split('/').filter(|segment| !segment.is_empty()) {
            path.text("/");
            path.segment(segment);
        }
        if path.pieces.is_empty() || (sent.len() > 1 && sent.ends_with('/')) {
            path.text("/");
        }
        path.keys = path
            .steps
            .iter()
            .map(|step| match step {
                Step::Word(word) => word.to_ascii_lowercase(),
                Step::Hole(_) => "{}".to_owned(),
            })
            .collect();
        path
    }

    fn text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    fn segment(&mut self, segment: &str) {
        let mut rest = segment;
        let mut after_hole = false;
        while let Some(open) = rest.find('{') {
            let Some(close) = rest[open..].find('}') else { break };
            self.literal(&rest[..open], after_hole);
            let inside = &rest[open + 1..open + close];
            let name = inside.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
            let name = if name.is_empty() { "value" } else { name };
            let several = inside.starts_with(['+', '/']) || inside.ends_with('*');
            self.pieces.push(Piece::Hole(self.holes.len()));
            self.steps.push(Step::Hole(self.holes.len()));
            self.holes.push(Hole { name: name.to_owned(), several });
            rest = &rest[open + close + 1..];
            after_hole = true;
        }
        self.literal(rest, after_hole);
    }

    fn literal(&mut self, text: &str, after_hole: bool) {
        if text.is_empty() {
            return;
        }
        self.text(text);
        let bare = text.trim_end_matches("()");
        let bare = [".json", ".xml", ".php", ".aspx"].iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
        // `users(id='{id}')`: what decorates a hole is no step, what comes before it is.
        let bare = bare.split('(').next().unwrap_or_default();
        if after_hole && !text.starts_with([':', '.', '_']) {
            return;
        }
        // `microsoft.graph.assignLicense` is one word with its family's name before it; `chat.postMessage` is two.
        let family = bare.starts_with("microsoft.");
        let parts: Vec<&str> = bare.split(['.', ':', '!', '@']).filter(|part| !part.is_empty()).collect();
        let parts = if family { &parts[parts.len().saturating_sub(1)..] } else { &parts[..] };
        let version = bare.starts_with(|c: char| c.is_ascii_digit() || c == 'v');
        if version && bare.len() < 6 {
            self.steps.push(Step::Word(bare.to_owned()));
            return;
        }
        for part in parts.iter().filter(|part| part.chars().any(|c| c.is_ascii_alphanumeric())) {
            self.steps.push(Step::Word((*part).to_owned()));
        }
    }

    /// The path as a template, with these names in its holes.
    pub fn template(&self, holes: &[String]) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(&clean(text)),
                Piece::Hole(at) => {
                    let name = holes.get(*at).map(String::as_str).unwrap_or("value");
                    let plus = if self.holes.get(*at).is_some_and(|hole| hole.several) { "+" } else { "" };
                    out.push_str(&format!("{{{plus}{name}}}"));
                }
            }
        }
        out
    }

    pub fn ends_in_hole(&self) -> bool {
        matches!(self.steps.last(), Some(Step::Hole(_)))
    }

    /// The last word, wherever it stands.
    pub fn last_word(&self) -> &str {
        let word = |step: &Step| matches!(step, Step::Word(_));
        match self.steps.iter().rev().find(|step| word(step)) {
            Some(Step::Word(word)) => word,
            _ => "",
        }
    }

    /// The word right before a hole, for its name.
    pub fn word_before(&self, hole: usize) -> &str {
        let at = self.steps.iter().position(|step| *step == Step::Hole(hole)).unwrap_or(0);
        let before = self.steps[..at].iter().rev().find_map(|step| match step {
            Step::Word(word) => Some(word.as_str()),
            Step::Hole(_) => None,
        });
        before.unwrap_or_default()
    }
}

/// Only what may stand in a path; a client would have to encode the rest.
fn clean(text: &str) -> String {
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

/// Versions and roots, which name nothing.
pub fn is_root_word(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let version = lower.strip_prefix('v').unwrap_or(&lower);
    let dated = version.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b'.' || b == b'_');
    let beta =
        version.starts_with(|c: char| c.is_ascii_digit()) && (version.contains("beta") || version.contains("alpha"));
    dated || beta || matches!(lower.as_str(), "api" | "apis" | "rest" | "services" | "public")
}

/// A hole's own words, with each but the last in the singular: `projectsId` as `project`, `id`.
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
        Path::parse(text).keys.join(" ")
    }

    #[test]
    fn steps_are_what_a_path_leads_to() {
        assert_eq!(keys("/repos/{owner}/{repo}/issues"), "repos {} {} issues");
        assert_eq!(keys("/2010-04-01/Accounts/{Sid}.json"), "2010-04-01 accounts {}");
        assert_eq!(keys("/chat.postMessage"), "chat postmessage");
        assert_eq!(keys("/v1/{name}:cancel"), "v1 {} cancel");
        assert_eq!(keys("/users/{user-id}/microsoft.graph.range(address='{address}')"), "users {} range {}");
        assert_eq!(keys("/#X-Amz-Target=A.B"), "");
        assert_eq!(keys("/a{"), "a{");
    }

    #[test]
    fn a_template_is_the_path_again() {
        let path = Path::parse("/a/{x}/b.json");
        assert_eq!(path.template(&["y".to_owned()]), "/a/{y}/b.json");
        assert_eq!(Path::parse("/v1/{+name}").template(&["name".to_owned()]), "/v1/{+name}");
        assert_eq!(Path::parse("").template(&[]), "/");
        assert_eq!(Path::parse("/a b|c").template(&[]), "/a%20b%7C\u{63}");
    }
}
