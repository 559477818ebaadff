//! A specification as it was written: OpenAPI 3.0 and 3.1, Swagger 2.0, in JSON or YAML.
//! Invariant: references are followed on demand and never inlined; a ring, a dangling or a remote one leads to nothing.

mod operation;
mod schema;

use std::cell::RefCell;
use std::collections::HashSet;

use serde_json::{Map, Value};

pub use operation::{Answer, Body, FormField, In, Operation, Param, Verb};
pub use schema::{Object, Reader, Scalar};

use crate::ImportError;

/// The largest known is 47 MB; a file beyond this is no specification.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// References to references; a real chain has two or three.
const MAX_HOPS: usize = 16;

pub struct Spec {
    root: Value,
    /// Swagger 2.0.
    pub old: bool,
    /// References that lead out of the file, which are not followed.
    remote: RefCell<HashSet<String>>,
}

impl Spec {
    pub fn parse(bytes: &[u8]) -> Result<Self, ImportError> {
        let root = document(bytes)?;
        let version = |key: &str| match root.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let old = version("swagger").starts_with('2');
        if !old && !version("openapi").starts_with('3') {
            return Err(ImportError::NotOpenApi);
        }
        Ok(Self { root, old, remote: RefCell::default() })
    }

    pub fn root(&self) -> &Value {
        &self.root
    }

    pub fn remote(&self) -> usize {
        self.remote.borrow().len()
    }

    /// The value itself, after following `$ref`s; `Null` where they lead nowhere.
    pub fn follow<'a>(&'a self, value: &'a Value) -> &'a Value {
        let mut at = value;
        for _ in 0..MAX_HOPS {
            let Some(reference) = at.get("$ref").and_then(Value::as_str) else { return at };
            let Some(pointer) = reference.strip_prefix('#') else {
                let mut remote = self.remote.borrow_mut();
                if remote.len() < 10_000 {
                    remote.insert(reference.to_owned());
                }
                return &Value::Null;
            };
            match self.pointed(pointer) {
                Some(found) => at = found,
                None => return &Value::Null,
            }
        }
        &Value::Null
    }

    fn pointed(&self, pointer: &str) -> Option<&Value> {
        // why: `Value::pointer` copies each name twice for its escapes, which hardly any reference has.
        let found = if pointer.contains('~') { self.root.pointer(pointer) } else { walk(&self.root, pointer) };
        if found.is_some() || !pointer.contains('%') {
            return found;
        }
        let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
        self.root.pointer(&decoded)
    }

    /// A map of the document by its path of names.
    pub fn map(&self, path: &[&str]) -> Option<&Map<String, Value>> {
        path.iter().try_fold(&self.root, |at, name| at.get(name))?.as_object()
    }

    pub fn text(&self, path: &[&str]) -> &str {
        path.iter().try_fold(&self.root, |at, name| at.get(name)).and_then(Value::as_str).unwrap_or_default()
    }
}

/// A pointer without escapes.
fn walk<'v>(root: &'v Value, pointer: &str) -> Option<&'v Value> {
    let names = match pointer.split_once('/') {
        None if pointer.is_empty() => return Some(root),
        Some(("", names)) => names,
        _ => return None,
    };
    names.split('/').try_fold(root, |at, name| match at {
        Value::Object(map) => map.get(name),
        Value::Array(list) if !name.starts_with('+') => list.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// JSON or YAML as one value.
pub fn document(bytes: &[u8]) -> Result<Value, ImportError> {
    if bytes.len() > MAX_BYTES {
        return Err(ImportError::TooLarge { found: bytes.len(), most: MAX_BYTES });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| ImportError::NotText)?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with(['{', '[']) {
        match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            // YAML in flow style begins so too, and then JSON ends at its first plain word.
            Err(error) if error.is_syntax() && text.len() < 1 << 20 => {
                return yaml(text).map_err(|_| ImportError::NotJson(error.to_string()));
            }
            Err(error) => return Err(ImportError::NotJson(error.to_string())),
        }
    }
    yaml(text)
}

fn yaml(text: &str) -> Result<Value, ImportError> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_events: 20_000_000, max_nodes: 10_000_000, max_documents: 1, max_depth: 120 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 400_000 },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line: String = error.to_string().lines().next().unwrap_or_default().chars().take(200).collect();
        ImportError::NotYaml(line)
    })
}
