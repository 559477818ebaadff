//! Rules for the texts of a catalog: names that a program can write, paths, header names, query names, content types.
//! Invariant: a text that passes these rules can be part of a program or a request without changing the structure of
//! the program or request.

use base::similar_names;

use super::{CatalogResolver, Mistake, TOP};
use crate::codes;
use crate::path::DataPath;
use crate::read::spans::{YamlPath, YamlTarget};

/// The words that have a meaning after a `.` in a program. A method or relation cannot have such a name.
const POSTFIX_WORDS: [&str; 10] =
    ["limit", "page_size", "sort", "filter", "aggregate", "group_by", "distinct", "first", "last", "singleton"];
/// The functions that a program calls like an entity, such as `wait(…)`. An entity cannot have such a name.
const HOST_FUNCTIONS: [&str; 3] = ["page", "wait", "cancel"];

/// The names, in lower case, of headers that the HTTP client or the credential sets.
const RESERVED_HEADERS: [&str; 12] = [
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

/// Returns whether the HTTP client or the credential sets this header. A catalog must not set such a header.
pub fn is_reserved_header(name: &str) -> bool {
    RESERVED_HEADERS.contains(&name.to_ascii_lowercase().as_str())
}

impl CatalogResolver<'_> {
    /// Reports every name of the catalog that is invalid in a program, or that a program could not distinguish from a
    /// word of the language.
    pub(super) fn check_names(&mut self) {
        let raw = self.raw;
        let entities = TOP.key("entities");
        for (name, entity) in &raw.entities {
            let at = entities.key(name);
            self.check_name(&at, name);
            if HOST_FUNCTIONS.contains(&name.as_str()) {
                let message = format!("`{name}` is a word of the language, so it cannot be an entity");
                self.report(Mistake::new(codes::NAME, at.on_key(), message).with_copy(capitalised(name)));
            }
            for field in entity.fields.keys() {
                self.check_name(&at.key("fields").key(field), field);
            }
            for relation in entity.relations.keys() {
                self.check_name(&at.key("relations").key(relation), relation);
                self.check_postfix_name(&at.key("relations").key(relation), relation, "relation");
            }
        }
        let capabilities = TOP.key("capabilities");
        for (name, capability) in &raw.capabilities {
            let at = capabilities.key(name);
            self.check_name(&at, name);
            for param in capability.params.keys() {
                self.check_name(&at.key("params").key(param), param);
            }
            if let Some(text) = &capability.text {
                self.check_name(&at.key("text"), text);
            }
        }
        let types = TOP.key("types");
        for name in raw.types.keys() {
            self.check_name(&types.key(name), name);
        }
    }

    fn check_name(&mut self, at: &YamlPath<'_>, name: &str) {
        if !is_name(name) {
            let shown: String = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(100).collect();
            let message =
                format!("`{shown}` cannot be a name; write letters, digits and `_`, and nothing like a symbol (`e1`)");
            self.report(Mistake::new(codes::NAME, at.on_key(), message));
        }
    }

    /// Reports a name such as `limit`, because a program's `.limit(…)` always means the word of the language.
    pub(super) fn check_postfix_name(&mut self, at: &YamlPath<'_>, name: &str, what: &str) {
        if POSTFIX_WORDS.contains(&name.replace('-', "_").as_str()) {
            let message = format!("`.{name}` is a word of the language, so it cannot be a {what}; choose another name");
            self.report(Mistake::new(codes::NAME, at.on_key(), message));
        }
    }

    /// Reports an invalid header name, or a header that the HTTP client or the credential sets. An invalid name could
    /// end the header line.
    pub(super) fn check_header_name(&mut self, at: &YamlPath<'_>, name: &str) {
        let lower = name.to_ascii_lowercase();
        let fix = match lower.as_str() {
            _ if !is_token(name) => "write letters, digits and `-`",
            "authorization" => "write `auth`",
            "content-type" => "write `content_type`",
            _ if is_reserved_header(&lower) => "the client sets it",
            _ => return,
        };
        let message = format!("`{}` is not a header that a catalog sets; {fix}", name.escape_debug());
        self.report(Mistake::new(codes::MAPPING, at.on_key(), message));
    }

    /// Reports a text that is not the name of a query parameter. Returns whether the name is valid.
    pub(super) fn check_query_name(&mut self, target: YamlTarget, name: &str) -> bool {
        let is_valid = !name.is_empty() && name.chars().all(|c| !c.is_control() && !" &=#?{}".contains(c));
        if !is_valid {
            let message =
                format!("`{}` is not the name of a query parameter; holes go into values", name.escape_debug());
            self.report(Mistake::new(codes::MAPPING, target, message).with_copy("?state={state}"));
        }
        is_valid
    }

    pub(super) fn check_content_type(&mut self, at: &YamlPath<'_>, text: &str) {
        let (kind, _) = text.split_once(';').unwrap_or((text, ""));
        let is_media_type = kind.trim().split_once('/').is_some_and(|(a, b)| is_media_token(a) && is_media_token(b));
        if !is_media_type || !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            let message = format!("`{}` is not a content type", text.escape_debug());
            self.report(Mistake::new(codes::MAPPING, at.on_value(), message).with_copy("content_type: text/plain"));
        }
    }

    /// Parses the path of a value inside an answer, and reports an invalid path.
    pub(super) fn parse_data_path(&mut self, at: &YamlPath<'_>, text: &str) -> DataPath {
        let is_part = |part: &str| {
            let name = part.trim_end_matches("[]");
            !part.is_empty() && !name.contains(['[', ']']) && !name.chars().any(char::is_control)
        };
        if !text.is_empty() && !text.split('.').all(is_part) {
            let message = format!("`{}` is not a path into an answer", text.escape_debug());
            let forms = ["owner.id", "labels[].name", "items.0"].map(str::to_owned);
            self.report(Mistake::new(codes::SHAPE, at.on_value(), message).with_alternatives(forms));
        }
        DataPath::from(text.to_owned())
    }

    /// Reports a name that is no field of the entity. Returns whether the name is a field.
    pub(super) fn check_field(&mut self, at: &YamlPath<'_>, entity: &crate::model::Entity, field: &str) -> bool {
        let exists = entity.fields.contains_key(field);
        if !exists {
            let near = similar_names(field, entity.fields.keys().map(String::as_str));
            let message = format!("`{field}` is not a field of {}", entity.name);
            self.report(Mistake::new(codes::NAME, at.on_value(), message).with_alternatives(near));
        }
        exists
    }
}

fn capitalised(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

/// Returns whether a program can write the text as a name. A text with the form of a symbol, such as `e1`, is not a
/// name.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let starts_well = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let is_symbol =
        text.len() > 1 && text.starts_with(['e', 'm', 'p', 'r', 's']) && chars.clone().all(|c| c.is_ascii_digit());
    starts_well && !is_symbol && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Returns whether the text is a valid name of a secret or a header.
pub(super) fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn is_media_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.+*".contains(&b))
}

/// Returns whether an HTTP client sends the literal text of a path unchanged. A client would change a path that it
/// has to encode or resolve.
pub(super) fn is_path(path: &str) -> bool {
    let is_dot_segment =
        |s: &str| matches!(s.to_ascii_lowercase().as_str(), "." | ".." | "%2e" | "%2e%2e" | ".%2e" | "%2e.");
    let has_valid_escapes = path.split('%').skip(1).all(|after| {
        after.len() >= 2 && after.is_char_boundary(2) && after[..2].bytes().all(|b| b.is_ascii_hexdigit())
    });
    path.starts_with('/')
        && !path.contains("//")
        && has_valid_escapes
        && path.bytes().all(|b| (0x21..0x7f).contains(&b) && !b"#?\\\"<>^`|".contains(&b))
        && !path.split('/').any(is_dot_segment)
}
