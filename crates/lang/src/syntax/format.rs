//! Writes a program in its canonical form.
//! Invariant: the written text parses to the same tree, and comments stay at their statements.

use base::{Diagnostic, Limits, Span};

use super::reports::quoted;
use super::tree::{
    AggregateFunction, AggregateSpec, Arg, DOTS, DottedName, EntityName, Entry, HandleCall, HandleCallKind, Heredoc,
    Key, MethodArgs, Node, Operator, Part, PartKind, Pred, Primary, Program, Value, ValueKind,
};

/// A statement of more characters than this is continued on lines that begin with a dot.
const MAX_STATEMENT_CHARS: usize = 100;

/// Writes each statement of a program on a line of its own. Comments are not in the tree, so they are lost.
pub fn format(program: &Program) -> String {
    let mut out = String::new();
    for (_, statement) in statements(program) {
        out.push_str(&statement);
        out.push('\n');
    }
    out
}

/// Formats a text and keeps its comments. A text with errors is refused with its diagnostics. A statement that has a
/// comment inside is left as it is, because the tree does not say where in the statement the comment stands.
pub fn format_text(text: &str, limits: &Limits) -> Result<String, Vec<Diagnostic>> {
    let parsed = super::parse(text, limits);
    if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(parsed.diagnostics);
    }
    let comment_starts = comments_between_tokens(text);
    let mut out = String::new();
    let mut end = 0;
    for (span, statement) in statements(&parsed.program) {
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

/// Returns the offsets at which comments begin. A `;;` inside of a token, such as a string, is not one.
fn comments_between_tokens(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut end = 0;
    for token in super::tokens(text) {
        let start = token.span.start as usize;
        starts.extend(text.get(end..start).and_then(|gap| gap.find(";;")).map(|at| end + at));
        end = token.span.end as usize;
    }
    starts
}

/// Writes the comments of the text between two statements. A comment on the line of the statement before stays on that
/// line; the others get lines of their own, and a blank line between them is kept. `follows_statement` says that a
/// statement stands before the gap, `is_last` that none stands after it.
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
            // The last line of the gap is the one on which the next statement begins, so it is not a blank line.
            blank |= line.trim().is_empty() && at + 1 < rest.len();
        }
    }
    if blank && !out.is_empty() && !is_last {
        out.push('\n');
    }
}

/// Returns the span and the canonical text of each statement. All results are one statement.
fn statements(program: &Program) -> Vec<(Span, String)> {
    let mut statements: Vec<(Span, String)> = Vec::new();
    for binding in &program.bindings {
        let mut out = SourceWriter::default();
        out.add(&format!("{} = ", binding.label.text));
        out.statement(&binding.node);
        out.leave_block(None);
        statements.push((binding.label.span.to(binding.node.span), out.text));
    }
    if let (Some(first), Some(last)) = (program.roots.first(), program.roots.last()) {
        let mut out = SourceWriter::default();
        for (at, root) in program.roots.iter().enumerate() {
            if at > 0 {
                out.add(", ");
            }
            out.statement(root);
        }
        out.leave_block(None);
        statements.push((first.span.to(last.span), out.text));
    }
    statements
}

/// Writes the text of one statement.
#[derive(Default)]
struct SourceWriter {
    /// The text written so far.
    text: String,
    /// The closers and commas that were written since the line that closes a heredoc. Nothing else may follow on that
    /// line, so they are held back until the next character is known. `None` while no heredoc was just closed.
    after_block: Option<String>,
}

impl SourceWriter {
    fn add(&mut self, text: &str) {
        for c in text.chars() {
            match self.after_block.as_mut() {
                Some(closers) if matches!(c, ')' | ']' | '}' | ',') => closers.push(c),
                Some(_) => self.leave_block(Some(c)),
                None => self.text.push(c),
            }
        }
    }

    /// Ends the closing line of a heredoc before `next`. The text after a heredoc begins a new line. `[`, `{` and `<`
    /// cannot begin a line, so the closers are moved to the new line in front of them.
    fn leave_block(&mut self, next: Option<char>) {
        let closers = self.after_block.take().unwrap_or_default();
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

    /// Writes a statement on one line or, if that is too wide and it has several dotted parts, one dotted part a line.
    fn statement(&mut self, node: &Node) {
        let start = self.text.len();
        self.node(node);
        let is_wide =
            self.text.get(start..).is_some_and(|s| s.chars().count() > MAX_STATEMENT_CHARS && !s.contains('\n'));
        let dotted = |part: &&Part| starts_with_dot(&part.kind);
        if is_wide && node.parts.iter().filter(dotted).count() > 1 {
            self.text.truncate(start);
            self.primary(&node.primary);
            for part in &node.parts {
                if starts_with_dot(&part.kind) {
                    self.add("\n  ");
                }
                self.part(&part.kind);
            }
        }
    }

    fn node(&mut self, node: &Node) {
        self.primary(&node.primary);
        for part in &node.parts {
            self.part(&part.kind);
        }
    }

    fn primary(&mut self, primary: &Primary) {
        match primary {
            Primary::Name(name) => self.entity(name),
            Primary::Get { entity, key } => {
                self.entity(entity);
                match key {
                    Key::Unary(value) => {
                        self.add("(");
                        self.value(value);
                        self.add(")");
                    }
                    Key::Slots(slots) => self.list("(", slots, Self::arg, ")"),
                }
            }
            Primary::Query { entity, preds } => {
                self.entity(entity);
                self.list("{", preds, Self::pred, "}");
            }
            Primary::Search { entity, text, preds } => {
                self.entity(entity);
                self.add("~");
                self.value(text);
                if !preds.is_empty() {
                    self.list("{", preds, Self::pred, "}");
                }
            }
            Primary::HandleCall(call) => self.handle_call(call),
            Primary::List(values) => self.list("[", values, Self::value, "]"),
            Primary::Text(block) => self.block(block),
            Primary::Row(_) => self.add("_"),
            Primary::Error(_) => {}
        }
    }

    fn part(&mut self, part: &PartKind) {
        match part {
            PartKind::Follow { name, preds } => {
                self.add(&format!(".{}", name.text));
                if let Some(preds) = preds {
                    self.list("{", preds, Self::pred, "}");
                }
            }
            PartKind::Back { entity, preds } => {
                self.add(".^");
                self.entity(entity);
                if !preds.is_empty() {
                    self.list("{", preds, Self::pred, "}");
                }
            }
            PartKind::Method { name, args } => {
                self.add(&format!(".{}", name.text));
                self.args(args);
            }
            PartKind::Braces { preds } => self.list("{", preds, Self::pred, "}"),
            PartKind::Limit { count } => self.list(".limit(", std::slice::from_ref(count), Self::value, ")"),
            PartKind::PageSize { count } => self.list(".page_size(", std::slice::from_ref(count), Self::value, ")"),
            PartKind::Sort { field, descending } => {
                self.add(&format!(".sort({}{})", path(field), if *descending { ", desc" } else { "" }));
            }
            PartKind::Filter { preds } => self.list(".filter{", preds, Self::pred, "}"),
            PartKind::Aggregate { specs } => self.list(".aggregate(", specs, Self::spec, ")"),
            PartKind::GroupBy { fields, specs } => {
                let all = fields.iter().map(path).chain(specs.iter().map(spec));
                self.add(&format!(".group_by({})", all.collect::<Vec<_>>().join(", ")));
            }
            PartKind::Distinct { fields } => self.list(".distinct(", fields, |out, f| out.add(&path(f)), ")"),
            PartKind::First => self.add(".first()"),
            PartKind::Last => self.add(".last()"),
            PartKind::Singleton => self.add(".singleton()"),
            PartKind::Project { fields } => self.list("[", fields, |out, f| out.add(&path(f)), "]"),
            PartKind::Derive { object } => self.list(" => {", object, Self::entry, "}"),
            PartKind::Each { effect } => {
                self.add(" => ");
                self.node(effect);
            }
            PartKind::Template(block) => {
                self.add(" ");
                self.block(block);
            }
        }
    }

    fn args(&mut self, args: &MethodArgs) {
        match args {
            MethodArgs::Slots(args) => self.list("(", args, Self::arg, ")"),
            MethodArgs::Variant { name, args } => {
                self.add(&format!("({}", name.text));
                self.list("{", args, Self::arg, "}");
                self.add(")");
            }
        }
    }

    fn value(&mut self, value: &Value) {
        match &value.kind {
            ValueKind::String(text) => self.add(&quoted(text)),
            ValueKind::Number(text) => self.add(text),
            ValueKind::Bool(truth) => self.add(if *truth { "true" } else { "false" }),
            ValueKind::Null => self.add("null"),
            ValueKind::Text(block) => self.block(block),
            ValueKind::List(values) => self.list("[", values, Self::value, "]"),
            ValueKind::Object(entries) => self.list("{", entries, Self::entry, "}"),
            ValueKind::Node(node) => self.node(node),
            ValueKind::Hole => self.add("$"),
            ValueKind::Error => {}
        }
    }

    fn list<T>(&mut self, open: &str, items: &[T], mut item: impl FnMut(&mut Self, &T), close: &str) {
        self.add(open);
        for (at, spec) in items.iter().enumerate() {
            if at > 0 {
                self.add(", ");
            }
            item(self, spec);
        }
        self.add(close);
    }

    fn entity(&mut self, name: &EntityName) {
        if let Some(catalog) = &name.catalog {
            self.add(&format!("{}:", catalog.text));
        }
        self.add(&name.name.text);
    }

    fn handle_call(&mut self, call: &HandleCall) {
        let kind = match call.kind {
            HandleCallKind::Page => "page",
            HandleCallKind::Wait => "wait",
            HandleCallKind::Cancel => "cancel",
        };
        self.add(&format!("{kind}({}", call.handle.text));
        if let Some(limit) = &call.limit {
            self.add(", limit=");
            self.value(limit);
        }
        self.add(")");
    }

    /// Writes a heredoc. A text without a tag was written as a string and becomes one again.
    fn block(&mut self, block: &Heredoc) {
        if block.tag.is_empty() {
            self.add(&quoted(&block.body));
            return;
        }
        self.add(&format!("<<{}", block.tag));
        self.text.push('\n');
        if !block.body.is_empty() {
            self.text.push_str(&block.body);
            self.text.push('\n');
        }
        self.text.push_str(&block.tag);
        self.after_block = Some(String::new());
    }

    fn arg(&mut self, arg: &Arg) {
        if arg.is_dots() {
            return self.add(DOTS);
        }
        self.add(&format!("{}=", arg.slot.text));
        self.value(&arg.value);
    }

    fn entry(&mut self, entry: &Entry) {
        let mut letters = entry.key.text.chars();
        let is_word = letters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
            && letters.all(|c| c.is_alphanumeric() || c == '_');
        let key = if is_word { entry.key.text.to_string() } else { quoted(&entry.key.text) };
        self.add(&format!("{key}: "));
        self.value(&entry.value);
    }

    fn pred(&mut self, pred: &Pred) {
        if pred.is_dots() {
            return self.add(DOTS);
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
        self.add(&format!("{}{op}", path(&pred.path)));
        self.value(&pred.value);
    }

    fn spec(&mut self, aggregate: &AggregateSpec) {
        self.add(&spec(aggregate));
    }
}

/// Returns whether a part can begin a continuation line.
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

fn spec(spec: &AggregateSpec) -> String {
    let function = match spec.function {
        AggregateFunction::Count => "count",
        AggregateFunction::Sum => "sum",
        AggregateFunction::Avg => "avg",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
    };
    match &spec.field {
        Some(field) => format!("{}={function}({})", spec.name.text, path(field)),
        None => format!("{}={function}", spec.name.text),
    }
}

fn path(path: &DottedName) -> String {
    path.names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(".")
}
