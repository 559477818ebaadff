//! A program as written: the tree that the parser makes and the checker reads.
//! Invariant: it says what was written and where, and nothing about what it means; every part has its span.

use base::Span;
use serde::Serialize;
use smol_str::SmolStr;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Program {
    pub bindings: Vec<Binding>,
    /// The last statement; empty when the program only binds (it then returns its last binding).
    pub roots: Vec<Node>,
}

/// `label = node`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Binding {
    pub label: Name,
    pub node: Node,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Name {
    pub text: SmolStr,
    pub span: Span,
}

/// `Ticket`, `e1`, `tracker:Ticket`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EntityName {
    pub catalog: Option<Name>,
    pub name: Name,
}

impl EntityName {
    pub(crate) fn span(&self) -> Span {
        self.catalog.as_ref().map_or(self.name.span, |catalog| catalog.span.to(self.name.span))
    }
}

/// A primary, what is applied to it from left to right, and perhaps a template or a `=>` at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    pub primary: Primary,
    /// The primary alone.
    pub head: Span,
    pub parts: Vec<Part>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Primary {
    /// A label, or an entity to list, or in a value a bare word: the checker knows which.
    Name(EntityName),
    /// `e1(…)`
    Get { entity: EntityName, key: Key },
    /// `e1{…}`
    Query { entity: EntityName, preds: Vec<Pred> },
    /// `e1~"text"{…}`
    Search { entity: EntityName, text: Box<Value>, preds: Vec<Pred> },
    /// `page(…)`, `wait(…)`, `cancel(…)`
    Host(HostCall),
    /// `[a, b]` as rows
    List(Vec<Value>),
    /// A block of text bound to a name.
    Text(Heredoc),
    /// `_`, the row of a `=>`
    Row(Span),
    /// What could not be read; a diagnostic says why.
    Error(Span),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Key {
    /// `e1("OPS")`
    Unary(Box<Value>),
    /// `e1(p1="OPS", p2=7)`
    Slots(Vec<Arg>),
}

/// Stands as a slot for the leading slots of a key, which a table has spelled out before; no name can be written so.
pub const DOTS: &str = "..";

/// `slot = value`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arg {
    pub slot: Name,
    pub value: Value,
}

impl Arg {
    pub fn is_dots(&self) -> bool {
        self.slot.text == DOTS
    }
}

/// `path op value`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pred {
    pub path: Path,
    pub op: Op,
    pub op_span: Span,
    pub value: Value,
}

impl Pred {
    /// From the path to the value.
    pub(crate) fn span(&self) -> Span {
        self.path.names.first().map_or(self.value.span, |first| first.span.to(self.value.span))
    }

    pub fn is_dots(&self) -> bool {
        matches!(self.path.names.as_slice(), [only] if only.text == DOTS)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Like,
}

/// `p13.p27`; never empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Path {
    pub names: Vec<Name>,
}

impl Path {
    pub(crate) fn span(&self) -> Span {
        match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => Span::default(),
        }
    }
}

/// One thing applied to what stands before it. The span starts at its `.`, `[`, `=>` or `<<`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    pub kind: PartKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum PartKind {
    /// `.name` or `.name{…}`: a relation, or a field
    Follow {
        name: Name,
        preds: Option<Vec<Pred>>,
    },
    /// `.^Entity{…}`
    Back {
        entity: EntityName,
        preds: Vec<Pred>,
    },
    /// `.name(…)` that is not one of the postfixes below
    Method {
        name: Name,
        args: Args,
    },
    /// `label{…}` or `.limit(3){…}`: braces where none belong, kept so that the checker can say `.filter{…}`
    Braces {
        preds: Vec<Pred>,
    },
    Limit {
        count: Value,
    },
    PageSize {
        count: Value,
    },
    Sort {
        field: Path,
        descending: bool,
    },
    Filter {
        preds: Vec<Pred>,
    },
    Aggregate {
        specs: Vec<AggregateSpec>,
    },
    GroupBy {
        fields: Vec<Path>,
        specs: Vec<AggregateSpec>,
    },
    Distinct {
        fields: Vec<Path>,
    },
    First,
    Last,
    Singleton,
    /// `[p1, p4]`
    Project {
        fields: Vec<Path>,
    },
    /// `=> {title: _.p10}`
    Derive {
        object: Vec<Entry>,
    },
    /// `=> e1(…).m1(…)`
    Each {
        effect: Box<Node>,
    },
    /// `<<TAG … TAG` after rows
    Template(Heredoc),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Args {
    Slots(Vec<Arg>),
    /// `Name{slot=value}`: one arm of a tagged union
    Variant {
        name: Name,
        args: Vec<Arg>,
    },
}

/// `name=count`, `total=sum(p4)`
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AggregateSpec {
    pub name: Name,
    pub function: Function,
    pub field: Option<Path>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Function {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

/// `key: value` of an object
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    pub key: Name,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Value {
    pub kind: ValueKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum ValueKind {
    String(String),
    /// As written; the checker reads it as the type that the slot wants.
    Number(String),
    Bool(bool),
    Null,
    Text(Heredoc),
    List(Vec<Value>),
    Object(Vec<Entry>),
    /// A bare word, a label, a path from one, `_.p1`, a reference `e1(…)`, or a whole read.
    Node(Box<Node>),
    /// `$`, `"text"` after `~`, or `<<T`: a place to fill. Only a taught line may have one.
    Hole,
    Error,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Heredoc {
    pub tag: String,
    /// Without the newline before the closing line.
    pub body: String,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostCall {
    pub kind: HostKind,
    pub handle: Name,
    pub limit: Option<Value>,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum HostKind {
    Page,
    Wait,
    Cancel,
}
