//! What texts may hold: names that a program can write, paths, header names, query names, content types.
//! Invariant: what passes here can stand where it is put without becoming something else.

use base::similar_names;

use super::{Cx, Mistake, TOP};
use crate::codes;
use crate::path::DataPath;
use crate::read::places::{At, Spot};

/// What follows a `.` and means something to the language itself.
const POSTFIXES: [&str; 10] =
    ["limit", "page_size", "sort", "filter", "aggregate", "group_by", "distinct", "first", "last", "singleton"];
/// What stands where an entity could and means something to the host.
const HOST: [&str; 3] = ["page", "wait", "cancel"];
/// Whether the client or the credential sets a header, so that no catalog may.
pub fn is_reserved_header(name: &str) -> bool {
    RESERVED.contains(&name.to_ascii_lowercase().as_str())
}

const RESERVED: [&str; 12] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "accept-encoding",
    "authorization",
    "proxy-authorization",
    "content-type",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

impl Cx<'_> {
    /// What a program could not write, or would take for something else, is no name.
    pub(super) fn names(&mut self) {
        let raw = self.raw;
        let entities = TOP.key("entities");
        for (name, entity) in &raw.entities {
            let at = entities.key(name);
            self.name(&at, name);
            if HOST.contains(&name.as_str()) {
                let message = format!("`{name}` is a word of the language, so it cannot be an entity");
                self.report(Mistake::new(codes::NAME, at.here(), message).write(capital(name)));
            }
            for field in entity.fields.keys() {
                self.name(&at.key("fields").key(field), field);
            }
            for relation in entity.relations.keys() {
                self.name(&at.key("relations").key(relation), relation);
                self.postfix(&at.key("relations").key(relation), relation, "relation");
            }
        }
        let capabilities = TOP.key("capabilities");
        for (name, capability) in &raw.capabilities {
            let at = capabilities.key(name);
            self.name(&at, name);
            for param in capability.params.keys() {
                self.name(&at.key("params").key(param), param);
            }
            if let Some(text) = &capability.text {
                self.name(&at.key("text"), text);
            }
        }
        let types = TOP.key("types");
        for name in raw.types.keys() {
            self.name(&types.key(name), name);
        }
    }

    fn name(&mut self, at: &At<'_>, name: &str) {
        if !is_name(name) {
            let shown: String = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(100).collect();
            let message =
                format!("`{shown}` cannot be a name; write letters, digits and `_`, and nothing like a symbol (`e1`)");
            self.report(Mistake::new(codes::NAME, at.here(), message));
        }
    }

    /// `.limit(…)` would never reach a method or a relation of that name.
    pub(super) fn postfix(&mut self, at: &At<'_>, name: &str, what: &str) {
        if POSTFIXES.contains(&name.replace('-', "_").as_str()) {
            let message = format!("`.{name}` is a word of the language, so it cannot be a {what}; choose another name");
            self.report(Mistake::new(codes::NAME, at.here(), message));
        }
    }

    /// What could end a header, or is for the client to say, is no header of a catalog's.
    pub(super) fn header_name(&mut self, at: &At<'_>, name: &str) {
        let lower = name.to_ascii_lowercase();
        let fix = match lower.as_str() {
            _ if !is_token(name) => "write letters, digits and `-`",
            "authorization" => "write `auth`",
            "content-type" => "write `content_type`",
            _ if is_reserved_header(&lower) => "the client sets it",
            _ => return,
        };
        let message = format!("`{}` is not a header that a catalog sets; {fix}", name.escape_debug());
        self.report(Mistake::new(codes::MAPPING, at.here(), message));
    }

    pub(super) fn query_name(&mut self, spot: Spot, name: &str) -> bool {
        let fine = !name.is_empty() && name.chars().all(|c| !c.is_control() && !" &=#?{}".contains(c));
        if !fine {
            let message =
                format!("`{}` is not the name of a query parameter; holes go into values", name.escape_debug());
            self.report(Mistake::new(codes::MAPPING, spot, message).write("?state={state}"));
        }
        fine
    }

    pub(super) fn content_type(&mut self, at: &At<'_>, text: &str) {
        let (kind, _) = text.split_once(';').unwrap_or((text, ""));
        let halves = kind.trim().split_once('/').is_some_and(|(a, b)| is_media(a) && is_media(b));
        if !halves || !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            let message = format!("`{}` is not a content type", text.escape_debug());
            self.report(Mistake::new(codes::MAPPING, at.value(), message).write("content_type: text/plain"));
        }
    }

    pub(super) fn data_path(&mut self, at: &At<'_>, text: &str) -> DataPath {
        let part = |part: &str| {
            let name = part.trim_end_matches("[]");
            !part.is_empty() && !name.contains(['[', ']']) && !name.chars().any(char::is_control)
        };
        if !text.is_empty() && !text.split('.').all(part) {
            let message = format!("`{}` is not a path into an answer", text.escape_debug());
            let forms = ["owner.id", "labels[].name", "items.0"].map(str::to_owned);
            self.report(Mistake::new(codes::SHAPE, at.value(), message).any_of(forms));
        }
        DataPath::from(text.to_owned())
    }

    pub(super) fn field_of(&mut self, at: &At<'_>, entity: &crate::model::Entity, field: &str) -> bool {
        let known = entity.fields.contains_key(field);
        if !known {
            let near = similar_names(field, entity.fields.keys().map(String::as_str));
            let message = format!("`{field}` is not a field of {}", entity.name);
            self.report(Mistake::new(codes::NAME, at.value(), message).any_of(near));
        }
        known
    }
}

fn capital(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let symbol =
        text.len() > 1 && text.starts_with(['e', 'm', 'p', 'r', 's']) && chars.clone().all(|c| c.is_ascii_digit());
    starts && !symbol && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

pub(super) fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn is_media(half: &str) -> bool {
    !half.is_empty() && half.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.+*".contains(&b))
}

/// Whether a path, holes aside, is sent as it is written: a client that had to encode or resolve it would send another.
pub(super) fn is_path(path: &str) -> bool {
    let dotted = |s: &str| matches!(s.to_ascii_lowercase().as_str(), "." | ".." | "%2e" | "%2e%2e" | ".%2e" | "%2e.");
    let encoded = path.split('%').skip(1).all(|after| {
        after.len() >= 2 && after.is_char_boundary(2) && after[..2].bytes().all(|b| b.is_ascii_hexdigit())
    });
    path.starts_with('/')
        && !path.contains("//")
        && encoded
        && path.bytes().all(|b| (0x21..0x7f).contains(&b) && !b"#?\\\"<>^`|".contains(&b))
        && !path.split('/').any(dotted)
}
