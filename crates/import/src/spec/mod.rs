//! A specification as a document: OpenAPI 3.0 and 3.1 or Swagger 2.0, in JSON or YAML, with its references.
//! Invariant: references are followed on demand and never inlined. A cyclic, dangling or remote one leads to `Null`.

mod operation;
mod schema;

use std::cell::RefCell;
use std::collections::HashSet;

use serde_json::{Map, Value};

pub use operation::{DeclaredAnswer, FormField, Operation, Param, ParamLocation, RequestBody, Verb};
pub use schema::{Object, Prop, Scalar, SchemaReader};

use crate::ImportError;

/// The size of a file. The largest known specification has 47 MB.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// The length of a chain of references to references; a real one has two or three.
const MAX_HOPS: usize = 16;

/// The number of remote references that are remembered, so that a file full of them does not fill the memory.
const MAX_REMOTE: usize = 10_000;

pub struct Spec {
    root: Value,
    /// Whether this is Swagger 2.0, which puts many things elsewhere than OpenAPI.
    pub is_swagger: bool,
    /// References that lead out of the file. They are not followed, and the report says how many there are.
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
        let is_swagger = version("swagger").starts_with('2');
        if !is_swagger && !version("openapi").starts_with('3') {
            return Err(ImportError::NotOpenApi);
        }
        Ok(Self { root, is_swagger, remote: RefCell::default() })
    }

    pub fn root(&self) -> &Value {
        &self.root
    }

    /// Returns how many different remote references were met so far.
    pub fn remote_references(&self) -> usize {
        self.remote.borrow().len()
    }

    /// Follows `$ref`s and returns the value that they lead to; `Null` where they lead nowhere.
    pub fn follow<'a>(&'a self, value: &'a Value) -> &'a Value {
        let mut at = value;
        for _ in 0..MAX_HOPS {
            let Some(reference) = at.get("$ref").and_then(Value::as_str) else { return at };
            let Some(pointer) = reference.strip_prefix('#') else {
                let mut remote = self.remote.borrow_mut();
                if remote.len() < MAX_REMOTE {
                    remote.insert(reference.to_owned());
                }
                return &Value::Null;
            };
            match self.resolve(pointer) {
                Some(target) => at = target,
                None => return &Value::Null,
            }
        }
        &Value::Null
    }

    /// Returns the value at a JSON pointer, which may be percent-encoded as part of a URI.
    fn resolve(&self, pointer: &str) -> Option<&Value> {
        // `Value::pointer` copies each name twice for its escapes, which hardly any reference has.
        let target =
            if pointer.contains('~') { self.root.pointer(pointer) } else { resolve_unescaped(&self.root, pointer) };
        if target.is_some() || !pointer.contains('%') {
            return target;
        }
        let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
        self.root.pointer(&decoded)
    }

    /// Returns the map of the document at this path of names.
    pub fn map(&self, path: &[&str]) -> Option<&Map<String, Value>> {
        path.iter().try_fold(&self.root, |at, name| at.get(name))?.as_object()
    }

    /// Returns the text of the document at this path of names; empty where there is none.
    pub fn text(&self, path: &[&str]) -> &str {
        path.iter().try_fold(&self.root, |at, name| at.get(name)).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Returns the value at a JSON pointer that has no escapes.
fn resolve_unescaped<'v>(root: &'v Value, pointer: &str) -> Option<&'v Value> {
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

/// Parses JSON or YAML to one value.
pub fn document(bytes: &[u8]) -> Result<Value, ImportError> {
    if bytes.len() > MAX_BYTES {
        return Err(ImportError::TooLarge { found: bytes.len(), most: MAX_BYTES });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| ImportError::NotText)?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with(['{', '[']) {
        match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            // YAML in flow style begins with a bracket too. It is no JSON, whose parser stops at the first plain word.
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
