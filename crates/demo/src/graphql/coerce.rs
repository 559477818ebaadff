//! Turns what a client wrote or sent into values of the types that the schema wants.
//! Invariant: what comes out has exactly the wanted type, defaults filled in, so a resolver reads it without checking.

use serde_json::{Map, Value};

use super::language::ast::{Argument, InputDef, Kind, Literal, Operation, TypeRef};
use super::problem::{Code, Problem};
use super::schema::Schema;

/// What a variable stands for where a value of a type is wanted; nothing if it was not given.
pub type Lookup<'l> = dyn Fn(&str, &TypeRef) -> Result<Option<Value>, Problem> + 'l;

/// The variables of an operation from the JSON that came with it.
pub fn variables(
    schema: &Schema,
    operation: &Operation,
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, Problem> {
    let mut variables = Map::new();
    for variable in &operation.variables {
        let sent = given.get(&variable.name).map(from_json);
        let value = match sent.as_ref().or(variable.default.as_ref()) {
            Some(value) => literal(schema, &variable.of, value, &nothing),
            None if variable.of.is_required() => Err(wrong(format!("a value of type {} is required", variable.of))),
            None => continue,
        };
        let value = value.map_err(|problem| Problem {
            code: Code::BadUserInput,
            message: format!("variable `${}`: {}", variable.name, problem.message),
            at: Some(variable.at),
            path: None,
        })?;
        variables.extend(value.map(|value| (variable.name.clone(), value)));
    }
    Ok(variables)
}

/// The values of all arguments that are given or have a default.
pub fn arguments(
    schema: &Schema,
    wanted: &[InputDef],
    given: &[Argument],
    lookup: &Lookup<'_>,
) -> Result<Map<String, Value>, Problem> {
    let pairs: Vec<(&str, &Literal)> = given.iter().map(|one| (one.name.as_str(), &one.value)).collect();
    inputs(schema, wanted, &pairs, lookup)
}

/// The lookup for what is already a variable's own value.
fn nothing(name: &str, _: &TypeRef) -> Result<Option<Value>, Problem> {
    Err(wrong(format!("`${name}` cannot stand here")))
}

fn inputs(
    schema: &Schema,
    wanted: &[InputDef],
    given: &[(&str, &Literal)],
    lookup: &Lookup<'_>,
) -> Result<Map<String, Value>, Problem> {
    if let Some((name, _)) = given.iter().find(|(name, _)| wanted.iter().all(|one| one.name != **name)) {
        let known: Vec<&str> = wanted.iter().map(|one| one.name.as_str()).collect();
        return Err(wrong(format!("no argument or field `{name}`; there are: {}", known.join(", "))));
    }
    let is_repeated = |at: usize| given[..at].iter().any(|earlier| earlier.0 == given[at].0);
    if let Some(name) = (0..given.len()).find(|at| is_repeated(*at)).map(|at| given[at].0) {
        return Err(wrong(format!("`{name}` is given more than once")));
    }
    let mut values = Map::new();
    for one in wanted {
        let written = given.iter().find(|(name, _)| one.name == **name).map(|(_, value)| *value);
        let value = match written {
            // A default stands in for a variable that was not given, so its place need not be filled.
            Some(Literal::Variable(name)) if one.default.is_some() => lookup(name, nullable(&one.of))?,
            Some(value) => literal(schema, &one.of, value, lookup)
                .map_err(|problem| Problem { message: format!("`{}`: {}", one.name, problem.message), ..problem })?,
            None => None,
        };
        let value = match (value, &one.default) {
            (None, Some(default)) => literal(schema, &one.of, default, &nothing)?,
            (value, _) => value,
        };
        match value {
            Some(value) => drop(values.insert(one.name.clone(), value)),
            None if one.of.is_required() => {
                return Err(wrong(format!("`{}` of type {} is required", one.name, one.of)));
            }
            None => {}
        }
    }
    Ok(values)
}

fn literal(schema: &Schema, of: &TypeRef, value: &Literal, lookup: &Lookup<'_>) -> Result<Option<Value>, Problem> {
    match (of, value) {
        (_, Literal::Variable(name)) => lookup(name, of),
        (TypeRef::NonNull(_), Literal::Null) => Err(wrong(format!("null is not of type {of}"))),
        (TypeRef::NonNull(inner), _) => literal(schema, inner, value, lookup),
        (_, Literal::Null) => Ok(Some(Value::Null)),
        (TypeRef::List(inner), Literal::List(items)) => {
            let items: Result<Vec<Value>, Problem> =
                items.iter().map(|item| Ok(literal(schema, inner, item, lookup)?.unwrap_or_default())).collect();
            items.map(|items| Some(items.into()))
        }
        // One item stands for a list of one.
        (TypeRef::List(inner), one) => Ok(literal(schema, inner, one, lookup)?.map(|one| vec![one].into())),
        (TypeRef::Named(name), _) => named(schema, name, value, lookup).map(Some),
    }
}

fn named(schema: &Schema, name: &str, value: &Literal, lookup: &Lookup<'_>) -> Result<Value, Problem> {
    let refused = || wrong(format!("{value} is not of type {name}"));
    match (schema.of(name).map(|one| &one.kind), value) {
        (Some(Kind::Input(fields)), Literal::Object(given)) => {
            let pairs: Vec<(&str, &Literal)> = given.iter().map(|(name, value)| (name.as_str(), value)).collect();
            inputs(schema, fields, &pairs, lookup).map(Value::Object)
        }
        (Some(Kind::Enum(values)), Literal::Enum(word) | Literal::Sent(word))
            if values.iter().any(|one| one.name == *word) =>
        {
            Ok(word.clone().into())
        }
        (Some(Kind::Scalar), _) => scalar(name, value).ok_or_else(refused),
        _ => Err(refused()),
    }
}

fn scalar(name: &str, value: &Literal) -> Option<Value> {
    match (name, value) {
        ("Int", Literal::Int(number)) => i32::try_from(*number).ok().map(Value::from),
        ("Float", Literal::Int(number)) => Some((*number as f64).into()),
        ("Float", Literal::Float(number)) => Some((*number).into()),
        ("Boolean", Literal::Boolean(truth)) => Some((*truth).into()),
        ("ID", Literal::Int(number)) => Some(number.to_string().into()),
        ("String" | "ID" | "DateTime", Literal::Text(text) | Literal::Sent(text)) => Some(text.clone().into()),
        _ => None,
    }
}

fn from_json(value: &Value) -> Literal {
    match value {
        Value::Null => Literal::Null,
        Value::Bool(truth) => Literal::Boolean(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Literal::Int(number),
            None => Literal::Float(number.as_f64().unwrap_or(f64::MAX)),
        },
        Value::String(text) => Literal::Sent(text.clone()),
        Value::Array(items) => Literal::List(items.iter().map(from_json).collect()),
        Value::Object(fields) => {
            Literal::Object(fields.iter().map(|(name, one)| (name.clone(), from_json(one))).collect())
        }
    }
}

fn nullable(of: &TypeRef) -> &TypeRef {
    match of {
        TypeRef::NonNull(inner) => inner,
        other => other,
    }
}

fn wrong(message: String) -> Problem {
    Problem::new(Code::ValidationFailed, message)
}
