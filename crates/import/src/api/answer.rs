//! What an answer holds: many rows or one, and where in it, under envelopes and wrappers of pages.
//! Invariant: at most two envelopes are opened; what is not clearly an envelope is the row itself.

use std::rc::Rc;

use serde_json::Value;

use crate::names;
use crate::spec::{Answer, Object, Reader};

#[derive(Debug, Clone)]
pub enum Shape<'a> {
    /// An array of objects.
    Rows {
        at: String,
        item: &'a Value,
    },
    /// An array of something else.
    Values {
        at: String,
        item: &'a Value,
    },
    /// An object whose values are the rows.
    Entries {
        at: String,
        item: &'a Value,
    },
    One {
        at: String,
        schema: &'a Value,
    },
    /// One value that is no object.
    Value,
    Unsaid,
    Nothing(String),
}

#[derive(Debug, Clone)]
pub struct Seen<'a> {
    pub shape: Shape<'a>,
    /// The whole answer, where it is an object: paging is told there.
    pub whole: Option<Rc<Object<'a>>>,
}

/// What holds rows, by its name alone.
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

/// What an envelope says beside its rows.
const BESIDE: [&str; 55] = [
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

pub fn see<'a>(reader: &Reader<'a>, answer: &Answer<'a>, ends_in_hole: bool, last_word: &str) -> Seen<'a> {
    let bare = |shape| Seen { shape, whole: None };
    let schema = match answer {
        Answer::Json(schema) => *schema,
        Answer::Unsaid => return bare(Shape::Unsaid),
        Answer::Other(media) => {
            let media: String = media.chars().take(60).collect();
            return bare(Shape::Nothing(format!("it answers with {media}, not with JSON")));
        }
        Answer::Empty(why) => return bare(Shape::Nothing((*why).to_owned())),
    };
    if let Some(shape) = array(reader, schema, String::new()) {
        return bare(shape);
    }
    let arms = reader.arms(reader.open(schema));
    let many = arms.iter().find_map(|arm| array(reader, arm, String::new()));
    let one = arms.iter().find(|arm| reader.is_object(arm) && !reader.object(arm).props.is_empty());
    match (many, one) {
        // Several things may come: of a place that is named one, of others many.
        (Some(_), Some(one)) if ends_in_hole => return bare(Shape::One { at: String::new(), schema: one }),
        (Some(many), _) => return bare(many),
        _ => {}
    }
    if !reader.is_object(schema) {
        if let Some(one) = one {
            return bare(Shape::One { at: String::new(), schema: one });
        }
        return bare(if reader.is_any(schema) { Shape::Unsaid } else { Shape::Value });
    }
    let whole = reader.object(schema);
    if whole.props.is_empty() {
        let values = reader.open(schema).get("additionalProperties").filter(|values| reader.is_object(values));
        return match values {
            Some(item) if !ends_in_hole => bare(Shape::Entries { at: String::new(), item }),
            _ => bare(Shape::Unsaid),
        };
    }
    let opened = open(reader, &whole, &Looking { ends_in_hole, thing: thing(last_word), depth: 0 }, "");
    let shape = opened.unwrap_or(Shape::One { at: String::new(), schema });
    Seen { shape, whole: Some(whole) }
}

struct Looking {
    ends_in_hole: bool,
    /// What the path is about.
    thing: Option<String>,
    depth: usize,
}

fn array<'a>(reader: &Reader<'a>, schema: &'a Value, at: String) -> Option<Shape<'a>> {
    let item = reader.items(schema)?;
    let row = reader.is_object(item) && !reader.object(item).props.is_empty();
    Some(if row { Shape::Rows { at, item } } else { Shape::Values { at, item } })
}

fn is_beside(name: &str) -> bool {
    names::words(name).iter().any(|word| BESIDE.contains(&word.as_str()))
}

fn is_holder(name: &str) -> bool {
    HOLDERS.iter().any(|holder| names::is_snake(name, holder))
}

/// What a name is about: its last word, in the singular.
fn thing(name: &str) -> Option<String> {
    names::words(name).last().map(|word| names::singular(word))
}

/// The rows, or the one row, under an envelope; `None` where it is none.
fn open<'a>(reader: &Reader<'a>, whole: &Object<'a>, looking: &Looking, before: &str) -> Option<Shape<'a>> {
    let usable = names::is_reachable;
    let own: Vec<&str> =
        whole.props.keys().copied().filter(|name| usable(name) && (!is_beside(name) || is_holder(name))).collect();
    let at = |name: &str| if before.is_empty() { name.to_owned() } else { format!("{before}.{name}") };
    let mut best: Option<(usize, &str)> = None;
    for name in whole.props.keys().copied().filter(|name| usable(name)) {
        let Some(prop) = whole.props.get(name) else { continue };
        let alone = own == [name];
        let named = is_holder(name) || (looking.thing.is_some() && thing(name) == looking.thing);
        let is_array = reader.items(prop.schema).is_some();
        let is_object = !is_array && reader.is_object(prop.schema);
        let few = own.len() <= 3 || !own.contains(&"id");
        let rank = match (is_array, is_object) {
            (true, _) if named && (few || alone) && !looking.ends_in_hole => 4,
            (true, _) if alone => 3,
            (_, true) if alone && (named || whole.props.len() <= 4) => 2,
            _ => 0,
        };
        if rank > best.map_or(0, |(rank, _)| rank) {
            best = Some((rank, name));
        }
    }
    let (_, name) = best?;
    let schema = whole.props.get(name)?.schema;
    if let Some(shape) = array(reader, schema, at(name)) {
        return Some(shape);
    }
    let inner = reader.object(schema);
    if inner.props.is_empty() {
        return None;
    }
    if looking.depth == 0 {
        let deeper = Looking { depth: 1, thing: looking.thing.clone(), ends_in_hole: looking.ends_in_hole };
        if let Some(shape) = open(reader, &inner, &deeper, &at(name)) {
            return Some(shape);
        }
    }
    Some(Shape::One { at: at(name), schema })
}
