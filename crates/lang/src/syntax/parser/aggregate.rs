//! Parses aggregates such as `n=count, total=sum(p4)`, alone or after the fields of `group_by`.
//! Invariant: the author names each result. A result without a name is an error, and the correction suggests a name.

use base::{Diagnostic, Span};

use super::cursor::{BracketGroup, Parser};
use super::list::path_text;
use crate::codes;
use crate::syntax::reports::shorten_for_message;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{AggregateFunction, AggregateSpec, DottedName, Name, PartKind};

/// The aggregate functions, by name.
const FUNCTION_NAMES: [(&str, AggregateFunction); 5] = [
    ("count", AggregateFunction::Count),
    ("sum", AggregateFunction::Sum),
    ("avg", AggregateFunction::Avg),
    ("min", AggregateFunction::Min),
    ("max", AggregateFunction::Max),
];

/// An item in the parentheses of `group_by`.
enum GroupByItem {
    Field(DottedName),
    AggregateSpec(AggregateSpec),
}

impl Parser<'_, '_> {
    /// Parses the aggregates in the parentheses of `.aggregate(…)`.
    pub(super) fn parse_aggregate_specs(&mut self, group: BracketGroup) -> Vec<AggregateSpec> {
        if !self.in_group(group) {
            self.report_unexpected("`.aggregate` needs at least one result, such as `n=count`");
        }
        self.parse_items(group, "a result such as `n=count`", Self::parse_aggregate_spec)
    }

    /// Parses the fields and aggregates in the parentheses of `.group_by(…)`. Aggregates behind the parentheses are
    /// included if this is their only possible meaning.
    pub(super) fn parse_group_by(&mut self, group: BracketGroup) -> PartKind {
        let items = self.parse_items(group, "a slot or a result such as `n=count`", Self::parse_group_by_item);
        let (mut fields, mut specs) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                GroupByItem::Field(field) => fields.push(field),
                GroupByItem::AggregateSpec(spec) => specs.push(spec),
            }
        }
        // `.group_by(p4).aggregate(n=count)` can only mean `.group_by(p4, n=count)`.
        let aggregate_follows = self.kind() == TokenKind::Dot
            && self.token(1).span.of(self.text) == "aggregate"
            && self.token(2).kind == TokenKind::LeftParen;
        if specs.is_empty() && aggregate_follows {
            self.consume();
            self.consume();
            specs = self.enter_group().map_or(Vec::new(), |group| self.parse_aggregate_specs(group));
        }
        // The text may end before the closing parenthesis, so the last character is tested before it is replaced.
        let end = self.previous_end();
        let before = self.text.floor_char_boundary((end as usize).saturating_sub(1)) as u32;
        let closer_span = Span { start: before, end };
        if specs.is_empty() && !fields.is_empty() && closer_span.of(self.text) == ")" {
            specs.extend(self.parse_aggregate_after_group_by(closer_span));
        }
        if specs.is_empty() {
            let at = if closer_span.of(self.text) == ")" { before } else { end };
            let wrong = Span { start: at, end: at };
            let message = "`.group_by` needs at least one result after its slots, such as `n=count`";
            self.report_fix(closer_span, message, wrong, if fields.is_empty() { "p1, n=count" } else { ", n=count" });
        }
        PartKind::GroupBy { fields, specs }
    }

    /// Parses an item of `.group_by(…)`, which is a field or an aggregate.
    fn parse_group_by_item(&mut self) -> Option<GroupByItem> {
        let is_call = self.next_kind() == TokenKind::LeftParen && function_named(self.token_text()).is_some();
        if is_call || matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) {
            return self.parse_aggregate_spec().map(GroupByItem::AggregateSpec);
        }
        self.parse_path("a slot or a result such as `n=count`").map(GroupByItem::Field)
    }

    /// Parses `name=count` or `name=sum(p4)`.
    fn parse_aggregate_spec(&mut self) -> Option<AggregateSpec> {
        if self.kind() != TokenKind::Word {
            self.report_expected("a result such as `n=count` or `total=sum(p4)`");
            return None;
        }
        if !matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) {
            return self.parse_unnamed_spec();
        }
        let name = self.parse_name();
        if self.kind() == TokenKind::Colon {
            self.report_colon_for_eq();
        }
        self.consume();
        let FunctionCall { function, field } = self.parse_function()?;
        Some(AggregateSpec { name, function, field })
    }

    /// Parses an aggregate without a name, such as `count` or `sum(p4)`, and reports that the name is missing.
    fn parse_unnamed_spec(&mut self) -> Option<AggregateSpec> {
        let start = self.span();
        if function_named(self.token_text()).is_none() {
            self.report_unexpected("a result has a name and a function, such as `n=count` or `total=sum(p4)`");
            return None;
        }
        let word = self.token_text().to_ascii_lowercase();
        let call = self.parse_function()?;
        let name = call.default_name(&word);
        let wrong = Span { start: start.start, end: start.start };
        self.report_fix(start, "a result needs a name", wrong, &format!("{name}="));
        Some(call.with_name(name, start))
    }

    /// Parses a function and its slot. The name of the result is not part of it.
    pub(super) fn parse_function(&mut self) -> Option<FunctionCall> {
        let span = self.span();
        let Some(function) = function_named(self.token_text()).filter(|_| self.kind() == TokenKind::Word) else {
            let message = format!("expected a function, found {}", self.describe_token());
            let alternatives = ["count", "sum(slot)", "avg(slot)", "min(slot)", "max(slot)"].map(str::to_owned);
            let diagnostic = Diagnostic::error(codes::UNEXPECTED, span, message);
            self.report_and_recover(diagnostic.with_alternatives(alternatives));
            return None;
        };
        let word = shorten_for_message(self.token_text());
        self.consume();
        if self.kind() == TokenKind::LeftParen {
            return self.parse_function_field(function, &word);
        }
        if function != AggregateFunction::Count {
            let end = Span { start: span.end, end: span.end };
            self.report_fix(span, format!("`{word}` needs a slot: `{word}(slot)`"), end, "(slot)");
        }
        Some(FunctionCall { function, field: None })
    }

    /// Parses the parentheses of a function: `(p4)`, or for `count` also `()` and `(*)`.
    fn parse_function_field(&mut self, function: AggregateFunction, word: &str) -> Option<FunctionCall> {
        let whole = self.group_spans().whole;
        let group = self.enter_group()?;
        let all = !self.in_group(group) || self.kind() == TokenKind::Star;
        if all && function == AggregateFunction::Count {
            self.report_note(codes::UNEXPECTED, whole, "`count` takes no brackets; it was read as `count`");
            self.consume_if(TokenKind::Star);
            self.leave_group(group);
            return Some(FunctionCall { function, field: None });
        }
        let field = self.parse_path(&format!("a slot in `{word}(…)`"));
        self.leave_group(group);
        field.map(|field| FunctionCall { function, field: Some(field) })
    }
}

/// A function and its slot, such as `count` or `sum(p4)`, without the name of the result.
pub(super) struct FunctionCall {
    pub function: AggregateFunction,
    /// The slot in the parentheses. `count` needs none.
    pub field: Option<DottedName>,
}

impl FunctionCall {
    /// Returns a name for a result that the author did not name, such as `sum_p4`, or `n` for a count. `word` is the
    /// function name as written.
    pub(super) fn default_name(&self, word: &str) -> String {
        match &self.field {
            Some(field) => format!("{word}_{}", path_text(field).replace('.', "_")),
            None => "n".to_owned(),
        }
    }

    /// Makes an aggregate with a name that the author did not write. `span` is the span of the function.
    pub(super) fn with_name(self, name: String, span: Span) -> AggregateSpec {
        AggregateSpec { name: Name { text: name.into(), span }, function: self.function, field: self.field }
    }
}

/// Returns the function of this name, ignoring case.
pub(super) fn function_named(word: &str) -> Option<AggregateFunction> {
    FUNCTION_NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, function)| *function)
}
