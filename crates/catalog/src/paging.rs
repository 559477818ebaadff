//! Paging: the ways in which APIs divide lists into pages, and the calculation of the next page's position from an
//! answer.
//! Invariant: a link to the next page is resolved against the address of its page (RFC 3986, section 5), and followed
//! only on the catalog's own origin. A page that names itself as the next page ends the list.

use base::{Origin, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use crate::path::DataPath;

/// How a list is read page by page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paging {
    /// How the next page is requested.
    pub form: PagingForm,
    /// The parameter for the number of rows in a page, if the API has such a parameter.
    pub size: Option<PageSize>,
    /// The path of the number of rows of the whole list, if the answer contains this number.
    pub total: Option<DataPath>,
    /// The path of a flag that is `true` if there is a next page, if the answer has such a flag.
    pub more: Option<DataPath>,
    /// The part of the request that carries the parameters of a page.
    #[serde(rename = "place")]
    pub location: PageParamLocation,
}

/// The part of a request that carries the parameters of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageParamLocation {
    #[default]
    Query,
    /// A key of the JSON or form body.
    Body,
    /// A variable of the GraphQL document.
    Variable,
}

/// How the next page is requested, and how the end of the list is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PagingForm {
    /// The parameter `send` takes the page's number. `from` is the number of the first page.
    Page { send: String, from: u64 },
    /// The parameter `send` takes the number of rows to skip.
    Offset { send: String },
    /// The answer has an opaque cursor at the path `read`, which the parameter `send` takes. An answer whose cursor
    /// is missing or `null` ends the list.
    Cursor { read: DataPath, send: String },
    /// The `Link` header of the answer has the next page's address, marked with `rel="next"`.
    Link,
    /// The answer has the next page's URL at the path `read`. An answer whose URL is missing or `null` ends the list.
    Next { read: DataPath },
    /// The parameter `send` takes the value that the last row has in `field`. An empty page, or the flag
    /// `Paging::more` with `false`, ends the list.
    Last { field: String, send: String },
}

/// The parameter for the number of rows of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSize {
    /// The name of the parameter.
    pub send: String,
    /// The largest number that the API accepts.
    pub max: usize,
}

/// A request for one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRequest {
    pub at: PagePosition,
    /// The number of rows to request. The number is sent only if the API has a parameter for it.
    pub size: usize,
}

/// The position at which a page begins. Continuations store positions, so the serialised names must not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PagePosition {
    First,
    /// The page's index, counted from 0.
    Number(u64),
    /// The number of rows to skip.
    Skip(u64),
    /// The cursor of the previous answer, or the value of a field of its last row.
    Cursor(String),
    /// The path and query of the page's address, which the API sent. The address is on the catalog's origin.
    #[serde(rename = "place")]
    Address {
        path: String,
        query: Vec<(String, String)>,
    },
}

/// The continuation of a list after one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPage {
    /// The list has a next page at this position.
    At(PagePosition),
    /// The list is complete.
    End,
    /// The list has more rows that cannot be requested: the API announced more rows without a position, or sent the
    /// position of the current page again.
    Lost,
}

/// Why the position of the next page is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PagingError {
    #[error("the next page is on another origin ({0}), which is refused")]
    Foreign(String),
    #[error("the next page's address is not a URL")]
    NotUrl,
    #[error("the cursor at `{0}` is neither a word nor a number")]
    Cursor(String),
}

/// The parts of a page's answer from which the next position is calculated.
pub struct Page<'a> {
    pub response: &'a Response,
    pub body: &'a Value,
    /// The number of rows of the page.
    pub rows: usize,
    /// The last row of the page, if this row was decoded.
    pub last: Option<&'a Map<String, Value>>,
}

/// The address of a page: the base against which a relative link of its answer is resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageAddress<'a> {
    pub origin: &'a Origin,
    /// The percent-encoded path of the request.
    pub path: String,
    pub query: Vec<(String, String)>,
}

impl Paging {
    /// Returns how the list continues after `page`, the answer to `request`. `address` returns the address of the page,
    /// which is needed only if the answer contains a link. `rows_so_far` is the number of rows in all pages up to and
    /// including this page.
    pub fn next_page<'a>(
        &self,
        address: impl FnOnce() -> PageAddress<'a>,
        request: &PageRequest,
        page: &Page<'_>,
        rows_so_far: usize,
    ) -> Result<NextPage, PagingError> {
        let total = self.total.as_ref().and_then(|path| path.find(page.body)).and_then(|total| total.as_u64());
        let more = self.more.as_ref().map(|path| path.find(page.body).is_some_and(|flag| *flag == Value::Bool(true)));
        if more == Some(false) {
            return Ok(NextPage::End);
        }
        let is_full = self.size.is_none() || page.rows >= request.size;
        let next = match &self.form {
            PagingForm::Page { .. } => {
                let next = PagePosition::Number(page_index(request) + 1);
                return Ok(continue_without_position(next, page.rows, is_full, total, rows_so_far));
            }
            PagingForm::Offset { .. } => {
                let next = PagePosition::Skip(rows_so_far as u64);
                return Ok(continue_without_position(next, page.rows, is_full, total, rows_so_far));
            }
            PagingForm::Cursor { read, .. } => match read.find(page.body) {
                Some(value) => read_cursor(&value, &read.to_string())?.map(PagePosition::Cursor),
                None => None,
            },
            PagingForm::Link => match find_next_link(page.response) {
                Some(link) => match resolve_link(&address(), &link)? {
                    None => return Ok(NextPage::Lost),
                    next => next,
                },
                None => None,
            },
            PagingForm::Next { read } => match read.find(page.body).as_deref() {
                Some(Value::String(link)) if !link.is_empty() => match resolve_link(&address(), link)? {
                    None => return Ok(NextPage::Lost),
                    next => next,
                },
                None | Some(Value::Null | Value::Bool(false) | Value::String(_)) => None,
                Some(_) => return Err(PagingError::NotUrl),
            },
            PagingForm::Last { field, .. } => {
                let last = page.last.filter(|_| is_full || more == Some(true)).and_then(|row| row.get(field));
                last.map(|value| read_cursor(value, field)).transpose()?.flatten().map(PagePosition::Cursor)
            }
        };
        Ok(match next {
            // Requesting the same position again would return the same page forever.
            Some(next) if next == request.at => NextPage::Lost,
            Some(next) => NextPage::At(next),
            None if more == Some(true) || total.is_some_and(|total| (rows_so_far as u64) < total) => NextPage::Lost,
            None => NextPage::End,
        })
    }

    /// Returns the names and values of the parameters that request a page. The caller puts them into the part of the
    /// request that `Paging::location` names.
    pub(crate) fn page_params(&self, page: &PageRequest) -> Vec<(&str, Value)> {
        let mut params = Vec::with_capacity(2);
        match (&self.form, &page.at) {
            (PagingForm::Page { send, from }, _) => {
                params.push((send.as_str(), Value::from(from.saturating_add(page_index(page)))));
            }
            (PagingForm::Offset { send }, PagePosition::Skip(rows)) => params.push((send, Value::from(*rows))),
            (PagingForm::Cursor { send, .. } | PagingForm::Last { send, .. }, PagePosition::Cursor(cursor)) => {
                params.push((send, Value::from(cursor.clone())));
            }
            _ => {}
        }
        if let Some(size) = &self.size {
            params.push((&size.send, Value::from(page.size)));
        }
        params
    }
}

/// Returns how a list continues if its answers contain no position (page numbers and offsets). With a total, the list
/// ends when all rows are read. Without a total, the list ends with a page that is not full.
fn continue_without_position(
    next: PagePosition,
    rows: usize,
    is_full: bool,
    total: Option<u64>,
    rows_so_far: usize,
) -> NextPage {
    match total {
        Some(total) if rows_so_far as u64 >= total => NextPage::End,
        // The total promises more rows, but the page is empty, so the other rows cannot be requested.
        Some(_) if rows == 0 => NextPage::Lost,
        // Some APIs send short pages in the middle of a list, so only the total ends the list here.
        Some(_) => NextPage::At(next),
        None if rows == 0 || !is_full => NextPage::End,
        None => NextPage::At(next),
    }
}

fn page_index(request: &PageRequest) -> u64 {
    if let PagePosition::Number(index) = request.at { index } else { 0 }
}

/// Returns a cursor as text, or `None` for `null` and the empty text, which mean that there is no cursor. `source` is
/// the name of the field or path for the error.
fn read_cursor(value: &Value, source: &str) -> Result<Option<String>, PagingError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(PagingError::Cursor(source.to_owned())),
    }
}

/// Resolves a link to the next page as RFC 3986 says: `?page=2`, `next`, `../x`, `/x` and a whole URL are all possible.
/// Returns `None` if the link leads to the page itself. A link to another origin is refused.
pub fn resolve_link(page: &PageAddress<'_>, link: &str) -> Result<Option<PagePosition>, PagingError> {
    let mut base = Url::parse(page.origin.as_str()).map_err(|_| PagingError::NotUrl)?;
    let origin_url = base.clone();
    base.set_path(&page.path);
    if !page.query.is_empty() {
        base.query_pairs_mut().extend_pairs(&page.query);
    }
    let url = base.join(link).map_err(|_| PagingError::NotUrl)?;
    let is_same_origin = url.scheme() == origin_url.scheme()
        && url.host() == origin_url.host()
        && url.port_or_known_default() == origin_url.port_or_known_default()
        && url.username().is_empty()
        && url.password().is_none();
    // A client that resolves the path `//host/x` as a reference would send the request to another host.
    if !is_same_origin || url.path().starts_with("//") {
        let shown = url.host_str().unwrap_or("no host");
        return Err(PagingError::Foreign(shown.chars().take(100).collect()));
    }
    let query: Vec<_> = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let is_same_page = url.path() == page.path && query == page.query;
    Ok((!is_same_page).then(|| PagePosition::Address { path: url.path().to_owned(), query }))
}

/// Returns the URL with `rel="next"` of a `Link` header (RFC 8288): `<url>; rel="next", <url>; rel="last"`.
fn find_next_link(response: &Response) -> Option<String> {
    let mut rest = response.header("link")?;
    while let Some(start) = rest.find('<') {
        let (url, params) = rest[start + 1..].split_once('>')?;
        // A comma ends a link only if `<` follows, because a quoted parameter may contain a comma.
        let end = params.find(",<").or_else(|| params.find(", <")).unwrap_or(params.len());
        let is_next = params[..end].split(';').any(|param| {
            let (name, value) = param.trim().trim_end_matches(',').split_once('=').unwrap_or((param, ""));
            // The parameter `rel` may have several relation types, separated by spaces.
            let types = value.trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("rel") && types.split(' ').any(|kind| kind.eq_ignore_ascii_case("next"))
        });
        if is_next {
            return Some(url.trim().to_owned());
        }
        rest = &params[end..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn next_page(form: PagingForm, at: PagePosition, body: Value, link: Option<&str>) -> Result<NextPage, PagingError> {
        let paging = Paging { form, size: None, total: None, more: None, location: PageParamLocation::Query };
        let headers = link.map(|l| ("link".to_owned(), l.to_owned())).into_iter().collect();
        let response = Response { status: 200, headers, body: Vec::new() };
        let origin = Origin::parse("https://api.example.com").unwrap();
        let page = Page { response: &response, body: &body, rows: 2, last: None };
        let address =
            || PageAddress { origin: &origin, path: "/v1/list".into(), query: vec![("q".into(), "a b".into())] };
        paging.next_page(address, &PageRequest { at, size: 2 }, &page, 2)
    }

    fn next(url: Value) -> Result<NextPage, PagingError> {
        next_page(PagingForm::Next { read: "next".to_owned().into() }, PagePosition::First, json!({"next": url}), None)
    }

    #[test]
    fn a_next_link_stays_on_its_origin() {
        let here = PagePosition::Address { path: "/a/b".into(), query: vec![("c".into(), "d e".into())] };
        for good in ["https://api.example.com/a/b?c=d%20e", "/a/b?c=d+e", "HTTPS://API.EXAMPLE.COM:443/a/b?c=d%20e"] {
            assert_eq!(next(json!(good)), Ok(NextPage::At(here.clone())), "{good}");
        }
        for bad in [
            "https://evil.example/a",
            "//evil.example/a",
            "http://api.example.com/a",
            "https://api.example.com:8443/a",
            "https://user@api.example.com/a",
            "https://api.example.com.evil.example/",
            "\\\\evil.example\\a",
            "javascript:alert(1)",
        ] {
            assert!(matches!(next(json!(bad)), Err(PagingError::Foreign(_))), "{bad}: {:?}", next(json!(bad)));
        }
        assert_eq!(next(Value::Null), Ok(NextPage::End));
    }

    #[test]
    fn a_relative_link_is_resolved_against_its_page() {
        let origin = Origin::parse("https://api.example.com").unwrap();
        let resolved = |path: &str, link: &str| {
            let page = PageAddress { origin: &origin, path: path.into(), query: vec![("q".into(), "a b".into())] };
            match resolve_link(&page, link).unwrap() {
                Some(PagePosition::Address { path, query }) => {
                    let pairs: Vec<_> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    format!("{path}?{}", pairs.join("&"))
                }
                other => format!("{other:?}"),
            }
        };
        for (link, address) in [
            ("?page=2", "/v1/orgs/7/items?page=2"),
            ("next?page=2", "/v1/orgs/7/next?page=2"),
            ("./items?page=2", "/v1/orgs/7/items?page=2"),
            ("../8/items?page=2", "/v1/orgs/8/items?page=2"),
            ("../../../../../x", "/x?"),
            ("/v2/items?page=2#top", "/v2/items?page=2"),
            ("//api.example.com/v2?page=2", "/v2?page=2"),
            ("https://api.example.com/v2?page=2", "/v2?page=2"),
            // A scheme without an authority is resolved like a relative link by URL parsers for the web.
            ("https:/v2?page=2", "/v2?page=2"),
            ("?q=a+b&page=2", "/v1/orgs/7/items?q=a b&page=2"),
            ("%2e%2e/x", "/v1/orgs/x?"),
            // Each of these names the page itself.
            ("", "None"),
            ("#more", "None"),
            ("?q=a%20b", "None"),
            ("items?q=a+b", "None"),
        ] {
            assert_eq!(resolved("/v1/orgs/7/items", link), address, "{link}");
        }
        assert_eq!(resolved("/v1/items/", "next?page=2"), "/v1/items/next?page=2");
        assert_eq!(resolved("/a%2Fb/c", "?page=2"), "/a%2Fb/c?page=2", "an encoded slash stays encoded");
        let itself = next_page(PagingForm::Link, PagePosition::First, json!([]), Some("<?q=a%20b>; rel=next"));
        assert_eq!(itself, Ok(NextPage::Lost));
    }

    proptest::proptest! {
        #[test]
        fn a_resolved_link_is_a_path_on_the_origin(
            path in "(/[a-z0-9%2F.~]{0,5}){1,4}",
            link in proptest::prop_oneof![".{0,40}", "[/\\\\.:?#@%a-z0-9\\[\\]]{0,20}", "(https?:)?[/\\\\]{0,3}[a-z.@:0-9]{0,12}[/?#][./a-z%2]{0,9}"],
        ) {
            let origin = Origin::parse("https://api.example.com").unwrap();
            let page = PageAddress { origin: &origin, path, query: vec![] };
            if let Ok(Some(PagePosition::Address { path, .. })) = resolve_link(&page, &link) {
                proptest::prop_assert!(path.starts_with('/') && !path.starts_with("//"), "{path}");
                let sent = Url::parse(&format!("{origin}{path}")).unwrap();
                proptest::prop_assert_eq!((sent.host_str(), sent.path()), (Some("api.example.com"), path.as_str()));
                proptest::prop_assert!(sent.query().is_none() && sent.fragment().is_none() && sent.port().is_none());
            }
        }
    }

    #[test]
    fn a_link_header_is_read_in_the_forms_that_servers_write() {
        let next_of = |link| match next_page(PagingForm::Link, PagePosition::First, json!([]), Some(link)) {
            Ok(NextPage::At(PagePosition::Address { path, query })) => format!("{path}{query:?}"),
            other => format!("{other:?}"),
        };
        assert_eq!(next_of(r#"</x?page=2>; rel="next", </x?page=9>; rel="last""#), r#"/x[("page", "2")]"#);
        assert_eq!(next_of(r#"</x?page=1>; rel="prev",</x?page=3>; title="a, b"; rel=next"#), r#"/x[("page", "3")]"#);
        assert_eq!(next_of(r#"</x>; rel="last prev""#), "Ok(End)");
        assert_eq!(next_of("garbage"), "Ok(End)");
        assert_eq!(next_of("<unclosed"), "Ok(End)");
    }

    #[test]
    fn a_repeated_cursor_is_lost_and_no_cursor_is_the_end() {
        let form = || PagingForm::Cursor { read: "next".to_owned().into(), send: "cursor".into() };
        let read = |at, body| next_page(form(), at, body, None);
        assert_eq!(read(PagePosition::First, json!({"next": "b"})), Ok(NextPage::At(PagePosition::Cursor("b".into()))));
        assert_eq!(read(PagePosition::Cursor("b".into()), json!({"next": "b"})), Ok(NextPage::Lost));
        for end in [json!({}), json!({"next": null}), json!({"next": ""})] {
            assert_eq!(read(PagePosition::First, end), Ok(NextPage::End));
        }
        assert_eq!(read(PagePosition::First, json!({"next": 7})), Ok(NextPage::At(PagePosition::Cursor("7".into()))));
        assert!(read(PagePosition::First, json!({"next": {}})).is_err());
    }
}
