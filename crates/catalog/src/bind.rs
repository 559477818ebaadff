//! A call to a request: values into the holes of a capability's mapping.
//! Invariant: the request's origin is the catalog's; a value is encoded, never interpreted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base::Request;
use serde_json::Value;

use crate::model::{Capability, Catalog};
use crate::paging::{PageAt, PageRequest};
use crate::template::Hole;

/// Parameter names to checked values. `null` is the same as absent.
pub type Args = BTreeMap<String, Value>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    #[error("`{capability}` needs a value for `{param}`")]
    Missing { capability: String, param: String },
    #[error("`{capability}`: this value of `{param}` cannot be part of a path (it is empty, `.` or `..`)")]
    Unsafe { capability: String, param: String },
}

pub fn bind(
    catalog: &Catalog,
    capability: &Capability,
    args: &Args,
    page: Option<&PageRequest>,
) -> Result<Request, BindError> {
    let value = |hole: &Hole| hole_text(args, hole);
    for hole in capability.http.path.holes() {
        let param = hole.param.clone();
        match value(hole) {
            None => {
                return Err(BindError::Missing { capability: capability.name.clone(), param });
            }
            Some(text) if text.is_empty() || text == "." || text == ".." => {
                return Err(BindError::Unsafe { capability: capability.name.clone(), param });
            }
            Some(_) => {}
        }
    }
    let path = capability.http.path.fill_path(value).unwrap_or_default();
    let mut query: Vec<(String, String)> = Vec::new();
    for (name, template) in &capability.http.query {
        if let Some(text) = template.fill_text(value) {
            query.push((name.clone(), text));
        }
    }
    let mut path = format!("{}{path}", catalog.base_path);
    if let (Some(paging), Some(page)) = (&capability.paging, page) {
        match &page.at {
            // The API's own address of the page, with everything in it.
            PageAt::Place { path: there, query: pairs } => (path, query) = (there.clone(), pairs.clone()),
            _ => paging.ask(page, &mut query),
        }
    }
    Ok(Request {
        method: capability.http.method,
        origin: catalog.origin.clone(),
        path,
        query,
        headers: Vec::new(),
        body: None,
        auth: catalog.auth.clone(),
    })
}

fn hole_text<'v>(args: &'v Args, hole: &Hole) -> Option<Cow<'v, str>> {
    let value = args.get(&hole.param)?;
    let value = match (&hole.part, value) {
        (None, value) => value,
        (Some(part), Value::Object(parts)) => parts.get(part)?,
        // A reference with a one-part key is that part.
        (Some(_), scalar) => scalar,
    };
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(items) => Some(Cow::Owned(items.iter().map(scalar_text).collect::<Vec<_>>().join(","))),
        other => Some(Cow::Owned(scalar_text(other))),
    }
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // 7.0 and 7 are the same integer; a server would see two different ids.
        Value::Number(n) => match n.as_f64() {
            Some(f) if !n.is_i64() && !n.is_u64() && f.fract() == 0.0 && f.abs() < 9e15 => format!("{f:.0}"),
            _ => n.to_string(),
        },
        other => other.to_string(),
    }
}
