//! Checks an operation against the schema before anything is resolved.
//! Invariants: an operation that passes can be run without meeting an unknown name, a wrong argument or a fragment that
//! contains itself; every problem is found, not only the first.

use std::collections::BTreeSet;

use serde_json::Value;

use super::coerce;
use super::language::ast::{
    Directive, Document, Field, Fragment, Literal, Operation, OperationKind, Selection, TypeRef,
};
use super::problem::{At, Code, Problem};
use super::schema::{Schema, root};

pub fn check(schema: &Schema, document: &Document, operation: &Operation) -> Vec<Problem> {
    let mut check =
        Check { schema, document, operation, problems: Vec::new(), open: Vec::new(), seen: BTreeSet::new() };
    if operation.kind == OperationKind::Subscription {
        check.note(operation.at, "there are no subscriptions here".to_owned());
        return check.problems;
    }
    for variable in &operation.variables {
        if !schema.is_input(variable.of.name()) {
            check.note(variable.at, format!("`${}` cannot be of type {}", variable.name, variable.of));
        }
    }
    check.selections(root(operation.kind), &operation.selections);
    check.unused();
    check.problems
}

struct Check<'d> {
    schema: &'d Schema,
    document: &'d Document,
    operation: &'d Operation,
    problems: Vec<Problem>,
    /// The fragments that the walk is inside of.
    open: Vec<&'d str>,
    /// Those it has been through: once is enough, and twice each would be exponential.
    seen: BTreeSet<&'d str>,
}

impl<'d> Check<'d> {
    fn note(&mut self, at: At, message: String) {
        self.problems.push(Problem::new(Code::ValidationFailed, message).at(at));
    }

    fn selections(&mut self, on: &str, selections: &'d [Selection]) {
        self.conflicts(on, selections);
        for selection in selections {
            match selection {
                Selection::Field(field) => self.field(on, field),
                Selection::Spread { name, directives, at } => {
                    self.directives(directives);
                    self.spread(on, name, *at);
                }
                Selection::Inline { on: inner, directives, selections, at } => {
                    self.directives(directives);
                    let inner = inner.as_deref().unwrap_or(on);
                    if self.fits(on, inner, *at) {
                        self.selections(inner, selections);
                    }
                }
            }
        }
    }

    fn field(&mut self, on: &str, field: &'d Field) {
        self.directives(&field.directives);
        let Some(found) = self.schema.field(on, &field.name) else {
            let known =
                self.schema.of(on).map(|one| one.fields().iter().map(|one| one.name.as_str()).collect::<Vec<_>>());
            let known =
                known.filter(|names| !names.is_empty()).map(|names| format!("; there are: {}", names.join(", ")));
            let message = format!("no field `{}` on type {on}{}", field.name, known.unwrap_or_default());
            return self.note(field.at, message);
        };
        let operation = self.operation;
        let lookup = |name: &str, wanted: &TypeRef| usable(operation, name, wanted);
        if let Err(problem) = coerce::arguments(self.schema, &found.arguments, &field.arguments, &lookup) {
            self.note(field.at, format!("{on}.{}: {}", field.name, problem.message));
        }
        let inner = found.of.name();
        match (self.schema.is_composite(inner), field.selections.is_empty()) {
            (true, true) => self.note(field.at, format!("`{}` needs a choice of fields of {inner}", field.name)),
            (false, false) => self.note(field.at, format!("`{}` is a {inner} and has no fields", field.name)),
            _ => self.selections(inner, &field.selections),
        }
    }

    fn spread(&mut self, on: &str, name: &str, at: At) {
        let Some(fragment) = find(self.document, name) else {
            return self.note(at, format!("no fragment `{name}`"));
        };
        if self.open.contains(&fragment.name.as_str()) {
            return self.note(at, format!("fragment `{name}` contains itself"));
        }
        if self.fits(on, &fragment.on, at) && self.seen.insert(&fragment.name) {
            self.open.push(&fragment.name);
            self.selections(&fragment.on, &fragment.selections);
            self.open.pop();
        }
    }

    /// Whether a value that is an `on` can be an `inner` too.
    fn fits(&mut self, on: &str, inner: &str, at: At) -> bool {
        let (outer, possible) = (self.schema.possible(on), self.schema.possible(inner));
        if possible.is_empty() {
            self.note(at, format!("there is no type {inner} with fields"));
        } else if !possible.iter().any(|name| outer.contains(name)) {
            self.note(at, format!("a {on} is never a {inner}"));
        } else {
            return true;
        }
        false
    }

    fn directives(&mut self, directives: &'d [Directive]) {
        for directive in directives {
            if !matches!(directive.name.as_str(), "skip" | "include") {
                self.note(directive.at, format!("no directive `@{}`; there are @skip and @include", directive.name));
                continue;
            }
            let given = match &directive.arguments[..] {
                [argument] if argument.name == "if" => Some(&argument.value),
                _ => None,
            };
            let problem = match given {
                Some(Literal::Boolean(_)) => None,
                Some(Literal::Variable(name)) => {
                    usable(self.operation, name, &condition()).err().map(|one| one.message)
                }
                _ => Some("`if` must be a Boolean".to_owned()),
            };
            if let Some(message) = problem {
                self.note(directive.at, format!("`@{}`: {message}", directive.name));
            }
        }
    }

    /// Two fields that would have one name in the answer must be the same field.
    fn conflicts(&mut self, on: &str, selections: &'d [Selection]) {
        let (mut fields, mut spread) = (Vec::new(), Vec::new());
        self.flatten((on, selections), &mut fields, &mut spread);
        for (at, (on, field)) in fields.iter().enumerate() {
            let possible = self.schema.possible(on);
            let meets = |other: &str| self.schema.possible(other).iter().any(|name| possible.contains(name));
            let mut earlier = fields[..at].iter().filter(|(other, one)| one.key() == field.key() && meets(other));
            if earlier.next().is_some_and(|(_, earlier)| !same(earlier, field)) {
                self.note(field.at, format!("two different fields are called `{}`; give one an alias", field.key()));
            }
        }
    }

    /// The fields of one choice with those of its fragments, each with the type it is asked on.
    fn flatten(
        &self,
        (on, selections): (&str, &'d [Selection]),
        fields: &mut Vec<(String, &'d Field)>,
        spread: &mut Vec<&'d str>,
    ) {
        for selection in selections {
            match selection {
                Selection::Field(field) => fields.push((on.to_owned(), field)),
                Selection::Inline { on: inner, selections, .. } => {
                    self.flatten((inner.as_deref().unwrap_or(on), selections), fields, spread);
                }
                Selection::Spread { name, .. } if !spread.contains(&name.as_str()) => {
                    spread.push(name);
                    if let Some(fragment) = find(self.document, name) {
                        self.flatten((&fragment.on, &fragment.selections), fields, spread);
                    }
                }
                Selection::Spread { .. } => {}
            }
        }
    }

    /// What is defined and never used is most often a slip, and other servers refuse it too.
    fn unused(&mut self) {
        let reached =
            self.seen.iter().filter_map(|name| find(self.document, name)).map(|one| one.selections.as_slice());
        let mut names = Names::default();
        for selections in reached.chain([self.operation.selections.as_slice()]) {
            names.read(selections);
        }
        for variable in &self.operation.variables {
            if !names.variables.contains(variable.name.as_str()) {
                self.note(variable.at, format!("variable `${}` is never used", variable.name));
            }
        }
        for operation in &self.document.operations {
            names.read(&operation.selections);
        }
        for fragment in &self.document.fragments {
            names.read(&fragment.selections);
        }
        for fragment in self.document.fragments.iter().filter(|one| !names.spreads.contains(one.name.as_str())) {
            self.note(self.operation.at, format!("fragment `{}` is never used", fragment.name));
        }
    }
}

/// The variables and fragments that some selections name.
#[derive(Default)]
struct Names<'d> {
    variables: BTreeSet<&'d str>,
    spreads: BTreeSet<&'d str>,
}

impl<'d> Names<'d> {
    fn read(&mut self, selections: &'d [Selection]) {
        for selection in selections {
            match selection {
                Selection::Field(field) => {
                    self.directives(&field.directives);
                    field.arguments.iter().for_each(|argument| self.literal(&argument.value));
                    self.read(&field.selections);
                }
                Selection::Spread { name, directives, .. } => {
                    self.directives(directives);
                    self.spreads.insert(name);
                }
                Selection::Inline { directives, selections, .. } => {
                    self.directives(directives);
                    self.read(selections);
                }
            }
        }
    }

    fn directives(&mut self, directives: &'d [Directive]) {
        directives.iter().flat_map(|one| &one.arguments).for_each(|argument| self.literal(&argument.value));
    }

    fn literal(&mut self, literal: &'d Literal) {
        match literal {
            Literal::Variable(name) => drop(self.variables.insert(name)),
            Literal::List(items) => items.iter().for_each(|item| self.literal(item)),
            Literal::Object(fields) => fields.iter().for_each(|(_, value)| self.literal(value)),
            _ => {}
        }
    }
}

/// What `@skip` and `@include` want.
fn condition() -> TypeRef {
    TypeRef::NonNull(Box::new(TypeRef::Named("Boolean".to_owned())))
}

pub fn find<'d>(document: &'d Document, name: &str) -> Option<&'d Fragment> {
    document.fragments.iter().find(|fragment| fragment.name == name)
}

fn same(one: &Field, other: &Field) -> bool {
    let pairs = |field: &Field| -> Vec<(String, String)> {
        let mut pairs: Vec<_> = field.arguments.iter().map(|a| (a.name.clone(), a.value.to_string())).collect();
        pairs.sort();
        pairs
    };
    one.name == other.name && pairs(one) == pairs(other)
}

/// A variable may stand where its type is wanted; its value is not known yet, so any will do.
fn usable(operation: &Operation, name: &str, wanted: &TypeRef) -> Result<Option<Value>, Problem> {
    let variable = operation.variables.iter().find(|variable| variable.name == name);
    match variable {
        None => Err(Problem::new(Code::ValidationFailed, format!("no variable `${name}`"))),
        Some(variable) => {
            let filled = variable.default.as_ref().is_some_and(|default| *default != Literal::Null);
            let wanted_here = match wanted {
                TypeRef::NonNull(inner) if filled => inner,
                other => other,
            };
            if stands_for(&variable.of, wanted_here) {
                return Ok(Some(Value::Null));
            }
            let message = format!("`${name}` is of type {}, wanted is {wanted}", variable.of);
            Err(Problem::new(Code::ValidationFailed, message))
        }
    }
}

fn stands_for(given: &TypeRef, wanted: &TypeRef) -> bool {
    match (given, wanted) {
        (TypeRef::NonNull(given), TypeRef::NonNull(wanted)) => stands_for(given, wanted),
        (_, TypeRef::NonNull(_)) => false,
        (TypeRef::NonNull(given), wanted) => stands_for(given, wanted),
        (TypeRef::List(given), TypeRef::List(wanted)) => stands_for(given, wanted),
        (TypeRef::Named(given), TypeRef::Named(wanted)) => given == wanted,
        _ => false,
    }
}
