//! Runs a checked operation: fields in the order they were asked for, mutations one after another.
//! Invariants: a field that fails is null with an entry in `errors` that has its path, and the rest is still answered; null
//! where the type forbids it spreads to the nearest place that allows it; the work of one operation is bounded.

mod connection;
mod introspect;
mod mutate;
mod resolve;

use serde_json::{Map, Value};

use super::check::find;
use super::coerce;
use super::language::ast::{
    Directive, Document, Field, FieldDef, Literal, Operation, OperationKind, Selection, TypeRef,
};
use super::problem::{Code, Problem};
use super::schema::{Schema, root};
use crate::state::Data;
use resolve::Ask;

pub use mutate::Source;

/// How many fields one operation may resolve: nested connections multiply.
const MOST_FIELDS: usize = 50_000;

pub struct Run<'d> {
    schema: &'static Schema,
    document: &'d Document,
    variables: &'d Map<String, Value>,
    pub problems: Vec<Problem>,
    path: Vec<Value>,
    left: usize,
}

/// A null that its place does not allow; the problem has been noted.
struct Bubble;

impl<'d> Run<'d> {
    pub fn new(document: &'d Document, variables: &'d Map<String, Value>) -> Run<'d> {
        let schema = Schema::shipped();
        Run { schema, document, variables, problems: Vec::new(), path: Vec::new(), left: MOST_FIELDS }
    }

    pub fn query(&mut self, data: &Data, operation: &'d Operation) -> Value {
        let answer = self.object(data, root(OperationKind::Query), &Value::Null, &[&operation.selections]);
        answer.unwrap_or(Value::Null)
    }

    pub fn mutation(&mut self, data: &mut Data, source: &Source, operation: &'d Operation) -> Value {
        let on = root(OperationKind::Mutation);
        let mut answer = Map::new();
        for (key, fields) in self.collect(on, &[&operation.selections]) {
            let Some(field) = fields.first() else { continue };
            let Some(found) = self.schema.field(on, &field.name) else { continue };
            self.path.push(key.into());
            let done = match self.arguments(found, field) {
                Ok(_) if field.name == "__typename" => Ok(on.into()),
                Ok(arguments) => mutate::run(data, source, &field.name, &arguments),
                Err(problem) => Err(problem),
            };
            let value = done.map_err(|problem| self.note(problem, field));
            let value = value.and_then(|value| self.complete(data, &found.of, &value, &fields));
            self.path.pop();
            answer.insert(key.to_owned(), value.unwrap_or(Value::Null));
        }
        answer.into()
    }

    fn object(&mut self, data: &Data, on: &str, parent: &Value, choices: &[&'d [Selection]]) -> Result<Value, Bubble> {
        let mut answer = Map::new();
        for (key, fields) in self.collect(on, choices) {
            let Some(field) = fields.first() else { continue };
            let Some(found) = self.schema.field(on, &field.name) else { continue };
            self.path.push(key.into());
            let arguments = self.arguments(found, field);
            let resolved = arguments.and_then(|arguments| {
                let ask = Ask { data, schema: self.schema, on, parent, name: &field.name, arguments: &arguments };
                self.resolve(&ask)
            });
            let resolved = resolved.map_err(|problem| self.note(problem, field));
            let value = resolved.and_then(|value| self.complete(data, &found.of, &value, &fields));
            self.path.pop();
            let value = match value {
                Err(Bubble) if found.of.is_required() => return Err(Bubble),
                value => value.unwrap_or(Value::Null),
            };
            answer.insert(key.to_owned(), value);
        }
        Ok(answer.into())
    }

    fn resolve(&mut self, ask: &Ask<'_>) -> Result<Value, Problem> {
        if self.left == 0 {
            return Err(Problem::new(Code::TooComplex, format!("more than {MOST_FIELDS} fields")));
        }
        self.left -= 1;
        resolve::field(ask)
    }

    /// Brings a resolved value into the shape of its type, its chosen fields included.
    fn complete(&mut self, data: &Data, of: &TypeRef, value: &Value, fields: &[&'d Field]) -> Result<Value, Bubble> {
        match (of, value) {
            (TypeRef::NonNull(inner), _) => {
                let Some(field) = fields.first() else { return Err(Bubble) };
                match self.complete(data, inner, value, fields)? {
                    // What became null by a problem inside has been noted there.
                    Value::Null if value.is_null() => Err(self.note(nothing(of), field)),
                    Value::Null => Err(Bubble),
                    value => Ok(value),
                }
            }
            (_, Value::Null) => Ok(Value::Null),
            (TypeRef::List(inner), Value::Array(items)) => {
                let mut list = Vec::new();
                for (at, item) in items.iter().enumerate() {
                    self.path.push(at.into());
                    let item = self.complete(data, inner, item, fields);
                    self.path.pop();
                    list.push(item?);
                }
                Ok(list.into())
            }
            (TypeRef::Named(name), _) if self.schema.is_composite(name) => {
                let actual = value.get("__typename").and_then(Value::as_str).unwrap_or(name).to_owned();
                let choices: Vec<&[Selection]> = fields.iter().map(|field| field.selections.as_slice()).collect();
                // An object that may be null takes what a required field inside it could not be.
                Ok(self.object(data, &actual, value, &choices).unwrap_or(Value::Null))
            }
            _ => Ok(value.clone()),
        }
    }

    /// The fields to answer with, by their names in the answer; a name that occurs twice has its choices joined.
    fn collect(&self, on: &str, choices: &[&'d [Selection]]) -> Vec<(&'d str, Vec<&'d Field>)> {
        let (mut found, mut spread) = (Vec::new(), Vec::new());
        for selections in choices {
            self.gather(on, selections, &mut found, &mut spread);
        }
        found
    }

    fn gather(
        &self,
        on: &str,
        selections: &'d [Selection],
        found: &mut Vec<(&'d str, Vec<&'d Field>)>,
        spread: &mut Vec<&'d str>,
    ) {
        let is_on = |wanted: &str| wanted == on || self.schema.possible(wanted).contains(&on);
        for selection in selections {
            match selection {
                Selection::Field(field) if self.wanted(&field.directives) => {
                    match found.iter_mut().find(|(key, _)| *key == field.key()) {
                        Some((_, fields)) => fields.push(field),
                        None => found.push((field.key(), vec![field])),
                    }
                }
                Selection::Spread { name, directives, .. }
                    if self.wanted(directives) && !spread.contains(&name.as_str()) =>
                {
                    spread.push(name);
                    if let Some(fragment) = find(self.document, name).filter(|fragment| is_on(&fragment.on)) {
                        self.gather(on, &fragment.selections, found, spread);
                    }
                }
                Selection::Inline { on: inner, directives, selections, .. }
                    if self.wanted(directives) && inner.as_deref().is_none_or(is_on) =>
                {
                    self.gather(on, selections, found, spread);
                }
                _ => {}
            }
        }
    }

    fn wanted(&self, directives: &[Directive]) -> bool {
        directives.iter().all(|directive| {
            let given = match directive.arguments.first().map(|argument| &argument.value) {
                Some(Literal::Boolean(truth)) => *truth,
                Some(Literal::Variable(name)) => self.variables.get(name) == Some(&Value::Bool(true)),
                _ => false,
            };
            given == (directive.name == "include")
        })
    }

    fn arguments(&self, wanted: &FieldDef, field: &Field) -> Result<Map<String, Value>, Problem> {
        let lookup = |name: &str, of: &TypeRef| match self.variables.get(name) {
            Some(Value::Null) if of.is_required() => {
                Err(Problem::new(Code::BadUserInput, format!("`${name}` must not be null here")))
            }
            value => Ok(value.cloned()),
        };
        coerce::arguments(self.schema, &wanted.arguments, &field.arguments, &lookup)
    }

    fn note(&mut self, problem: Problem, field: &Field) -> Bubble {
        // Beyond the bound every field fails alike; one entry says it.
        let known = problem.code == Code::TooComplex && self.problems.iter().any(|one| one.code == Code::TooComplex);
        if !known {
            self.problems.push(Problem { path: Some(self.path.clone()), ..problem.at(field.at) });
        }
        Bubble
    }
}

fn nothing(of: &TypeRef) -> Problem {
    Problem::new(Code::Internal, format!("nothing was found where {of} is required"))
}
