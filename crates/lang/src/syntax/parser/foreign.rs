//! What other languages write after a dot with a bare argument: `.sum(votes)`, `.select(title)`, `.offset(10)`, `.map(title)`.
//! Invariant: a method has `slot=value` in its brackets, so none of these can be one; the author's names stay as written.

use base::{Diagnostic, Edit, Span};

use super::aggregate::function_of;
use super::cursor::Parser;
use super::list::path_text;
use super::postfix::Postfix;
use crate::codes;
use crate::syntax::reports::shown;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{AggregateSpec, Name, PartKind};

impl Parser<'_, '_> {
    /// After a dot, at a name with `(` after it that holds no `slot=value`: the part that was meant, if it is known.
    /// `None` when the name is not one of these.
    pub(super) fn foreign(&mut self) -> Option<Option<PartKind>> {
        let word = self.written();
        if self.next_kind() != TokenKind::LeftParen || self.at_arguments() {
            return None;
        }
        if let Some((postfix, name)) = Postfix::foreign(word) {
            let span = self.span();
            let mut edits = vec![Edit::replace(span, name)];
            if postfix == Postfix::Filter {
                let (whole, inner) = self.group_spans_at(1);
                edits = vec![Edit::replace(Span { start: span.start, end: inner.start }, format!("{name}{{"))];
                edits.push(Edit::replace(Span { start: inner.end, end: whole.end }, "}"));
            }
            self.say(span, format!("`.{}` is written `.{name}`", shown(word)), edits);
            return Some(self.postfix(postfix));
        }
        if function_of(word).is_some() {
            return Some(self.aggregate_alone());
        }
        match word {
            "select" | "pick" | "project" | "pluck" | "only" | "fields" | "columns" | "cols" => Some(self.columns()),
            "offset" | "skip" | "drop" | "slice" => {
                let message = "rows are not skipped: read the first ones, and go on with the page handle of the result";
                self.passed_by(message, |_| Some(String::new()));
                Some(None)
            }
            "map" | "each" | "forEach" | "foreach" | "for_each" | "transform" | "apply" => {
                let message = "a new row for each row is `rows => {name: _.slot}`";
                self.passed_by(message, derived);
                Some(None)
            }
            _ => None,
        }
    }

    /// `.sum(p4)` is `.aggregate(sum_p4=sum(p4))`.
    fn aggregate_alone(&mut self) -> Option<PartKind> {
        let (start, word) = (self.span(), shown(self.written()));
        let (function, field) = self.function()?;
        let name = match &field {
            Some(field) => format!("{}_{}", word.to_ascii_lowercase(), path_text(field).replace('.', "_")),
            None => "n".to_owned(),
        };
        let message = format!("`.{word}(…)` is written `.aggregate(name={word}(…))`");
        let open = Edit::insert(start.start, format!("aggregate({name}="));
        self.say(start, message, vec![open, Edit::insert(self.last_end(), ")")]);
        let specs = vec![AggregateSpec { name: Name { text: name.into(), span: start }, function, field }];
        Some(PartKind::Aggregate { specs })
    }

    /// `.select(p1, p2)` is `[p1, p2]`.
    fn columns(&mut self) -> Option<PartKind> {
        let (start, dot) = (self.span(), self.last_end().saturating_sub(1));
        let message = format!("`.{}(…)` is written `[slot, …]`", shown(self.written()));
        self.bump();
        let (whole, inner) = self.group_spans();
        let edits = vec![
            Edit::replace(Span { start: dot, end: inner.start }, "["),
            Edit::replace(Span { start: inner.end, end: whole.end }, "]"),
        ];
        self.say(start, message, edits);
        let group = self.enter()?;
        Some(PartKind::Project { fields: self.items(group, "a slot", |parser| parser.path("a slot to show")) })
    }

    /// Passes the name and its brackets; what `right` makes of their inside is written in place of them and of the dot.
    fn passed_by(&mut self, message: &str, right: impl Fn(&str) -> Option<String>) {
        let (start, dot) = (self.span(), self.last_end().saturating_sub(1));
        self.bump();
        let (whole, inner) = self.group_spans();
        let right = right(inner.of(self.text).trim());
        let edits = right.map(|right| Edit::replace(Span { start: dot, end: whole.end }, right));
        self.say(start, message.to_owned(), edits.into_iter().collect());
        if let Some(group) = self.enter() {
            self.lost = true;
            self.leave(group);
            self.lost = false;
        }
    }

    pub(super) fn say(&mut self, place: Span, message: String, edits: Vec<Edit>) {
        if self.reports_here() {
            self.reports.add(Diagnostic::error(codes::UNEXPECTED, place, message).with_fix(edits));
        }
    }

    /// `.group_by(p4).count()` and `.group_by(p4).sum(p5)`, at the dot: the result that was meant. `close` is where the
    /// brackets of `.group_by` end.
    pub(super) fn counted_groups(&mut self, close: Span) -> Option<AggregateSpec> {
        let word = self.token(1).span.of(self.text);
        let counts = ["count", "size", "len", "length"].contains(&word);
        let applies = self.kind() == TokenKind::Dot && self.token(2).kind == TokenKind::LeftParen;
        if !applies || !(counts || function_of(word).is_some()) {
            return None;
        }
        self.bump();
        let place = self.span();
        let (function, field, text) = if counts {
            self.bump();
            let group = self.enter()?;
            self.leave(group);
            (crate::syntax::tree::Function::Count, None, "count".to_owned())
        } else {
            let (function, field) = self.function()?;
            (function, field, Span { start: place.start, end: self.last_end() }.of(self.text).to_owned())
        };
        let name = match &field {
            Some(field) => format!("{word}_{}", path_text(field).replace('.', "_")),
            None => "n".to_owned(),
        };
        let wrong = Span { start: close.start, end: self.last_end() };
        let message = "the results of a group stand in its brackets, after its slots, such as `n=count`";
        self.say(place, message.to_owned(), vec![Edit::replace(wrong, format!(", {name}={text})"))]);
        Some(AggregateSpec { name: Name { text: name.into(), span: place }, function, field })
    }
}

/// What `.map(p4)`, `.map(_.p4)`, `.map({a: _.p4})` or `.map(r => r.p4)` would be after rows.
fn derived(inner: &str) -> Option<String> {
    if inner.len() > 200 || inner.contains('\n') {
        return None;
    }
    if inner.starts_with('{') {
        return Some(format!(" => {inner}"));
    }
    let lambda = inner.strip_prefix("lambda ").unwrap_or(inner);
    let (row, body) = lambda.split_once("=>").or_else(|| lambda.split_once(':')).unwrap_or(("_", lambda));
    let (row, body) = (row.trim().trim_matches(['(', ')']), body.trim());
    let path = body.strip_prefix(row).and_then(|rest| rest.strip_prefix('.')).unwrap_or(body);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let last = path.rsplit('.').next().filter(|last| !last.is_empty())?;
    (path.chars().all(plain) && !path.starts_with(|c: char| c.is_ascii_digit()))
        .then(|| format!(" => {{{last}: _.{path}}}"))
}
