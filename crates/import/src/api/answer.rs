//! The layout of an answer: many rows or one, and the path to them through envelopes and wrappers of pages.
//! Invariant: at most two envelopes are opened. An object that is not clearly an envelope is the row itself.

use std::rc::Rc;

use serde_json::Value;

use crate::names;
use crate::spec::{DeclaredAnswer, Object, SchemaReader};

/// The rows of an answer. `path` leads to them and is empty where the answer itself is meant.
#[derive(Debug, Clone)]
pub enum AnswerShape<'a> {
    /// An array of objects.
    Rows { path: String, item: &'a Value },
    /// An array of values that are no objects.
    Values { path: String, item: &'a Value },
    /// An object whose values are the rows.
    Entries { path: String, item: &'a Value },
    /// One object.
    One { path: String, schema: &'a Value },
    /// One value that is no object.
    Scalar,
    /// The specification does not say what the answer holds.
    Undeclared,
    /// No catalog can read the answer; the reason for the report.
    Unreadable(String),
}

#[derive(Debug, Clone)]
pub struct AnswerLayout<'a> {
    pub shape: AnswerShape<'a>,
    /// The whole answer, where it is an object. It holds what leads to the next page.
    pub envelope: Option<Rc<Object<'a>>>,
}

/// Names of properties that hold the rows of an envelope.
const HOLDERS: [&str; 26] = [
    "data",
    "items",
    "results",
    "result",
    "value",
    "values",
    "rows",
    "records",
    "entries",
    "list",
    "content",
    "contents",
    "elements",
    "objects",
    "hits",
    "documents",
    "resources",
    "collection",
    "members",
    "response",
    "payload",
    "d",
    "embedded",
    "matches",
    "nodes",
    "body",
];

/// Words in the names of properties that say something about the rows, so that an object with only them and one other is an
/// envelope.
const METADATA: [&str; 55] = [
    "total",
    "count",
    "page",
    "pages",
    "next",
    "previous",
    "prev",
    "last",
    "first",
    "links",
    "link",
    "meta",
    "metadata",
    "paging",
    "pagination",
    "limit",
    "offset",
    "cursor",
    "status",
    "success",
    "ok",
    "error",
    "errors",
    "message",
    "code",
    "kind",
    "etag",
    "object",
    "url",
    "uri",
    "href",
    "self",
    "more",
    "size",
    "start",
    "end",
    "warnings",
    "warning",
    "info",
    "token",
    "version",
    "took",
    "time",
    "timestamp",
    "query",
    "context",
    "type",
    "included",
    "jsonapi",
    "needed",
    "request",
    "incomplete",
    "summary",
    "unreachable",
    "tracking",
];

/// Returns the layout of an operation's answer. `ends_in_hole` and `last_word` are of the operation's path.
pub fn layout<'a>(
    reader: &SchemaReader<'a>,
    answer: &DeclaredAnswer<'a>,
    ends_in_hole: bool,
    last_word: &str,
) -> AnswerLayout<'a> {
    let schema = match answer {
        DeclaredAnswer::Json(schema) => *schema,
        DeclaredAnswer::Undeclared => return without_envelope(AnswerShape::Undeclared),
        DeclaredAnswer::NotJson(media) => {
            let media: String = media.chars().take(60).collect();
            return without_envelope(AnswerShape::Unreadable(format!("it answers with {media}, not with JSON")));
        }
        DeclaredAnswer::Empty(reason) => return without_envelope(AnswerShape::Unreadable((*reason).to_owned())),
    };
    if let Some(shape) = array(reader, schema, String::new()) {
        return without_envelope(shape);
    }
    let arms = reader.arms(reader.open(schema));
    let many = arms.iter().find_map(|arm| array(reader, arm, String::new()));
    let one = arms.iter().find(|arm| reader.is_object(arm) && !reader.object(arm).props.is_empty());
    match (many, one) {
        // The answer is an array or an object: a path that ends in a key is expected to give one row, others many.
        (Some(_), Some(one)) if ends_in_hole => {
            return without_envelope(AnswerShape::One { path: String::new(), schema: one });
        }
        (Some(many), _) => return without_envelope(many),
        _ => {}
    }
    if !reader.is_object(schema) {
        if let Some(one) = one {
            return without_envelope(AnswerShape::One { path: String::new(), schema: one });
        }
        return without_envelope(if reader.is_any(schema) { AnswerShape::Undeclared } else { AnswerShape::Scalar });
    }
    let object = reader.object(schema);
    if object.props.is_empty() {
        let values = reader.open(schema).get("additionalProperties").filter(|values| reader.is_object(values));
        return without_envelope(match values {
            Some(item) if !ends_in_hole => AnswerShape::Entries { path: String::new(), item },
            _ => AnswerShape::Undeclared,
        });
    }
    let search = EnvelopeSearch { reader, ends_in_hole, noun: noun(last_word) };
    let shape = search.open(&object, "", 0).unwrap_or(AnswerShape::One { path: String::new(), schema });
    AnswerLayout { shape, envelope: Some(object) }
}

fn without_envelope(shape: AnswerShape<'_>) -> AnswerLayout<'_> {
    AnswerLayout { shape, envelope: None }
}

fn array<'a>(reader: &SchemaReader<'a>, schema: &'a Value, path: String) -> Option<AnswerShape<'a>> {
    let item = reader.items(schema)?;
    let has_rows = reader.is_object(item) && !reader.object(item).props.is_empty();
    Some(if has_rows { AnswerShape::Rows { path, item } } else { AnswerShape::Values { path, item } })
}

fn is_metadata(name: &str) -> bool {
    names::words(name).iter().any(|word| METADATA.contains(&word.as_str()))
}

fn is_holder(name: &str) -> bool {
    HOLDERS.iter().any(|holder| names::is_snake(name, holder))
}

/// Returns the last word of a name in the singular, which is the noun of a path or a property.
fn noun(name: &str) -> Option<String> {
    names::words(name).last().map(|word| names::singular(word))
}

/// The search for rows under envelopes.
struct EnvelopeSearch<'r, 'a> {
    reader: &'r SchemaReader<'a>,
    /// Whether the operation's path ends in a key, so that one row is expected.
    ends_in_hole: bool,
    /// The noun of the operation's path. A property of this name holds the rows.
    noun: Option<String>,
}

impl<'a> EnvelopeSearch<'_, 'a> {
    /// Returns the rows, or the one row, under an envelope; `None` where the object is no envelope.
    fn open(&self, object: &Object<'a>, outer_path: &str, depth: usize) -> Option<AnswerShape<'a>> {
        let name = self.holder(object)?;
        let path = if outer_path.is_empty() { name.to_owned() } else { format!("{outer_path}.{name}") };
        let schema = object.props.get(name)?.schema;
        if let Some(shape) = array(self.reader, schema, path.clone()) {
            return Some(shape);
        }
        let inner = self.reader.object(schema);
        if inner.props.is_empty() {
            return None;
        }
        if depth == 0
            && let Some(shape) = self.open(&inner, &path, 1)
        {
            return Some(shape);
        }
        Some(AnswerShape::One { path, schema })
    }

    /// Returns the property that most surely holds the rows; of several, the first.
    fn holder<'o>(&self, object: &'o Object<'a>) -> Option<&'o str> {
        let reachable = || object.props.keys().copied().filter(|name| names::is_reachable(name));
        let content: Vec<&str> = reachable().filter(|name| !is_metadata(name) || is_holder(name)).collect();
        let has_few_properties = content.len() <= 3 || !content.contains(&"id");
        let mut best: Option<(usize, &str)> = None;
        for name in reachable() {
            let Some(prop) = object.props.get(name) else { continue };
            let is_alone = content == [name];
            let is_named = is_holder(name) || (self.noun.is_some() && noun(name) == self.noun);
            let is_array = self.reader.items(prop.schema).is_some();
            let is_object = !is_array && self.reader.is_object(prop.schema);
            let rank = match (is_array, is_object) {
                (true, _) if is_named && (has_few_properties || is_alone) && !self.ends_in_hole => 4,
                (true, _) if is_alone => 3,
                (_, true) if is_alone && (is_named || object.props.len() <= 4) => 2,
                _ => 0,
            };
            if rank > best.map_or(0, |(rank, _)| rank) {
                best = Some((rank, name));
            }
        }
        best.map(|(_, name)| name)
    }
}
