//! The rendering of templates with Minijinja. A template has access only to rows.
//! Invariant: fuel and metered work bound the rendering, and a limit bounds its text. An undefined name is an error with its
//! line. A value is inserted as data and never parsed as a template.

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
use super::meter::{self, MAX_WORK_BYTES, Meter};
use super::view::{LITERAL_COLUMN, RowsView};
use crate::error::{StepError, TemplateProblem};
use crate::outcome::Attached;

/// The divisor for the work limit of a template over one row, because such a template may run once for each row.
const ROW_TEMPLATE_WORK_DIVISOR: u64 = 16;

/// The maximum size in bytes of the text that one filter call may produce.
const MAX_FILTER_OUTPUT_BYTES: usize = 1024 * 1024;

/// The text of a template in a program, with its symbols.
#[derive(Clone, Copy)]
pub struct TemplateSource<'a> {
    pub text: &'a str,
    /// The symbols that the template may use instead of column names: pairs of symbol and column name.
    pub names: &'a [(String, String)],
}

/// A rendering with owned input, so that it can run on a blocking thread.
pub struct RenderJob {
    limits: Limits,
    /// The text of the template.
    source: String,
    globals: Globals,
    meter: Arc<Meter>,
}

/// The global names of a template with their values.
type Globals = BTreeMap<&'static str, TemplateValue>;

impl RenderJob {
    pub fn render(self) -> Result<String, StepError> {
        render(&self.limits, &self.source, self.globals, &self.meter)
    }
}

/// Returns a rendering with all rows as the name `rows`. If there is exactly one row, it is also the name `_`.
pub fn over_rows(limits: &Limits, source: TemplateSource<'_>, view: &RowsView<'_>) -> RenderJob {
    let meter = Meter::new(MAX_WORK_BYTES);
    let context = Arc::new(RenderContext::new(source, view, &meter));
    let rows: Vec<TemplateValue> = view.rows.rows.iter().map(|row| context.row(view, row)).collect();
    let only = rows.first().filter(|_| rows.len() == 1).cloned();
    let mut globals: Globals = only.into_iter().map(|row| ("_", row)).collect();
    globals.insert("rows", TemplateValue::from(rows));
    RenderJob { limits: limits.clone(), source: source.text.to_owned(), globals, meter }
}

/// Renders a template with the current row as the name `_`.
pub fn render_row(
    limits: &Limits,
    source: TemplateSource<'_>,
    view: &RowsView<'_>,
    row: &Arc<Row>,
) -> Result<String, StepError> {
    let meter = Meter::new(MAX_WORK_BYTES / ROW_TEMPLATE_WORK_DIVISOR);
    let context = Arc::new(RenderContext::new(source, view, &meter));
    render(limits, source.text, BTreeMap::from([("_", context.row(view, row))]), &meter)
}

fn render(limits: &Limits, source: &str, globals: Globals, meter: &Arc<Meter>) -> Result<String, StepError> {
    if source.len() > limits.template_bytes {
        return Err(problem(None, TemplateProblem::Source(limits.template_bytes)));
    }
    if let Err(Refusal { line, why }) = fence::check(source) {
        return Err(problem(Some(line), TemplateProblem::Syntax(why)));
    }
    let environment = environment(limits, meter);
    let mut out = BoundedText { bytes: Vec::new(), limit: limits.template_output_bytes, is_over: false };
    let failed = |error: minijinja::Error, is_over: bool| {
        if meter.is_exceeded() {
            problem(error.line(), TemplateProblem::Work(MAX_WORK_BYTES))
        } else {
            render_error(limits, source, &error, is_over)
        }
    };
    let template = environment.template_from_str(source).map_err(|error| failed(error, false))?;
    let context = TemplateValue::from(globals);
    let rendered = template.render_captured_to(context, &mut out).map(drop);
    rendered.map_err(|error| failed(error, out.is_over))?;
    // A value over the limit was rendered as empty text, so the rendered text is wrong and must not be returned.
    if meter.is_exceeded() {
        return Err(problem(None, TemplateProblem::Work(MAX_WORK_BYTES)));
    }
    let mut text = String::from_utf8_lossy(&out.bytes).into_owned();
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Returns the Minijinja environment, without a loader, `debug` or access to other templates. `null` is rendered as empty text.
fn environment(limits: &Limits, meter: &Arc<Meter>) -> Environment<'static> {
    let mut environment = with_filters(meter);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    // The trailing newline is removed from the rendered text. If it were also removed from the source, an intended empty line
    // would be lost.
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

/// Returns an environment with metered filters.
fn with_filters(meter: &Arc<Meter>) -> Environment<'static> {
    let mut plain = Environment::new();
    plain.set_undefined_behavior(UndefinedBehavior::Strict);
    plain.set_auto_escape_callback(|_| AutoEscape::None);
    // Fuel does not limit these filters, although they can turn small input into large output.
    for filter in ["format", "indent", "batch", "slice", "pprint"] {
        plain.remove_filter(filter);
    }
    let replace_meter = meter.clone();
    plain.add_filter("replace", move |text: String, from: String, to: String| {
        replace(&replace_meter, &text, &from, &to)
    });
    let mut environment = plain.clone();
    meter::guard(&mut environment, plain, meter);
    environment
}

/// Replaces text like the built-in filter `replace`. The size of the result is checked before the result is allocated.
fn replace(meter: &Meter, text: &str, from: &str, to: &str) -> Result<String, minijinja::Error> {
    let times = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
    let result_bytes = text.len().saturating_add(times.saturating_mul(to.len()));
    check_filter_output(result_bytes)?;
    // The result is charged here too, because the filter `map` calls this function for each item without a wrapper.
    if meter.charge_value(result_bytes) { Ok(text.replace(from, to)) } else { Err(ErrorKind::OutOfFuel.into()) }
}

fn check_filter_output(bytes: usize) -> Result<(), minijinja::Error> {
    if bytes <= MAX_FILTER_OUTPUT_BYTES {
        return Ok(());
    }
    Err(minijinja::Error::new(
        ErrorKind::InvalidOperation,
        format!("a filter makes at most {MAX_FILTER_OUTPUT_BYTES} bytes of text"),
    ))
}

fn render_error(limits: &Limits, source: &str, error: &minijinja::Error, is_over: bool) -> StepError {
    let detail = || error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let line = error.line();
    match error.kind() {
        _ if is_over => problem(line, TemplateProblem::Output(limits.template_output_bytes)),
        ErrorKind::OutOfFuel => problem(line, TemplateProblem::Fuel(limits.template_fuel)),
        ErrorKind::UndefinedError => problem(line, TemplateProblem::Undefined(undefined_name(source, error))),
        ErrorKind::SyntaxError => problem(line, TemplateProblem::Syntax(detail())),
        _ => problem(line, TemplateProblem::Failed(detail())),
    }
}

/// Returns the message for an undefined name. The name is taken from the source range of the error.
fn undefined_name(source: &str, error: &minijinja::Error) -> String {
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

/// A writer that collects text up to a limit.
struct BoundedText {
    bytes: Vec<u8>,
    limit: usize,
    /// Whether the limit was exceeded. The flag distinguishes this failure from other rendering errors.
    is_over: bool,
}

impl Write for &mut BoundedText {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + text.len() > self.limit {
            self.is_over = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The data that all rows of one rendering share.
#[derive(Debug)]
struct RenderContext {
    meter: Arc<Meter>,
    /// The column name of each symbol.
    names: HashMap<String, String>,
    attached: Vec<Arc<Attached>>,
    /// The references whose fields the template may use. The key is the path of the reference; the value is the name of the
    /// reference's only key part.
    keys: HashMap<Path, String>,
}

impl RenderContext {
    fn new(source: TemplateSource<'_>, view: &RowsView<'_>, meter: &Arc<Meter>) -> Self {
        let names: HashMap<String, String> = source.names.iter().cloned().collect();
        // The search for `owner.` in the text may match too often. A false match only turns a reference into an object
        // unnecessarily.
        let uses_fields_of = |column: &str| {
            let symbols = names.iter().filter(|(_, name)| *name == column).map(|(symbol, _)| symbol.as_str());
            symbols.chain([column]).any(|name| source.text.contains(&format!("{name}.")))
        };
        let used_reference = |column: &lang::plan::Column| {
            let entity = view.entity_of(&column.kind)?;
            let [only] = entity.key.as_slice() else { return None };
            uses_fields_of(&column.name).then(|| (vec![column.name.clone()], only.clone()))
        };
        let keys = view.columns.iter().filter_map(used_reference).collect();
        Self { meter: meter.clone(), attached: view.rows.attached.clone(), keys, names }
    }

    /// Returns a row as a template value.
    fn row(self: &Arc<Self>, view: &RowsView<'_>, row: &Arc<Row>) -> TemplateValue {
        if view.is_literal() {
            return self.template_value(Vec::new(), row.get(LITERAL_COLUMN).unwrap_or(&Value::Null));
        }
        TemplateValue::from_object(RowObject {
            context: self.clone(),
            path: Vec::new(),
            row: row.clone(),
            scalar: None,
            missing_is_null: false,
        })
    }

    /// Returns the value at a path of a row as a template value.
    fn template_value(self: &Arc<Self>, path: Path, value: &Value) -> TemplateValue {
        let has_fields = self.keys.contains_key(&path) || self.attached.iter().any(|t| t.path == path);
        match value {
            value if has_fields && !path.is_empty() => self.reference(path, value),
            Value::Null => TemplateValue::from(()),
            Value::Bool(flag) => TemplateValue::from(*flag),
            Value::Number(n) => match (n.as_i64(), n.as_u64()) {
                (Some(whole), _) => TemplateValue::from(whole),
                (_, Some(whole)) => TemplateValue::from(whole),
                _ => TemplateValue::from(n.as_f64().unwrap_or_default()),
            },
            Value::String(text) => TemplateValue::from(text.as_str()),
            Value::Array(items) => {
                items.iter().map(|item| self.template_value(path.clone(), item)).collect::<Vec<_>>().into()
            }
            Value::Object(map) => {
                let row = Arc::new(map.clone());
                TemplateValue::from_object(RowObject {
                    context: self.clone(),
                    path,
                    row,
                    scalar: None,
                    missing_is_null: false,
                })
            }
        }
    }

    /// Returns a reference as a template value. It is rendered as its key and has the fields of the attached row.
    fn reference(self: &Arc<Self>, path: Path, value: &Value) -> TemplateValue {
        let attached = self.attached.iter().find(|attached| attached.path == path);
        let mut row = attached.and_then(|attached| attached.find(value)).map(|row| Row::clone(row)).unwrap_or_default();
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
            missing_is_null: true,
        })
    }
}

/// A template object for a row, a nested object, or the attached row of a reference.
#[derive(Debug)]
struct RowObject {
    context: Arc<RenderContext>,
    /// The path from the template's row to this object.
    path: Path,
    row: Arc<Row>,
    /// The scalar reference, if the object is the attached row of a scalar reference.
    scalar: Option<Value>,
    /// Whether a missing field is `null` instead of an error. It is true for attached rows: the row of a dangling reference has
    /// no fields, and that is not a mistake in the template.
    missing_is_null: bool,
}

impl RowObject {
    /// Returns the columns whose names start with `name` and a dot, as a nested row. A projected path such as `owner.name` is a
    /// column with a dot in its name, and templates must be able to read it like a nested field.
    fn columns_below(&self, name: &str) -> Option<Row> {
        let column_below = |(key, value): (&String, &Value)| {
            Some((key.strip_prefix(name)?.strip_prefix('.')?.to_owned(), value.clone()))
        };
        let row: Row = self.row.iter().filter_map(column_below).collect();
        (!row.is_empty()).then_some(row)
    }
}

impl Object for RowObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &TemplateValue) -> Option<TemplateValue> {
        let key = key.as_str()?;
        // A column takes precedence over a symbol of the same name.
        let is_name = self.row.contains_key(key) || !self.context.names.contains_key(key);
        let name = if is_name { key } else { self.context.names.get(key)? };
        // Over the work limit, every field reads as undefined, which ends the template with an error.
        if !self.context.meter.charge_value(self.row.get(name).map_or(0, size)) {
            return None;
        }
        let path: Path = self.path.iter().cloned().chain([name.into()]).collect();
        match self.columns_below(name) {
            Some(row) => {
                let scalar = self.row.get(name).filter(|v| !v.is_object()).cloned();
                Some(TemplateValue::from_object(RowObject {
                    context: self.context.clone(),
                    path,
                    row: Arc::new(row),
                    scalar,
                    missing_is_null: false,
                }))
            }
            None => match self.row.get(name) {
                Some(value) => Some(self.context.template_value(path, value)),
                None => self.missing_is_null.then(|| TemplateValue::from(())),
            },
        }
    }

    /// Compares two rows without charging the meter. A sort may panic if its order changes while it runs, so the order must not
    /// depend on the remaining work.
    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        let other = other.downcast_ref::<RowObject>()?;
        self.context.meter.charge_value(self.row.values().map(size).sum());
        Some(compare_rows(&self.row, &other.row))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.row.keys().map(|key| TemplateValue::from(key.as_str())).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.scalar.as_ref().map_or_else(|| self.row.values().map(size).sum(), size);
        // Over the work limit nothing is rendered, and the template ends afterwards. An error from this function would cause a
        // panic.
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

/// Compares two rows in a total order, column by column: first the names, then the values.
fn compare_rows(a: &Row, b: &Row) -> Ordering {
    let mut columns = a.iter().zip(b);
    let difference = columns.find_map(|((a_name, a_value), (b_name, b_value))| {
        let order = a_name.cmp(b_name).then_with(|| compare_values(a_value, b_value));
        order.is_ne().then_some(order)
    });
    difference.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Compares two values in a total order. Values of different JSON kinds are ordered by kind.
fn compare_values(a: &Value, b: &Value) -> Ordering {
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
            let difference = a.iter().zip(b).map(|(a, b)| compare_values(a, b)).find(|order| order.is_ne());
            difference.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_rows(a, b),
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
