//! The mapping of request bodies: JSON properties and form fields become parameters, multipart fields become parts, other
//! content is sent as bytes.
//! Invariant: each mapped input of the body is one parameter with one placeholder. The limit on inputs only removes optional
//! inputs.

use catalog::raw::{Declaration, FileShape, PartShape, SlotType};
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::Mapper;
use super::capability::CapabilityBuilder;
use crate::api::types;
use crate::draft::{self, is_list, named_type};
use crate::names;
use crate::spec::{FormField, RequestBody};

impl<'a> Mapper<'_, 'a> {
    pub(super) fn add_body(&self, builder: &mut CapabilityBuilder<'_>) {
        match &self.endpoints[builder.plan.endpoint].op.body {
            RequestBody::None => {}
            RequestBody::Form { multipart, fields } => self.add_form(builder, *multipart, fields),
            RequestBody::Content { media, schema, required } => self.add_content(builder, media, schema, *required),
        }
    }

    fn add_content(&self, builder: &mut CapabilityBuilder<'_>, media: &str, schema: &'a Value, required: bool) {
        let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_multipart = media.starts_with("multipart/");
        if is_multipart || media == "application/x-www-form-urlencoded" {
            let object = self.reader.object(schema);
            let fields: Vec<FormField<'a>> = object
                .props
                .iter()
                .map(|(name, prop)| FormField { name, schema: prop.schema, required: prop.required })
                .collect();
            return self.add_form(builder, is_multipart, &fields);
        }
        let is_any = media.is_empty() || media.contains('*');
        let is_json = media.ends_with("json") || media == "*/*" || media.is_empty();
        if !is_json {
            let placeholder =
                self.add_input(builder, "content", draft::param_declaration(named_type("document"), true));
            let content_type = if is_media_type(&media) { media } else { "application/octet-stream".to_owned() };
            builder.capability.raw.raw = Some(format!("{{{placeholder}}}"));
            builder.capability.raw.content_type = Some(content_type);
            return;
        }
        let body = if self.reader.is_object(schema) && !self.reader.object(schema).props.is_empty() {
            Value::Object(self.add_json_inputs(builder, schema))
        } else if self.reader.is_any(schema) && !required {
            return;
        } else {
            // The body has no declared properties, so the whole body becomes one parameter.
            let kind = self.types.input_declaration(schema, true).kind;
            let name = if is_list(&kind) { "items" } else { "body" };
            placeholder(&self.add_input(builder, name, draft::param_declaration(kind, required)))
        };
        builder.capability.raw.body = Some(body);
        if media != "application/json" && !is_any {
            builder.capability.raw.content_type = Some(media);
        }
    }

    /// Adds a parameter for an input of the body and returns the parameter's name.
    fn add_input(&self, builder: &mut CapabilityBuilder<'_>, name: &str, declaration: Declaration) -> String {
        let name = names::field_name(name);
        // A body may change the row's key. The parameter is then called `new_number`, because `number` is the key of the row.
        let name = if builder.taken.contains(&name) { format!("new_{name}") } else { name };
        builder.add_param(name, declaration)
    }

    /// Adds a parameter for each property of a JSON body, required ones first. Returns the body template with the placeholders.
    fn add_json_inputs(&self, builder: &mut CapabilityBuilder<'_>, schema: &'a Value) -> Map<String, Value> {
        let object = self.reader.object(schema);
        let mut props: Vec<_> = object.props.iter().collect();
        props.sort_by_key(|(_, prop)| !prop.required);
        let mut body = Map::new();
        for (name, prop) in props {
            let opened = self.reader.open(prop.schema);
            // A catalog would parse a brace in a key as a placeholder.
            let is_unfit = name.contains(['{', '}']) || name.contains(char::is_control) || name.len() > 200;
            if types::is_read_only(opened) || is_unfit || (!prop.required && types::is_deprecated(opened)) {
                continue;
            }
            if let Some(fixed) = fixed_value(opened).filter(|_| prop.required) {
                body.insert((*name).to_owned(), fixed);
                continue;
            }
            if !prop.required && builder.is_full() {
                continue;
            }
            builder.optional += usize::from(!prop.required);
            let slot = self.add_input(builder, name, self.types.input_declaration(prop.schema, prop.required));
            body.insert((*name).to_owned(), placeholder(&slot));
        }
        body
    }

    fn add_form(&self, builder: &mut CapabilityBuilder<'_>, is_multipart: bool, fields: &[FormField<'a>]) {
        let mut fields: Vec<&FormField<'a>> = fields.iter().collect();
        fields.sort_by_key(|field| !field.required);
        let mut form = Map::new();
        let mut parts: IndexMap<String, PartShape> = IndexMap::new();
        for field in fields {
            let opened = self.reader.open(field.schema);
            let is_unfit =
                field.name.is_empty() || field.name.contains(['{', '}', '"']) || field.name.contains(char::is_control);
            let is_too_many = !field.required && builder.is_full();
            if is_unfit || is_too_many || types::is_read_only(opened) || form.contains_key(field.name) {
                continue;
            }
            builder.optional += usize::from(!field.required);
            let format = opened.get("format").and_then(Value::as_str).unwrap_or_default();
            let is_file = format == "binary" || opened.get("type").and_then(Value::as_str) == Some("file");
            let kind = if is_file {
                named_type("document")
            } else {
                self.types.input_declaration(field.schema, field.required).kind
            };
            // A multipart part contains text or bytes, so a structured value is sent as JSON text.
            let is_text = matches!(kind, SlotType::Named(_) | SlotType::Select(_));
            let kind = if is_multipart && !is_text { named_type("json") } else { kind };
            let slot = self.add_input(builder, field.name, draft::param_declaration(kind, field.required));
            let value = format!("{{{slot}}}");
            let part = match is_file {
                true => PartShape::File(FileShape { value, file: Some(field.name.to_owned()), content_type: None }),
                false => PartShape::Value(value),
            };
            form.insert(field.name.to_owned(), placeholder(&slot));
            parts.insert(field.name.to_owned(), part);
        }
        if parts.is_empty() {
            return;
        }
        if is_multipart {
            builder.capability.raw.multipart = Some(parts);
        } else {
            builder.capability.raw.form = Some(Value::Object(form));
        }
    }
}

fn placeholder(slot: &str) -> Value {
    Value::String(format!("{{{slot}}}"))
}

fn is_media_type(media: &str) -> bool {
    let is_token =
        |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_.+".contains(&c));
    media.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// Returns the only value that the schema allows (`const` or an `enum` of one), if a template can contain it as literal text.
fn fixed_value(opened: &Value) -> Option<Value> {
    let only = match opened.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only,
        _ => opened.get("const")?,
    };
    let is_literal = match only {
        Value::String(text) => !text.contains(['{', '}']) && !text.contains(char::is_control),
        Value::Number(_) | Value::Bool(_) => true,
        _ => false,
    };
    is_literal.then(|| only.clone())
}
