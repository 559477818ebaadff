//! A text that has not the shape of a catalog: what is wrong, where, and what to write.
//! Invariant: the place is that of the key or value at fault; the words are for the author of a catalog, not of this reader.

use base::{Diagnostic, Span, closest_name, similar_names};
use serde_path_to_error::Segment;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use super::places::{Places, Spot, Way};
use super::raw;
use crate::codes;

pub fn diagnose(text: &str, error: &Error) -> Diagnostic {
    let error = error.without_snippet();
    let mut way = way(text);
    if let Error::SerdeUnknownField { field, .. } = error {
        way.leave(field);
    }
    let places = Places::of(text);
    let inside = place_of_error(text, error);
    let key = |name: &str| {
        let mut steps = way.steps().to_vec();
        steps.push(name.to_owned());
        places.place(text, &Spot::Key(Way::new(steps)))
    };
    let value = || places.place(text, &Spot::Value(way.clone()));
    let of = whose(&way);
    let at = |place: Span, message: String| Diagnostic::error(codes::SHAPE, place, message);
    let fallback = |place: Span| if place == Span::default() { inside } else { place };
    match error {
        Error::AliasError { error, .. } => diagnose_inner(text, error, inside),
        Error::SerdeUnknownField { field, expected, .. } => {
            at(fallback(key(field)), format!("{of} has no key `{}`", clipped(field)))
                .with_alternatives(meant(field, expected))
        }
        Error::SerdeMissingField { field, .. } => {
            at(fallback(places.place(text, &Spot::Key(way.clone()))), format!("{of} lacks the key `{field}`"))
                .with_copy(example(field))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            at(fallback(value()), format!("{of} cannot be `{}`", clipped(variant)))
                .with_alternatives(meant(variant, expected))
        }
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            let message = format!("{of} must be {}, found {}", plain(expected), plain(&clipped(unexpected)));
            at(fallback(value()), message)
        }
        Error::Message { msg, .. } => at(fallback(value()), format!("{of}: {}", clipped(msg))),
        Error::InvalidScalar { ty, .. } => at(fallback(value()), format!("{of} must be {}", plain(ty))),
        Error::Unexpected { expected, .. } => at(fallback(value()), format!("{of} must be {}", plain(expected))),
        Error::InvalidBooleanStrict { .. } => at(fallback(value()), format!("{of} must be `true` or `false`")),
        Error::NullIntoString { .. } => at(fallback(value()), format!("{of} must be text, found nothing")),
        other => of_the_text(other, inside),
    }
}

/// What is wrong with the text as a whole, or with the YAML in it.
fn of_the_text(error: &Error, inside: Span) -> Diagnostic {
    let at = |place: Span, message: String| Diagnostic::error(codes::SHAPE, place, message);
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let shown = key.as_deref().map(clipped).unwrap_or_default();
            at(inside, format!("the key `{shown}` is there twice; take one out"))
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            let most = super::MAX_DEPTH;
            at(inside, format!("this is nested deeper than {most}; give what is inside a name of its own in `types`"))
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            at(inside, format!("this is more than a catalog may hold ({}); make it smaller", bare(error)))
        }
        Error::Eof { .. } => {
            at(Span::default(), "there is nothing in this file".to_owned()).with_copy(example("catalog"))
        }
        _ => at(inside, bare(error)),
    }
}

/// What an alias led to.
fn diagnose_inner(text: &str, error: &Error, place: Span) -> Diagnostic {
    let inner = diagnose(text, error);
    Diagnostic { span: if inner.span == Span::default() { place } else { inner.span }, ..inner }
}

/// A mistake in the YAML itself has a line and a column only.
fn place_of_error(text: &str, error: &Error) -> Span {
    let Some(location) = error.location() else { return Span::default() };
    if location.span().byte_offset().is_some() {
        return super::place_of(location);
    }
    let line_at = |line: u64| match line {
        0 | 1 => 0,
        line => text.match_indices('\n').nth(line as usize - 2).map_or(text.len(), |(at, _)| at + 1),
    };
    let start = line_at(location.line());
    let line = text[start..].lines().next().unwrap_or_default();
    let column = (location.column() as usize).saturating_sub(1);
    let inside = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    Span::new(start + inside, start + inside)
}

/// The way to the value that does not fit: the text is read once more, by a reader that keeps count.
fn way(text: &str) -> Way {
    let mut steps = Vec::new();
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, super::options(), |deserializer| {
        serde_path_to_error::deserialize::<_, raw::Catalog>(deserializer).map(drop).map_err(|error| {
            steps = error.path().iter().filter_map(step).collect();
            error.into_inner()
        })
    });
    drop(read);
    Way::new(steps)
}

fn step(segment: &Segment) -> Option<String> {
    match segment {
        Segment::Map { key } => Some(key.clone()),
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    }
}

/// ``capability `ticket_list` ``, `` `paging.size` of capability `ticket_list` ``, `the catalog`.
fn whose(way: &Way) -> String {
    let names = |steps: &[String]| steps.iter().map(|s| clipped(s)).collect::<Vec<_>>().join(".");
    match way.steps() {
        [] => "the catalog".to_owned(),
        [section, name] if section == "capabilities" => format!("capability `{}`", clipped(name)),
        [section, name, rest @ ..] if section == "capabilities" => {
            format!("`{}` of capability `{}`", names(rest), clipped(name))
        }
        [section, name] if section == "entities" => format!("entity `{}`", clipped(name)),
        [section, name, kind, slot, rest @ ..] if section == "entities" && !rest.is_empty() => {
            format!("`{}` of {}", names(rest), member(name, kind, slot))
        }
        [section, name, kind, slot] if section == "entities" => member(name, kind, slot),
        [section, name, rest] if section == "entities" => format!("`{rest}` of entity `{}`", clipped(name)),
        [section, name] if section == "types" => format!("type `{}`", clipped(name)),
        steps => format!("`{}`", names(steps)),
    }
}

fn member(entity: &str, kind: &str, name: &str) -> String {
    let kind = match kind {
        "fields" => "field",
        "relations" => "relation",
        other => other,
    };
    format!("{kind} `{}.{}`", clipped(entity), clipped(name))
}

/// The one that was surely meant, or those that are near.
fn meant(word: &str, known: &[&'static str]) -> Vec<String> {
    match closest_name(word, known.iter().copied()) {
        Some(sure) => vec![sure.to_owned()],
        None => similar_names(word, known.iter().copied()),
    }
}

/// A line to copy where a key is lacking.
fn example(field: &str) -> String {
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

/// Serde's words for shapes, as an author knows them.
fn plain(words: &str) -> String {
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

/// The error without its place, which stands before it.
fn bare(error: &Error) -> String {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    let end = text.find(" at line ").or_else(|| text.find(" (line ")).unwrap_or(text.len());
    clipped(text[..end].trim_end_matches([':', ',', ' ']))
}

fn clipped(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if line.chars().count() <= 200 { line } else { line.chars().take(199).chain(['…']).collect() }
}
