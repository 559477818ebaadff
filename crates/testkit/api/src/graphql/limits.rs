//! Checks of an operation before its validation: the length of the document, the number of selections in fragments, and the variables.
//! async-graphql expands each spread of a fragment, so without `check_fragments` a short document could take exponential time.

use std::collections::HashMap;

use async_graphql::parser::types::{BaseType, ExecutableDocument, OperationDefinition, Selection, SelectionSet, Type};
use async_graphql::{Name, Positioned, ServerError};
use serde_json::{Map, Value};

use super::error::ErrorCode;

/// The length of the longest document in bytes.
const MAX_DOCUMENT_BYTES: usize = 100_000;

/// The largest number of fields that one operation may resolve, because nested connections multiply (see `execution`). It is also the
/// largest number of selections in a document after its fragments are expanded.
pub const MAX_FIELDS: usize = 50_000;

pub fn check_length(text: &str) -> Result<(), ServerError> {
    if text.len() <= MAX_DOCUMENT_BYTES {
        return Ok(());
    }
    Err(ErrorCode::ParseFailed.server_error(format!("the document is longer than {MAX_DOCUMENT_BYTES} bytes"), None))
}

/// Refuses a fragment that contains itself, and an operation whose fragments expand to too many selections.
pub fn check_fragments(
    document: &ExecutableDocument,
    operation: &Positioned<OperationDefinition>,
) -> Result<(), ServerError> {
    let mut expansion = Expansion { document, sizes: HashMap::new() };
    if expansion.size(&operation.node.selection_set.node)? > MAX_FIELDS {
        let message = format!("the fragments expand to more than {MAX_FIELDS} selections");
        return Err(ErrorCode::TooComplex.server_error(message, Some(operation.pos)));
    }
    Ok(())
}

/// Counts the selections of a document after its fragments are expanded.
struct Expansion<'d> {
    document: &'d ExecutableDocument,
    /// The size of each fragment. The value is `None` while a fragment is counted, so that a fragment that contains itself is found.
    sizes: HashMap<&'d Name, Option<usize>>,
}

impl<'d> Expansion<'d> {
    fn size(&mut self, selections: &'d SelectionSet) -> Result<usize, ServerError> {
        let mut total = 0_usize;
        for selection in &selections.items {
            let inner = match &selection.node {
                Selection::Field(field) => self.size(&field.node.selection_set.node)?,
                Selection::InlineFragment(fragment) => self.size(&fragment.node.selection_set.node)?,
                Selection::FragmentSpread(spread) => self.fragment_size(&spread.node.fragment_name)?,
            };
            total = total.saturating_add(inner).saturating_add(1);
        }
        Ok(total)
    }

    fn fragment_size(&mut self, name: &'d Positioned<Name>) -> Result<usize, ServerError> {
        match self.sizes.get(&name.node) {
            Some(Some(size)) => return Ok(*size),
            Some(None) => {
                let message = format!("fragment `{}` contains itself", name.node);
                return Err(ErrorCode::ValidationFailed.server_error(message, Some(name.pos)));
            }
            None => {}
        }
        // The later validation reports a fragment that does not exist, so it counts as empty here.
        let Some(fragment) = self.document.fragments.get(&name.node) else { return Ok(0) };
        self.sizes.insert(&name.node, None);
        let size = self.size(&fragment.node.selection_set.node)?;
        self.sizes.insert(&name.node, Some(size));
        Ok(size)
    }
}

/// Refuses variables that are missing or have a wrong type. async-graphql would report such a mistake as the error of a field.
pub fn check_variables(
    operation: &Positioned<OperationDefinition>,
    variables: &Map<String, Value>,
) -> Result<(), ServerError> {
    for definition in &operation.node.variable_definitions {
        let variable = &definition.node;
        let name = &variable.name.node;
        let value = match variables.get(name.as_str()) {
            None if variable.default_value.is_some() => continue,
            value => value.unwrap_or(&Value::Null),
        };
        if !has_type(value, &variable.var_type.node) {
            let message = format!("variable `${name}` must be a value of type {}", variable.var_type.node);
            return Err(ErrorCode::BadUserInput.server_error(message, Some(definition.pos)));
        }
    }
    Ok(())
}

/// Returns whether a value has a built-in type. Enums and input objects are accepted here, because the later validation checks them.
fn has_type(value: &Value, of: &Type) -> bool {
    match (&of.base, value) {
        (_, Value::Null) => of.nullable,
        (BaseType::List(item), Value::Array(values)) => values.iter().all(|value| has_type(value, item)),
        // GraphQL accepts a single value in place of a list with one item.
        (BaseType::List(item), value) => has_type(value, item),
        (BaseType::Named(name), value) => match name.as_str() {
            "ID" => value.is_string() || value.is_i64(),
            "String" => value.is_string(),
            "Int" => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
            "Float" => value.is_number(),
            "Boolean" => value.is_boolean(),
            _ => true,
        },
    }
}
