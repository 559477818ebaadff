//! The analysis of JSON schemas: properties of objects, items of arrays, types of scalars, names of references.
//! Invariant: a reference cycle ends at the second visit. Schemas are never copied, and each object is flattened once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::Spec;

/// The maximum nesting of `allOf` and of wrapper schemas.
const MAX_SCHEMA_DEPTH: usize = 12;

/// The maximum number of properties of one object. The largest real objects have some hundreds.
const MAX_PROPERTIES_PER_OBJECT: usize = 2_000;

/// One property of an object.
#[derive(Debug, Clone, Copy)]
pub struct Prop<'a> {
    pub schema: &'a Value,
    pub required: bool,
}

/// The properties of an object, including those from `allOf`, `oneOf` and `anyOf`.
#[derive(Debug, Default)]
pub struct Object<'a> {
    pub props: IndexMap<&'a str, Prop<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    Text,
    Integer,
    Number,
    Boolean,
}

impl Scalar {
    /// Returns the scalar for the value of a `type` key; `None` for `object`, `array` and unknown types.
    fn of_kind(kind: &str) -> Option<Self> {
        Some(match kind {
            "string" => Self::Text,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }
}

/// Analyses the schemas of one specification and caches the results. A schema is identified by its memory address, which is
/// stable because the specification is borrowed for the reader's lifetime.
pub struct SchemaReader<'a> {
    pub spec: &'a Spec,
    /// Flattened objects by the address of the opened schema.
    objects: RefCell<HashMap<usize, Rc<Object<'a>>>>,
    /// Opened schemas by the address of the original schema. The importer opens the same schemas many times.
    opened: RefCell<FxHashMap<usize, &'a Value>>,
}

impl<'a> SchemaReader<'a> {
    pub fn new(spec: &'a Spec) -> Self {
        Self { spec, objects: RefCell::default(), opened: RefCell::default() }
    }

    /// Opens a schema: follows references and removes wrappers around one schema (`allOf` of one, `oneOf` of one and null).
    pub fn open(&self, schema: &'a Value) -> &'a Value {
        let id = std::ptr::from_ref(schema) as usize;
        if let Some(known) = self.opened.borrow().get(&id) {
            return known;
        }
        let opened = self.open_uncached(schema);
        self.opened.borrow_mut().insert(id, opened);
        opened
    }

    fn open_uncached(&self, schema: &'a Value) -> &'a Value {
        let mut at = self.spec.follow(schema);
        for _ in 0..MAX_SCHEMA_DEPTH {
            match self.only_inner(at) {
                Some(inner) => at = self.spec.follow(inner),
                None => break,
            }
        }
        at
    }

    /// Returns the inner schema if the schema is a wrapper around exactly one schema.
    fn only_inner(&self, at: &'a Value) -> Option<&'a Value> {
        if at.get("properties").is_some() {
            return None;
        }
        let all = at.get("allOf").and_then(Value::as_array);
        if let Some([only]) = all.map(Vec::as_slice) {
            return Some(only);
        }
        match self.alternatives(at).as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the alternatives of `oneOf` or `anyOf`, except null.
    pub fn alternatives(&self, at: &'a Value) -> Vec<&'a Value> {
        let list = at
            .get("oneOf")
            .or_else(|| at.get("anyOf"))
            .or_else(|| misplaced_alternatives(at))
            .and_then(Value::as_array);
        let is_null = |arm: &Value| {
            let arm = self.spec.follow(arm);
            arm.get("type").and_then(Value::as_str) == Some("null")
                || arm.get("enum").and_then(Value::as_array).is_some_and(|e| e.iter().all(|v| v.is_null() || v == ""))
        };
        list.into_iter().flatten().filter(|arm| !is_null(arm)).take(64).collect()
    }

    /// Returns the name of the schema in the specification, if the schema is a reference or a wrapper around a reference.
    pub fn schema_name(&self, schema: &'a Value) -> Option<&'a str> {
        let mut at = schema;
        for _ in 0..MAX_SCHEMA_DEPTH {
            if let Some(reference) = at.get("$ref").and_then(Value::as_str) {
                // A target that is only another reference is an alias, so the name of its own target is used.
                let target = self.spec.root().pointer(reference.strip_prefix('#')?)?;
                match target.get("$ref") {
                    Some(_) => at = target,
                    None => return reference.rsplit('/').next(),
                }
                continue;
            }
            let all = at.get("allOf").and_then(Value::as_array).filter(|_| at.get("properties").is_none());
            at = match all {
                Some(all) => all.iter().find(|part| part.get("$ref").is_some())?,
                None => self.alternatives(at).into_iter().find(|arm| self.is_object(arm))?,
            };
        }
        None
    }

    /// Returns the `type` of an opened schema, or the type that its other keys imply. Of several types, the first that is not
    /// null is returned.
    fn kind(&self, opened: &'a Value) -> Option<&'a str> {
        match opened.get("type") {
            Some(Value::String(kind)) => Some(kind),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
            _ if opened.get("items").is_some_and(Value::is_object) && misplaced_alternatives(opened).is_none() => {
                Some("array")
            }
            _ if opened.get("properties").is_some() || opened.get("allOf").is_some() => Some("object"),
            _ => match opened.get("enum").and_then(|e| e.get(0)) {
                Some(Value::String(_)) => Some("string"),
                Some(Value::Number(_)) => Some("integer"),
                _ => None,
            },
        }
    }

    pub fn is_object(&self, schema: &'a Value) -> bool {
        let opened = self.open(schema);
        match self.kind(opened) {
            Some("object") => true,
            Some(_) => false,
            None => {
                let arms = self.alternatives(opened);
                !arms.is_empty() && arms.iter().all(|arm| self.kind(self.open(arm)) == Some("object"))
            }
        }
    }

    /// Returns the schema of an array's items; `None` if the schema is not an array.
    pub fn items(&self, schema: &'a Value) -> Option<&'a Value> {
        let opened = self.open(schema);
        (self.kind(opened) == Some("array")).then(|| opened.get("items").unwrap_or(&Value::Null))
    }

    /// Returns the scalar type of a schema. A schema with alternatives has one only if all alternatives have the same.
    pub fn scalar(&self, schema: &'a Value) -> Option<Scalar> {
        let opened = self.open(schema);
        if let Some(kind) = self.kind(opened) {
            return Scalar::of_kind(kind);
        }
        let mut scalars = self.alternatives(opened).into_iter().map(|arm| Scalar::of_kind(self.kind(self.open(arm))?));
        let first = scalars.next()??;
        scalars.all(|scalar| scalar == Some(first)).then_some(first)
    }

    /// Returns whether the schema allows any value, because it has no key that restricts the type.
    pub fn is_any(&self, schema: &'a Value) -> bool {
        let opened = self.open(schema);
        let keys = ["type", "properties", "items", "allOf", "oneOf", "anyOf", "enum"];
        !keys.iter().any(|key| opened.get(key).is_some())
    }

    /// Returns the flattened properties of an object schema. Other schemas have no properties.
    pub fn object(&self, schema: &'a Value) -> Rc<Object<'a>> {
        let opened = self.open(schema);
        let id = std::ptr::from_ref(opened) as usize;
        if let Some(known) = self.objects.borrow().get(&id) {
            return known.clone();
        }
        let mut object = Object::default();
        self.flatten(opened, &mut object, &mut Vec::new(), true);
        let object = Rc::new(object);
        self.objects.borrow_mut().insert(id, object.clone());
        object
    }

    /// Adds the properties of a schema and of its parts to `into`. `within` has the addresses of the enclosing schemas, to
    /// detect cycles. `certain` is false inside one of several alternatives, whose required properties may be absent.
    fn flatten(&self, at: &'a Value, into: &mut Object<'a>, within: &mut Vec<usize>, certain: bool) {
        let at = self.spec.follow(at);
        let id = std::ptr::from_ref(at) as usize;
        if within.len() > MAX_SCHEMA_DEPTH || within.contains(&id) || into.props.len() > MAX_PROPERTIES_PER_OBJECT {
            return;
        }
        within.push(id);
        for part in at.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.flatten(part, into, within, certain);
        }
        let required: Vec<&str> =
            at.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, schema) in at.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let prop = Prop { schema, required: certain && required.contains(&name.as_str()) };
            let known = into.props.entry(name).or_insert(prop);
            known.required |= prop.required;
            // A later schema of the same property is more specific, unless it allows any value.
            if !self.is_any(schema) {
                known.schema = schema;
            }
        }
        for name in required.iter().filter(|_| certain) {
            if let Some(prop) = into.props.get_mut(name) {
                prop.required = true;
            }
        }
        let alternatives = self.alternatives(at);
        let certain = certain && alternatives.len() == 1;
        for arm in alternatives {
            self.flatten(arm, into, within, certain);
        }
        within.pop();
    }
}

/// Returns alternatives that are wrongly under `items` of a schema without a type. Some converters write this form.
fn misplaced_alternatives(at: &Value) -> Option<&Value> {
    if at.get("type").is_some() {
        return None;
    }
    match at.get("items")? {
        Value::Array(_) => at.get("items"),
        Value::Object(map) if map.len() == 1 => map.get("anyOf").or_else(|| map.get("oneOf")),
        _ => None,
    }
}
