//! Templates: Minijinja over rows, with nothing but the rows in reach.
//! Invariant: a template ends, by fuel and by what it may look at, and its text ends, by size; an undefined name is an error that
//! names it, with its line; a value is put in as it is, never read as a template.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use base::Limits;
use catalog::Row;
use lang::plan::Path;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value as Shown};
use serde_json::Value;

use super::fence::{self, Fenced};
use super::meter::{self, Meter, WORK};
use super::view::{VALUE, View};
use crate::error::{StepError, TemplateProblem};
use crate::outcome::Attached;

/// A template's source, and the symbols that it may use for columns.
pub type Source<'a> = (&'a str, &'a [(String, String)]);

/// A rendering that needs nothing but itself, so that another thread can do it: it may take a while.
pub struct Job {
    limits: Limits,
    source: String,
    globals: Globals,
    meter: Arc<Meter>,
}

type Globals = BTreeMap<&'static str, Shown>;

impl Job {
    pub fn render(self) -> Result<String, StepError> {
        render(&self.limits, &self.source, self.globals, &self.meter)
    }
}

/// Over all rows, as `rows`; where there is one, it is `_` too.
pub fn over_rows(limits: &Limits, (source, names): Source<'_>, view: &View<'_>) -> Job {
    let meter = Meter::new(WORK);
    let seen = Arc::new(Seen::new(source, names, view, &meter));
    let rows: Vec<Shown> = view.rows.rows.iter().map(|row| seen.row(view, row)).collect();
    let only = rows.first().filter(|_| rows.len() == 1).cloned();
    let mut globals: Globals = only.into_iter().map(|row| ("_", row)).collect();
    globals.insert("rows", Shown::from(rows));
    Job { limits: limits.clone(), source: source.to_owned(), globals, meter }
}

/// Over the row at hand, as `_`.
pub fn render_row(
    limits: &Limits,
    (source, names): (&String, &Vec<(String, String)>),
    view: &View<'_>,
    row: &Arc<Row>,
) -> Result<String, StepError> {
    let meter = Meter::new(WORK / ROWS);
    let seen = Arc::new(Seen::new(source, names, view, &meter));
    render(limits, source, BTreeMap::from([("_", seen.row(view, row))]), &meter)
}

fn render(limits: &Limits, source: &str, globals: Globals, meter: &Arc<Meter>) -> Result<String, StepError> {
    if source.len() > limits.template_bytes {
        return Err(problem(None, TemplateProblem::Source(limits.template_bytes)));
    }
    if let Err(Fenced { line, why }) = fence::check(source) {
        return Err(problem(Some(line), TemplateProblem::Syntax(why)));
    }
    let environment = environment(limits, meter);
    let mut out = Bounded { bytes: Vec::new(), limit: limits.template_output_bytes, over: false };
    let told = |error: minijinja::Error, over: bool| match meter.is_over() {
        true => problem(error.line(), TemplateProblem::Work(WORK)),
        false => told((limits, source), &error, over),
    };
    let template = environment.template_from_str(source).map_err(|error| told(error, false))?;
    let context = Shown::from(globals);
    let rendered = template.render_captured_to(context, &mut out).map(drop);
    rendered.map_err(|error| told(error, out.over))?;
    if meter.is_over() {
        return Err(problem(None, TemplateProblem::Work(WORK)));
    }
    let mut text = String::from_utf8_lossy(&out.bytes).into_owned();
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// No loader, no `debug`, no way to another template; `null` is shown as nothing.
fn environment(limits: &Limits, meter: &Arc<Meter>) -> Environment<'static> {
    let mut environment = with_filters(meter);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    // The last newline is dropped from the text, not from the source too.
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(limits.template_fuel));
    environment.set_recursion_limit(limits.nesting.max(1));
    environment.remove_global("debug");
    // Without it a loop cannot double a text until memory ends.
    environment.remove_global("namespace");
    environment.set_formatter(
        |out, state, value| {
            if value.is_none() { Ok(()) } else { minijinja::escape_formatter(out, state, value) }
        },
    );
    environment
}

/// Every filter behind its till.
fn with_filters(meter: &Arc<Meter>) -> Environment<'static> {
    let mut plain = Environment::new();
    plain.set_undefined_behavior(UndefinedBehavior::Strict);
    plain.set_auto_escape_callback(|_| AutoEscape::None);
    // These make much from little, whatever the fuel; what is left of them is bounded.
    for filter in ["format", "indent", "batch", "slice", "pprint"] {
        plain.remove_filter(filter);
    }
    let made = meter.clone();
    plain.add_filter("replace", move |text: String, from: String, to: String| replace(&made, &text, &from, &to));
    let mut environment = plain.clone();
    meter::guard(&mut environment, plain, meter);
    environment
}

/// A template over one row does less than one over all: there may be as many.
const ROWS: u64 = 16;

/// Text that a filter may make.
const MADE: usize = 1024 * 1024;

fn replace(meter: &Meter, text: &str, from: &str, to: &str) -> Result<String, minijinja::Error> {
    let times = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
    let made = text.len().saturating_add(times.saturating_mul(to.len()));
    bounded(made)?;
    // Also where `map` calls it for each of many.
    if meter.pay_for(made) { Ok(text.replace(from, to)) } else { Err(ErrorKind::OutOfFuel.into()) }
}

fn bounded(bytes: usize) -> Result<(), minijinja::Error> {
    if bytes <= MADE {
        return Ok(());
    }
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, format!("a filter makes at most {MADE} bytes of text")))
}

fn told((limits, source): (&Limits, &str), error: &minijinja::Error, over: bool) -> StepError {
    let words = || error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let line = error.line();
    match error.kind() {
        _ if over => problem(line, TemplateProblem::Output(limits.template_output_bytes)),
        ErrorKind::OutOfFuel => problem(line, TemplateProblem::Fuel(limits.template_fuel)),
        ErrorKind::UndefinedError => problem(line, TemplateProblem::Undefined(undefined(source, error))),
        ErrorKind::SyntaxError => problem(line, TemplateProblem::Syntax(words())),
        _ => problem(line, TemplateProblem::Failed(words())),
    }
}

/// The name is what stands at the place of the mistake.
fn undefined(source: &str, error: &minijinja::Error) -> String {
    let name = error.range().and_then(|range| source.get(range)).map(|name| name.trim().chars().take(80).collect());
    match (name.filter(|name: &String| !name.is_empty()), error.detail()) {
        (Some(name), _) => format!("a name that is not there: `{name}`"),
        (None, Some(detail)) => format!("a name that is not there: {detail}"),
        (None, None) => "a name that is not there".to_owned(),
    }
}

fn problem(line: Option<usize>, problem: TemplateProblem) -> StepError {
    StepError::Template { line, problem }
}

/// Text up to a size.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    over: bool,
}

impl Write for &mut Bounded {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + text.len() > self.limit {
            self.over = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What all rows of a rendering share.
#[derive(Debug)]
struct Seen {
    meter: Arc<Meter>,
    /// Symbols to columns.
    names: HashMap<String, String>,
    attached: Vec<Arc<Attached>>,
    /// References that the template looks into: by path, the part of the key that they are.
    keys: HashMap<Path, String>,
}

impl Seen {
    fn new(source: &str, names: &[(String, String)], view: &View<'_>, meter: &Arc<Meter>) -> Self {
        let names: HashMap<String, String> = names.iter().cloned().collect();
        let into = |column: &str| {
            let symbols = names.iter().filter(|(_, name)| *name == column).map(|(symbol, _)| symbol.as_str());
            symbols.chain([column]).any(|name| source.contains(&format!("{name}.")))
        };
        let one_key = |column: &lang::plan::Column| {
            let entity = view.entity_of(&column.kind)?;
            let [only] = entity.key.as_slice() else { return None };
            into(&column.name).then(|| (vec![column.name.clone()], only.clone()))
        };
        let keys = view.columns.iter().filter_map(one_key).collect();
        Self { meter: meter.clone(), attached: view.rows.attached.clone(), keys, names }
    }

    fn row(self: &Arc<Self>, view: &View<'_>, row: &Arc<Row>) -> Shown {
        if view.is_literal() {
            return self.shown(Vec::new(), row.get(VALUE).unwrap_or(&Value::Null));
        }
        Shown::from_object(Fields { seen: self.clone(), path: Vec::new(), row: row.clone(), alone: None, open: false })
    }

    fn shown(self: &Arc<Self>, path: Path, value: &Value) -> Shown {
        let looked_into = self.keys.contains_key(&path) || self.attached.iter().any(|t| t.path == path);
        match value {
            value if looked_into && !path.is_empty() => self.reference(path, value),
            Value::Null => Shown::from(()),
            Value::Bool(flag) => Shown::from(*flag),
            Value::Number(n) => match (n.as_i64(), n.as_u64()) {
                (Some(whole), _) => Shown::from(whole),
                (_, Some(whole)) => Shown::from(whole),
                _ => Shown::from(n.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Shown::from(text.as_str()),
            Value::Array(items) => items.iter().map(|item| self.shown(path.clone(), item)).collect::<Vec<_>>().into(),
            Value::Object(map) => {
                let row = Arc::new(map.clone());
                Shown::from_object(Fields { seen: self.clone(), path, row, alone: None, open: false })
            }
        }
    }

    /// Shown as its key, and leads to what was attached.
    fn reference(self: &Arc<Self>, path: Path, value: &Value) -> Shown {
        let table = self.attached.iter().find(|t| t.path == path);
        let mut row = table.and_then(|t| t.find(value)).map(|row| Row::clone(row)).unwrap_or_default();
        match (value, self.keys.get(&path)) {
            (Value::Object(parts), _) => {
                for (part, value) in parts {
                    row.entry(part.clone()).or_insert_with(|| value.clone());
                }
            }
            (Value::Null, _) => {}
            (scalar, Some(part)) => {
                row.entry(part.clone()).or_insert_with(|| scalar.clone());
            }
            _ => {}
        }
        let alone = (!value.is_object()).then(|| value.clone());
        Shown::from_object(Fields { seen: self.clone(), path, row: Arc::new(row), alone, open: true })
    }
}

/// A row, an object, or what a reference leads to.
#[derive(Debug)]
struct Fields {
    seen: Arc<Seen>,
    path: Path,
    row: Arc<Row>,
    /// The reference itself, where it is a scalar.
    alone: Option<Value>,
    /// What a reference leads to may not be there: then its fields are `null`, which is no mistake of the template's.
    open: bool,
}

impl Fields {
    /// A projected path is a column with a dot in its name: `owner.name` is reached as one reaches a path.
    fn dotted(&self, name: &str) -> Option<Row> {
        let inside = |(key, value): (&String, &Value)| {
            Some((key.strip_prefix(name)?.strip_prefix('.')?.to_owned(), value.clone()))
        };
        let row: Row = self.row.iter().filter_map(inside).collect();
        (!row.is_empty()).then_some(row)
    }
}

impl Object for Fields {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Shown) -> Option<Shown> {
        let key = key.as_str()?;
        let known = self.row.contains_key(key) || !self.seen.names.contains_key(key);
        let name = if known { key } else { self.seen.names.get(key)? };
        // Whoever cannot pay finds nothing, which ends the template.
        if !self.seen.meter.pay_for(self.row.get(name).map_or(0, size)) {
            return None;
        }
        let path: Path = self.path.iter().cloned().chain([name.into()]).collect();
        match self.dotted(name) {
            Some(row) => {
                let alone = self.row.get(name).filter(|v| !v.is_object()).cloned();
                Some(Shown::from_object(Fields {
                    seen: self.seen.clone(),
                    path,
                    row: Arc::new(row),
                    alone,
                    open: false,
                }))
            }
            None => match self.row.get(name) {
                Some(value) => Some(self.seen.shown(path, value)),
                None => self.open.then(|| Shown::from(())),
            },
        }
    }

    /// In place, and the same whether or not it can be paid for: a sort whose order changes under way panics.
    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        let other = other.downcast_ref::<Fields>()?;
        self.seen.meter.pay_for(self.row.values().map(size).sum());
        let (mine, theirs) = (self.row.iter(), other.row.iter());
        Some(mine.cmp_by_data(theirs))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.row.keys().map(|key| Shown::from(key.as_str())).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.alone.as_ref().map_or_else(|| self.row.values().map(size).sum(), size);
        // Nothing is shown to whoever cannot pay; the rendering ends with that. An error here would be a panic.
        if !self.seen.meter.pay_for(bytes) {
            return Ok(());
        }
        match &self.alone {
            Some(Value::Null) => Ok(()),
            Some(Value::String(text)) => f.write_str(text),
            Some(other) => write!(f, "{other}"),
            None => write!(f, "{}", Value::Object(Row::clone(&self.row))),
        }
    }
}

/// Rows in an order, any that is one.
trait ByData<'a>: Iterator<Item = (&'a String, &'a Value)> + Sized {
    fn cmp_by_data(mut self, mut other: Self) -> Ordering {
        loop {
            match (self.next(), other.next()) {
                (None, None) => return Ordering::Equal,
                (None, _) => return Ordering::Less,
                (_, None) => return Ordering::Greater,
                (Some((a, x)), Some((b, y))) => match a.cmp(b).then_with(|| by_data(x, y)) {
                    Ordering::Equal => {}
                    found => return found,
                },
            }
        }
    }
}

impl<'a> ByData<'a> for serde_json::map::Iter<'a> {}

fn by_data(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    };
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default()),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let differ = a.iter().zip(b).map(|(a, b)| by_data(a, b)).find(|found| found.is_ne());
            differ.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => a.iter().cmp_by_data(b.iter()),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

/// Bytes of a value, about.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 16 + size(item)).sum(),
        Value::Object(map) => map.iter().map(|(name, value)| 16 + name.len() + size(value)).sum(),
        _ => 8,
    }
}

#[cfg(test)]
mod tests;
