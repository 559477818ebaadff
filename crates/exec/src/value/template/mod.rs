//! Templates: Minijinja over rows, without access to anything else.
//! Invariant: fuel and metered work bound the rendering, and a limit bounds its text; an undefined name is an error
//! with its line; a value is inserted as data and never parsed as a template.

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
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value as TemplateValue};
use serde_json::Value;

use super::fence::{self, Refusal};
use super::meter::{self, Meter, WORK};
use super::view::{VALUE, View};
use crate::error::{StepError, TemplateProblem};
use crate::outcome::Attached;

/// A template's source, and the symbols that it may use for columns.
pub type Source<'a> = (&'a str, &'a [(String, String)]);

/// A rendering that owns all of its input, so that it can run on a blocking thread.
pub struct RenderJob {
    limits: Limits,
    source: String,
    globals: Globals,
    meter: Arc<Meter>,
}

/// The names that a template may use.
type Globals = BTreeMap<&'static str, TemplateValue>;

impl RenderJob {
    pub fn render(self) -> Result<String, StepError> {
        render(&self.limits, &self.source, self.globals, &self.meter)
    }
}

/// Returns a rendering over all rows as `rows`. A single row is also available as `_`.
pub fn over_rows(limits: &Limits, (source, names): Source<'_>, view: &View<'_>) -> RenderJob {
    let meter = Meter::new(WORK);
    let context = Arc::new(RenderContext::new(source, names, view, &meter));
    let rows: Vec<TemplateValue> = view.rows.rows.iter().map(|row| context.row(view, row)).collect();
    let only = rows.first().filter(|_| rows.len() == 1).cloned();
    let mut globals: Globals = only.into_iter().map(|row| ("_", row)).collect();
    globals.insert("rows", TemplateValue::from(rows));
    RenderJob { limits: limits.clone(), source: source.to_owned(), globals, meter }
}

/// Renders a template over the current row, as `_`.
pub fn render_row(
    limits: &Limits,
    (source, names): (&String, &Vec<(String, String)>),
    view: &View<'_>,
    row: &Arc<Row>,
) -> Result<String, StepError> {
    let meter = Meter::new(WORK / ROWS);
    let context = Arc::new(RenderContext::new(source, names, view, &meter));
    render(limits, source, BTreeMap::from([("_", context.row(view, row))]), &meter)
}

fn render(limits: &Limits, source: &str, globals: Globals, meter: &Arc<Meter>) -> Result<String, StepError> {
    if source.len() > limits.template_bytes {
        return Err(problem(None, TemplateProblem::Source(limits.template_bytes)));
    }
    if let Err(Refusal { line, why }) = fence::check(source) {
        return Err(problem(Some(line), TemplateProblem::Syntax(why)));
    }
    let environment = environment(limits, meter);
    let mut out = Bounded { bytes: Vec::new(), limit: limits.template_output_bytes, over: false };
    let failed = |error: minijinja::Error, over: bool| match meter.is_exceeded() {
        true => problem(error.line(), TemplateProblem::Work(WORK)),
        false => render_error(limits, source, &error, over),
    };
    let template = environment.template_from_str(source).map_err(|error| failed(error, false))?;
    let context = TemplateValue::from(globals);
    let rendered = template.render_captured_to(context, &mut out).map(drop);
    rendered.map_err(|error| failed(error, out.over))?;
    if meter.is_exceeded() {
        return Err(problem(None, TemplateProblem::Work(WORK)));
    }
    let mut text = String::from_utf8_lossy(&out.bytes).into_owned();
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Returns the environment of a template: no loader, no `debug`, no access to other templates; `null` renders as
/// nothing.
fn environment(limits: &Limits, meter: &Arc<Meter>) -> Environment<'static> {
    let mut environment = with_filters(meter);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    // The trailing newline is dropped from the rendered text. Dropping it from the source as well would lose an
    // intended empty line.
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(limits.template_fuel));
    environment.set_recursion_limit(limits.nesting.max(1));
    environment.remove_global("debug");
    // `namespace` keeps values across loop iterations, which could double a text until memory runs out.
    environment.remove_global("namespace");
    environment.set_formatter(
        |out, state, value| {
            if value.is_none() { Ok(()) } else { minijinja::escape_formatter(out, state, value) }
        },
    );
    environment
}

/// Returns an environment whose filters are metered.
fn with_filters(meter: &Arc<Meter>) -> Environment<'static> {
    let mut plain = Environment::new();
    plain.set_undefined_behavior(UndefinedBehavior::Strict);
    plain.set_auto_escape_callback(|_| AutoEscape::None);
    // These filters turn small input into large output, whatever the fuel.
    for filter in ["format", "indent", "batch", "slice", "pprint"] {
        plain.remove_filter(filter);
    }
    let made = meter.clone();
    plain.add_filter("replace", move |text: String, from: String, to: String| replace(&made, &text, &from, &to));
    let mut environment = plain.clone();
    meter::guard(&mut environment, plain, meter);
    environment
}

/// A template over one row gets this fraction of the work of one over all rows, since it may run once per row.
const ROWS: u64 = 16;

/// The most bytes of text that a filter may produce.
const FILTER_OUTPUT: usize = 1024 * 1024;

fn replace(meter: &Meter, text: &str, from: &str, to: &str) -> Result<String, minijinja::Error> {
    let times = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
    let made = text.len().saturating_add(times.saturating_mul(to.len()));
    bounded(made)?;
    // Charged here as well, because `map` calls this function once per item.
    if meter.charge_value(made) { Ok(text.replace(from, to)) } else { Err(ErrorKind::OutOfFuel.into()) }
}

fn bounded(bytes: usize) -> Result<(), minijinja::Error> {
    if bytes <= FILTER_OUTPUT {
        return Ok(());
    }
    Err(minijinja::Error::new(
        ErrorKind::InvalidOperation,
        format!("a filter makes at most {FILTER_OUTPUT} bytes of text"),
    ))
}

fn render_error(limits: &Limits, source: &str, error: &minijinja::Error, over: bool) -> StepError {
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

/// The error's range covers the undefined name.
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

/// Collects text up to a limit.
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

/// The context that all rows of one rendering share.
#[derive(Debug)]
struct RenderContext {
    meter: Arc<Meter>,
    /// Column names by symbol.
    names: HashMap<String, String>,
    attached: Vec<Arc<Attached>>,
    /// References whose fields the template uses: by path, the name of the key part that the reference is.
    keys: HashMap<Path, String>,
}

impl RenderContext {
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

    fn row(self: &Arc<Self>, view: &View<'_>, row: &Arc<Row>) -> TemplateValue {
        if view.is_literal() {
            return self.shown(Vec::new(), row.get(VALUE).unwrap_or(&Value::Null));
        }
        TemplateValue::from_object(RowObject {
            context: self.clone(),
            path: Vec::new(),
            row: row.clone(),
            scalar: None,
            dangling: false,
        })
    }

    fn shown(self: &Arc<Self>, path: Path, value: &Value) -> TemplateValue {
        let looked_into = self.keys.contains_key(&path) || self.attached.iter().any(|t| t.path == path);
        match value {
            value if looked_into && !path.is_empty() => self.reference(path, value),
            Value::Null => TemplateValue::from(()),
            Value::Bool(flag) => TemplateValue::from(*flag),
            Value::Number(n) => match (n.as_i64(), n.as_u64()) {
                (Some(whole), _) => TemplateValue::from(whole),
                (_, Some(whole)) => TemplateValue::from(whole),
                _ => TemplateValue::from(n.as_f64().unwrap_or_default()),
            },
            Value::String(text) => TemplateValue::from(text.as_str()),
            Value::Array(items) => items.iter().map(|item| self.shown(path.clone(), item)).collect::<Vec<_>>().into(),
            Value::Object(map) => {
                let row = Arc::new(map.clone());
                TemplateValue::from_object(RowObject {
                    context: self.clone(),
                    path,
                    row,
                    scalar: None,
                    dangling: false,
                })
            }
        }
    }

    /// A reference renders as its key and has the fields of the attached row.
    fn reference(self: &Arc<Self>, path: Path, value: &Value) -> TemplateValue {
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
        let scalar = (!value.is_object()).then(|| value.clone());
        TemplateValue::from_object(RowObject {
            context: self.clone(),
            path,
            row: Arc::new(row),
            scalar,
            dangling: true,
        })
    }
}

/// A row, a nested object, or the row that a reference leads to.
#[derive(Debug)]
struct RowObject {
    context: Arc<RenderContext>,
    path: Path,
    row: Arc<Row>,
    /// The reference itself, if it is a scalar.
    scalar: Option<Value>,
    /// The row of a dangling reference has no fields. They read as `null` then, because the template is not at fault.
    dangling: bool,
}

impl RowObject {
    /// A projected path is a column with a dot in its name. `owner.name` must be reachable like a nested field.
    fn dotted(&self, name: &str) -> Option<Row> {
        let inside = |(key, value): (&String, &Value)| {
            Some((key.strip_prefix(name)?.strip_prefix('.')?.to_owned(), value.clone()))
        };
        let row: Row = self.row.iter().filter_map(inside).collect();
        (!row.is_empty()).then_some(row)
    }
}

impl Object for RowObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &TemplateValue) -> Option<TemplateValue> {
        let key = key.as_str()?;
        let known = self.row.contains_key(key) || !self.context.names.contains_key(key);
        let name = if known { key } else { self.context.names.get(key)? };
        // A template over its limit reads nothing, which ends it.
        if !self.context.meter.charge_value(self.row.get(name).map_or(0, size)) {
            return None;
        }
        let path: Path = self.path.iter().cloned().chain([name.into()]).collect();
        match self.dotted(name) {
            Some(row) => {
                let scalar = self.row.get(name).filter(|v| !v.is_object()).cloned();
                Some(TemplateValue::from_object(RowObject {
                    context: self.context.clone(),
                    path,
                    row: Arc::new(row),
                    scalar,
                    dangling: false,
                }))
            }
            None => match self.row.get(name) {
                Some(value) => Some(self.context.shown(path, value)),
                None => self.dangling.then(|| TemplateValue::from(())),
            },
        }
    }

    /// Compares in place. The order must not depend on the meter, because a sort whose order changes while it runs
    /// panics.
    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        let other = other.downcast_ref::<RowObject>()?;
        self.context.meter.charge_value(self.row.values().map(size).sum());
        let (mine, theirs) = (self.row.iter(), other.row.iter());
        Some(mine.cmp_by_data(theirs))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.row.keys().map(|key| TemplateValue::from(key.as_str())).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.scalar.as_ref().map_or_else(|| self.row.values().map(size).sum(), size);
        // A template over its limit renders nothing and ends afterwards. Returning an error from here would panic.
        if !self.context.meter.charge_value(bytes) {
            return Ok(());
        }
        match &self.scalar {
            Some(Value::Null) => Ok(()),
            Some(Value::String(text)) => f.write_str(text),
            Some(other) => write!(f, "{other}"),
            None => write!(f, "{}", Value::Object(Row::clone(&self.row))),
        }
    }
}

/// A total order of rows.
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

/// Returns the approximate size of a value in bytes.
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
