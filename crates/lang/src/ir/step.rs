//! Steps of a plan and the values in them: what a step does, which rows and values it uses, and what it may cost.
//! Invariants:
//! - A step names only earlier steps. A run needs nothing from the program beyond its steps.
//! - A value is known or says where it comes from. Text is never put together from the texts of values.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::CatalogId;
use catalog::{Capability, Catalog, EffectClass, Type};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub kind: StepKind,
    /// What the rows are of; rows that a program made are of nothing.
    pub of: Option<EntityRef>,
    /// Shared: most steps keep the columns of their input.
    pub columns: Arc<Vec<Column>>,
    pub shape: Shape,
    pub class: EffectClass,
    /// At most this many calls.
    pub calls: usize,
    /// At most this many rows.
    pub rows: usize,
    /// At most this many effects.
    pub effects: usize,
    /// Effects run in the order written: the effect that must have ended before this one starts. On a read: the effect of
    /// the same catalog that was written before it; the read only waits for its end.
    pub after: Option<usize>,
    /// The name the program gave it; only for reading.
    pub label: Option<SmolStr>,
    /// What an effect does, in words; only for reading.
    #[serde(default, rename = "says")]
    pub description: Option<StepDescription>,
}

/// An effect in words: `close Ticket`, and what takes it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDescription {
    pub what: String,
    /// None: it cannot be undone.
    pub undo: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntityRef {
    pub catalog: CatalogId,
    pub entity: SmolStr,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub name: SmolStr,
    #[serde(rename = "type")]
    pub kind: Type,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    List,
    One,
    /// Its rows are what the API answered, one for each effect, perhaps none.
    Effect,
}

/// The capability that a step calls, and its catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityRef {
    pub catalog: CatalogId,
    pub capability: SmolStr,
}

impl CapabilityRef {
    pub(crate) fn new(catalog: &Catalog, capability: &Capability) -> Self {
        CapabilityRef { catalog: catalog.id.clone(), capability: SmolStr::new(&capability.name) }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A list or a search that the API filters.
    Query {
        call: CapabilityRef,
        args: Args,
        limit: Option<usize>,
        page_size: Option<usize>,
        /// The fields that are needed, where the transport can ask for just these; None is all.
        #[serde(default)]
        fields: Option<Vec<String>>,
    },
    /// One row by its key, or the one row there is.
    Get {
        call: CapabilityRef,
        args: Args,
        #[serde(default)]
        fields: Option<Vec<String>>,
    },
    /// A declared relation from each row of the input; `args` are further filters.
    Follow {
        input: usize,
        relation: SmolStr,
        args: Args,
        limit: Option<usize>,
        page_size: Option<usize>,
        /// The fields that are needed, where the transport can ask for just these; None is all.
        #[serde(default)]
        fields: Option<Vec<String>>,
    },
    /// A query for each row of the input; `args` may hold parts of the row. Against the direction of a relation.
    #[serde(rename = "each")]
    QueryPerRow {
        input: usize,
        call: CapabilityRef,
        args: Args,
        limit: Option<usize>,
    },
    /// The entity that a field of each input row refers to.
    Deref {
        input: usize,
        field: SmolStr,
        limit: Option<usize>,
    },
    /// The input's rows, with the entity that `field` refers to read and put beside it, so that paths can lead into it
    /// (`owner.name`). Each distinct reference is read once; a row without one has nothing there.
    Attach {
        input: usize,
        field: Path,
        entity: EntityRef,
    },
    /// The input's rows, with the fields that their list did not carry read by a get for each.
    Hydrate {
        input: usize,
        call: CapabilityRef,
        fields: Vec<String>,
    },
    Filter {
        input: usize,
        tests: Vec<FilterTest>,
    },
    /// Stable; `null` last, in either direction.
    Sort {
        input: usize,
        by: Path,
        descending: bool,
    },
    Limit {
        input: usize,
        count: usize,
    },
    First {
        input: usize,
    },
    Last {
        input: usize,
    },
    /// The one row there must be: none or several is an error.
    Singleton {
        input: usize,
    },
    Distinct {
        input: usize,
        by: Vec<Path>,
    },
    Aggregate {
        input: usize,
        specs: Vec<Aggregation>,
    },
    GroupBy {
        input: usize,
        by: Vec<NamedPath>,
        specs: Vec<Aggregation>,
    },
    Project {
        input: usize,
        columns: Vec<NamedPath>,
    },
    /// A new row from each row of the input.
    Derive {
        input: usize,
        object: Vec<(String, Expr)>,
    },
    /// Minijinja over the input's rows; gives one row `{content}`. `names` are symbols that the template may use for columns.
    Template {
        input: usize,
        source: String,
        names: Vec<(String, String)>,
    },
    /// Literals as rows, each with the one column `value`; `_` is the value itself.
    Rows {
        items: Vec<Expr>,
    },
    /// A block of text: one row `{content}`.
    Text {
        content: String,
    },
    /// One effect; or one for each row of `each`, in row order.
    Effect {
        call: CapabilityRef,
        args: Args,
        each: Option<usize>,
    },
    /// The rest of a list that an earlier run left unread.
    Page {
        handle: String,
        limit: Option<usize>,
    },
    /// Inside a read for a row: the rows of a step of the plan around it, or (None) the row at hand as one row.
    #[serde(rename = "given")]
    OuterRows {
        step: Option<usize>,
    },
    /// What a run that outlives its call has come to, or stops it.
    Operation {
        handle: String,
        cancel: bool,
    },
}

/// `path op value` on rows that were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilterTest {
    pub path: Path,
    pub op: ComparisonOp,
    pub value: Expr,
    /// Of what the path leads to: how it is compared.
    #[serde(rename = "type")]
    pub kind: Type,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonOp {
    /// On a list: contains.
    Eq,
    /// On a list: does not contain.
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Contains the text, whatever the case.
    Like,
}

impl ComparisonOp {
    /// Whether values of this type can be compared with the operator.
    pub(crate) fn applies_to(self, kind: &Type) -> bool {
        match (self, kind) {
            (ComparisonOp::Eq | ComparisonOp::Ne, Type::Object(_) | Type::Union(_)) => false,
            (ComparisonOp::Eq | ComparisonOp::Ne, _) | (_, Type::Json) => true,
            (ComparisonOp::Like, Type::String(_) | Type::Select(_) | Type::Uuid) => true,
            (ComparisonOp::Like, Type::MultiSelect(_)) => true,
            (ComparisonOp::Like, Type::Array(of)) => self.applies_to(of),
            (ComparisonOp::Like, _) => false,
            (_, Type::Integer | Type::Number | Type::Date(_) | Type::String(_)) => true,
            _ => false,
        }
    }

    /// As a program writes it.
    pub fn sign(self) -> &'static str {
        match self {
            ComparisonOp::Eq => "=",
            ComparisonOp::Ne => "!=",
            ComparisonOp::Lt => "<",
            ComparisonOp::Le => "<=",
            ComparisonOp::Gt => ">",
            ComparisonOp::Ge => ">=",
            ComparisonOp::Like => "~",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPath {
    pub name: SmolStr,
    pub path: Path,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggregation {
    pub name: SmolStr,
    pub function: Function,
    /// None for a count of rows.
    pub path: Option<Path>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

impl StepKind {
    /// The rows it works on, where it works on some.
    pub fn input(&self) -> Option<usize> {
        match self {
            StepKind::Query { .. }
            | StepKind::Get { .. }
            | StepKind::Rows { .. }
            | StepKind::Text { .. }
            | StepKind::Page { .. }
            | StepKind::OuterRows { .. }
            | StepKind::Operation { .. } => None,
            StepKind::Effect { each, .. } => *each,
            StepKind::Follow { input, .. }
            | StepKind::QueryPerRow { input, .. }
            | StepKind::Deref { input, .. }
            | StepKind::Attach { input, .. }
            | StepKind::Hydrate { input, .. }
            | StepKind::Filter { input, .. }
            | StepKind::Sort { input, .. }
            | StepKind::Limit { input, .. }
            | StepKind::First { input }
            | StepKind::Last { input }
            | StepKind::Singleton { input }
            | StepKind::Distinct { input, .. }
            | StepKind::Aggregate { input, .. }
            | StepKind::GroupBy { input, .. }
            | StepKind::Project { input, .. }
            | StepKind::Derive { input, .. }
            | StepKind::Template { input, .. } => Some(*input),
        }
    }

    /// Every earlier step whose result it needs: its input, and those that its values come from.
    pub fn inputs(&self) -> Vec<usize> {
        let mut steps: Vec<usize> = self.input().into_iter().collect();
        match self {
            StepKind::Query { args, .. }
            | StepKind::Get { args, .. }
            | StepKind::Follow { args, .. }
            | StepKind::QueryPerRow { args, .. }
            | StepKind::Effect { args, .. } => args.values().for_each(|e| e.collect_steps(&mut steps)),
            StepKind::Filter { tests, .. } => tests.iter().for_each(|t| t.value.collect_steps(&mut steps)),
            StepKind::Derive { object, .. } => object.iter().for_each(|(_, e)| e.collect_steps(&mut steps)),
            StepKind::Rows { items } => items.iter().for_each(|e| e.collect_steps(&mut steps)),
            _ => {}
        }
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// Lists the values that a step holds, in an order that does not depend on how the program was written.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Expr> {
        let args = match self {
            StepKind::Query { args, .. }
            | StepKind::Get { args, .. }
            | StepKind::Follow { args, .. }
            | StepKind::QueryPerRow { args, .. }
            | StepKind::Effect { args, .. } => Some(args.values()),
            _ => None,
        };
        let (tests, object, items) = match self {
            StepKind::Filter { tests, .. } => (tests.as_slice(), [].as_slice(), [].as_slice()),
            StepKind::Derive { object, .. } => ([].as_slice(), object.as_slice(), [].as_slice()),
            StepKind::Rows { items } => ([].as_slice(), [].as_slice(), items.as_slice()),
            _ => ([].as_slice(), [].as_slice(), [].as_slice()),
        };
        let written = tests.iter().map(|t| &t.value).chain(object.iter().map(|(_, value)| value)).chain(items);
        args.into_iter().flatten().chain(written)
    }

    /// Whether running the step calls the API.
    pub fn calls_api(&self) -> bool {
        match self {
            StepKind::Query { .. }
            | StepKind::Get { .. }
            | StepKind::Follow { .. }
            | StepKind::QueryPerRow { .. }
            | StepKind::Deref { .. }
            | StepKind::Attach { .. }
            | StepKind::Hydrate { .. }
            | StepKind::Effect { .. }
            | StepKind::Page { .. } => true,
            // A value of a derived row may be a read of its own.
            StepKind::Derive { object, .. } => object.iter().any(|(_, e)| e.reads_api()),
            _ => false,
        }
    }

    /// A word for it, in plans and messages.
    pub fn word(&self) -> &'static str {
        match self {
            StepKind::Query { .. } => "query",
            StepKind::Get { .. } => "get",
            StepKind::Follow { .. } | StepKind::Deref { .. } => "follow",
            StepKind::QueryPerRow { .. } => "query for each row",
            StepKind::Attach { .. } => "look up",
            StepKind::Hydrate { .. } => "read the rest of each row",
            StepKind::Filter { .. } => "filter",
            StepKind::Sort { .. } => "sort",
            StepKind::Limit { .. } => "limit",
            StepKind::First { .. } => "first",
            StepKind::Last { .. } => "last",
            StepKind::Singleton { .. } => "the one row",
            StepKind::Distinct { .. } => "distinct",
            StepKind::Aggregate { .. } => "aggregate",
            StepKind::GroupBy { .. } => "group",
            StepKind::Project { .. } => "project",
            StepKind::Derive { .. } => "derive",
            StepKind::Template { .. } => "render",
            StepKind::Rows { .. } => "rows",
            StepKind::Text { .. } => "text",
            StepKind::Effect { .. } => "effect",
            StepKind::Page { .. } => "page",
            StepKind::OuterRows { .. } => "given",
            StepKind::Operation { cancel: false, .. } => "wait",
            StepKind::Operation { cancel: true, .. } => "cancel",
        }
    }
}

/// Parameter names to values.
pub type Args = BTreeMap<SmolStr, Expr>;

/// Names from a row inwards: `["owner", "name"]`. A name that the row holds as a reference leads into what was attached there.
pub type Path = Vec<SmolStr>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    Value(Value),
    /// From an earlier step: of its one row, or, where `many`, of each of its rows as a list.
    Step {
        step: usize,
        take: RowPart,
        many: bool,
    },
    /// From the row of the `=>` or of the relation at hand.
    Row(RowPart),
    List(Vec<Expr>),
    Object(Vec<(String, Expr)>),
    /// Jinja over the row at hand, which it calls `_`; gives text. `names` are symbols that it may use for columns.
    Template {
        source: String,
        names: Vec<(String, String)>,
    },
    /// A read of its own for the row at hand: steps numbered among themselves, of which the last is taken. A step inside may
    /// hold `Row`, which is the outer row.
    Read {
        steps: Vec<Step>,
        take: RowPart,
    },
}

/// What of a row is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowPart {
    /// The value at a path; an empty path is the row itself, or the scalar of a literal row.
    Path(Path),
    /// The reference to the row: its entity's key.
    Key(EntityRef),
}

impl Expr {
    /// Adds the steps that it names.
    pub fn collect_steps(&self, referenced: &mut Vec<usize>) {
        match self {
            Expr::Step { step, .. } => referenced.push(*step),
            Expr::List(items) => items.iter().for_each(|item| item.collect_steps(referenced)),
            Expr::Object(pairs) => pairs.iter().for_each(|(_, item)| item.collect_steps(referenced)),
            // The steps of an inner read are numbered among themselves; only what is given to it is of the plan around it.
            Expr::Read { steps, .. } => referenced.extend(steps.iter().filter_map(|inner| match inner.kind {
                StepKind::OuterRows { step } => step,
                _ => None,
            })),
            Expr::Value(_) | Expr::Row(_) | Expr::Template { .. } => {}
        }
    }

    /// Whether it reads the API.
    pub fn reads_api(&self) -> bool {
        match self {
            Expr::Read { .. } => true,
            Expr::List(items) => items.iter().any(Expr::reads_api),
            Expr::Object(pairs) => pairs.iter().any(|(_, item)| item.reads_api()),
            Expr::Value(_) | Expr::Step { .. } | Expr::Row(_) | Expr::Template { .. } => false,
        }
    }

    /// Whether it takes something of the row at hand.
    pub fn uses_row(&self) -> bool {
        match self {
            Expr::Row(_) | Expr::Template { .. } | Expr::Read { .. } => true,
            Expr::List(items) => items.iter().any(Expr::uses_row),
            Expr::Object(pairs) => pairs.iter().any(|(_, item)| item.uses_row()),
            Expr::Value(_) | Expr::Step { .. } => false,
        }
    }

    /// The value, where it is known already.
    pub fn known(&self) -> Option<&Value> {
        match self {
            Expr::Value(value) => Some(value),
            _ => None,
        }
    }
}

impl From<Value> for Expr {
    fn from(value: Value) -> Self {
        Expr::Value(value)
    }
}
