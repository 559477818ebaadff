//! Checks of an operation before it is validated: the length of its text, the selections of its fragments, and its variables.
//! async-graphql expands a fragment wherever it is spread, so a short document could cost exponential time without `check_fragments`.

use std::collections::HashMap;

use async_graphql::parser::types::{BaseType, ExecutableDocument, OperationDefinition, Selection, SelectionSet, Type};
use async_graphql::{Name, Positioned, ServerError};
use serde_json::{Map, Value};

use super::error::ErrorCode;

/// The longest document, in bytes.
const MAX_TEXT: usize = 100_000;

/// The number of fields that one operation may resolve, since nested connections multiply (`execution`). It also bounds the selections
/// of a document whose fragments are expanded.
pub const MAX_FIELDS: usize = 50_000;

pub fn check_length(text: &str) -> Result<(), ServerError> {
    if text.len() <= MAX_TEXT {
        return Ok(());
    }
    Err(ErrorCode::ParseFailed.server_error(format!("the document is longer than {MAX_TEXT} bytes"), None))
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

/// Counts the selections of a document as if each fragment were written where it is spread.
struct Expansion<'d> {
    document: &'d ExecutableDocument,
    /// The size of each fragment, or `None` while it is counted: a spread of such a fragment is inside of itself.
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
        // The validation reports an unknown fragment.
        let Some(fragment) = self.document.fragments.get(&name.node) else { return Ok(0) };
        self.sizes.insert(&name.node, None);
        let size = self.size(&fragment.node.selection_set.node)?;
        self.sizes.insert(&name.node, Some(size));
        Ok(size)
    }
}

/// Refuses variables that are absent or of a wrong type. async-graphql would report them as errors of the fields that use them.
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

/// Returns whether a value has a type, as far as the type is built in. The validation checks enums and input objects.
fn has_type(value: &Value, of: &Type) -> bool {
    match (&of.base, value) {
        (_, Value::Null) => of.nullable,
        (BaseType::List(item), Value::Array(values)) => values.iter().all(|value| has_type(value, item)),
        // One value stands for a list of one.
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
