//! The mapping of GraphQL mutations to creates, updates, deletes and actions, with the input fields as parameters.
//! Invariant: the id of a row is filled from the row. Every other required input is a parameter.

use catalog::Kind;
use serde_json::{Map, Value};

use super::reads::Variables;
use super::schema::{Arg, Field, TypeKind};
use super::{SchemaMapper, types};
use crate::names;

/// The maximum number of optional inputs of one capability. Each further input would cost tokens in every taught table.
const MAX_OPTIONAL_INPUTS: usize = 24;

/// The entity in the answer of a mutation.
struct AnsweredEntity {
    type_name: String,
    /// The field of the answer that contains the entity's row; `None` if the answer itself is the row.
    field: Option<String>,
}

/// The entity on whose row a mutation is called, recognised by an id among the inputs.
struct Anchor {
    type_name: String,
    /// The name of the input for the row's id.
    input: String,
}

/// The part of a document that selects fields from the answer of a mutation.
struct Selection {
    text: String,
    /// The path of the row in the answer, if the answer contains a row.
    row: Option<String>,
    /// The name of the row's entity.
    entity: Option<String>,
}

impl SchemaMapper<'_> {
    pub(super) fn map_writes(&mut self, mutations: &[Field]) {
        for field in mutations {
            self.map_write(field);
        }
    }

    fn map_write(&mut self, field: &Field) {
        let label = format!("mutation {}", field.name);
        // Many schemas wrap all inputs in one argument. The fields of that argument are then the inputs.
        let wrapper = match field.args.as_slice() {
            [only] if !only.ty.is_list => {
                let def = self.schema.get(&only.ty.name).filter(|def| def.kind == TypeKind::Input);
                def.map(|def| (only, def))
            }
            _ => None,
        };
        let inputs: Vec<Arg> = match wrapper {
            Some((_, def)) => {
                def.fields.values().filter(|f| f.name != "clientMutationId").map(Field::to_input).collect()
            }
            None => field.args.clone(),
        };
        let words = names::words(&field.name);
        let answered = self.answered_entity(&field.ty.name);
        let answered_type = answered.as_ref().map(|answered| answered.type_name.clone());
        let anchor = self.anchor(&inputs, &words, answered_type.as_deref());
        let owner = anchor
            .as_ref()
            .map(|anchor| anchor.type_name.clone())
            .or(answered_type)
            .or_else(|| self.entity_named_in(&words))
            .or_else(|| self.entities.keys().next().cloned());
        let Some(owner) = owner else { return self.report_unmapped(label, "there is nothing that it could belong to") };
        let Some(entity) = self.entities.get(&owner) else { return };
        let entity_name = entity.draft.name.clone();
        let key = entity.key().to_owned();

        let entity_words = names::words(&entity_name);
        let is_own = |word: &String| entity_words.contains(word) || entity_words.contains(&names::singular(word));
        let verb_words: Vec<String> = words.iter().filter(|word| !is_own(word)).cloned().collect();
        let verb = if verb_words.is_empty() { words.join("_") } else { verb_words.join("_") };
        let verb = self.free_verb(&owner, &verb);
        let kind = kind_of(&words, anchor.is_some(), answered.is_some());
        let mut capability = self.new_capability(kind, &entity_name, &verb, label);
        capability.raw.about = names::first_sentence(&field.description, 72);
        capability.on_row = anchor.is_some();

        let mut variables = Variables::default();
        let mut input_object = Map::new();
        let mut optional = 0;
        for input in &inputs {
            let is_anchor = anchor.as_ref().is_some_and(|anchor| anchor.input == input.name);
            let variable = if is_anchor {
                key.clone()
            } else {
                let mut name = names::field_name(&input.name);
                // An input with the key's name sets a new key, so it needs another name than the key of the row.
                if anchor.is_some() && name == key {
                    name = format!("new_{key}");
                }
                optional += usize::from(!input.is_required());
                let is_too_many = !input.is_required() && optional > MAX_OPTIONAL_INPUTS;
                if is_too_many || capability.raw.params.contains_key(&name) {
                    continue;
                }
                capability.raw.params.insert(name.clone(), self.param(input));
                name
            };
            input_object.insert(input.name.clone(), Value::String(format!("{{{variable}}}")));
            variables.add(input, &variable);
        }

        let Selection { text: selection, row, entity } = self.selection(field, answered.as_ref());
        let name = &field.name;
        let document = match wrapper {
            Some((arg, _)) => {
                capability.raw.variables.insert("input".to_owned(), Value::Object(input_object));
                format!("mutation($input: {}) {{ {name}({}: $input){selection} }}", arg.ty.text, arg.name)
            }
            None => {
                let declarations = variables.declarations();
                format!("mutation{declarations} {{ {name}{}{selection} }}", variables.arguments())
            }
        };
        capability.raw.graphql = Some(document);
        if row.is_none() && matches!(kind, Kind::Create | Kind::Update) {
            capability.ignore_answer();
        }
        let is_said_by_kind = !matches!(kind, Kind::Action | Kind::Delete);
        capability.raw.returns = entity.filter(|returned| *returned != entity_name || !is_said_by_kind);
        capability.set_rows(row);
        self.capabilities.push(capability);
    }

    /// Returns the entity of an answer with this type. The answer is the entity's row or has a field with the row.
    fn answered_entity(&self, type_name: &str) -> Option<AnsweredEntity> {
        if self.entities.contains_key(type_name) {
            return Some(AnsweredEntity { type_name: type_name.to_owned(), field: None });
        }
        let def = self.schema.get(type_name).filter(|def| def.kind == TypeKind::Object)?;
        let holds_entity = |field: &&Field| {
            !field.ty.is_list
                && !field.deprecated
                && field.args.is_empty()
                && self.entities.contains_key(&field.ty.name)
        };
        let field = def.fields.values().find(holds_entity)?;
        Some(AnsweredEntity { type_name: field.ty.name.clone(), field: Some(field.name.clone()) })
    }

    /// Returns the entity whose id is among the inputs. An input named `id` belongs to the entity in the mutation's name, or
    /// else to the entity of the answer.
    fn anchor(&self, inputs: &[Arg], words: &[String], answered: Option<&str>) -> Option<Anchor> {
        if words.first().is_some_and(|word| word == "create") {
            return None;
        }
        let has_id_key =
            |type_name: &str| self.entities.get(type_name).is_some_and(|entity| entity.draft.raw.key == ["id"]);
        let is_id = |input: &&Arg| input.ty.name == "ID" && !input.ty.is_list && input.ty.required;
        for input in inputs.iter().filter(is_id) {
            if input.name == "id" {
                let type_name = self.entity_named_in(words).or_else(|| answered.map(str::to_owned))?;
                return has_id_key(&type_name).then(|| Anchor { type_name, input: input.name.clone() });
            }
            let stem = names::snake_case(input.name.strip_suffix("Id").unwrap_or_default());
            let named_entity = self.entities.keys().find(|type_name| names::snake_case(type_name) == stem);
            if let Some(type_name) = named_entity.filter(|type_name| has_id_key(type_name)) {
                return Some(Anchor { type_name: type_name.clone(), input: input.name.clone() });
            }
        }
        None
    }

    /// Returns the entity whose name consists only of words from `words`. Of several entities, the longest name wins.
    fn entity_named_in(&self, words: &[String]) -> Option<String> {
        let is_named = |type_name: &&String| {
            let mut type_words = names::words(type_name).into_iter();
            type_words.all(|word| words.iter().any(|own| *own == word || names::singular(own) == word))
        };
        self.entities.keys().filter(is_named).max_by_key(|type_name| type_name.len()).cloned()
    }

    fn selection(&self, field: &Field, answered: Option<&AnsweredEntity>) -> Selection {
        let Some(AnsweredEntity { type_name, field: inner }) = answered else {
            let is_leaf = types::leaf_type(self.schema, &field.ty.name).is_some();
            // GraphQL demands a selection on an object. `__typename` exists on every object.
            let text = if is_leaf { String::new() } else { " { __typename }".to_owned() };
            return Selection { text, row: None, entity: None };
        };
        let entity = self.entities.get(type_name).map(|entity| entity.draft.name.clone()).unwrap_or_default();
        let (text, row) = match inner {
            None => (format!(" {{ ...{entity} }}"), format!("data.{}", field.name)),
            Some(inner) => (format!(" {{ {inner} {{ ...{entity} }} }}"), format!("data.{}.{inner}", field.name)),
        };
        // A catalog reads one row from the answer of a write. An answer with a list is not read.
        let has_row = !field.ty.is_list;
        Selection { text, row: has_row.then_some(row), entity: has_row.then_some(entity) }
    }
}

fn kind_of(words: &[String], is_on_row: bool, answers_with_row: bool) -> Kind {
    match words.first().map(String::as_str) {
        Some("create" | "add") if !is_on_row && answers_with_row => Kind::Create,
        Some("update") if is_on_row && answers_with_row => Kind::Update,
        Some("delete" | "remove") if is_on_row && words.len() <= 3 => Kind::Delete,
        _ => Kind::Action,
    }
}
