//! The paging of a list: the parameters that ask for a page, and the part of the answer that leads to the next.
//! Invariant: a form is recognised only if the specification has both sides of it. A parameter of the paging is no filter.

use catalog::raw::{LinkRel, Paging, Size};
use serde_json::Value;

use crate::names;
use crate::spec::{Object, Param, Scalar, SchemaReader};

// The names below are compared in snake case, in this order.

/// Parameters that take the number of rows on a page.
const SIZE_PARAMS: [&str; 17] = [
    "per_page",
    "page_size",
    "limit",
    "size",
    "max_results",
    "page_limit",
    "count",
    "top",
    "results_per_page",
    "max_items",
    "first",
    "take",
    "perpage",
    "pagesize",
    "num_results",
    "page_count",
    "max_result",
];
/// Parameters that take the number of a page.
const PAGE_PARAMS: [&str; 7] =
    ["page", "page_number", "pagenumber", "page_num", "page_no", "current_page", "page_index"];
/// Parameters that take the number of rows to skip.
const OFFSET_PARAMS: [&str; 9] = [
    "offset",
    "skip",
    "start",
    "start_at",
    "start_index",
    "start_position",
    "first_result",
    "page_offset",
    "from_index",
];
/// Parameters that take a cursor.
const CURSOR_PARAMS: [&str; 20] = [
    "cursor",
    "page_token",
    "next_token",
    "pagetoken",
    "nexttoken",
    "after",
    "continuation_token",
    "continuation",
    "marker",
    "continue",
    "start_cursor",
    "next_cursor",
    "page_cursor",
    "next_page_token",
    "pagination_token",
    "bookmark",
    "starting_token",
    "scroll_id",
    "next_page_cursor",
    "page_marker",
];
/// Properties that hold the cursor of the next page.
const CURSOR_PROPS: [&str; 18] = [
    "next_cursor",
    "next_page_token",
    "next_token",
    "cursor",
    "continue",
    "continuation_token",
    "next_page_cursor",
    "continuation",
    "next_marker",
    "end_cursor",
    "after",
    "marker",
    "next_page",
    "next",
    "bookmark",
    "page_token",
    "pagination_token",
    "next_pagination_token",
];
/// Properties that hold the URL of the next page.
const NEXT_URL_PROPS: [&str; 10] = [
    "next",
    "next_page_uri",
    "next_page_url",
    "next_url",
    "next_link",
    "odata_next_link",
    "next_href",
    "nextlink",
    "next_page",
    "next_page_link",
];
/// Properties that hold the number of all rows.
const TOTAL_PROPS: [&str; 13] = [
    "total",
    "total_count",
    "total_results",
    "total_items",
    "total_elements",
    "total_records",
    "total_entries",
    "total_size",
    "total_rows",
    "totalcount",
    "totalresults",
    "total_hits",
    "record_count",
];
/// Properties that hold a flag that says whether there is a next page.
const MORE_PROPS: [&str; 7] =
    ["has_more", "hasmore", "has_next", "has_next_page", "more", "has_more_items", "is_truncated"];
/// Properties whose object says something about pages.
const PAGING_OBJECTS: [&str; 16] = [
    "meta",
    "metadata",
    "paging",
    "pagination",
    "page",
    "response_metadata",
    "links",
    "cursors",
    "page_info",
    "next",
    "pages",
    "paging_info",
    "pager",
    "cursor",
    "list_info",
    "result_info",
];

/// The paging of a list.
#[derive(Debug)]
pub struct DetectedPaging<'a> {
    pub paging: Paging,
    /// The parameters that belong to the paging, and so are no parameters of the capability.
    pub params: Vec<&'a str>,
}

/// Detects the paging of a list.
/// - `params` are the parameters of the query.
/// - `envelope` is the answer, where it is an object.
/// - `key_field` is the field that identifies a row, where it is one.
pub fn detect<'a>(
    reader: &SchemaReader<'a>,
    params: &[&Param<'a>],
    envelope: Option<&Object<'a>>,
    has_link_header: bool,
    key_field: Option<&str>,
) -> Option<DetectedPaging<'a>> {
    let optional_param = |names: &[&str]| -> Option<&Param<'a>> {
        let with_name = |name: &&str| params.iter().find(|p| !p.required && names::is_snake(p.name, name));
        names.iter().find_map(with_name).copied()
    };
    let in_answer = |names: &[&str], is_url: bool| path_in_answer(reader, envelope?, names, is_url);
    let size = optional_param(&SIZE_PARAMS);
    let page = optional_param(&PAGE_PARAMS);
    let offset = optional_param(&OFFSET_PARAMS);
    let after = optional_param(&["starting_after", "after_id", "since_id"]);
    let before = optional_param(&["ending_before", "before"]);
    // A page that is named by a text is a cursor.
    let page_is_text = |p: &&Param<'a>| reader.scalar(p.schema) == Some(Scalar::Text);
    let cursor = optional_param(&CURSOR_PARAMS).or_else(|| page.filter(page_is_text));

    let mut paging = Paging::default();
    let mut uses_total = false;
    let mut uses_more = false;
    if has_link_header {
        paging.link = Some(LinkRel::Next);
    } else if let Some(cursor) = cursor
        && let Some(path) = in_answer(&CURSOR_PROPS, false)
    {
        paging.cursor = Some(path);
        paging.send = Some(cursor.name.to_owned());
    } else if let Some(path) = in_answer(&NEXT_URL_PROPS, true) {
        paging.next = Some(path);
    } else if let Some(after) = after
        && let Some(key_field) = key_field
    {
        paging.last = Some(key_field.to_owned());
        paging.send = Some(after.name.to_owned());
        uses_more = true;
    } else if let Some(page) = page {
        paging.page = Some(page.name.to_owned());
        paging.from = Some(first_page(reader, page));
        uses_total = true;
        uses_more = true;
    } else if let Some(offset) = offset {
        paging.offset = Some(offset.name.to_owned());
        uses_total = true;
        uses_more = true;
    } else {
        return None;
    }
    if uses_total {
        paging.total = in_answer(&TOTAL_PROPS, false);
    }
    if uses_more {
        paging.more = in_answer(&MORE_PROPS, false);
    }
    paging.size = size.and_then(|size| Some(Size { send: size.name.to_owned(), max: max_page_size(reader, size)? }));

    // A parameter that walks backwards means nothing beside one that walks forwards.
    let backwards = before.filter(|_| after.is_some() || cursor.is_some());
    let sent_after = after.filter(|_| paging.last.is_some());
    let used = [page, offset, cursor, sent_after, backwards, size];
    Some(DetectedPaging { paging, params: used.into_iter().flatten().map(|param| param.name).collect() })
}

/// Returns the path of a property with one of these names, at the top of the answer or inside of an object about pages.
fn path_in_answer<'a>(
    reader: &SchemaReader<'a>,
    envelope: &Object<'a>,
    names: &[&str],
    is_url: bool,
) -> Option<String> {
    let fits = |name: &str, schema: &'a Value| {
        let scalar = reader.scalar(schema);
        if scalar.is_none() && !reader.is_any(schema) {
            return false;
        }
        // `next` may be a cursor or a URL, so a URL has to be recognisable by its name, its format or its description.
        let names_url = names::words(name).iter().any(|w| matches!(w.as_str(), "url" | "uri" | "link" | "href"))
            || reader.open(schema).get("format").and_then(Value::as_str) == Some("uri")
            || name == "next"
            || describes_url(reader.open(schema));
        names::is_reachable(&name.replace('.', "_"))
            && (!is_url || (names_url && scalar.is_none_or(|scalar| scalar == Scalar::Text)))
    };
    for wanted in names {
        let mut props = envelope.props.iter();
        if let Some((name, _)) = props.find(|(name, prop)| names::is_snake(name, wanted) && fits(name, prop.schema)) {
            return Some(name.replace('.', "\\."));
        }
    }
    let about_pages = |name: &str| PAGING_OBJECTS.iter().any(|object| names::is_snake(name, object));
    let outer_props = envelope.props.iter().filter(|(name, _)| names::is_reachable(name) && about_pages(name));
    for (outer, prop) in outer_props.filter(|(_, prop)| reader.is_object(prop.schema)) {
        let object = reader.object(prop.schema);
        for wanted in names.iter().copied().chain(is_url.then_some("href")) {
            let mut props = object.props.iter();
            let has_name = |name: &str| names::is_snake(name, wanted) && (wanted != "href" || *outer == "next");
            if let Some((name, inner)) = props.find(|(name, p)| has_name(name) && (fits(name, p.schema) || is_url)) {
                // HAL writes `links.next` as an object with an `href`.
                let has_href = is_url && reader.is_object(inner.schema);
                let path = format!("{outer}.{name}");
                return Some(if has_href { format!("{path}.href") } else { path });
            }
        }
    }
    None
}

fn describes_url(opened: &Value) -> bool {
    let description = opened.get("description").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    description.contains("url") || description.contains("uri")
}

/// Returns the number of the first page: 1, unless the specification says that it is 0.
fn first_page(reader: &SchemaReader<'_>, page: &Param<'_>) -> u64 {
    let schema = reader.spec.follow(page.schema);
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    match (number("default"), number("minimum")) {
        (Some(0), _) | (None, Some(0)) => 0,
        _ => u64::from(!page.description.to_ascii_lowercase().contains("zero-based")),
    }
}

/// Returns the most rows that a page may have. Where the specification does not say it, the default is surely allowed.
fn max_page_size(reader: &SchemaReader<'_>, size: &Param<'_>) -> Option<usize> {
    let schema = reader.spec.follow(size.schema);
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    let max = number("maximum").or_else(|| described_maximum(size.description)).or_else(|| number("default"))?;
    (1..=100_000).contains(&max).then_some(max.min(1_000) as usize)
}

/// Reads a maximum from a description: `(max 100)`, `Maximum: 50`, `between 1 and 100`.
fn described_maximum(description: &str) -> Option<u64> {
    let lower = description.to_ascii_lowercase();
    ["max ", "maximum", "max. ", "max: ", "between 1 and", "can range between 1 and", "up to", "at most"]
        .iter()
        .find_map(|phrase| {
            let rest = &lower[lower.find(phrase)? + phrase.len()..];
            let rest = rest.get(..rest.char_indices().nth(30).map_or(rest.len(), |(at, _)| at))?;
            let start = rest.find(|c: char| c.is_ascii_digit())?;
            let digits: String = rest[start..].chars().take_while(|c| c.is_ascii_digit()).collect();
            digits.parse().ok().filter(|n| (2..=10_000).contains(n))
        })
}
