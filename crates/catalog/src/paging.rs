//! Lists in pages: how the next page is asked for, from what the last one said.
//! Invariant: a next link is followed only on the catalog's own origin; a list that repeats itself ends.

use base::{Origin, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use crate::path::DataPath;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paging {
    pub form: PagingForm,
    pub size: Option<PageSize>,
    /// How many rows there are in all, where the answer says so.
    pub total: Option<DataPath>,
    /// Whether there is a next page, where the answer says so in a flag of its own.
    pub more: Option<DataPath>,
    /// Where the page is asked for.
    pub place: Place,
}

/// What carries the request for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    #[default]
    Query,
    /// A key of the JSON or form body.
    Body,
    /// A variable of the GraphQL document.
    Variable,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PagingForm {
    /// A page number in the parameter `send`, counted from `from`.
    Page { send: String, from: u64 },
    /// How many rows to skip, in the parameter `send`.
    Offset { send: String },
    /// An opaque word from the answer, sent back in the parameter `send`; none or `null` ends the list.
    Cursor { read: DataPath, send: String },
    /// The `Link` header's `rel="next"`.
    Link,
    /// A URL in the answer; none or `null` ends the list.
    Next { read: DataPath },
    /// A field of the last row, sent back in the parameter `send`; an empty page, or the flag `more`, ends the list.
    Last { field: String, send: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSize {
    pub send: String,
    pub max: usize,
}

/// Which page to ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRequest {
    pub at: PageAt,
    /// Rows to ask for, where the API takes a size.
    pub size: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageAt {
    First,
    /// The page's index, from 0.
    Number(u64),
    /// Rows to skip.
    Skip(u64),
    Cursor(String),
    /// A path and query on the catalog's origin, as the API gave them.
    Place {
        path: String,
        query: Vec<(String, String)>,
    },
}

/// Where a page leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum After {
    /// To this one.
    Next(PageAt),
    /// Nowhere: the list is complete.
    End,
    /// Nowhere, though the API said there is more, or said the same thing twice.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PagingError {
    #[error("the next page is on another origin ({0}), which is refused")]
    Foreign(String),
    #[error("the next page's address is not a URL")]
    NotUrl,
    #[error("the cursor at `{0}` is neither a word nor a number")]
    Cursor(String),
}

/// One page as it came.
pub struct Page<'a> {
    pub response: &'a Response,
    pub body: &'a Value,
    /// Rows on it.
    pub rows: usize,
    pub last: Option<&'a Map<String, Value>>,
}

impl Paging {
    /// What follows the page `asked`, when `seen` rows have come with it in all.
    pub fn after(
        &self,
        origin: &Origin,
        asked: &PageRequest,
        page: &Page<'_>,
        seen: usize,
    ) -> Result<After, PagingError> {
        let total = self.total.as_ref().and_then(|path| path.find(page.body)).and_then(|total| total.as_u64());
        let flag = self.more.as_ref().map(|path| path.find(page.body).is_some_and(|flag| *flag == Value::Bool(true)));
        if flag == Some(false) {
            return Ok(After::End);
        }
        let next = match &self.form {
            PagingForm::Page { .. } => {
                return Ok(self.counted(asked, page, (total, seen), PageAt::Number(number(asked) + 1)));
            }
            PagingForm::Offset { .. } => {
                return Ok(self.counted(asked, page, (total, seen), PageAt::Skip(seen as u64)));
            }
            PagingForm::Cursor { read, .. } => cursor(read, page.body)?.map(PageAt::Cursor),
            PagingForm::Link => link_next(page.response).map(|url| place(origin, &url)).transpose()?,
            PagingForm::Next { read } => match read.find(page.body).as_deref() {
                Some(Value::String(url)) if !url.is_empty() => Some(place(origin, url)?),
                None | Some(Value::Null | Value::Bool(false) | Value::String(_)) => None,
                Some(_) => return Err(PagingError::NotUrl),
            },
            PagingForm::Last { field, .. } => {
                let full = self.size.is_none() || page.rows >= asked.size;
                let last = page.last.filter(|_| full || flag == Some(true)).and_then(|row| row.get(field));
                last.map(|value| word(value, field)).transpose()?.flatten().map(PageAt::Cursor)
            }
        };
        Ok(match next {
            // The same place again would be read for ever.
            Some(next) if next == asked.at => After::Lost,
            Some(next) => After::Next(next),
            None if flag == Some(true) || total.is_some_and(|total| (seen as u64) < total) => After::Lost,
            None => After::End,
        })
    }

    /// Forms that say no place: the list ends when the total is reached, or on a page that is not full.
    fn counted(
        &self,
        asked: &PageRequest,
        page: &Page<'_>,
        (total, seen): (Option<u64>, usize),
        next: PageAt,
    ) -> After {
        let full = self.size.is_none() || page.rows >= asked.size;
        match total {
            Some(total) if seen as u64 >= total => After::End,
            // It promised more and gave nothing: what is missing, nobody knows.
            Some(_) if page.rows == 0 => After::Lost,
            Some(_) => After::Next(next),
            None if page.rows == 0 || !full => After::End,
            None => After::Next(next),
        }
    }

    /// What asks for this page: names and values, for the place that `place` says.
    pub(crate) fn ask(&self, page: &PageRequest) -> Vec<(&str, Value)> {
        let mut pairs = Vec::with_capacity(2);
        match (&self.form, &page.at) {
            (PagingForm::Page { send, from }, at) => {
                let index = if let PageAt::Number(index) = at { *index } else { 0 };
                pairs.push((send.as_str(), Value::from(from.saturating_add(index))));
            }
            (PagingForm::Offset { send }, PageAt::Skip(rows)) => pairs.push((send, Value::from(*rows))),
            (PagingForm::Cursor { send, .. } | PagingForm::Last { send, .. }, PageAt::Cursor(cursor)) => {
                pairs.push((send, Value::from(cursor.clone())));
            }
            _ => {}
        }
        if let Some(size) = &self.size {
            pairs.push((&size.send, Value::from(page.size)));
        }
        pairs
    }
}

fn number(asked: &PageRequest) -> u64 {
    if let PageAt::Number(index) = asked.at { index } else { 0 }
}

fn cursor(read: &DataPath, body: &Value) -> Result<Option<String>, PagingError> {
    read.find(body).map_or(Ok(None), |found| word(&found, &read.to_string()))
}

fn word(value: &Value, place: &str) -> Result<Option<String>, PagingError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(PagingError::Cursor(place.to_owned())),
    }
}

/// A link, absolute or relative to the origin, as a place on that origin.
fn place(origin: &Origin, link: &str) -> Result<PageAt, PagingError> {
    let home = Url::parse(origin.as_str()).map_err(|_| PagingError::NotUrl)?;
    let url = home.join(link).map_err(|_| PagingError::NotUrl)?;
    let same = url.scheme() == home.scheme()
        && url.host() == home.host()
        && url.port_or_known_default() == home.port_or_known_default()
        && url.username().is_empty()
        && url.password().is_none();
    // To whoever resolves it as a reference, `//host/x` is another host.
    if !same || url.path().starts_with("//") {
        let shown = url.host_str().unwrap_or("no host");
        return Err(PagingError::Foreign(shown.chars().take(100).collect()));
    }
    let query = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    Ok(PageAt::Place { path: url.path().to_owned(), query })
}

/// RFC 8288: `<url>; rel="next", <url>; rel="last"`.
fn link_next(response: &Response) -> Option<String> {
    let mut rest = response.header("link")?;
    while let Some(start) = rest.find('<') {
        let after = &rest[start + 1..];
        let (url, params) = after.split_once('>')?;
        let end = params.find(",<").or_else(|| params.find(", <")).unwrap_or(params.len());
        let is_next = params[..end].split(';').any(|param| {
            let (name, value) = param.trim().trim_end_matches(',').split_once('=').unwrap_or((param, ""));
            let words = value.trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("rel") && words.split(' ').any(|word| word.eq_ignore_ascii_case("next"))
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

    fn after(form: PagingForm, at: PageAt, body: Value, link: Option<&str>) -> Result<After, PagingError> {
        let paging = Paging { form, size: None, total: None, more: None, place: Place::Query };
        let headers = link.map(|l| ("link".to_owned(), l.to_owned())).into_iter().collect();
        let response = Response { status: 200, headers, body: Vec::new() };
        let origin = Origin::parse("https://api.example.com").unwrap();
        let page = Page { response: &response, body: &body, rows: 2, last: None };
        paging.after(&origin, &PageRequest { at, size: 2 }, &page, 2)
    }

    fn next(url: Value) -> Result<After, PagingError> {
        after(PagingForm::Next { read: "next".to_owned().into() }, PageAt::First, json!({"next": url}), None)
    }

    #[test]
    fn a_next_link_stays_on_its_origin() {
        let here = PageAt::Place { path: "/a/b".into(), query: vec![("c".into(), "d e".into())] };
        for good in ["https://api.example.com/a/b?c=d%20e", "/a/b?c=d+e", "HTTPS://API.EXAMPLE.COM:443/a/b?c=d%20e"] {
            assert_eq!(next(json!(good)), Ok(After::Next(here.clone())), "{good}");
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
        assert_eq!(next(Value::Null), Ok(After::End));
    }

    #[test]
    fn link_headers_as_servers_write_them() {
        let to = |link| match after(PagingForm::Link, PageAt::First, json!([]), Some(link)) {
            Ok(After::Next(PageAt::Place { path, query })) => format!("{path}{query:?}"),
            other => format!("{other:?}"),
        };
        assert_eq!(to(r#"</x?page=2>; rel="next", </x?page=9>; rel="last""#), r#"/x[("page", "2")]"#);
        assert_eq!(to(r#"</x?page=1>; rel="prev",</x?page=3>; title="a, b"; rel=next"#), r#"/x[("page", "3")]"#);
        assert_eq!(to(r#"</x>; rel="last prev""#), "Ok(End)");
        assert_eq!(to("garbage"), "Ok(End)");
        assert_eq!(to("<unclosed"), "Ok(End)");
    }

    #[test]
    fn a_cursor_that_repeats_is_lost_and_none_is_the_end() {
        let form = || PagingForm::Cursor { read: "next".to_owned().into(), send: "cursor".into() };
        let read = |at, body| after(form(), at, body, None);
        assert_eq!(read(PageAt::First, json!({"next": "b"})), Ok(After::Next(PageAt::Cursor("b".into()))));
        assert_eq!(read(PageAt::Cursor("b".into()), json!({"next": "b"})), Ok(After::Lost));
        for end in [json!({}), json!({"next": null}), json!({"next": ""})] {
            assert_eq!(read(PageAt::First, end), Ok(After::End));
        }
        assert_eq!(read(PageAt::First, json!({"next": 7})), Ok(After::Next(PageAt::Cursor("7".into()))));
        assert!(read(PageAt::First, json!({"next": {}})).is_err());
    }
}
