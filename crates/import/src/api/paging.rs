//! Pages: which parameters ask for one, and what in the answer leads to the next.
//! Invariant: a form is recognised only where both its sides are there; a parameter that asks for pages is no filter.

use serde_json::Value;

use crate::draft::{PageForm, Paging};
use crate::names;
use crate::spec::{Object, Reader};

const SIZE: [&str; 17] = [
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
const PAGE: [&str; 7] = ["page", "page_number", "pagenumber", "page_num", "page_no", "current_page", "page_index"];
const OFFSET: [&str; 9] = [
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
const CURSOR: [&str; 20] = [
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
const NEXT: [&str; 18] = [
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
const NEXT_URL: [&str; 10] = [
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
const TOTAL: [&str; 13] = [
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
const MORE: [&str; 7] = ["has_more", "hasmore", "has_next", "has_next_page", "more", "has_more_items", "is_truncated"];
const INSIDE: [&str; 16] = [
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

/// A parameter as paging sees it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub name: &'a str,
    pub schema: &'a Value,
    pub about: &'a str,
    pub required: bool,
}

#[derive(Debug)]
pub struct Pages<'a> {
    pub paging: Paging,
    /// Parameters that are the paging's now.
    pub taken: Vec<&'a str>,
}

pub fn pages<'a>(
    reader: &Reader<'a>,
    params: &[Asked<'a>],
    whole: Option<&Object<'a>>,
    links: bool,
    id_field: Option<&str>,
) -> Option<Pages<'a>> {
    let by = |names: &[&str]| {
        let found = |name: &&str| params.iter().find(|p| !p.required && names::is_snake(p.name, name));
        names.iter().find_map(found).copied()
    };
    let (size, page, offset, cursor) = (by(&SIZE), by(&PAGE), by(&OFFSET), by(&CURSOR));
    let after = by(&["starting_after", "after_id", "since_id"]);
    let look = |names: &[&str], url: bool| whole.and_then(|whole| look(reader, whole, names, url));
    let more = look(&MORE, false);
    let next_url = look(&NEXT_URL, true);
    let read = look(&NEXT, false);
    // A page that is asked for by a word is a cursor.
    let worded = |p: &Asked<'a>| reader.scalar(p.schema) == Some(crate::spec::Scalar::Text);
    let cursor = cursor.or_else(|| page.filter(worded));
    let form = match (cursor, read) {
        _ if links => PageForm::Link,
        (Some(cursor), Some(read)) => PageForm::Cursor { read, send: cursor.name.to_owned() },
        _ => match (next_url, after, page, offset) {
            (Some(next), ..) => PageForm::Next(next),
            (_, Some(after), ..) if id_field.is_some() => {
                PageForm::Last { field: id_field.unwrap_or("id").to_owned(), send: after.name.to_owned() }
            }
            (_, _, Some(page), _) => PageForm::Page { send: page.name.to_owned(), from: first_page(reader, &page) },
            (_, _, _, Some(offset)) => PageForm::Offset(offset.name.to_owned()),
            _ => return None,
        },
    };
    let total = matches!(form, PageForm::Page { .. } | PageForm::Offset(_)).then(|| look(&TOTAL, false)).flatten();
    let keep_more = matches!(form, PageForm::Last { .. } | PageForm::Page { .. } | PageForm::Offset(_));
    let known = size.and_then(|size| Some((size.name.to_owned(), most(reader, &size)?)));
    let mut taken: Vec<&str> = [page, offset, cursor].into_iter().flatten().map(|p| p.name).collect();
    taken.extend(after.filter(|_| matches!(form, PageForm::Last { .. })).map(|p| p.name));
    taken.extend(by(&["ending_before", "before"]).filter(|_| after.is_some() || cursor.is_some()).map(|p| p.name));
    taken.extend(size.map(|p| p.name));
    let paging = Paging { form, size: known, total, more: more.filter(|_| keep_more), in_body: false };
    Some(Pages { paging, taken })
}

/// Where in the answer one of these names is: at its top, or inside what says it about pages.
fn look<'a>(reader: &Reader<'a>, whole: &Object<'a>, names: &[&str], url: bool) -> Option<String> {
    let fits = |name: &str, schema: &'a Value| {
        let text = match reader.scalar(schema) {
            Some(scalar) => Some(scalar),
            None if reader.is_any(schema) => None,
            None => return false,
        };
        let is_url = names::words(name).iter().any(|w| matches!(w.as_str(), "url" | "uri" | "link" | "href"))
            || reader.open(schema).get("format").and_then(Value::as_str) == Some("uri")
            || name == "next"
            || says_url(reader.open(schema));
        names::is_reachable(&name.replace('.', "_"))
            && (!url || (is_url && text.is_none_or(|s| s == crate::spec::Scalar::Text)))
    };
    for wanted in names {
        let mut here = whole.props.iter();
        if let Some((name, _)) = here.find(|(name, prop)| names::is_snake(name, wanted) && fits(name, prop.schema)) {
            return Some(name.replace('.', "\\."));
        }
    }
    let inner = whole.props.iter().filter(|(name, _)| names::is_reachable(name));
    for (outer, prop) in inner.filter(|(name, _)| INSIDE.iter().any(|inside| names::is_snake(name, inside))) {
        if !reader.is_object(prop.schema) {
            continue;
        }
        let object = reader.object(prop.schema);
        for wanted in names.iter().copied().chain(url.then_some("href")) {
            let mut here = object.props.iter();
            let same = |name: &str| names::is_snake(name, wanted) && (wanted != "href" || *outer == "next");
            if let Some((name, found)) = here.find(|(name, p)| same(name) && (fits(name, p.schema) || url)) {
                let object = url && reader.is_object(found.schema);
                let path = format!("{outer}.{name}");
                return Some(if object { format!("{path}.href") } else { path });
            }
        }
    }
    None
}

fn says_url(opened: &Value) -> bool {
    let about = opened.get("description").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    about.contains("url") || about.contains("uri")
}

fn first_page(reader: &Reader<'_>, page: &Asked<'_>) -> u64 {
    let schema = reader.spec.follow(page.schema);
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    match (number("default"), number("minimum")) {
        (Some(0), _) | (None, Some(0)) => 0,
        _ => u64::from(!page.about.to_ascii_lowercase().contains("zero-based")),
    }
}

/// The most rows that a page may have, where the specification says so; else what it has by default, which is surely allowed.
fn most(reader: &Reader<'_>, size: &Asked<'_>) -> Option<u64> {
    let schema = reader.spec.follow(size.schema);
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    let most = number("maximum").or_else(|| said(size.about)).or_else(|| number("default"))?;
    (1..=100_000).contains(&most).then(|| most.min(1_000))
}

/// `(max 100)`, `Maximum: 50`, `between 1 and 100`.
fn said(about: &str) -> Option<u64> {
    let lower = about.to_ascii_lowercase();
    ["max ", "maximum", "max. ", "max: ", "between 1 and", "can range between 1 and", "up to", "at most"]
        .iter()
        .find_map(|word| {
            let rest = &lower[lower.find(word)? + word.len()..];
            let rest = rest.get(..rest.char_indices().nth(30).map_or(rest.len(), |(at, _)| at))?;
            let start = rest.find(|c: char| c.is_ascii_digit())?;
            let digits: String = rest[start..].chars().take_while(|c| c.is_ascii_digit()).collect();
            digits.parse().ok().filter(|n| (2..=10_000).contains(n))
        })
}
