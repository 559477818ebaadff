//! The document of a specification (OpenAPI 3.0, 3.1 or Swagger 2.0, in JSON or YAML) and the resolution of its references.
//! Invariant: references are followed on demand and never inlined. A cyclic, dangling or remote reference resolves to `Null`.

mod operation;
mod schema;

use std::cell::RefCell;
use std::collections::HashSet;

use serde_json::{Map, Value};

pub use operation::{DeclaredAnswer, FormField, Operation, Param, ParamLocation, RequestBody, Verb};
pub use schema::{Object, Prop, Scalar, SchemaReader};

use crate::ImportError;

/// The maximum size of a specification in bytes. The largest known one has 47 MB.
const MAX_FILE_BYTES: usize = 256 * 1024 * 1024;

/// The maximum length of a chain of references to references. Real chains have two or three links.
const MAX_REFERENCE_HOPS: usize = 16;

/// The maximum number of remote references that are stored for the report. It bounds the memory for a hostile file.
const MAX_REMOTE_REFERENCES: usize = 10_000;

pub struct Spec {
    root: Value,
    /// Whether the document is Swagger 2.0, which uses other keys than OpenAPI 3 for many parts.
    pub is_swagger: bool,
    /// The different references to other files. They are not followed; the report contains their number.
    remote: RefCell<HashSet<String>>,
}

impl Spec {
    pub fn parse(bytes: &[u8]) -> Result<Self, ImportError> {
        let root = parse_document(bytes)?;
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

    /// Returns the number of different remote references that were found so far.
    pub fn remote_references(&self) -> usize {
        self.remote.borrow().len()
    }

    /// Follows `$ref`s and returns the value at their end; `Null` if a reference cannot be resolved.
    pub fn follow<'a>(&'a self, value: &'a Value) -> &'a Value {
        let mut at = value;
        for _ in 0..MAX_REFERENCE_HOPS {
            let Some(reference) = at.get("$ref").and_then(Value::as_str) else { return at };
            let Some(pointer) = reference.strip_prefix('#') else {
                let mut remote = self.remote.borrow_mut();
                if remote.len() < MAX_REMOTE_REFERENCES {
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

    /// Returns the value at a JSON pointer. The pointer may be percent-encoded, because a `$ref` is a URI.
    fn resolve(&self, pointer: &str) -> Option<&Value> {
        // `Value::pointer` copies each name twice to replace escapes. Few references contain escapes, so the others skip it.
        let target =
            if pointer.contains('~') { self.root.pointer(pointer) } else { resolve_unescaped(&self.root, pointer) };
        if target.is_some() || !pointer.contains('%') {
            return target;
        }
        let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
        self.root.pointer(&decoded)
    }

    /// Returns the object at this path of keys; `None` if there is none.
    pub fn map(&self, path: &[&str]) -> Option<&Map<String, Value>> {
        path.iter().try_fold(&self.root, |at, name| at.get(name))?.as_object()
    }

    /// Returns the text at this path of keys, or an empty text if there is none.
    pub fn text(&self, path: &[&str]) -> &str {
        path.iter().try_fold(&self.root, |at, name| at.get(name)).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Returns the value at a JSON pointer without escapes.
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
pub fn parse_document(bytes: &[u8]) -> Result<Value, ImportError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ImportError::TooLarge { found: bytes.len(), most: MAX_FILE_BYTES });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| ImportError::NotText)?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with(['{', '[']) {
        match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            // A YAML document in flow style also starts with a bracket. The JSON parser refuses it at the first unquoted word.
            Err(error) if error.is_syntax() && text.len() < 1 << 20 => {
                return parse_yaml(text).map_err(|_| ImportError::NotJson(error.to_string()));
            }
            Err(error) => return Err(ImportError::NotJson(error.to_string())),
        }
    }
    parse_yaml(text)
}

fn parse_yaml(text: &str) -> Result<Value, ImportError> {
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
