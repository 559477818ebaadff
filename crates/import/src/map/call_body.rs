//! Bodies: the properties of a JSON body or a form as parameters, parts of a multipart, bytes as they are.
//! Invariant: each input of the body is one parameter with one hole; what is too many is left out, never what must be given.

use serde_json::{Map, Value, json};

use super::Mapper;
use super::calls::{MAX_OPTIONAL, Making, Unsendable};
use crate::api::types;
use crate::draft::{Body, Param, Ty};
use crate::names;
use crate::spec::{self, FormField};

impl<'a> Mapper<'_, 'a> {
    pub(super) fn body(&self, making: &mut Making<'_>) -> Result<(), Unsendable> {
        match &self.views[making.plan.view].op.body {
            spec::Body::None => Ok(()),
            spec::Body::Form { multipart, fields } => self.form(making, *multipart, fields),
            spec::Body::Content { media, schema, required } => self.content(making, media, schema, *required),
        }
    }

    fn content(
        &self,
        making: &mut Making<'_>,
        media: &str,
        schema: &'a Value,
        required: bool,
    ) -> Result<(), Unsendable> {
        let kind = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let form = kind == "application/x-www-form-urlencoded";
        let multipart = kind.starts_with("multipart/");
        let json = kind.ends_with("json") || kind == "*/*" || kind.is_empty();
        if form || multipart {
            let object = self.reader.object(schema);
            let fields: Vec<FormField<'a>> = object
                .props
                .iter()
                .map(|(name, prop)| FormField { name, schema: prop.schema, required: prop.required })
                .collect();
            return self.form(making, multipart, &fields);
        }
        if !json {
            let fine = kind.split_once('/').is_some_and(|(a, b)| {
                let half = |half: &str| {
                    !half.is_empty() && half.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_.+".contains(&c))
                };
                half(a) && half(b)
            });
            let media = if fine { kind } else { "application/octet-stream".to_owned() };
            let hole = self.slot(making, "content", Ty::named("document"), true);
            making.made.body = Some(Body::Raw { hole, media });
            return Ok(());
        }
        let own = (kind != "application/json" && !kind.contains('*') && !kind.is_empty()).then_some(kind);
        if self.reader.is_object(schema) && !self.reader.object(schema).props.is_empty() {
            let shape = Value::Object(self.inputs(making, schema));
            making.made.body = Some(Body::Json { shape, media: own });
            return Ok(());
        }
        if self.reader.is_any(schema) && !required {
            return Ok(());
        }
        let typed = self.types.input(schema, true);
        let name = if matches!(typed.ty, Ty::Array(_) | Ty::MultiSelect(_)) { "items" } else { "body" };
        let hole = self.slot(making, name, typed.ty, required);
        making.made.body = Some(Body::Json { shape: json!(format!("{{{hole}}}")), media: own });
        Ok(())
    }

    /// A parameter of its own name, or of the nearest that is free.
    fn slot(&self, making: &mut Making<'_>, name: &str, ty: Ty, required: bool) -> String {
        let name = names::name(name);
        // What a row is identified by and what it is changed to are two things.
        let name = if making.used.contains(&name) { format!("new_{name}") } else { name };
        let slot = names::unique(&mut making.used, name);
        let param = Param { name: slot.clone(), ty, required, role: None, list: None, as_text: false };
        making.made.params.push(param);
        slot
    }

    /// The properties of the body, those that must be given first.
    fn inputs(&self, making: &mut Making<'_>, schema: &'a Value) -> Map<String, Value> {
        let object = self.reader.object(schema);
        let mut props: Vec<(&str, &'a Value, bool)> =
            object.props.iter().map(|(name, prop)| (*name, prop.schema, prop.required)).collect();
        props.sort_by_key(|(_, _, required)| !required);
        let mut shape = Map::new();
        for (name, schema, required) in props {
            let opened = self.reader.open(schema);
            let odd = name.contains(['{', '}']) || name.contains(char::is_control) || name.len() > 200;
            if types::read_only(opened) || odd || (!required && types::deprecated(opened)) {
                continue;
            }
            if let Some(fixed) = only_value(opened).filter(|_| required) {
                shape.insert(name.to_owned(), fixed);
                continue;
            }
            if !required && making.optional >= MAX_OPTIONAL {
                continue;
            }
            making.optional += usize::from(!required);
            let typed = self.types.input(schema, required);
            let slot = self.slot(making, name, typed.ty, required);
            if typed.as_text
                && let Some(param) = making.made.params.last_mut()
            {
                param.as_text = true;
            }
            shape.insert(name.to_owned(), json!(format!("{{{slot}}}")));
        }
        shape
    }

    fn form(&self, making: &mut Making<'_>, multipart: bool, fields: &[FormField<'a>]) -> Result<(), Unsendable> {
        let mut fields: Vec<&FormField<'a>> = fields.iter().collect();
        fields.sort_by_key(|field| !field.required);
        let mut shape = Map::new();
        let mut parts: Vec<(String, Value)> = Vec::new();
        for field in fields {
            let opened = self.reader.open(field.schema);
            let odd =
                field.name.is_empty() || field.name.contains(['{', '}', '"']) || field.name.contains(char::is_control);
            let full = !field.required && making.optional >= MAX_OPTIONAL;
            if odd || full || types::read_only(opened) || shape.contains_key(field.name) {
                continue;
            }
            making.optional += usize::from(!field.required);
            let format = opened.get("format").and_then(Value::as_str).unwrap_or_default();
            let file = format == "binary" || opened.get("type").and_then(Value::as_str) == Some("file");
            let ty = if file { Ty::named("document") } else { self.types.input(field.schema, field.required).ty };
            // A part of a multipart is text or bytes.
            let ty = if multipart && !matches!(ty, Ty::Named(_) | Ty::Select(_)) { Ty::named("json") } else { ty };
            let slot = self.slot(making, field.name, ty, field.required);
            let hole = json!(format!("{{{slot}}}"));
            let part = if file { json!({"value": hole, "file": field.name}) } else { hole.clone() };
            shape.insert(field.name.to_owned(), hole);
            parts.push((field.name.to_owned(), part));
        }
        making.made.body = match (multipart, parts.is_empty()) {
            (_, true) => None,
            (true, false) => Some(Body::Multipart(parts)),
            (false, false) => Some(Body::Form(Value::Object(shape))),
        };
        Ok(())
    }
}

/// The one value that a property can have, where that is text without holes.
fn only_value(opened: &Value) -> Option<Value> {
    let only = match opened.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only,
        _ => opened.get("const")?,
    };
    let plain = match only {
        Value::String(text) => !text.contains(['{', '}']) && !text.contains(char::is_control),
        Value::Number(_) | Value::Bool(_) => true,
        _ => false,
    };
    plain.then(|| only.clone())
}
