//! Schemas, seen as what a catalog asks of them: an object's properties, an array's items, a scalar's kind.
//! Invariant: a ring of references ends at the second visit; nothing is copied, and each object is flattened once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::Spec;

/// `allOf` inside `allOf`.
const MAX_DEPTH: usize = 12;

/// Properties of one object; the largest real ones have some hundreds.
const MAX_PROPS: usize = 2_000;

#[derive(Debug, Clone, Copy)]
pub struct Prop<'a> {
    pub schema: &'a Value,
    pub required: bool,
}

/// An object with everything that `allOf`, `oneOf` and `anyOf` add to it.
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

pub struct Reader<'a> {
    pub spec: &'a Spec,
    flat: RefCell<HashMap<usize, Rc<Object<'a>>>>,
    /// What a schema is, by its place in memory: the same few are asked for again and again.
    opened: RefCell<FxHashMap<usize, &'a Value>>,
}

impl<'a> Reader<'a> {
    pub fn new(spec: &'a Spec) -> Self {
        Self { spec, flat: RefCell::default(), opened: RefCell::default() }
    }

    /// The schema itself: references followed, wrappers of one (`allOf` of one, `oneOf` of one and null) opened.
    pub fn open(&self, schema: &'a Value) -> &'a Value {
        let id = std::ptr::from_ref(schema) as usize;
        if let Some(known) = self.opened.borrow().get(&id) {
            return known;
        }
        let opened = self.opened_now(schema);
        self.opened.borrow_mut().insert(id, opened);
        opened
    }

    fn opened_now(&self, schema: &'a Value) -> &'a Value {
        let mut at = self.spec.follow(schema);
        for _ in 0..MAX_DEPTH {
            match self.inner(at) {
                Some(inner) => at = self.spec.follow(inner),
                None => break,
            }
        }
        at
    }

    fn inner(&self, at: &'a Value) -> Option<&'a Value> {
        if at.get("properties").is_some() {
            return None;
        }
        let all = at.get("allOf").and_then(Value::as_array);
        if let Some([only]) = all.map(Vec::as_slice) {
            return Some(only);
        }
        match self.arms(at).as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// What `oneOf` or `anyOf` offer beside null.
    pub fn arms(&self, at: &'a Value) -> Vec<&'a Value> {
        let list = at.get("oneOf").or_else(|| at.get("anyOf")).or_else(|| lost_arms(at)).and_then(Value::as_array);
        let is_null = |arm: &Value| {
            let arm = self.spec.follow(arm);
            arm.get("type").and_then(Value::as_str) == Some("null")
                || arm.get("enum").and_then(Value::as_array).is_some_and(|e| e.iter().all(|v| v.is_null() || v == ""))
        };
        list.into_iter().flatten().filter(|arm| !is_null(arm)).take(64).collect()
    }

    /// The name that the schema has in the specification, where it is a reference or a wrapper of one.
    pub fn ident(&self, schema: &'a Value) -> Option<&'a str> {
        let mut at = schema;
        for _ in 0..MAX_DEPTH {
            if let Some(reference) = at.get("$ref").and_then(Value::as_str) {
                // A name for nothing but another reference is that other.
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
                None => self.arms(at).into_iter().find(|arm| self.is_object(arm))?,
            };
        }
        None
    }

    /// Its type, where it says one; of several the first that is not null.
    pub fn kind(&self, opened: &'a Value) -> Option<&'a str> {
        match opened.get("type") {
            Some(Value::String(kind)) => Some(kind),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
            _ if opened.get("items").is_some_and(Value::is_object) && lost_arms(opened).is_none() => Some("array"),
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
                let arms = self.arms(opened);
                !arms.is_empty() && arms.iter().all(|arm| self.kind(self.open(arm)) == Some("object"))
            }
        }
    }

    pub fn items(&self, schema: &'a Value) -> Option<&'a Value> {
        let opened = self.open(schema);
        (self.kind(opened) == Some("array")).then(|| opened.get("items").unwrap_or(&Value::Null))
    }

    pub fn scalar(&self, schema: &'a Value) -> Option<Scalar> {
        let opened = self.open(schema);
        if let Some(kind) = self.kind(opened) {
            return Some(match kind {
                "string" => Scalar::Text,
                "integer" => Scalar::Integer,
                "number" => Scalar::Number,
                "boolean" => Scalar::Boolean,
                _ => return None,
            });
        }
        let arms = self.arms(opened);
        let mut kinds = arms.iter().map(|arm| self.kind(self.open(arm)));
        let first = kinds.next()??;
        let of = |kind| match kind {
            "string" => Some(Scalar::Text),
            "integer" => Some(Scalar::Integer),
            "number" => Some(Scalar::Number),
            "boolean" => Some(Scalar::Boolean),
            _ => None,
        };
        let first = of(first)?;
        let rest: Option<Vec<Scalar>> = kinds.map(|kind| of(kind?)).collect();
        rest.filter(|rest| rest.iter().all(|other| *other == first)).map(|_| first)
    }

    /// Whether it says nothing about what it describes.
    pub fn is_any(&self, schema: &'a Value) -> bool {
        let opened = self.open(schema);
        let says = ["type", "properties", "items", "allOf", "oneOf", "anyOf", "enum"];
        !says.iter().any(|key| opened.get(key).is_some())
    }

    pub fn object(&self, schema: &'a Value) -> Rc<Object<'a>> {
        let opened = self.open(schema);
        let id = std::ptr::from_ref(opened) as usize;
        if let Some(known) = self.flat.borrow().get(&id) {
            return known.clone();
        }
        let mut object = Object::default();
        self.flatten(opened, &mut object, &mut Vec::new(), true);
        let object = Rc::new(object);
        self.flat.borrow_mut().insert(id, object.clone());
        object
    }

    fn flatten(&self, at: &'a Value, into: &mut Object<'a>, within: &mut Vec<usize>, sure: bool) {
        let at = self.spec.follow(at);
        let id = std::ptr::from_ref(at) as usize;
        if within.len() > MAX_DEPTH || within.contains(&id) || into.props.len() > MAX_PROPS {
            return;
        }
        within.push(id);
        for part in at.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.flatten(part, into, within, sure);
        }
        let required: Vec<&str> =
            at.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, schema) in at.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let prop = Prop { schema, required: sure && required.contains(&name.as_str()) };
            let known = into.props.entry(name).or_insert(prop);
            known.required |= prop.required;
            // The later and more special one says more, unless it says nothing.
            if !self.is_any(schema) {
                known.schema = schema;
            }
        }
        for name in required.iter().filter(|_| sure) {
            if let Some(prop) = into.props.get_mut(name) {
                prop.required = true;
            }
        }
        let alternatives = self.arms(at);
        let sure = sure && alternatives.len() == 1;
        for arm in alternatives {
            self.flatten(arm, into, within, sure);
        }
        within.pop();
    }
}

/// Several schemas as the items of nothing: written by a converter that lost where they were from.
fn lost_arms(at: &Value) -> Option<&Value> {
    if at.get("type").is_some() {
        return None;
    }
    match at.get("items")? {
        Value::Array(_) => at.get("items"),
        Value::Object(map) if map.len() == 1 => map.get("anyOf").or_else(|| map.get("oneOf")),
        _ => None,
    }
}
