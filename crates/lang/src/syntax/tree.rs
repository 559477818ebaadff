//! The tree of a program, which the parser makes and the checker reads.
//! Invariant: the tree says what was written and where, and nothing about its meaning. Every part has its span.

use base::Span;
use serde::Serialize;
use smol_str::SmolStr;

/// A whole program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Program {
    /// The statements `label = node`, in the order written.
    pub bindings: Vec<Binding>,
    /// The nodes of the last statement, which are the results. Empty if the program only binds; its last binding is
    /// then the result.
    pub roots: Vec<Node>,
}

/// A statement `label = node`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Binding {
    pub label: Name,
    pub node: Node,
}

/// A name as written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Name {
    pub text: SmolStr,
    pub span: Span,
}

/// The name of an entity, or any other name where an entity may stand: `Ticket`, `e1`, `tracker:Ticket`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EntityName {
    /// The catalog before the colon, if one is written.
    pub catalog: Option<Name>,
    pub name: Name,
}

impl EntityName {
    /// Returns the span from the catalog, if one is written, to the end of the name.
    pub(crate) fn span(&self) -> Span {
        self.catalog.as_ref().map_or(self.name.span, |catalog| catalog.span.to(self.name.span))
    }
}

/// An expression: a primary and the parts that are applied to it from left to right. A template or a `=>` may stand at
/// the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    /// The expression that the parts start from.
    pub primary: Primary,
    /// The span of the primary.
    pub head: Span,
    pub parts: Vec<Part>,
    pub span: Span,
}

/// The beginning of an expression.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Primary {
    /// A label, an entity to list or, in a value, a bare word. The checker decides which.
    Name(EntityName),
    /// One row by its key: `e1(…)`.
    Get { entity: EntityName, key: Key },
    /// A list with filters: `e1{…}`.
    Query { entity: EntityName, preds: Vec<Pred> },
    /// A search with filters: `e1~"text"{…}`.
    Search { entity: EntityName, text: Box<Value>, preds: Vec<Pred> },
    /// The use of a handle of an earlier run: `page(…)`, `wait(…)`, `cancel(…)`.
    HandleCall(HandleCall),
    /// Literals as rows: `[a, b]`.
    List(Vec<Value>),
    /// A block of text that is bound to a name.
    Text(Heredoc),
    /// The row of a `=>`: `_`.
    Row(Span),
    /// A piece of text that could not be parsed. A diagnostic says why.
    Error(Span),
}

/// The key of an entity's row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Key {
    /// A key of one part, without its name: `e1("OPS")`.
    Unary(Box<Value>),
    /// A key whose parts are named: `e1(p1="OPS", p2=7)`.
    Slots(Vec<Arg>),
}

/// The text `..`, which stands as a slot for the leading slots of a key that a table has spelled out before. No name
/// can be written in this way.
pub const DOTS: &str = "..";

/// An argument `slot = value`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arg {
    pub slot: Name,
    pub value: Value,
}

impl Arg {
    /// Returns whether the argument is `..`.
    pub fn is_dots(&self) -> bool {
        self.slot.text == DOTS
    }
}

/// A filter `path op value`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pred {
    pub path: DottedName,
    pub op: Operator,
    pub op_span: Span,
    pub value: Value,
}

impl Pred {
    /// Returns the span from the path to the end of the value.
    pub(crate) fn span(&self) -> Span {
        self.path.names.first().map_or(self.value.span, |first| first.span.to(self.value.span))
    }

    /// Returns whether the filter is `..`.
    pub fn is_dots(&self) -> bool {
        matches!(self.path.names.as_slice(), [only] if only.text == DOTS)
    }
}

/// The operator of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Operator {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `~`
    Like,
}

/// A path of names, such as `p13.p27`. It is never empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DottedName {
    pub names: Vec<Name>,
}

impl DottedName {
    /// Returns the span from the first name to the last.
    pub(crate) fn span(&self) -> Span {
        match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => Span::default(),
        }
    }
}

/// An operation that is applied to the expression before it. Its span starts at its `.`, `[`, `=>` or `<<`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    pub kind: PartKind,
    pub span: Span,
}

/// The operation of a part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum PartKind {
    /// A relation, or a field: `.name` or `.name{…}`.
    Follow {
        name: Name,
        preds: Option<Vec<Pred>>,
    },
    /// The step against the direction of a relation: `.^Entity{…}`.
    Back {
        entity: EntityName,
        preds: Vec<Pred>,
    },
    /// A method call: `.name(…)` with a name that is not one of the postfixes below.
    Method {
        name: Name,
        args: MethodArgs,
    },
    /// Braces where none belong: `label{…}` or `.limit(3){…}`. They are kept so that the checker can suggest
    /// `.filter{…}`.
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
        field: DottedName,
        descending: bool,
    },
    Filter {
        preds: Vec<Pred>,
    },
    Aggregate {
        specs: Vec<AggregateSpec>,
    },
    GroupBy {
        fields: Vec<DottedName>,
        specs: Vec<AggregateSpec>,
    },
    Distinct {
        fields: Vec<DottedName>,
    },
    First,
    Last,
    Singleton,
    /// A projection: `[p1, p4]`.
    Project {
        fields: Vec<DottedName>,
    },
    /// A new row for each row: `=> {title: _.p10}`.
    Derive {
        object: Vec<Entry>,
    },
    /// An effect for each row: `=> e1(…).m1(…)`.
    Each {
        effect: Box<Node>,
    },
    /// A template over the rows: `<<TAG … TAG` after them.
    Template(Heredoc),
}

/// The arguments of a method call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum MethodArgs {
    /// `slot=value` arguments.
    Slots(Vec<Arg>),
    /// One arm of a tagged union: `Name{slot=value}`.
    Variant { name: Name, args: Vec<Arg> },
}

/// An aggregate with the name of its result: `name=count`, `total=sum(p4)`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AggregateSpec {
    pub name: Name,
    pub function: AggregateFunction,
    /// The slot in the parentheses. `count` has none.
    pub field: Option<DottedName>,
}

/// The function of an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum AggregateFunction {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

/// An entry `key: value` of an object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    pub key: Name,
    pub value: Value,
}

/// A value as written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Value {
    pub kind: ValueKind,
    pub span: Span,
}

/// The form of a value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum ValueKind {
    String(String),
    /// A number as written. The checker reads it as the type that the slot wants.
    Number(String),
    Bool(bool),
    Null,
    Text(Heredoc),
    List(Vec<Value>),
    Object(Vec<Entry>),
    /// A bare word, a label, a path from a label, `_.p1`, a reference `e1(…)`, or a whole read.
    Node(Box<Node>),
    /// A place to fill: `$` or `<<T`. Only a taught line may have one.
    Hole,
    /// A value that could not be parsed. A diagnostic says why.
    Error,
}

/// A block of text, or a string in the place of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Heredoc {
    /// The tag that opens and closes the block. Empty if the text was written as a string.
    pub tag: String,
    /// The text without the line break before the closing line.
    pub body: String,
    pub span: Span,
}

/// The use of a handle: `page(s0_pg1, limit=50)`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandleCall {
    pub kind: HandleCallKind,
    pub handle: Name,
    /// The number of rows to read. Only `page` takes one.
    pub limit: Option<Value>,
    pub span: Span,
}

/// The operation on a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum HandleCallKind {
    /// Reads on in a list.
    Page,
    /// Waits for a run.
    Wait,
    /// Stops a run.
    Cancel,
}
