//! Detection of a list's paging: the parameters that request a page, and the part of the answer that identifies the next page.
//! Invariant: cursor paging is detected only if the specification has both the parameter and the answer property. A
//! paging parameter never becomes a filter.

use catalog::raw::{LinkRel, Paging, Size};
use serde_json::Value;

use crate::names;
use crate::spec::{Object, Param, Scalar, SchemaReader};

// The names in these lists are compared in snake case. Earlier names win over later ones.

/// Names of parameters for the number of rows on a page.
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
/// Names of parameters for the number of the page.
const PAGE_PARAMS: [&str; 7] =
    ["page", "page_number", "pagenumber", "page_num", "page_no", "current_page", "page_index"];
/// Names of parameters for the number of rows to skip.
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
/// Names of parameters for the cursor of a page.
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
/// Names of answer properties with the cursor of the next page.
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
/// Names of answer properties with the URL of the next page.
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
/// Names of answer properties with the number of all rows of the list.
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
/// Names of boolean answer properties that are true if there is a next page.
const MORE_PROPS: [&str; 7] =
    ["has_more", "hasmore", "has_next", "has_next_page", "more", "has_more_items", "is_truncated"];
/// Names of answer properties whose object contains paging data, such as `meta`.
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

/// The paging that was detected for a list.
#[derive(Debug)]
pub struct DetectedPaging<'a> {
    pub paging: Paging,
    /// The names of the parameters that paging uses. The capability does not offer them to callers.
    pub params: Vec<&'a str>,
}

/// Detects the paging of a list; `None` if the list has none.
/// - `params` are the query parameters of the operation.
/// - `envelope` has the properties of the answer, if the answer is an object.
/// - `key_field` is the only key field of the rows. `starting_after` parameters take its value from the last row.
pub fn detect_paging<'a>(
    reader: &SchemaReader<'a>,
    params: &[&Param<'a>],
    envelope: Option<&Object<'a>>,
    has_link_header: bool,
    key_field: Option<&str>,
) -> Option<DetectedPaging<'a>> {
    let optional_param = |names: &[&str]| -> Option<&Param<'a>> {
        let with_name = |name: &&str| params.iter().find(|p| !p.required && names::has_snake_case(p.name, name));
        names.iter().find_map(with_name).copied()
    };
    let in_answer = |names: &[&str], is_url: bool| path_in_answer(reader, envelope?, names, is_url);
    let size = optional_param(&SIZE_PARAMS);
    let page = optional_param(&PAGE_PARAMS);
    let offset = optional_param(&OFFSET_PARAMS);
    let after = optional_param(&["starting_after", "after_id", "since_id"]);
    let before = optional_param(&["ending_before", "before"]);
    // A `page` parameter of type string takes a cursor, because page numbers are integers.
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

    // Paging only walks forwards, so a parameter for walking backwards is removed together with the forward one.
    let backwards = before.filter(|_| after.is_some() || cursor.is_some());
    let sent_after = after.filter(|_| paging.last.is_some());
    let used = [page, offset, cursor, sent_after, backwards, size];
    Some(DetectedPaging { paging, params: used.into_iter().flatten().map(|param| param.name).collect() })
}

/// Returns the path of the first property with one of these names. The property is at the top of the answer or in an object of
/// `PAGING_OBJECTS`.
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
        // A property `next` may contain a cursor or a URL. A URL must be recognisable by name, format or description.
        let names_url = names::words(name).iter().any(|w| matches!(w.as_str(), "url" | "uri" | "link" | "href"))
            || reader.open(schema).get("format").and_then(Value::as_str) == Some("uri")
            || name == "next"
            || describes_url(reader.open(schema));
        names::is_reachable(&name.replace('.', "_"))
            && (!is_url || (names_url && scalar.is_none_or(|scalar| scalar == Scalar::Text)))
    };
    for wanted in names {
        let mut props = envelope.props.iter();
        if let Some((name, _)) =
            props.find(|(name, prop)| names::has_snake_case(name, wanted) && fits(name, prop.schema))
        {
            return Some(name.replace('.', "\\."));
        }
    }
    let about_pages = |name: &str| PAGING_OBJECTS.iter().any(|object| names::has_snake_case(name, object));
    let outer_props = envelope.props.iter().filter(|(name, _)| names::is_reachable(name) && about_pages(name));
    for (outer, prop) in outer_props.filter(|(_, prop)| reader.is_object(prop.schema)) {
        let object = reader.object(prop.schema);
        for wanted in names.iter().copied().chain(is_url.then_some("href")) {
            let mut props = object.props.iter();
            let has_name = |name: &str| names::has_snake_case(name, wanted) && (wanted != "href" || *outer == "next");
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

/// Returns whether the description of a schema mentions a URL.
fn describes_url(opened: &Value) -> bool {
    let description = opened.get("description").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    description.contains("url") || description.contains("uri")
}

/// Returns the number of the first page. It is 1 unless the parameter's default, minimum or description shows that it is 0.
fn first_page(reader: &SchemaReader<'_>, page: &Param<'_>) -> u64 {
    let schema = reader.spec.follow(page.schema);
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    match (number("default"), number("minimum")) {
        (Some(0), _) | (None, Some(0)) => 0,
        _ => u64::from(!page.description.to_ascii_lowercase().contains("zero-based")),
    }
}

/// Returns the largest allowed page size. If the specification declares no maximum, the default page size is used, which is
/// always allowed.
fn max_page_size(reader: &SchemaReader<'_>, size: &Param<'_>) -> Option<usize> {
    let schema = reader.spec.follow(size.schema);
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    let max = number("maximum").or_else(|| described_maximum(size.description)).or_else(|| number("default"))?;
    (1..=100_000).contains(&max).then_some(max.min(1_000) as usize)
}

/// Reads a maximum from a parameter's description, such as `(max 100)`, `Maximum: 50` or `between 1 and 100`.
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
