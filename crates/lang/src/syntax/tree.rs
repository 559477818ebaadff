//! The syntax tree of a program. The parser makes it, and the checker reads it.
//! Invariant: the tree contains what was written and where, and no meaning. Every element has a span.

use base::Span;
use serde::Serialize;
use smol_str::SmolStr;

/// A whole program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Program {
    /// The statements `label = node`, in the order written.
    pub bindings: Vec<Binding>,
    /// The expressions of the last statement, which are the results. If there are none, the last binding is the
    /// result.
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

/// The name of an entity, or another name in the place of an entity: `Ticket`, `e1`, `tracker:Ticket`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EntityName {
    /// The name of the catalog before the colon, if there is one.
    pub catalog: Option<Name>,
    pub name: Name,
}

impl EntityName {
    /// Returns the span from the catalog, if it is written, to the end of the name.
    pub(crate) fn span(&self) -> Span {
        self.catalog.as_ref().map_or(self.name.span, |catalog| catalog.span.to(self.name.span))
    }
}

/// An expression, which is a primary and the parts that are applied to it from left to right. A template or a `=>` may
/// be the last part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    /// The beginning of the expression, which the parts are applied to.
    pub primary: Primary,
    /// The span of the primary.
    pub head: Span,
    pub parts: Vec<Part>,
    pub span: Span,
}

/// The beginning of an expression.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Primary {
    /// A label, an entity to list or, inside a value, a bare word. The checker decides which it is.
    Name(EntityName),
    /// One row that is selected by its key: `e1(…)`.
    Get { entity: EntityName, key: Key },
    /// A list of an entity with filters: `e1{…}`.
    Query { entity: EntityName, preds: Vec<Pred> },
    /// A search of an entity with filters: `e1~"text"{…}`.
    Search { entity: EntityName, text: Box<Value>, preds: Vec<Pred> },
    /// A use of the handle of an earlier run: `page(…)`, `wait(…)`, `cancel(…)`.
    HandleCall(HandleCall),
    /// Literals that become rows: `[a, b]`.
    List(Vec<Value>),
    /// A block of text, which becomes one row.
    Text(Heredoc),
    /// `_`, the row of the nearest `=>`.
    Row(Span),
    /// A piece of text that could not be parsed. A diagnostic explains the reason.
    Error(Span),
}

/// The key that selects a row of an entity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Key {
    /// A key of one part, written without its name: `e1("OPS")`.
    Unary(Box<Value>),
    /// A key whose parts are named: `e1(p1="OPS", p2=7)`.
    Slots(Vec<Arg>),
}

/// The text `..`, which a taught table writes in place of the leading slots of a key that it spelled out earlier. It
/// cannot be confused with a name, because names contain no dots.
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
    /// `~`, which means that a text contains the value.
    Like,
}

/// A path of names, such as `p13.p27`. It has at least one name.
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

/// An operation that is applied to the expression before it. The span starts at the `.`, `[`, `=>` or `<<`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    pub kind: PartKind,
    pub span: Span,
}

/// The operation of a part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum PartKind {
    /// A relation or a field: `.name` or `.name{…}`.
    Follow {
        name: Name,
        preds: Option<Vec<Pred>>,
    },
    /// A step that follows a relation backwards: `.^Entity{…}`.
    Back {
        entity: EntityName,
        preds: Vec<Pred>,
    },
    /// A method call `.name(…)`, whose name is not one of the postfixes below.
    Method {
        name: Name,
        args: MethodArgs,
    },
    /// Misplaced braces, such as `label{…}` or `.limit(3){…}`. They are kept so that the checker can suggest
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
    /// A projection to some columns: `[p1, p4]`.
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
    /// A template that is rendered with the rows: `<<TAG … TAG`.
    Template(Heredoc),
}

/// The arguments of a method call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum MethodArgs {
    /// Arguments of the form `slot=value`.
    Slots(Vec<Arg>),
    /// One arm of a tagged union: `Name{slot=value}`.
    Variant { name: Name, args: Vec<Arg> },
}

/// An aggregate and the name of its result, such as `name=count` or `total=sum(p4)`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AggregateSpec {
    pub name: Name,
    pub function: AggregateFunction,
    /// The slot in the parentheses. `count` needs none.
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

/// The kind of a value, with its content.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum ValueKind {
    String(String),
    /// A number as written. The checker converts it to the type of the slot.
    Number(String),
    Bool(bool),
    Null,
    Text(Heredoc),
    List(Vec<Value>),
    Object(Vec<Entry>),
    /// A bare word, a label, a path from a label, `_.p1`, a reference `e1(…)`, or a whole read.
    Node(Box<Node>),
    /// A placeholder: `$` or `<<T`. Only a taught line may contain one.
    #[serde(rename = "Hole")]
    Placeholder,
    /// A value that could not be parsed. A diagnostic explains the reason.
    Error,
}

/// A block of text, or a string in the place of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Heredoc {
    /// The tag that opens and closes the block. It is empty if the text was written as a string.
    pub tag: String,
    /// The text without the line break before the closing line.
    pub body: String,
    pub span: Span,
}

/// A use of a handle, such as `page(s0_pg1, limit=50)`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandleCall {
    pub kind: HandleCallKind,
    pub handle: Name,
    /// The number of rows to read. Only `page` accepts one.
    pub limit: Option<Value>,
    pub span: Span,
}

/// The operation on a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum HandleCallKind {
    /// Reads more rows of an unfinished list.
    Page,
    /// Waits for the end of a run.
    Wait,
    /// Asks a run to stop.
    Cancel,
}
