//! The steps of a plan and the values in them: the operation of a step, the rows and values that it uses, and its cost.
//! Invariants:
//! - A step refers only to earlier steps. A run needs nothing from the program beyond its steps.
//! - A value is known or says where it comes from. Text is never concatenated from the texts of values.
//! - Plans are stored and their digests are compared. The names in JSON and the order of the fields of a `StepKind` are
//!   part of both, so they do not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::CatalogId;
use catalog::{Capability, Catalog, EffectClass, Type};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

/// One operation of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The operation.
    pub kind: StepKind,
    /// The entity that the rows belong to. Rows that a program computed belong to none.
    pub of: Option<EntityRef>,
    /// The columns of the rows. They are shared, because most steps keep the columns of their input.
    pub columns: Arc<Vec<Column>>,
    /// Whether the step gives one row, many, or the answers of effects.
    pub shape: Shape,
    /// Whether the step reads, writes, or has another side effect.
    pub class: EffectClass,
    /// The most calls that the step makes.
    pub calls: usize,
    /// The most rows that the step gives.
    pub rows: usize,
    /// The most effects that the step has.
    pub effects: usize,
    /// The number of the effect that must have ended before this step starts. Effects run in the order written, so an
    /// effect comes after the one before it. A read comes after the last effect that was written before it and could
    /// change its rows: one of the same catalog or, where the catalog is not known, any.
    pub after: Option<usize>,
    /// The name that the program gave it. It is shown to readers and is not part of the digest.
    pub label: Option<SmolStr>,
    /// The effect in words. It is shown to readers and is not part of the digest.
    #[serde(default, rename = "says")]
    pub description: Option<StepDescription>,
}

/// A step in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDescription {
    /// The operation and the entity: `close Ticket`.
    pub what: String,
    /// The method that undoes the effect. `None` if it cannot be undone.
    pub undo: Option<String>,
}

/// The name of an entity in its catalog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntityRef {
    pub catalog: CatalogId,
    pub entity: SmolStr,
}

/// A column of a row set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub name: SmolStr,
    #[serde(rename = "type")]
    pub kind: Type,
}

/// The number of rows that a step gives, as far as it is known before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    List,
    One,
    /// The answers of the API, one for each effect. An API may answer nothing.
    Effect,
}

/// The capability that a step calls, and its catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityRef {
    pub catalog: CatalogId,
    pub capability: SmolStr,
}

impl CapabilityRef {
    /// Names a capability of a catalog.
    pub(crate) fn new(catalog: &Catalog, capability: &Capability) -> Self {
        CapabilityRef { catalog: catalog.id.clone(), capability: SmolStr::new(&capability.name) }
    }
}

/// The operation of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A list or a search with the filters of the API.
    Query {
        call: CapabilityRef,
        args: Args,
        /// The most rows that are read.
        limit: Option<usize>,
        /// The rows per page that the program asked for.
        page_size: Option<usize>,
        /// The fields to ask for, where the transport can select fields. `None` asks for all.
        #[serde(default)]
        fields: Option<Vec<String>>,
    },
    /// One row by its key, or the only row of an entity without a key.
    Get {
        call: CapabilityRef,
        args: Args,
        /// The fields to ask for, where the transport can select fields. `None` asks for all.
        #[serde(default)]
        fields: Option<Vec<String>>,
    },
    /// A declared relation from each row of the input. `args` are further filters.
    Follow {
        input: usize,
        relation: SmolStr,
        args: Args,
        limit: Option<usize>,
        page_size: Option<usize>,
        /// The fields to ask for, where the transport can select fields. `None` asks for all.
        #[serde(default)]
        fields: Option<Vec<String>>,
    },
    /// A query for each row of the input, against the direction of a relation. `args` may hold parts of the row.
    #[serde(rename = "each")]
    QueryPerRow {
        input: usize,
        call: CapabilityRef,
        args: Args,
        limit: Option<usize>,
    },
    /// The rows that a field of each input row refers to.
    Deref {
        input: usize,
        field: SmolStr,
        limit: Option<usize>,
    },
    /// The input's rows, each with the row that `field` refers to attached, so that paths can lead into it
    /// (`owner.name`). Each distinct reference is read once. Nothing is attached to a row whose field is empty.
    Attach {
        input: usize,
        field: Path,
        entity: EntityRef,
    },
    /// The input's rows with more fields: those that their list did not carry are read by a get for each row.
    Hydrate {
        input: usize,
        call: CapabilityRef,
        fields: Vec<String>,
    },
    /// The input's rows for which all tests hold.
    Filter {
        input: usize,
        tests: Vec<FilterTest>,
    },
    /// The input's rows in the order of a column. The sort is stable, and `null` comes last in either direction.
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
    /// The only row of the input. It is an error if there is none or there are several.
    Singleton {
        input: usize,
    },
    /// The first row of each combination of values at these paths. If `by` is empty, whole rows are compared.
    Distinct {
        input: usize,
        by: Vec<Path>,
    },
    /// One row of aggregations over all rows.
    Aggregate {
        input: usize,
        specs: Vec<Aggregation>,
    },
    /// One row of aggregations for each combination of values at the paths of `by`.
    GroupBy {
        input: usize,
        by: Vec<NamedPath>,
        specs: Vec<Aggregation>,
    },
    /// The input's rows with these columns only.
    Project {
        input: usize,
        columns: Vec<NamedPath>,
    },
    /// A new row from each row of the input.
    Derive {
        input: usize,
        object: Vec<(String, Expr)>,
    },
    /// A Jinja template over the input's rows, which gives one row `{content}`. `names` maps the symbols that the
    /// template uses to the names of the columns.
    Template {
        input: usize,
        source: String,
        names: Vec<(String, String)>,
    },
    /// Literals as rows, each with one column `value`. `_` is the value itself.
    Rows {
        items: Vec<Expr>,
    },
    /// A block of text, as one row `{content}`.
    Text {
        content: String,
    },
    /// One effect, or one for each row of `each`, in the order of the rows.
    Effect {
        call: CapabilityRef,
        args: Args,
        each: Option<usize>,
    },
    /// The rows of a list from the position where an earlier run stopped.
    Page {
        handle: String,
        limit: Option<usize>,
    },
    /// Inside a read for each row: the rows of a step of the plan around it or, if `step` is `None`, the current row as
    /// one row.
    #[serde(rename = "given")]
    OuterRows {
        step: Option<usize>,
    },
    /// The state of a run that goes on after its call ended, or (`cancel`) the request to stop it.
    Operation {
        handle: String,
        cancel: bool,
    },
}

/// A test `path op value` on rows that were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilterTest {
    pub path: Path,
    pub op: ComparisonOp,
    pub value: Expr,
    /// The type of the values at the path, which decides how they are compared.
    #[serde(rename = "type")]
    pub kind: Type,
}

/// The operator of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonOp {
    /// Equal. A list is tested for containing the value.
    Eq,
    /// Not equal. A list is tested for not containing the value.
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Contains the text, in any case.
    Like,
}

impl ComparisonOp {
    /// Returns whether values of this type can be compared with the operator.
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

    /// Returns the operator as a program writes it.
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

/// A column that is made from a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPath {
    pub name: SmolStr,
    pub path: Path,
}

/// A count, a sum or the like, with the name of its column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggregation {
    pub name: SmolStr,
    pub function: Function,
    /// The path of the values. `None` for a count of rows.
    pub path: Option<Path>,
}

/// The function of an aggregation.
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
    /// Returns the step whose rows this step works on, if it works on rows.
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

    /// Returns every earlier step whose result this step needs: its input, and the steps that its values come from.
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

    /// Returns whether running the step calls the API.
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
            // A value of a derived row may be a read for that row.
            StepKind::Derive { object, .. } => object.iter().any(|(_, e)| e.reads_api()),
            _ => false,
        }
    }

    /// Returns a word for the operation, for plans and messages.
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

/// The values of a call by the names of its parameters.
pub type Args = BTreeMap<SmolStr, Expr>;

/// Names from a row inwards: `["owner", "name"]`. Where the row holds a reference, the next name leads into the
/// attached row.
pub type Path = Vec<SmolStr>;

/// A value of a step: known, or the place that it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    /// A known value.
    Value(Value),
    /// A part of the one row of an earlier step or, if `many`, the list of that part of each of its rows.
    Step {
        step: usize,
        take: RowPart,
        many: bool,
    },
    /// A part of the current row: that of the `=>`, or the one that a relation is followed from.
    Row(RowPart),
    List(Vec<Expr>),
    Object(Vec<(String, Expr)>),
    /// A Jinja template over the current row, which it calls `_`. It gives text. `names` maps the symbols that it uses
    /// to the names of the columns.
    Template {
        source: String,
        names: Vec<(String, String)>,
    },
    /// A read for the current row. Its steps are numbered among themselves, and the value is taken from the last one.
    /// `Row` inside of them is the row of the plan around.
    Read {
        steps: Vec<Step>,
        take: RowPart,
    },
}

/// The part of a row that a value takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowPart {
    /// The value at a path. An empty path is the row itself, or the scalar of a literal row.
    Path(Path),
    /// The reference to the row, which is its entity's key.
    Key(EntityRef),
}

impl Expr {
    /// Adds the steps of the plan that the value comes from.
    pub fn collect_steps(&self, referenced: &mut Vec<usize>) {
        match self {
            Expr::Step { step, .. } => referenced.push(*step),
            Expr::List(items) => items.iter().for_each(|item| item.collect_steps(referenced)),
            Expr::Object(pairs) => pairs.iter().for_each(|(_, item)| item.collect_steps(referenced)),
            // The steps of an inner read have numbers of their own. Only its `OuterRows` name steps of the plan around
            // it.
            Expr::Read { steps, .. } => referenced.extend(steps.iter().filter_map(|inner| match inner.kind {
                StepKind::OuterRows { step } => step,
                _ => None,
            })),
            Expr::Value(_) | Expr::Row(_) | Expr::Template { .. } => {}
        }
    }

    /// Returns whether computing the value reads from the API.
    pub fn reads_api(&self) -> bool {
        match self {
            Expr::Read { .. } => true,
            Expr::List(items) => items.iter().any(Expr::reads_api),
            Expr::Object(pairs) => pairs.iter().any(|(_, item)| item.reads_api()),
            Expr::Value(_) | Expr::Step { .. } | Expr::Row(_) | Expr::Template { .. } => false,
        }
    }

    /// Returns whether the value depends on the current row.
    pub fn uses_row(&self) -> bool {
        match self {
            Expr::Row(_) | Expr::Template { .. } | Expr::Read { .. } => true,
            Expr::List(items) => items.iter().any(Expr::uses_row),
            Expr::Object(pairs) => pairs.iter().any(|(_, item)| item.uses_row()),
            Expr::Value(_) | Expr::Step { .. } => false,
        }
    }

    /// Returns the value if it is known.
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
