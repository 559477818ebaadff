//! Parses postfixes, which are operations on rows that have been read: `.limit(5)`, `.sort(p4, desc)`, `.filter{…}`.
//! Invariant: the name of a postfix means the postfix only before an opening bracket. Elsewhere it is an ordinary
//! slot.

use base::{Edit, Span};

use super::cursor::{BracketGroup, GroupSpans, Parser};
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{PartKind, Value, ValueKind};

/// The postfixes of the language.
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
    /// Returns the postfix of this name. Names may contain `-` instead of `_`.
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

    /// Returns the postfix that other languages call by this name, with its name in this language.
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

    /// Returns whether the postfix takes no arguments.
    fn takes_no_arguments(self) -> bool {
        matches!(self, Self::First | Self::Last | Self::Singleton)
    }
}

impl Parser<'_, '_> {
    /// Parses a postfix. The current token is its name, and an opening bracket follows.
    pub(super) fn parse_postfix(&mut self, postfix: Postfix) -> Option<PartKind> {
        let start = self.span().start;
        let name = self.parse_name();
        if self.kind() == TokenKind::LeftBrace && postfix != Postfix::Filter {
            let GroupSpans { whole, inner } = self.group_spans();
            let copy = format!("({})", inner.of(self.text));
            self.report_fix(self.span(), format!("`.{}` takes parentheses", name.text), whole, &copy);
        }
        let whole = self.group_spans().whole;
        let whole = Span { start, end: whole.end };
        if postfix == Postfix::Filter {
            return Some(PartKind::Filter { preds: self.parse_preds() });
        }
        let group = self.enter_group()?;
        Some(match postfix {
            Postfix::Limit => PartKind::Limit { count: self.parse_count(group, &name.text) },
            Postfix::PageSize => PartKind::PageSize { count: self.parse_count(group, &name.text) },
            Postfix::Sort => return self.parse_sort(group),
            Postfix::Aggregate => PartKind::Aggregate { specs: self.parse_aggregate_specs(group) },
            Postfix::GroupBy => self.parse_group_by(group),
            Postfix::Distinct => {
                PartKind::Distinct { fields: self.parse_items(group, "a slot", |parser| parser.parse_path("a slot")) }
            }
            Postfix::First => self.parse_one_row_postfix(group, whole, PartKind::First),
            Postfix::Last => self.parse_one_row_postfix(group, whole, PartKind::Last),
            _ => self.parse_one_row_postfix(group, whole, PartKind::Singleton),
        })
    }

    /// Parses the number in the parentheses of `.limit` or `.page_size`.
    fn parse_count(&mut self, group: BracketGroup, name: &str) -> Value {
        if self.kind() == TokenKind::Word && matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) {
            let wrong = Span { start: self.span().start, end: self.token(2).span.start };
            self.report_fix(self.span(), format!("`.{name}` takes only a number"), wrong, "");
            self.consume();
            self.consume();
        }
        let count = if self.in_group(group) {
            self.parse_value()
        } else {
            let span = self.span();
            self.report_unexpected_fix(
                format!("`.{name}` needs a number"),
                Span { start: span.start, end: span.start },
                "10",
            );
            Value { kind: ValueKind::Error, span: Span { start: span.start, end: span.start } }
        };
        self.consume_if(TokenKind::Comma);
        if self.in_group(group) && !self.recovering {
            self.report_unexpected(format!("`.{name}` takes one number; found {} after it", self.describe_token()));
        }
        self.leave_group(group);
        count
    }

    /// Parses `.first()`, `.last()` or `.singleton()`, and reports arguments. `whole` is the span of the name and its
    /// parentheses.
    fn parse_one_row_postfix(&mut self, group: BracketGroup, whole: Span, kind: PartKind) -> PartKind {
        if self.in_group(group) {
            let name = whole.of(self.text).split(['(', '{']).next().unwrap_or("first");
            if self.kind() == TokenKind::Number && kind == PartKind::Last {
                // `.limit(n)` would return the first rows instead of the last rows, so the correction does not use it.
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

    /// Parses the parentheses of `.sort`: `(p4)`, `(p4, desc)` or `(p4 desc)`.
    fn parse_sort(&mut self, group: BracketGroup) -> Option<PartKind> {
        let has_keyword = ["by", "key", "field", "on", "column", "slot"].iter().any(|word| self.is_word(word));
        if has_keyword && matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) {
            let wrong = Span { start: self.span().start, end: self.token(2).span.start };
            self.report_fix(self.span(), "`.sort` takes the slot itself, then `asc` or `desc`", wrong, "");
            self.consume();
            self.consume();
        }
        let is_descending_by_sign = self.kind() == TokenKind::Minus;
        let minus_span = self.span();
        if is_descending_by_sign {
            self.consume();
        }
        let Some(field) = self.parse_path("the slot to sort by, such as `.sort(p4, desc)`") else {
            self.leave_group(group);
            return None;
        };
        let mut end = self.previous_end();
        if is_descending_by_sign {
            let edits = vec![Edit::delete(minus_span), Edit::insert(end, ", desc")];
            self.report_with_edits(minus_span, "descending is written `desc`".to_owned(), edits);
        }
        self.consume_if(TokenKind::Comma);
        let descending = self.is_word("desc") || is_descending_by_sign;
        let ordered = self.is_word("desc") || self.is_word("asc");
        if ordered {
            self.consume();
            end = self.previous_end();
            self.consume_if(TokenKind::Comma);
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

    /// Returns whether a postfix without parentheses is followed by arguments, as in `.limit 5`. The current token is
    /// the dot.
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

    /// Parses a postfix without parentheses, such as `.limit 5`, and reports them as missing. The current token is the
    /// name.
    pub(super) fn parse_unbracketed_postfix(&mut self, postfix: Postfix) -> Option<PartKind> {
        let name = self.parse_name();
        let argument_span = self.span();
        let first = self.token(0);
        let second = self.token(1).kind;
        let UnbracketedArguments { span: arguments, bracketed: copy } = self.skip_unbracketed_arguments(postfix);
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

    /// Consumes arguments that have no parentheses.
    pub(super) fn skip_unbracketed_arguments(&mut self, postfix: Postfix) -> UnbracketedArguments {
        let start = self.span().start;
        while !self.at_opener() && !self.kind().is_closer() {
            use TokenKind::{Arrow, Back, Comma, Dot, End, Heredoc, Newline, Semicolon};
            let ends = matches!(self.kind(), Arrow | Back | Comma | Dot | End | Heredoc | Newline | Semicolon);
            let order = self.kind() == TokenKind::Comma && ["asc", "desc"].contains(&self.token(1).span.of(self.text));
            if ends && !order {
                break;
            }
            self.consume();
        }
        let arguments = self.span_since(start);
        let (open, close) = if postfix == Postfix::Filter { ('{', '}') } else { ('(', ')') };
        UnbracketedArguments { span: arguments, bracketed: format!("{open}{}{close}", arguments.of(self.text)) }
    }
}

/// The arguments of a postfix that was written without parentheses.
pub(super) struct UnbracketedArguments {
    /// The span of the arguments.
    pub span: Span,
    /// The text of the arguments with the brackets that the postfix needs.
    pub bracketed: String,
}
