//! Detection of an answer's layout: whether the answer has one row or many, and the path to the rows through envelopes.
//! An envelope is an object around the rows, such as `{"data": [...], "total": 3}`.
//! Invariant: at most two nested envelopes are opened. An object that is not clearly an envelope is the row itself.

use std::rc::Rc;

use serde_json::Value;

use crate::names;
use crate::spec::{DeclaredAnswer, Object, SchemaReader};

/// The rows that an answer contains. `path` is the dotted path from the answer to the rows; it is empty if the answer itself is
/// the rows.
#[derive(Debug, Clone)]
pub enum AnswerShape<'a> {
    /// An array of objects.
    Rows { path: String, item: &'a Value },
    /// An array of scalars or other values that are not objects.
    Values { path: String, item: &'a Value },
    /// An object whose property values are the rows, such as `{"EUR": {...}, "USD": {...}}`.
    Entries { path: String, item: &'a Value },
    /// One object.
    One { path: String, schema: &'a Value },
    /// One scalar.
    Scalar,
    /// The specification declares no schema for the answer.
    Undeclared,
    /// A catalog cannot read the answer, for example because it is not JSON. The text is the reason that the report shows.
    Unreadable(String),
}

#[derive(Debug, Clone)]
pub struct AnswerLayout<'a> {
    pub shape: AnswerShape<'a>,
    /// The properties of the whole answer if it is an object. The detection of paging looks for cursors and links in them.
    pub envelope: Option<Rc<Object<'a>>>,
}

/// Names of envelope properties that usually contain the rows, in snake case.
const ROWS_PROPERTY_NAMES: [&str; 26] = [
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

/// Words that mark a property as metadata about the rows, such as `total`. An object with only such properties and one other
/// property is an envelope.
const METADATA_WORDS: [&str; 55] = [
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

/// Returns the layout of an operation's answer. `ends_in_placeholder` and `last_word` describe the operation's path.
pub fn detect_layout<'a>(
    reader: &SchemaReader<'a>,
    answer: &DeclaredAnswer<'a>,
    ends_in_placeholder: bool,
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
    if let Some(shape) = array_shape(reader, schema, String::new()) {
        return without_envelope(shape);
    }
    let arms = reader.alternatives(reader.open(schema));
    let many = arms.iter().find_map(|arm| array_shape(reader, arm, String::new()));
    let one = arms.iter().find(|arm| reader.is_object(arm) && !reader.object(arm).props.is_empty());
    match (many, one) {
        // The schema allows an array or an object. A path that ends in a key is expected to return one row, any other path many
        // rows.
        (Some(_), Some(one)) if ends_in_placeholder => {
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
            Some(item) if !ends_in_placeholder => AnswerShape::Entries { path: String::new(), item },
            _ => AnswerShape::Undeclared,
        });
    }
    let search = EnvelopeSearch { reader, ends_in_placeholder, noun: singular_noun(last_word) };
    let shape = search.open(&object, "", 0).unwrap_or(AnswerShape::One { path: String::new(), schema });
    AnswerLayout { shape, envelope: Some(object) }
}

fn without_envelope(shape: AnswerShape<'_>) -> AnswerLayout<'_> {
    AnswerLayout { shape, envelope: None }
}

/// Returns the shape of an array schema; `None` if the schema is not an array.
fn array_shape<'a>(reader: &SchemaReader<'a>, schema: &'a Value, path: String) -> Option<AnswerShape<'a>> {
    let item = reader.items(schema)?;
    let has_rows = reader.is_object(item) && !reader.object(item).props.is_empty();
    Some(if has_rows { AnswerShape::Rows { path, item } } else { AnswerShape::Values { path, item } })
}

fn is_metadata_name(name: &str) -> bool {
    names::words(name).iter().any(|word| METADATA_WORDS.contains(&word.as_str()))
}

fn is_rows_property_name(name: &str) -> bool {
    ROWS_PROPERTY_NAMES.iter().any(|holder| names::has_snake_case(name, holder))
}

/// Returns the last word of a name in the singular: `order` for `open_orders`.
fn singular_noun(name: &str) -> Option<String> {
    names::words(name).last().map(|word| names::singular(word))
}

/// Searches the properties of an answer for the rows.
struct EnvelopeSearch<'r, 'a> {
    reader: &'r SchemaReader<'a>,
    /// Whether the operation's path ends in a key. Such an operation is expected to return one row, so arrays in its answer are
    /// not its rows.
    ends_in_placeholder: bool,
    /// The last word of the operation's path in the singular. A property of this name contains the rows.
    noun: Option<String>,
}

impl<'a> EnvelopeSearch<'_, 'a> {
    /// Returns the shape of the rows under an envelope, or `None` if the object is not an envelope.
    fn open(&self, object: &Object<'a>, outer_path: &str, depth: usize) -> Option<AnswerShape<'a>> {
        let name = self.find_rows_property(object)?;
        let path = if outer_path.is_empty() { name.to_owned() } else { format!("{outer_path}.{name}") };
        let schema = object.props.get(name)?.schema;
        if let Some(shape) = array_shape(self.reader, schema, path.clone()) {
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

    /// Returns the name of the property that most probably contains the rows. Of equally probable properties, the first wins.
    fn find_rows_property<'o>(&self, object: &'o Object<'a>) -> Option<&'o str> {
        let reachable = || object.props.keys().copied().filter(|name| names::is_reachable(name));
        let content: Vec<&str> =
            reachable().filter(|name| !is_metadata_name(name) || is_rows_property_name(name)).collect();
        let has_few_properties = content.len() <= 3 || !content.contains(&"id");
        let mut best: Option<(usize, &str)> = None;
        for name in reachable() {
            let Some(prop) = object.props.get(name) else { continue };
            let is_alone = content == [name];
            let is_named = is_rows_property_name(name) || (self.noun.is_some() && singular_noun(name) == self.noun);
            let is_array = self.reader.items(prop.schema).is_some();
            let is_object = !is_array && self.reader.is_object(prop.schema);
            let rank = match (is_array, is_object) {
                (true, _) if is_named && (has_few_properties || is_alone) && !self.ends_in_placeholder => 4,
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
