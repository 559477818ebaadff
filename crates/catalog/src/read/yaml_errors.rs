//! Converts errors of the YAML parser and of serde to diagnostics, for a text that does not have the shape of a
//! catalog.
//! Invariant: a diagnostic points at the key or value with the mistake, and uses the terms of the catalog format
//! instead of serde's terms.

use base::{Diagnostic, Span, closest_name, similar_names};
use serde_path_to_error::Segment;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use super::raw;
use super::spans::{SpanTree, YamlPathBuf, YamlTarget};
use crate::codes;

/// Returns the diagnostic for an error that occurred while `text` was read.
pub fn diagnose(text: &str, error: &Error) -> Diagnostic {
    let error = error.without_snippet();
    let mut path = find_error_path(text);
    // The path of an unknown key ends with this key, but the message is about the map that contains the key.
    if let Error::SerdeUnknownField { field, .. } = error {
        path.pop_key(field);
    }
    let spans = SpanTree::new(text);
    let error_span = find_error_span(text, error);
    let or_error_span = |span: Span| if span == Span::default() { error_span } else { span };
    let key_span = || or_error_span(spans.span(text, &YamlTarget::Key(path.clone())));
    let value_span = || or_error_span(spans.span(text, &YamlTarget::Value(path.clone())));
    let inner_key_span = |name: &str| {
        let mut steps = path.steps().to_vec();
        steps.push(name.to_owned());
        or_error_span(spans.span(text, &YamlTarget::Key(YamlPathBuf::new(steps))))
    };
    let subject = describe_path(&path);
    match error {
        Error::AliasError { error, .. } => diagnose_in_alias(text, error, error_span),
        Error::SerdeUnknownField { field, expected, .. } => {
            shape_mistake(inner_key_span(field), format!("{subject} has no key `{}`", shortened(field)))
                .with_alternatives(suggest_words(field, expected))
        }
        Error::SerdeMissingField { field, .. } => {
            shape_mistake(key_span(), format!("{subject} lacks the key `{field}`")).with_copy(example_line(field))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            shape_mistake(value_span(), format!("{subject} cannot be `{}`", shortened(variant)))
                .with_alternatives(suggest_words(variant, expected))
        }
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            let expected = translate_serde_term(expected);
            let message =
                format!("{subject} must be {expected}, found {}", translate_serde_term(&shortened(unexpected)));
            shape_mistake(value_span(), message)
        }
        Error::Message { msg, .. } => shape_mistake(value_span(), format!("{subject}: {}", shortened(msg))),
        Error::InvalidScalar { ty, .. } => {
            shape_mistake(value_span(), format!("{subject} must be {}", translate_serde_term(ty)))
        }
        Error::Unexpected { expected, .. } => {
            shape_mistake(value_span(), format!("{subject} must be {}", translate_serde_term(expected)))
        }
        Error::InvalidBooleanStrict { .. } => {
            shape_mistake(value_span(), format!("{subject} must be `true` or `false`"))
        }
        Error::NullIntoString { .. } => shape_mistake(value_span(), format!("{subject} must be text, found nothing")),
        other => diagnose_text(other, error_span),
    }
}

fn shape_mistake(span: Span, message: String) -> Diagnostic {
    Diagnostic::error(codes::SHAPE, span, message)
}

/// Returns the diagnostic for a mistake in the YAML syntax, or in the text as a whole.
fn diagnose_text(error: &Error, error_span: Span) -> Diagnostic {
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let shown = key.as_deref().map(shortened).unwrap_or_default();
            shape_mistake(error_span, format!("the key `{shown}` is there twice; take one out"))
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            let most = super::MAX_YAML_DEPTH;
            let message =
                format!("this is nested deeper than {most}; give what is inside a name of its own in `types`");
            shape_mistake(error_span, message)
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            let message =
                format!("this is more than a catalog may hold ({}); make it smaller", without_position(error));
            shape_mistake(error_span, message)
        }
        Error::Eof { .. } => shape_mistake(Span::default(), "there is nothing in this file".to_owned())
            .with_copy(example_line("catalog")),
        _ => shape_mistake(error_span, without_position(error)),
    }
}

/// Returns the diagnostic for a mistake in a value that a YAML alias inserts. The diagnostic points at the mistake in
/// the value, or at the alias if the value has no span.
fn diagnose_in_alias(text: &str, error: &Error, alias_span: Span) -> Diagnostic {
    let inner = diagnose(text, error);
    Diagnostic { span: if inner.span == Span::default() { alias_span } else { inner.span }, ..inner }
}

/// Returns the position of an error. An error of the YAML syntax has only a line and a column, from which the byte
/// offset is computed.
fn find_error_span(text: &str, error: &Error) -> Span {
    let Some(location) = error.location() else { return Span::default() };
    if location.span().byte_offset().is_some() {
        return super::span_of(location);
    }
    let line_start = match location.line() {
        0 | 1 => 0,
        line => text.match_indices('\n').nth(line as usize - 2).map_or(text.len(), |(at, _)| at + 1),
    };
    let line = text[line_start..].lines().next().unwrap_or_default();
    let column = (location.column() as usize).saturating_sub(1);
    let offset = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    Span::new(line_start + offset, line_start + offset)
}

/// Returns the path of the value that caused the error. The text is parsed again with a slower deserializer that
/// tracks the path.
fn find_error_path(text: &str) -> YamlPathBuf {
    let mut steps = Vec::new();
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, super::yaml_options(), |deserializer| {
        serde_path_to_error::deserialize::<_, raw::Catalog>(deserializer).map(drop).map_err(|error| {
            steps = error.path().iter().filter_map(step_of_segment).collect();
            error.into_inner()
        })
    });
    drop(read);
    YamlPathBuf::new(steps)
}

fn step_of_segment(segment: &Segment) -> Option<String> {
    match segment {
        Segment::Map { key } => Some(key.clone()),
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    }
}

/// Describes the value at a path for a message: ``capability `ticket_list` ``, `` `paging.size` of capability
/// `ticket_list` ``, `the catalog`.
fn describe_path(path: &YamlPathBuf) -> String {
    let names = |steps: &[String]| steps.iter().map(|s| shortened(s)).collect::<Vec<_>>().join(".");
    match path.steps() {
        [] => "the catalog".to_owned(),
        [section, name] if section == "capabilities" => format!("capability `{}`", shortened(name)),
        [section, name, rest @ ..] if section == "capabilities" => {
            format!("`{}` of capability `{}`", names(rest), shortened(name))
        }
        [section, name] if section == "entities" => format!("entity `{}`", shortened(name)),
        [section, name, kind, slot, rest @ ..] if section == "entities" && !rest.is_empty() => {
            format!("`{}` of {}", names(rest), describe_member(name, kind, slot))
        }
        [section, name, kind, slot] if section == "entities" => describe_member(name, kind, slot),
        [section, name, rest] if section == "entities" => format!("`{rest}` of entity `{}`", shortened(name)),
        [section, name] if section == "types" => format!("type `{}`", shortened(name)),
        steps => format!("`{}`", names(steps)),
    }
}

fn describe_member(entity: &str, kind: &str, name: &str) -> String {
    let kind = match kind {
        "fields" => "field",
        "relations" => "relation",
        other => other,
    };
    format!("{kind} `{}.{}`", shortened(entity), shortened(name))
}

/// Returns the known word that the author surely meant, or all similar known words if there is no such word.
fn suggest_words(word: &str, known: &[&'static str]) -> Vec<String> {
    match closest_name(word, known.iter().copied()) {
        Some(closest) => vec![closest.to_owned()],
        None => similar_names(word, known.iter().copied()),
    }
}

/// Returns an example line with a missing key and a value, which the author can copy.
fn example_line(field: &str) -> String {
    let value = match field {
        "catalog" => "tracker",
        "version" => "1",
        "title" => "Ticket tracker",
        "origin" => "https://api.example.com",
        "about" => "one line that says what a row is",
        "key" => "[id]",
        "fields" => "{id: string}",
        "entities" => "{Ticket: {…}}",
        "capabilities" => "{ticket_list: {query: Ticket, http: GET /tickets}}",
        "max" => "100",
        "per_second" => "5",
        _ => "…",
    };
    format!("{field}: {value}")
}

/// Translates serde's name of a shape, such as `sequence`, to a term of the catalog format, such as `a list`.
fn translate_serde_term(words: &str) -> String {
    match words {
        "unit" | "unit value" | "null" => "nothing".to_owned(),
        "map" | "a map" => "a map".to_owned(),
        "sequence" | "a sequence" | "sequence start" => "a list".to_owned(),
        "mapping start" => "a map of keys".to_owned(),
        "string scalar" | "string" | "a string" => "text".to_owned(),
        "u32" | "u64" | "usize" => "a whole number from 0".to_owned(),
        "f64" => "a number".to_owned(),
        _ if words.starts_with("struct ") => "a map of keys".to_owned(),
        _ if words.starts_with("enum ") => "one of its forms".to_owned(),
        _ => words.to_owned(),
    }
}

/// Returns the text of a parser's error without the position, because the diagnostic shows the position.
fn without_position(error: &Error) -> String {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    let end = text.find(" at line ").or_else(|| text.find(" (line ")).unwrap_or(text.len());
    shortened(text[..end].trim_end_matches([':', ',', ' ']))
}

/// Returns a text of the author in a form for messages: one line, shortened, without control characters.
fn shortened(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if line.chars().count() <= 200 { line } else { line.chars().take(199).chain(['…']).collect() }
}
