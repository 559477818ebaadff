//! Describes steps and values in words, for plans and outlines.
//! Invariants: a known value is shown as JSON with the quotation of programs, and any other value as its source. A plan shows every value
//! whole: a value that does not fit on the line of its step stands below it. Only an outline, which nobody approves, cuts a value.

use std::cell::RefCell;

use serde_json::Value;

use super::{Aggregation, Args, Expr, FilterTest, Function, NamedPath, Path, RowPart, Step, StepKind};

/// The most characters of a value on the line of its step.
const MAX_INLINE_CHARS: usize = 60;
/// The most characters of a list of rows on the line of its step.
const MAX_INLINE_ROWS_CHARS: usize = 240;

/// The most characters of a line below a step.
const MAX_PIECE_CHARS: usize = 1_000;

/// Describes a value for an outline, where a long value is cut. A step is named by its number, such as `n3`.
pub(crate) fn describe_value(value: &Expr) -> String {
    Describer { name: &|step| format!("n{step}"), long_values: None }.value(value)
}

/// A value that does not fit on the line of its step. Its number on that line is its position in the list, from 1.
pub(crate) struct LongValue {
    /// The length of the value, such as `245 characters`.
    pub length: String,
    /// The whole value. The lines of a text are quoted one by one.
    pub lines: Vec<String>,
}

/// Writes the values of one step.
struct Describer<'a> {
    /// Returns the name of a step.
    name: StepName<'a>,
    /// Receives the values that do not fit on the line. Without it such a value is cut.
    long_values: Option<&'a RefCell<Vec<LongValue>>>,
}

impl Describer<'_> {
    /// Returns the same writer with other names of steps.
    fn with_names<'b>(&'b self, name: StepName<'b>) -> Describer<'b> {
        Describer { name, long_values: self.long_values }
    }

    fn value(&self, value: &Expr) -> String {
        match value {
            Expr::Value(Value::String(text)) => self.text(text),
            Expr::Value(value) => self.json(value),
            Expr::Step { step, take, many } => {
                let each = if *many { "each " } else { "" };
                format!("{each}{}{}", (self.name)(*step), part_suffix(take))
            }
            Expr::Row(take) => format!("_{}", part_suffix(take)),
            Expr::List(items) => format!("[{}]", self.joined(items.iter())),
            Expr::Object(pairs) => format!("{{{}}}", self.pairs(pairs)),
            Expr::Template { source, .. } => self.text(source),
            Expr::Read { steps, take } => format!("({}){}", describe_inner_read(steps, self), part_suffix(take)),
        }
    }

    fn joined<'e>(&self, items: impl Iterator<Item = &'e Expr>) -> String {
        items.map(|item| self.value(item)).collect::<Vec<_>>().join(", ")
    }

    fn pairs(&self, pairs: &[(String, Expr)]) -> String {
        pairs
            .iter()
            .map(|(key, value)| format!("{}: {}", name_or_quote(key), self.value(value)))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Writes a text in quotation marks, on the line or below it.
    fn text(&self, text: &str) -> String {
        let quoted = base::quote(text);
        if quoted.chars().count() <= MAX_INLINE_CHARS {
            return quoted;
        }
        match self.long_values {
            Some(_) => self.below(describe_length(text.chars().count()), lines_of(text)),
            None => clip(&quoted),
        }
    }

    /// Writes a value that is not a text, on the line or below it.
    fn json(&self, value: &Value) -> String {
        let mut written = String::new();
        write_json(value, &mut written);
        let length = written.chars().count();
        match self.long_values {
            _ if length <= MAX_INLINE_CHARS => written,
            Some(_) => self.below(describe_length(length), pieces_of(&written).map(str::to_owned).collect()),
            None => clip(&written),
        }
    }

    /// Writes the rows of a step, each on a line of its own if there are many.
    fn rows(&self, items: &[Expr]) -> String {
        let written: Vec<String> = items.iter().map(|item| self.value(item)).collect();
        let on_one_line = format!("[{}]", written.join(", "));
        let length = on_one_line.chars().count();
        match self.long_values {
            Some(_) if length > MAX_INLINE_ROWS_CHARS => {
                self.below(format!("{} rows, {}", written.len(), describe_length(length)), written)
            }
            Some(_) => on_one_line,
            None => clip(&on_one_line),
        }
    }

    /// Puts a value below the line, and returns its number for the line.
    fn below(&self, length: String, lines: Vec<String>) -> String {
        let Some(long_values) = self.long_values else { return String::new() };
        let mut long_values = long_values.borrow_mut();
        long_values.push(LongValue { length, lines });
        format!("<{}>", long_values.len())
    }

    /// Describes arguments, such as `state="open", ticket ← hot`.
    fn args(&self, args: &Args) -> String {
        let describe_arg = |(slot, value): (&smol_str::SmolStr, &Expr)| match value {
            Expr::Step { .. } | Expr::Row(_) | Expr::Read { .. } => format!("{slot} ← {}", self.value(value)),
            known => format!("{slot}={}", self.value(known)),
        };
        args.iter().map(describe_arg).collect::<Vec<_>>().join(", ")
    }

    fn args_in_braces(&self, args: &Args) -> String {
        if args.is_empty() { String::new() } else { format!("{{{}}}", self.args(args)) }
    }
}

/// Returns the lines of a text, each in quotation marks. A line that is too long to be read is divided.
fn lines_of(text: &str) -> Vec<String> {
    text.split_inclusive('\n').flat_map(pieces_of).map(base::quote).collect()
}

/// Divides a text into pieces of at most `MAX_PIECE_CHARS` characters, so that a part of a plan can be read.
fn pieces_of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(MAX_PIECE_CHARS).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn describe_length(characters: usize) -> String {
    format!("{characters} characters")
}

/// Writes a value as JSON, with the texts as programs write them.
fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => out.push_str(&base::quote(text)),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(pairs) => {
            out.push('{');
            for (at, (key, item)) in pairs.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                out.push_str(&base::quote(key));
                out.push(':');
                write_json(item, out);
            }
            out.push('}');
        }
        known => out.push_str(&known.to_string()),
    }
}

/// Returns the key of an object as it is if it is a plain name, and quoted otherwise, so that a key cannot look like other pairs.
fn name_or_quote(key: &str) -> String {
    let is_plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if is_plain { key.to_owned() } else { base::quote(key) }
}

/// Returns the path that is read from a row, with a leading dot: `.owner.name`.
fn part_suffix(take: &RowPart) -> String {
    match take {
        RowPart::Path(path) if path.is_empty() => String::new(),
        RowPart::Path(path) => format!(".{}", path.join(".")),
        RowPart::Key(_) => String::new(),
    }
}

/// Describes aggregations, such as `n=count, total=sum(votes)`.
pub(crate) fn describe_aggregations(specs: &[Aggregation]) -> String {
    let describe_aggregation = |spec: &Aggregation| {
        let function = match spec.function {
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Avg => "avg",
            Function::Min => "min",
            Function::Max => "max",
        };
        match &spec.path {
            Some(path) => format!("{}={function}({})", spec.name, path.join(".")),
            None => format!("{}={function}", spec.name),
        }
    };
    specs.iter().map(describe_aggregation).collect::<Vec<_>>().join(", ")
}

/// Describes a column by its name, and by its path if that differs: a column must not look like another field.
fn describe_column(column: &NamedPath) -> String {
    let path = column.path.join(".");
    if column.name == path { path } else { format!("{}={path}", column.name) }
}

/// Cuts a text to 60 characters.
fn clip(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(59).chain(['…']).collect() }
}

/// A function that returns the name of a step for its number.
pub(crate) type StepName<'a> = &'a dyn Fn(usize) -> String;

/// Describes the operation of a step, without its input. `long_values` receives the values that do not fit on the line.
pub(crate) fn describe_step(step: &Step, name: StepName<'_>, long_values: &RefCell<Vec<LongValue>>) -> String {
    describe_operation(step, &Describer { name, long_values: Some(long_values) })
}

fn describe_operation(step: &Step, with: &Describer<'_>) -> String {
    let limit = |limit: &Option<usize>| limit.map(|n| format!(" limit {n}")).unwrap_or_default();
    let pages = |size: &Option<usize>| size.map(|n| format!(" by {n}")).unwrap_or_default();
    let entity = step.of.as_ref().map_or("rows", |of| of.entity.as_str());
    let description = step.description.as_ref().map(|s| s.what.as_str());
    let joined = |paths: &[Path]| paths.iter().map(|p| p.join(".")).collect::<Vec<_>>().join(", ");
    match &step.kind {
        StepKind::Query { args, limit: n, page_size, fields, .. } => {
            let what = description.map_or_else(|| format!("query {entity}"), str::to_owned);
            let fields = fields.as_ref().map(|f| format!("[{}]", f.join(", "))).unwrap_or_default();
            format!("{what}{}{fields}{}{}", with.args_in_braces(args), limit(n), pages(page_size))
        }
        StepKind::Get { args, .. } => {
            let what = description.map_or_else(|| format!("get {entity}"), str::to_owned);
            format!("{what}({})", with.args(args))
        }
        StepKind::Follow { relation, args, limit: n, page_size, .. } => {
            format!("follow {relation}{} → {entity}{}{}", with.args_in_braces(args), limit(n), pages(page_size))
        }
        StepKind::QueryPerRow { args, limit: n, .. } => {
            format!("for each row query {entity}{}{}", with.args_in_braces(args), limit(n))
        }
        StepKind::Deref { field, limit: n, .. } => format!("follow {field} → {entity}{}", limit(n)),
        StepKind::Attach { field, entity, .. } => format!("look up {} → {}", field.join("."), entity.entity),
        StepKind::Hydrate { fields, .. } => format!("read {} of each row", fields.join(", ")),
        StepKind::Filter { tests, .. } => {
            let one = |t: &FilterTest| format!("{}{}{}", t.path.join("."), t.op.sign(), with.value(&t.value));
            format!("filter {}", tests.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        StepKind::Sort { by, descending, .. } => {
            format!("sort {}{}", by.join("."), if *descending { " desc" } else { "" })
        }
        StepKind::Limit { count, .. } => format!("limit {count}"),
        StepKind::Distinct { by, .. } if by.is_empty() => "distinct".to_owned(),
        StepKind::Distinct { by, .. } => format!("distinct {}", joined(by)),
        StepKind::Aggregate { specs, .. } => describe_aggregations(specs),
        StepKind::GroupBy { by, specs, .. } => {
            let by: Vec<String> = by.iter().map(describe_column).collect();
            format!("group by {}: {}", by.join(", "), describe_aggregations(specs))
        }
        StepKind::Project { columns, .. } => {
            format!("[{}]", columns.iter().map(describe_column).collect::<Vec<_>>().join(", "))
        }
        StepKind::Derive { object, .. } => {
            format!("{{{}}}", with.pairs(object))
        }
        StepKind::Effect { args, .. } => format!("{}({})", description.unwrap_or("effect"), with.args(args)),
        StepKind::Page { handle, limit: n } => format!("page {handle}{}", limit(n)),
        other => describe_simple_step(other, with),
    }
}

/// Describes templates, literals and texts, and the kinds of steps that have only a fixed word.
fn describe_simple_step(kind: &StepKind, with: &Describer<'_>) -> String {
    match kind {
        StepKind::Template { source, .. } => format!("render {}", with.text(source)),
        StepKind::Rows { items } => format!("rows {}", with.rows(items)),
        StepKind::Text { content } => format!("text {}", with.text(content)),
        StepKind::Operation { handle, .. } => format!("{} {handle}", kind.word()),
        StepKind::OuterRows { step } => step.map_or_else(|| "_".to_owned(), with.name),
        other => other.word().to_owned(),
    }
}

/// Describes a read per row on one line, such as `query Ticket{owner ← _.id}, n=count`.
fn describe_inner_read(steps: &[Step], outer: &Describer<'_>) -> String {
    let name_of_inner_step = |at: usize| match steps.get(at).map(|s| &s.kind) {
        Some(StepKind::OuterRows { step: Some(outer_step) }) => (outer.name)(*outer_step),
        Some(StepKind::OuterRows { step: None }) => "_".to_owned(),
        _ => format!("#{:02}", at + 1),
    };
    let describe_inner = |step: &Step| match &step.kind {
        StepKind::OuterRows { step } => step.map_or_else(|| "_".to_owned(), outer.name),
        _ => describe_operation(step, &outer.with_names(&name_of_inner_step)),
    };
    steps.iter().map(describe_inner).collect::<Vec<_>>().join(", ")
}
