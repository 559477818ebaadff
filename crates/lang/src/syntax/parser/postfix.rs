//! The postfixes: what is done to rows after they are read.
//! Invariant: a postfix's name means the postfix only before an opening bracket; elsewhere it is a slot like any other.

use base::{Edit, Span};

use super::cursor::{Group, Parser};
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{PartKind, Value, ValueKind};

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
    /// `-` and `_` are the same in names.
    pub(super) fn named(word: &str) -> Option<Self> {
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

    /// What another language calls a postfix, and its name here.
    pub(super) fn foreign(word: &str) -> Option<(Self, &'static str)> {
        Some(match word {
            "order_by" | "orderBy" | "sort_by" | "sortBy" | "orderby" => (Self::Sort, "sort"),
            "take" | "head" | "top" => (Self::Limit, "limit"),
            "where" => (Self::Filter, "filter"),
            "unique" | "uniq" => (Self::Distinct, "distinct"),
            "groupBy" | "groupby" => (Self::GroupBy, "group_by"),
            _ => return None,
        })
    }

    fn is_plain(self) -> bool {
        matches!(self, Self::First | Self::Last | Self::Singleton)
    }
}

impl Parser<'_, '_> {
    /// At the postfix's name, which an opening bracket follows.
    pub(super) fn postfix(&mut self, postfix: Postfix) -> Option<PartKind> {
        let start = self.span().start;
        let name = self.name();
        if self.kind() == TokenKind::LeftBrace && postfix != Postfix::Filter {
            let (whole, inner) = self.group_spans();
            let copy = format!("({})", inner.of(self.text));
            self.fix(self.span(), format!("`.{}` takes parentheses", name.text), whole, &copy);
        }
        let (whole, _) = self.group_spans();
        let whole = Span { start, end: whole.end };
        if postfix == Postfix::Filter {
            return Some(PartKind::Filter { preds: self.preds() });
        }
        let group = self.enter()?;
        Some(match postfix {
            Postfix::Limit => PartKind::Limit { count: self.count(group, &name.text) },
            Postfix::PageSize => PartKind::PageSize { count: self.count(group, &name.text) },
            Postfix::Sort => return self.sort(group),
            Postfix::Aggregate => PartKind::Aggregate { specs: self.specs(group) },
            Postfix::GroupBy => self.group_by(group),
            Postfix::Distinct => {
                PartKind::Distinct { fields: self.items(group, "a slot", |parser| parser.path("a slot")) }
            }
            Postfix::First => self.plain(group, whole, PartKind::First),
            Postfix::Last => self.plain(group, whole, PartKind::Last),
            _ => self.plain(group, whole, PartKind::Singleton),
        })
    }

    fn count(&mut self, group: Group, name: &str) -> Value {
        if self.kind() == TokenKind::Word && matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) {
            let wrong = Span { start: self.span().start, end: self.token(2).span.start };
            self.fix(self.span(), format!("`.{name}` takes only a number"), wrong, "");
            self.bump();
            self.bump();
        }
        let count = if self.in_group(group) {
            self.value()
        } else {
            let span = self.span();
            self.unexpected_fix(format!("`.{name}` needs a number"), Span { start: span.start, end: span.start }, "10");
            Value { kind: ValueKind::Error, span: Span { start: span.start, end: span.start } }
        };
        self.eat(TokenKind::Comma);
        if self.in_group(group) && !self.lost {
            self.unexpected(format!("`.{name}` takes one number; found {} after it", self.found()));
        }
        self.leave(group);
        count
    }

    fn plain(&mut self, group: Group, whole: Span, kind: PartKind) -> PartKind {
        if self.in_group(group) {
            let name = whole.of(self.text).split(['(', '{']).next().unwrap_or("first");
            if self.kind() == TokenKind::Number && kind == PartKind::Last {
                // The first rows are not the last ones, so `.limit` is no correction.
                let n = self.written();
                let message = format!("`.last()` is one row; the last {n} are `.sort(slot, desc).limit({n})`");
                self.unexpected_fix(message, whole, "last()");
            } else if self.kind() == TokenKind::Number && kind != PartKind::Singleton {
                let copy = format!("limit({})", self.written());
                let message = format!("`.{name}()` takes one row and nothing in its brackets; several are `.{copy}`");
                self.unexpected_fix(message, whole, &copy);
            } else {
                self.unexpected_fix(format!("`.{name}()` takes nothing in its brackets"), whole, &format!("{name}()"));
            }
        }
        self.leave(group);
        kind
    }

    /// `(p4)`, `(p4, desc)` or `(p4 desc)`
    fn sort(&mut self, group: Group) -> Option<PartKind> {
        let named = ["by", "key", "field", "on", "column", "slot"].iter().any(|word| self.is_word(word));
        if named && matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) {
            let wrong = Span { start: self.span().start, end: self.token(2).span.start };
            self.fix(self.span(), "`.sort` takes the slot itself, then `asc` or `desc`", wrong, "");
            self.bump();
            self.bump();
        }
        let minus = self.kind() == TokenKind::Minus;
        let place = self.span();
        if minus {
            self.bump();
        }
        let Some(field) = self.path("the slot to sort by, such as `.sort(p4, desc)`") else {
            self.leave(group);
            return None;
        };
        let mut end = self.last_end();
        if minus {
            let edits = vec![Edit::delete(place), Edit::insert(end, ", desc")];
            self.say(place, "descending is written `desc`".to_owned(), edits);
        }
        self.eat(TokenKind::Comma);
        let descending = self.is_word("desc") || minus;
        let ordered = self.is_word("desc") || self.is_word("asc");
        if ordered {
            self.bump();
            end = self.last_end();
            self.eat(TokenKind::Comma);
        }
        if self.in_group(group) && !self.lost {
            let wrong = Span { start: end, end: self.token_at(group.end).span.start };
            let words = wrong.of(self.text).to_ascii_lowercase();
            let order = match ordered || minus {
                true => "",
                false if ["desc", "-1", "reverse"].iter().any(|word| words.contains(word)) => ", desc",
                false => ", asc",
            };
            let message = format!("`.sort` takes one slot and then `asc` or `desc`; found {}", self.found());
            self.unexpected_fix(message, wrong, order);
        }
        self.leave(group);
        Some(PartKind::Sort { field, descending })
    }

    /// Whether, at the dot of a postfix without brackets, its arguments follow all the same: `.limit 5`.
    pub(super) fn takes_loose(&self, postfix: Postfix) -> bool {
        let (argument, next) = (self.token(2), self.token(3));
        let word = argument.span.of(self.text);
        let is_argument = match argument.kind {
            TokenKind::Number | TokenKind::String => true,
            TokenKind::Word => {
                !["and", "or"].contains(&word) && (!next.kind.is_operator() || postfix == Postfix::Filter)
            }
            _ => false,
        };
        is_argument && !postfix.is_plain()
    }

    /// `.limit 5`, at the name.
    pub(super) fn loose(&mut self, postfix: Postfix) -> Option<PartKind> {
        let name = self.name();
        let place = self.span();
        let (first, single) = (self.token(0), self.token(1).kind);
        let (arguments, copy) = self.loose_arguments(postfix);
        let wrong = Span { start: name.span.end, end: arguments.end };
        let brackets = if postfix == Postfix::Filter { "{…}" } else { "(…)" };
        self.fix(place, format!("`.{}` takes its arguments in `{brackets}`", name.text), wrong, &copy);
        let counts = first.kind == TokenKind::Number && single != TokenKind::Number;
        let count = Value { kind: ValueKind::Number(first.span.of(self.text).to_owned()), span: first.span };
        match postfix {
            Postfix::Limit if counts => Some(PartKind::Limit { count }),
            Postfix::PageSize if counts => Some(PartKind::PageSize { count }),
            _ => None,
        }
    }

    /// Passes arguments that have no brackets, and gives their place and how they would be written.
    pub(super) fn loose_arguments(&mut self, postfix: Postfix) -> (Span, String) {
        let start = self.span().start;
        while !self.opens() && !self.kind().is_closer() {
            use TokenKind::{Arrow, Back, Comma, Dot, End, Heredoc, Newline, Semicolon};
            let ends = matches!(self.kind(), Arrow | Back | Comma | Dot | End | Heredoc | Newline | Semicolon);
            let order = self.kind() == TokenKind::Comma && ["asc", "desc"].contains(&self.token(1).span.of(self.text));
            if ends && !order {
                break;
            }
            self.bump();
        }
        let arguments = self.since(start);
        let (open, close) = if postfix == Postfix::Filter { ('{', '}') } else { ('(', ')') };
        (arguments, format!("{open}{}{close}", arguments.of(self.text)))
    }
}
