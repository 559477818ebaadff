//! Formats programs in the canonical form.
//! Invariant: the formatted text parses to the same tree, and comments stay with their statements.

use base::{Diagnostic, Limits, Span};

use super::reports::quote_as_literal;
use super::tree::{
    AggregateFunction, AggregateSpec, Arg, DOTS, DottedName, EntityName, Entry, HandleCall, HandleCallKind, Heredoc,
    Key, MethodArgs, Node, Operator, Part, PartKind, Pred, Primary, Program, Value, ValueKind,
};

/// The longest statement in characters that is written on one line. A longer statement is split before its dots.
const MAX_STATEMENT_CHARS: usize = 100;

/// Formats each statement of a program on its own line. The tree has no comments, so the result has none.
pub fn format(program: &Program) -> String {
    let mut out = String::new();
    for (_, statement) in format_statements(program) {
        out.push_str(&statement);
        out.push('\n');
    }
    out
}

/// Formats a text and keeps its comments. Returns the diagnostics if the text has errors. A statement with a comment
/// inside is not changed, because the tree does not contain the position of the comment.
pub fn format_text(text: &str, limits: &Limits) -> Result<String, Vec<Diagnostic>> {
    let parsed = super::parse(text, limits);
    if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(parsed.diagnostics);
    }
    let comment_starts = find_comments(text);
    let mut out = String::new();
    let mut end = 0;
    for (span, statement) in format_statements(&parsed.program) {
        let before = text.get(end..span.start as usize).unwrap_or("");
        push_comments(before, end > 0, false, &mut out);
        end = span.end as usize;
        let has_comment = comment_starts.iter().any(|at| (span.start as usize..end).contains(at));
        out.push_str(if has_comment { span.of(text) } else { &statement });
        out.push('\n');
    }
    push_comments(text.get(end..).unwrap_or(""), end > 0, true, &mut out);
    Ok(out)
}

/// Returns the offsets of all comments. A `;;` inside a token, such as a string, is not a comment.
fn find_comments(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut end = 0;
    for token in super::tokens(text) {
        let start = token.span.start as usize;
        starts.extend(text.get(end..start).and_then(|gap| gap.find(";;")).map(|at| end + at));
        end = token.span.end as usize;
    }
    starts
}

/// Writes the comments in the gap between two statements. A comment on the line of the previous statement stays on
/// that line. Other comments get their own lines, and one blank line between them is kept. `follows_statement` tells
/// whether a statement precedes the gap, `is_last` whether no statement follows.
fn push_comments(gap: &str, follows_statement: bool, is_last: bool, out: &mut String) {
    let mut lines = gap.split('\n');
    let comment = |line: &str| line.find(";;").map(|at| line[at..].trim_end().to_owned());
    let first = lines.next().unwrap_or("");
    match (comment(first), follows_statement) {
        (Some(text), true) => {
            out.truncate(out.trim_end_matches('\n').len());
            out.push_str("  ");
            out.push_str(&text);
            out.push('\n');
        }
        (Some(text), false) => {
            out.push_str(&text);
            out.push('\n');
        }
        (None, _) => {}
    }
    let rest: Vec<&str> = lines.collect();
    let mut blank = false;
    for (at, line) in rest.iter().enumerate() {
        if let Some(text) = comment(line) {
            if blank && !out.is_empty() {
                out.push('\n');
            }
            blank = false;
            out.push_str(&text);
            out.push('\n');
        } else {
            // The next statement begins on the last line of the gap, so that line does not count as blank.
            blank |= line.trim().is_empty() && at + 1 < rest.len();
        }
    }
    if blank && !out.is_empty() && !is_last {
        out.push('\n');
    }
}

/// Returns the span and the formatted text of each statement. The final results together are one statement.
fn format_statements(program: &Program) -> Vec<(Span, String)> {
    let mut statements: Vec<(Span, String)> = Vec::new();
    for binding in &program.bindings {
        let mut out = SourceWriter::default();
        out.write(&format!("{} = ", binding.label.text));
        out.write_statement(&binding.node);
        out.end_heredoc(None);
        statements.push((binding.label.span.to(binding.node.span), out.text));
    }
    if let (Some(first), Some(last)) = (program.roots.first(), program.roots.last()) {
        let mut out = SourceWriter::default();
        for (at, root) in program.roots.iter().enumerate() {
            if at > 0 {
                out.write(", ");
            }
            out.write_statement(root);
        }
        out.end_heredoc(None);
        statements.push((first.span.to(last.span), out.text));
    }
    statements
}

/// Writes the text of one statement.
#[derive(Default)]
struct SourceWriter {
    /// The text written so far.
    text: String,
    /// The closing brackets and commas after the last line of a heredoc, or `None` elsewhere. Only such characters may
    /// follow on that line, so they are held back until the next character shows where they belong.
    text_after_heredoc: Option<String>,
}

impl SourceWriter {
    /// Appends text. Closing brackets behind a heredoc are held back in `text_after_heredoc`.
    fn write(&mut self, text: &str) {
        for c in text.chars() {
            match self.text_after_heredoc.as_mut() {
                Some(closers) if matches!(c, ')' | ']' | '}' | ',') => closers.push(c),
                Some(_) => self.end_heredoc(Some(c)),
                None => self.text.push(c),
            }
        }
    }

    /// Ends the last line of a heredoc before the character `next`. Text after a heredoc begins on a new line. Since
    /// `[`, `{` and `<` cannot begin a line, held back brackets move to the new line before them.
    fn end_heredoc(&mut self, next: Option<char>) {
        let closers = self.text_after_heredoc.take().unwrap_or_default();
        match next {
            Some('[' | '{' | '<') if closers.is_empty() => self.text.push(' '),
            Some('[' | '{' | '<') => {
                self.text.push('\n');
                self.text.push_str(&closers);
            }
            Some(_) => {
                self.text.push_str(&closers);
                self.text.push('\n');
            }
            None => self.text.push_str(&closers),
        }
        self.text.extend(next.filter(|c| *c != ' '));
    }

    /// Writes a statement on one line. If the line is too long and has several dotted parts, each dotted part gets its
    /// own line.
    fn write_statement(&mut self, node: &Node) {
        let start = self.text.len();
        self.write_node(node);
        let is_wide =
            self.text.get(start..).is_some_and(|s| s.chars().count() > MAX_STATEMENT_CHARS && !s.contains('\n'));
        let dotted = |part: &&Part| starts_with_dot(&part.kind);
        if is_wide && node.parts.iter().filter(dotted).count() > 1 {
            self.text.truncate(start);
            self.write_primary(&node.primary);
            for part in &node.parts {
                if starts_with_dot(&part.kind) {
                    self.write("\n  ");
                }
                self.write_part(&part.kind);
            }
        }
    }

    fn write_node(&mut self, node: &Node) {
        self.write_primary(&node.primary);
        for part in &node.parts {
            self.write_part(&part.kind);
        }
    }

    fn write_primary(&mut self, primary: &Primary) {
        match primary {
            Primary::Name(name) => self.write_entity_name(name),
            Primary::Get { entity, key } => {
                self.write_entity_name(entity);
                match key {
                    Key::Unary(value) => {
                        self.write("(");
                        self.write_value(value);
                        self.write(")");
                    }
                    Key::Slots(slots) => self.write_list("(", slots, Self::write_arg, ")"),
                }
            }
            Primary::Query { entity, preds } => {
                self.write_entity_name(entity);
                self.write_list("{", preds, Self::write_pred, "}");
            }
            Primary::Search { entity, text, preds } => {
                self.write_entity_name(entity);
                self.write("~");
                self.write_value(text);
                if !preds.is_empty() {
                    self.write_list("{", preds, Self::write_pred, "}");
                }
            }
            Primary::HandleCall(call) => self.write_handle_call(call),
            Primary::List(values) => self.write_list("[", values, Self::write_value, "]"),
            Primary::Text(block) => self.write_heredoc(block),
            Primary::Row(_) => self.write("_"),
            Primary::Error(_) => {}
        }
    }

    fn write_part(&mut self, part: &PartKind) {
        match part {
            PartKind::Follow { name, preds } => {
                self.write(&format!(".{}", name.text));
                if let Some(preds) = preds {
                    self.write_list("{", preds, Self::write_pred, "}");
                }
            }
            PartKind::Back { entity, preds } => {
                self.write(".^");
                self.write_entity_name(entity);
                if !preds.is_empty() {
                    self.write_list("{", preds, Self::write_pred, "}");
                }
            }
            PartKind::Method { name, args } => {
                self.write(&format!(".{}", name.text));
                self.write_method_args(args);
            }
            PartKind::Braces { preds } => self.write_list("{", preds, Self::write_pred, "}"),
            PartKind::Limit { count } => {
                self.write_list(".limit(", std::slice::from_ref(count), Self::write_value, ")")
            }
            PartKind::PageSize { count } => {
                self.write_list(".page_size(", std::slice::from_ref(count), Self::write_value, ")")
            }
            PartKind::Sort { field, descending } => {
                self.write(&format!(".sort({}{})", format_path(field), if *descending { ", desc" } else { "" }));
            }
            PartKind::Filter { preds } => self.write_list(".filter{", preds, Self::write_pred, "}"),
            PartKind::Aggregate { specs } => self.write_list(".aggregate(", specs, Self::write_aggregate_spec, ")"),
            PartKind::GroupBy { fields, specs } => {
                let all = fields.iter().map(format_path).chain(specs.iter().map(format_aggregate_spec));
                self.write(&format!(".group_by({})", all.collect::<Vec<_>>().join(", ")));
            }
            PartKind::Distinct { fields } => {
                self.write_list(".distinct(", fields, |out, f| out.write(&format_path(f)), ")")
            }
            PartKind::First => self.write(".first()"),
            PartKind::Last => self.write(".last()"),
            PartKind::Singleton => self.write(".singleton()"),
            PartKind::Project { fields } => self.write_list("[", fields, |out, f| out.write(&format_path(f)), "]"),
            PartKind::Derive { object } => self.write_list(" => {", object, Self::write_entry, "}"),
            PartKind::Each { effect } => {
                self.write(" => ");
                self.write_node(effect);
            }
            PartKind::Template(block) => {
                self.write(" ");
                self.write_heredoc(block);
            }
        }
    }

    fn write_method_args(&mut self, args: &MethodArgs) {
        match args {
            MethodArgs::Slots(args) => self.write_list("(", args, Self::write_arg, ")"),
            MethodArgs::Variant { name, args } => {
                self.write(&format!("({}", name.text));
                self.write_list("{", args, Self::write_arg, "}");
                self.write(")");
            }
        }
    }

    fn write_value(&mut self, value: &Value) {
        match &value.kind {
            ValueKind::String(text) => self.write(&quote_as_literal(text)),
            ValueKind::Number(text) => self.write(text),
            ValueKind::Bool(truth) => self.write(if *truth { "true" } else { "false" }),
            ValueKind::Null => self.write("null"),
            ValueKind::Text(block) => self.write_heredoc(block),
            ValueKind::List(values) => self.write_list("[", values, Self::write_value, "]"),
            ValueKind::Object(entries) => self.write_list("{", entries, Self::write_entry, "}"),
            ValueKind::Node(node) => self.write_node(node),
            ValueKind::Placeholder => self.write("$"),
            ValueKind::Error => {}
        }
    }

    fn write_list<T>(&mut self, open: &str, items: &[T], mut item: impl FnMut(&mut Self, &T), close: &str) {
        self.write(open);
        for (at, spec) in items.iter().enumerate() {
            if at > 0 {
                self.write(", ");
            }
            item(self, spec);
        }
        self.write(close);
    }

    fn write_entity_name(&mut self, name: &EntityName) {
        if let Some(catalog) = &name.catalog {
            self.write(&format!("{}:", catalog.text));
        }
        self.write(&name.name.text);
    }

    fn write_handle_call(&mut self, call: &HandleCall) {
        let kind = match call.kind {
            HandleCallKind::Page => "page",
            HandleCallKind::Wait => "wait",
            HandleCallKind::Cancel => "cancel",
        };
        self.write(&format!("{kind}({}", call.handle.text));
        if let Some(limit) = &call.limit {
            self.write(", limit=");
            self.write_value(limit);
        }
        self.write(")");
    }

    /// Writes a heredoc. A heredoc without a tag was written as a string, and is written as a string again.
    fn write_heredoc(&mut self, block: &Heredoc) {
        if block.tag.is_empty() {
            self.write(&quote_as_literal(&block.body));
            return;
        }
        self.write(&format!("<<{}", block.tag));
        self.text.push('\n');
        if !block.body.is_empty() {
            self.text.push_str(&block.body);
            self.text.push('\n');
        }
        self.text.push_str(&block.tag);
        self.text_after_heredoc = Some(String::new());
    }

    fn write_arg(&mut self, arg: &Arg) {
        if arg.is_dots() {
            return self.write(DOTS);
        }
        self.write(&format!("{}=", arg.slot.text));
        self.write_value(&arg.value);
    }

    fn write_entry(&mut self, entry: &Entry) {
        let mut letters = entry.key.text.chars();
        let is_word = letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
            && letters.all(|c| c.is_alphanumeric() || c == '_');
        let key = if is_word { entry.key.text.to_string() } else { quote_as_literal(&entry.key.text) };
        self.write(&format!("{key}: "));
        self.write_value(&entry.value);
    }

    fn write_pred(&mut self, pred: &Pred) {
        if pred.is_dots() {
            return self.write(DOTS);
        }
        let op = match pred.op {
            Operator::Eq => "=",
            Operator::Ne => "!=",
            Operator::Lt => "<",
            Operator::Le => "<=",
            Operator::Gt => ">",
            Operator::Ge => ">=",
            Operator::Like => "~",
        };
        self.write(&format!("{}{op}", format_path(&pred.path)));
        self.write_value(&pred.value);
    }

    fn write_aggregate_spec(&mut self, aggregate: &AggregateSpec) {
        self.write(&format_aggregate_spec(aggregate));
    }
}

/// Returns whether a part starts with a dot, so that it can begin a line.
fn starts_with_dot(part: &PartKind) -> bool {
    !matches!(
        part,
        PartKind::Braces { .. }
            | PartKind::Project { .. }
            | PartKind::Derive { .. }
            | PartKind::Each { .. }
            | PartKind::Template(_)
    )
}

fn format_aggregate_spec(spec: &AggregateSpec) -> String {
    let function = match spec.function {
        AggregateFunction::Count => "count",
        AggregateFunction::Sum => "sum",
        AggregateFunction::Avg => "avg",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
    };
    match &spec.field {
        Some(field) => format!("{}={function}({})", spec.name.text, format_path(field)),
        None => format!("{}={function}", spec.name.text),
    }
}

fn format_path(path: &DottedName) -> String {
    path.names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(".")
}
