//! Parses calls that other languages write after a dot, such as `.sum(votes)`, `.select(title)`, `.offset(10)` and
//! `.map(title)`.
//! Invariant: a method's arguments are written `slot=value`, so a call without `slot=` is never a method call. The
//! author's names are kept.

use base::{Diagnostic, Edit, Span};

use super::aggregate::{FunctionCall, function_named};
use super::cursor::{GroupSpans, Parser};
use super::postfix::Postfix;
use crate::codes;
use crate::syntax::reports::shorten_for_message;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{AggregateFunction, AggregateSpec, PartKind};

impl Parser<'_, '_> {
    /// Parses a name whose parentheses contain no `slot=value`. The current token is the name. Returns `None` if other
    /// languages have no such call, and `Some(None)` if the call was reported and no part replaces it.
    pub(super) fn parse_foreign_part(&mut self) -> Option<Option<PartKind>> {
        let word = self.token_text();
        if self.next_kind() != TokenKind::LeftParen || self.at_arguments() {
            return None;
        }
        if let Some((postfix, name)) = Postfix::from_foreign_name(word) {
            let span = self.span();
            let mut edits = vec![Edit::replace(span, name)];
            if postfix == Postfix::Filter {
                let GroupSpans { whole, inner } = self.group_spans_at(1);
                edits = vec![Edit::replace(Span { start: span.start, end: inner.start }, format!("{name}{{"))];
                edits.push(Edit::replace(Span { start: inner.end, end: whole.end }, "}"));
            }
            self.report_with_edits(span, format!("`.{}` is written `.{name}`", shorten_for_message(word)), edits);
            return Some(self.parse_postfix(postfix));
        }
        if function_named(word).is_some() {
            return Some(self.parse_foreign_aggregate());
        }
        match word {
            "select" | "pick" | "project" | "pluck" | "only" | "fields" | "columns" | "cols" => {
                Some(self.parse_select_as_projection())
            }
            "offset" | "skip" | "drop" | "slice" => {
                let message = "rows are not skipped: read the first ones, and go on with the page handle of the result";
                self.skip_foreign_call(message, |_| Some(String::new()));
                Some(None)
            }
            "map" | "each" | "forEach" | "foreach" | "for_each" | "transform" | "apply" => {
                let message = "a new row for each row is `rows => {name: _.slot}`";
                self.skip_foreign_call(message, map_as_derive);
                Some(None)
            }
            _ => None,
        }
    }

    /// Parses `.sum(p4)` as `.aggregate(sum_p4=sum(p4))`.
    fn parse_foreign_aggregate(&mut self) -> Option<PartKind> {
        let start = self.span();
        let word = shorten_for_message(self.token_text());
        let call = self.parse_function()?;
        let name = call.default_name(&word.to_ascii_lowercase());
        let message = format!("`.{word}(…)` is written `.aggregate(name={word}(…))`");
        let open = Edit::insert(start.start, format!("aggregate({name}="));
        self.report_with_edits(start, message, vec![open, Edit::insert(self.previous_end(), ")")]);
        Some(PartKind::Aggregate { specs: vec![call.with_name(name, start)] })
    }

    /// Parses `.select(p1, p2)` as `[p1, p2]`.
    fn parse_select_as_projection(&mut self) -> Option<PartKind> {
        let start = self.span();
        let dot = self.previous_end().saturating_sub(1);
        let message = format!("`.{}(…)` is written `[slot, …]`", shorten_for_message(self.token_text()));
        self.consume();
        let GroupSpans { whole, inner } = self.group_spans();
        let edits = vec![
            Edit::replace(Span { start: dot, end: inner.start }, "["),
            Edit::replace(Span { start: inner.end, end: whole.end }, "]"),
        ];
        self.report_with_edits(start, message, edits);
        let group = self.enter_group()?;
        Some(PartKind::Project {
            fields: self.parse_items(group, "a slot", |parser| parser.parse_path("a slot to show")),
        })
    }

    /// Skips and reports a name and its parentheses. `right` returns the correction for the text in the parentheses;
    /// it replaces the call and the dot.
    fn skip_foreign_call(&mut self, message: &str, right: impl Fn(&str) -> Option<String>) {
        let start = self.span();
        let dot = self.previous_end().saturating_sub(1);
        self.consume();
        let GroupSpans { whole, inner } = self.group_spans();
        let right = right(inner.of(self.text).trim());
        let edits = right.map(|right| Edit::replace(Span { start: dot, end: whole.end }, right));
        self.report_with_edits(start, message.to_owned(), edits.into_iter().collect());
        if let Some(group) = self.enter_group() {
            self.recovering = true;
            self.leave_group(group);
            self.recovering = false;
        }
    }

    /// Reports an error with several edits. Parsing continues as if the author had made the edits.
    pub(super) fn report_with_edits(&mut self, span: Span, message: String, edits: Vec<Edit>) {
        if self.should_report() {
            self.reports.add(Diagnostic::error(codes::UNEXPECTED, span, message).with_fix(edits));
        }
    }

    /// Parses the aggregate in `.group_by(p4).count()` or `.group_by(p4).sum(p5)`. The current token is the second
    /// dot. `close` is the span of the closing parenthesis of `.group_by`.
    pub(super) fn parse_aggregate_after_group_by(&mut self, close: Span) -> Option<AggregateSpec> {
        let word = self.token(1).span.of(self.text);
        let counts = ["count", "size", "len", "length"].contains(&word);
        let applies = self.kind() == TokenKind::Dot && self.token(2).kind == TokenKind::LeftParen;
        if !applies || !(counts || function_named(word).is_some()) {
            return None;
        }
        self.consume();
        let function_span = self.span();
        let (call, text) = if counts {
            self.consume();
            let group = self.enter_group()?;
            self.leave_group(group);
            (FunctionCall { function: AggregateFunction::Count, field: None }, "count".to_owned())
        } else {
            let call = self.parse_function()?;
            (call, Span { start: function_span.start, end: self.previous_end() }.of(self.text).to_owned())
        };
        let name = call.default_name(word);
        let wrong = Span { start: close.start, end: self.previous_end() };
        let message = "the results of a group stand in its brackets, after its slots, such as `n=count`";
        self.report_with_edits(
            function_span,
            message.to_owned(),
            vec![Edit::replace(wrong, format!(", {name}={text})"))],
        );
        Some(call.with_name(name, function_span))
    }
}

/// Returns the `=>` that replaces `.map(p4)`, `.map(_.p4)`, `.map({a: _.p4})` or `.map(r => r.p4)`. `inner` is the
/// argument.
fn map_as_derive(inner: &str) -> Option<String> {
    if inner.len() > 200 || inner.contains('\n') {
        return None;
    }
    if inner.starts_with('{') {
        return Some(format!(" => {inner}"));
    }
    let lambda = inner.strip_prefix("lambda ").unwrap_or(inner);
    let (row, body) = lambda.split_once("=>").or_else(|| lambda.split_once(':')).unwrap_or(("_", lambda));
    let row = row.trim().trim_matches(['(', ')']);
    let body = body.trim();
    let path = body.strip_prefix(row).and_then(|rest| rest.strip_prefix('.')).unwrap_or(body);
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let last = path.rsplit('.').next().filter(|last| !last.is_empty())?;
    (path.chars().all(is_name_char) && !path.starts_with(|c: char| c.is_ascii_digit()))
        .then(|| format!(" => {{{last}: _.{path}}}"))
}
