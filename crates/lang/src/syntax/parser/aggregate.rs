//! Aggregates: `n=count, total=sum(p4)`, alone or after the fields of `group_by`.
//! Invariant: each result has a name that the author wrote; one without is refused with a name to copy.

use base::{Diagnostic, Span};

use super::cursor::{Group, Parser};
use super::list::path_text;
use crate::codes;
use crate::syntax::reports::shown;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{AggregateSpec, Function, Name, PartKind, Path};

const FUNCTIONS: [(&str, Function); 5] = [
    ("count", Function::Count),
    ("sum", Function::Sum),
    ("avg", Function::Avg),
    ("min", Function::Min),
    ("max", Function::Max),
];

enum Item {
    Field(Path),
    AggregateSpec(AggregateSpec),
}

impl Parser<'_, '_> {
    /// The specs of `.aggregate(…)`.
    pub(super) fn specs(&mut self, group: Group) -> Vec<AggregateSpec> {
        if !self.in_group(group) {
            self.unexpected("`.aggregate` needs at least one result, such as `n=count`");
        }
        self.items(group, "a result such as `n=count`", Self::spec)
    }

    pub(super) fn group_by(&mut self, group: Group) -> PartKind {
        let items = self.items(group, "a slot or a result such as `n=count`", Self::group_item);
        let (mut fields, mut specs) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                Item::Field(field) => fields.push(field),
                Item::AggregateSpec(spec) => specs.push(spec),
            }
        }
        // `.group_by(p4).aggregate(n=count)` can mean only one thing.
        let aggregates = self.kind() == TokenKind::Dot
            && self.token(1).span.of(self.text) == "aggregate"
            && self.token(2).kind == TokenKind::LeftParen;
        if specs.is_empty() && aggregates {
            self.bump();
            self.bump();
            specs = self.enter().map_or(Vec::new(), |group| self.specs(group));
        }
        // The last character is the closer only where there is one.
        let end = self.last_end();
        let before = self.text.floor_char_boundary((end as usize).saturating_sub(1)) as u32;
        let place = Span { start: before, end };
        if specs.is_empty() && !fields.is_empty() && place.of(self.text) == ")" {
            specs.extend(self.counted_groups(place));
        }
        if specs.is_empty() {
            let at = if place.of(self.text) == ")" { before } else { end };
            let wrong = Span { start: at, end: at };
            let message = "`.group_by` needs at least one result after its slots, such as `n=count`";
            self.fix(place, message, wrong, if fields.is_empty() { "p1, n=count" } else { ", n=count" });
        }
        PartKind::GroupBy { fields, specs }
    }

    fn group_item(&mut self) -> Option<Item> {
        let is_call = self.next_kind() == TokenKind::LeftParen && function_of(self.written()).is_some();
        if is_call || matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) {
            return self.spec().map(Item::AggregateSpec);
        }
        self.path("a slot or a result such as `n=count`").map(Item::Field)
    }

    /// `name=count` or `name=sum(p4)`
    fn spec(&mut self) -> Option<AggregateSpec> {
        if self.kind() != TokenKind::Word {
            self.expected("a result such as `n=count` or `total=sum(p4)`");
            return None;
        }
        if !matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) {
            return self.unnamed();
        }
        let name = self.name();
        if self.kind() == TokenKind::Colon {
            self.colon_for_eq();
        }
        self.bump();
        let (function, field) = self.function()?;
        Some(AggregateSpec { name, function, field })
    }

    /// `count` or `sum(p4)` without a name.
    fn unnamed(&mut self) -> Option<AggregateSpec> {
        let start = self.span();
        if function_of(self.written()).is_none() {
            self.unexpected("a result has a name and a function, such as `n=count` or `total=sum(p4)`");
            return None;
        }
        let word = self.written().to_ascii_lowercase();
        let (function, field) = self.function()?;
        let name = match &field {
            Some(field) => format!("{word}_{}", path_text(field).replace('.', "_")),
            None => "n".to_owned(),
        };
        let wrong = Span { start: start.start, end: start.start };
        self.fix(start, "a result needs a name", wrong, &format!("{name}="));
        Some(AggregateSpec { name: Name { text: name.into(), span: start }, function, field })
    }

    pub(super) fn function(&mut self) -> Option<(Function, Option<Path>)> {
        let span = self.span();
        let Some(function) = function_of(self.written()).filter(|_| self.kind() == TokenKind::Word) else {
            let message = format!("expected a function, found {}", self.found());
            let alternatives = ["count", "sum(slot)", "avg(slot)", "min(slot)", "max(slot)"].map(str::to_owned);
            let diagnostic = Diagnostic::error(codes::UNEXPECTED, span, message);
            self.refuse(diagnostic.with_alternatives(alternatives));
            return None;
        };
        let word = shown(self.written());
        self.bump();
        if self.kind() == TokenKind::LeftParen {
            return self.function_field(function, &word);
        }
        if function != Function::Count {
            let end = Span { start: span.end, end: span.end };
            self.fix(span, format!("`{word}` needs a slot: `{word}(slot)`"), end, "(slot)");
        }
        Some((function, None))
    }

    /// `(p4)`; for `count` also `()` and `(*)`.
    fn function_field(&mut self, function: Function, word: &str) -> Option<(Function, Option<Path>)> {
        let (whole, _) = self.group_spans();
        let group = self.enter()?;
        let all = !self.in_group(group) || self.kind() == TokenKind::Star;
        if all && function == Function::Count {
            self.note(codes::UNEXPECTED, whole, "`count` takes no brackets; it was read as `count`");
            self.eat(TokenKind::Star);
            self.leave(group);
            return Some((function, None));
        }
        let field = self.path(&format!("a slot in `{word}(…)`"));
        self.leave(group);
        field.map(|field| (function, Some(field)))
    }
}

pub(super) fn function_of(word: &str) -> Option<Function> {
    FUNCTIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, function)| *function)
}
