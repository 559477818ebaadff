//! Parses the postfixes, the operations on rows that have been read: `.limit(5)`, `.sort(p4, desc)`, `.filter{…}`.
//! Invariant: the name of a postfix means the postfix only before an opening bracket. Elsewhere it is a slot like any
//! other.

use base::{Edit, Span};

use super::cursor::{BracketGroup, GroupSpans, Parser};
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{PartKind, Value, ValueKind};

/// The operations that have a postfix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Postfix {
    Limit,
    PageSize,
    Sort,
    Filter,
    Aggregate,
    GroupBy,
    Distinct,
    First,
    Last,
    Singleton,
}

impl Postfix {
    /// Returns the postfix of a name. `-` and `_` are the same in names.
    pub(super) fn from_name(word: &str) -> Option<Self> {
        Some(match word {
            "limit" => Self::Limit,
            "page_size" | "page-size" => Self::PageSize,
            "sort" => Self::Sort,
            "filter" => Self::Filter,
            "aggregate" => Self::Aggregate,
            "group_by" | "group-by" => Self::GroupBy,
            "distinct" => Self::Distinct,
            "first" => Self::First,
            "last" => Self::Last,
            "singleton" => Self::Singleton,
            _ => return None,
        })
    }

    /// Returns the postfix that another language calls by this name, and its name here.
    pub(super) fn from_foreign_name(word: &str) -> Option<(Self, &'static str)> {
        Some(match word {
            "order_by" | "orderBy" | "sort_by" | "sortBy" | "orderby" => (Self::Sort, "sort"),
            "take" | "head" | "top" => (Self::Limit, "limit"),
            "where" => (Self::Filter, "filter"),
            "unique" | "uniq" => (Self::Distinct, "distinct"),
            "groupBy" | "groupby" => (Self::GroupBy, "group_by"),
            _ => return None,
        })
    }

    /// Returns whether the brackets of the postfix are empty.
    fn takes_no_arguments(self) -> bool {
        matches!(self, Self::First | Self::Last | Self::Singleton)
    }
}

impl Parser<'_, '_> {
    /// Parses a postfix, when the parser stands at its name and an opening bracket follows.
    pub(super) fn postfix(&mut self, postfix: Postfix) -> Option<PartKind> {
        let start = self.span().start;
        let name = self.name();
        if self.kind() == TokenKind::LeftBrace && postfix != Postfix::Filter {
            let GroupSpans { whole, inner } = self.group_spans();
            let copy = format!("({})", inner.of(self.text));
            self.report_fix(self.span(), format!("`.{}` takes parentheses", name.text), whole, &copy);
        }
        let whole = self.group_spans().whole;
        let whole = Span { start, end: whole.end };
        if postfix == Postfix::Filter {
            return Some(PartKind::Filter { preds: self.preds() });
        }
        let group = self.enter_group()?;
        Some(match postfix {
            Postfix::Limit => PartKind::Limit { count: self.count(group, &name.text) },
            Postfix::PageSize => PartKind::PageSize { count: self.count(group, &name.text) },
            Postfix::Sort => return self.sort(group),
            Postfix::Aggregate => PartKind::Aggregate { specs: self.specs(group) },
            Postfix::GroupBy => self.group_by(group),
            Postfix::Distinct => {
                PartKind::Distinct { fields: self.items(group, "a slot", |parser| parser.path("a slot")) }
            }
            Postfix::First => self.one_row_postfix(group, whole, PartKind::First),
            Postfix::Last => self.one_row_postfix(group, whole, PartKind::Last),
            _ => self.one_row_postfix(group, whole, PartKind::Singleton),
        })
    }

    /// Parses the number in the brackets of `.limit` or `.page_size`.
    fn count(&mut self, group: BracketGroup, name: &str) -> Value {
        if self.kind() == TokenKind::Word && matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) {
            let wrong = Span { start: self.span().start, end: self.token(2).span.start };
            self.report_fix(self.span(), format!("`.{name}` takes only a number"), wrong, "");
            self.bump();
            self.bump();
        }
        let count = if self.in_group(group) {
            self.value()
        } else {
            let span = self.span();
            self.report_unexpected_fix(
                format!("`.{name}` needs a number"),
                Span { start: span.start, end: span.start },
                "10",
            );
            Value { kind: ValueKind::Error, span: Span { start: span.start, end: span.start } }
        };
        self.eat(TokenKind::Comma);
        if self.in_group(group) && !self.recovering {
            self.report_unexpected(format!("`.{name}` takes one number; found {} after it", self.describe_token()));
        }
        self.leave_group(group);
        count
    }

    /// Checks that the brackets of `.first()`, `.last()` or `.singleton()` are empty. `whole` is the span of the name
    /// and its brackets.
    fn one_row_postfix(&mut self, group: BracketGroup, whole: Span, kind: PartKind) -> PartKind {
        if self.in_group(group) {
            let name = whole.of(self.text).split(['(', '{']).next().unwrap_or("first");
            if self.kind() == TokenKind::Number && kind == PartKind::Last {
                // `.limit(n)` would give the first rows and not the last, so it is no correction.
                let n = self.token_text();
                let message = format!("`.last()` is one row; the last {n} are `.sort(slot, desc).limit({n})`");
                self.report_unexpected_fix(message, whole, "last()");
            } else if self.kind() == TokenKind::Number && kind != PartKind::Singleton {
                let copy = format!("limit({})", self.token_text());
                let message = format!("`.{name}()` takes one row and nothing in its brackets; several are `.{copy}`");
                self.report_unexpected_fix(message, whole, &copy);
            } else {
                self.report_unexpected_fix(
                    format!("`.{name}()` takes nothing in its brackets"),
                    whole,
                    &format!("{name}()"),
                );
            }
        }
        self.leave_group(group);
        kind
    }

    /// Parses `(p4)`, `(p4, desc)` or `(p4 desc)`.
    fn sort(&mut self, group: BracketGroup) -> Option<PartKind> {
        let has_keyword = ["by", "key", "field", "on", "column", "slot"].iter().any(|word| self.is_word(word));
        if has_keyword && matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) {
            let wrong = Span { start: self.span().start, end: self.token(2).span.start };
            self.report_fix(self.span(), "`.sort` takes the slot itself, then `asc` or `desc`", wrong, "");
            self.bump();
            self.bump();
        }
        let is_descending_by_sign = self.kind() == TokenKind::Minus;
        let minus_span = self.span();
        if is_descending_by_sign {
            self.bump();
        }
        let Some(field) = self.path("the slot to sort by, such as `.sort(p4, desc)`") else {
            self.leave_group(group);
            return None;
        };
        let mut end = self.previous_end();
        if is_descending_by_sign {
            let edits = vec![Edit::delete(minus_span), Edit::insert(end, ", desc")];
            self.report_with_edits(minus_span, "descending is written `desc`".to_owned(), edits);
        }
        self.eat(TokenKind::Comma);
        let descending = self.is_word("desc") || is_descending_by_sign;
        let ordered = self.is_word("desc") || self.is_word("asc");
        if ordered {
            self.bump();
            end = self.previous_end();
            self.eat(TokenKind::Comma);
        }
        if self.in_group(group) && !self.recovering {
            let wrong = Span { start: end, end: self.token_at(group.end).span.start };
            let words = wrong.of(self.text).to_ascii_lowercase();
            let order = match ordered || is_descending_by_sign {
                true => "",
                false if ["desc", "-1", "reverse"].iter().any(|word| words.contains(word)) => ", desc",
                false => ", asc",
            };
            let message = format!("`.sort` takes one slot and then `asc` or `desc`; found {}", self.describe_token());
            self.report_unexpected_fix(message, wrong, order);
        }
        self.leave_group(group);
        Some(PartKind::Sort { field, descending })
    }

    /// Returns whether arguments follow the postfix although it has no brackets: `.limit 5`. The parser stands at the
    /// dot.
    pub(super) fn has_unbracketed_arguments(&self, postfix: Postfix) -> bool {
        let argument = self.token(2);
        let next = self.token(3);
        let word = argument.span.of(self.text);
        let is_argument = match argument.kind {
            TokenKind::Number | TokenKind::String => true,
            TokenKind::Word => {
                !["and", "or"].contains(&word) && (!next.kind.is_operator() || postfix == Postfix::Filter)
            }
            _ => false,
        };
        is_argument && !postfix.takes_no_arguments()
    }

    /// Parses `.limit 5`, when the parser stands at the name, and reports the missing brackets.
    pub(super) fn unbracketed_postfix(&mut self, postfix: Postfix) -> Option<PartKind> {
        let name = self.name();
        let argument_span = self.span();
        let first = self.token(0);
        let second = self.token(1).kind;
        let UnbracketedArguments { span: arguments, bracketed: copy } = self.unbracketed_arguments(postfix);
        let wrong = Span { start: name.span.end, end: arguments.end };
        let brackets = if postfix == Postfix::Filter { "{…}" } else { "(…)" };
        self.report_fix(argument_span, format!("`.{}` takes its arguments in `{brackets}`", name.text), wrong, &copy);
        let is_count = first.kind == TokenKind::Number && second != TokenKind::Number;
        let count = Value { kind: ValueKind::Number(first.span.of(self.text).to_owned()), span: first.span };
        match postfix {
            Postfix::Limit if is_count => Some(PartKind::Limit { count }),
            Postfix::PageSize if is_count => Some(PartKind::PageSize { count }),
            _ => None,
        }
    }

    /// Passes arguments that have no brackets.
    pub(super) fn unbracketed_arguments(&mut self, postfix: Postfix) -> UnbracketedArguments {
        let start = self.span().start;
        while !self.at_opener() && !self.kind().is_closer() {
            use TokenKind::{Arrow, Back, Comma, Dot, End, Heredoc, Newline, Semicolon};
            let ends = matches!(self.kind(), Arrow | Back | Comma | Dot | End | Heredoc | Newline | Semicolon);
            let order = self.kind() == TokenKind::Comma && ["asc", "desc"].contains(&self.token(1).span.of(self.text));
            if ends && !order {
                break;
            }
            self.bump();
        }
        let arguments = self.span_since(start);
        let (open, close) = if postfix == Postfix::Filter { ('{', '}') } else { ('(', ')') };
        UnbracketedArguments { span: arguments, bracketed: format!("{open}{}{close}", arguments.of(self.text)) }
    }
}

/// Arguments of a postfix that were written without brackets.
pub(super) struct UnbracketedArguments {
    /// The span of the arguments.
    pub span: Span,
    /// The arguments with the brackets that the postfix has.
    pub bracketed: String,
}
