//! The steps of a plan and the values in them. A step has an operation, the rows and values that it uses, and its
//! cost.
//! Invariants:
//! - A step refers only to earlier steps. A run needs only the steps and never the text of the program.
//! - A value is either known or refers to its source. Values are never built by concatenating texts.
//! - Plans are stored, and their digests are compared. Both depend on the JSON names and on the field order of
//!   `StepKind`, so neither may change.

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
    /// The entity that the rows belong to. Rows that the program computed have none.
    pub of: Option<EntityRef>,
    /// The columns of the rows. The list is shared, because most steps have the columns of their input.
    pub columns: Arc<Vec<Column>>,
    /// Whether the step returns one row, many rows, or the answers of effects.
    pub shape: Shape,
    /// Whether the step reads, writes, or has another side effect.
    pub class: EffectClass,
    /// The most API calls that the step makes.
    pub calls: usize,
    /// The most rows that the step returns.
    pub rows: usize,
    /// The most effects that the step has.
    pub effects: usize,
    /// The index of the effect that must end before this step starts. Effects run in the order written, so an effect
    /// waits for the effect before it. A read waits for the last earlier effect that could change its rows: an effect
    /// of the same catalog or, if the catalog is not known, any effect.
    pub after: Option<usize>,
    /// The label that the program gave to the step. Readers see it, but it is not part of the digest.
    pub label: Option<SmolStr>,
    /// The description of an effect in words. Readers see it, but it is not part of the digest.
    #[serde(default, rename = "says")]
    pub description: Option<StepDescription>,
}

/// The description of a step in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDescription {
    /// The operation and the entity, such as `close Ticket`.
    pub what: String,
    /// The method that undoes the effect, or `None` if the effect cannot be undone.
    pub undo: Option<String>,
}

/// A reference to an entity of a catalog, by name.
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

/// The number of rows that a step returns, as far as it is known before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    List,
    One,
    /// The answers of the API to the effects, one for each effect. An answer may be empty.
    Effect,
}

/// A reference to the capability that a step calls, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityRef {
    pub catalog: CatalogId,
    pub capability: SmolStr,
}

impl CapabilityRef {
    /// Makes the reference to a capability of a catalog.
    pub(crate) fn new(catalog: &Catalog, capability: &Capability) -> Self {
        CapabilityRef { catalog: catalog.id.clone(), capability: SmolStr::new(&capability.name) }
    }
}

/// The operation of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Reads a list or a search, filtered by the API.
    Query {
        call: CapabilityRef,
        args: Args,
        /// The most rows to read.
        limit: Option<usize>,
        /// The rows per page that the program asked for.
        page_size: Option<usize>,
        /// The fields to request, if the transport can select fields. `None` requests all fields.
        #[serde(default)]
        fields: Option<Vec<String>>,
    },
    /// Reads one row by its key, or the only row of an entity that has no key.
    Get {
        call: CapabilityRef,
        args: Args,
        /// The fields to request, if the transport can select fields. `None` requests all fields.
        #[serde(default)]
        fields: Option<Vec<String>>,
    },
    /// Follows a declared relation from each input row. `args` are additional filters.
    Follow {
        input: usize,
        relation: SmolStr,
        args: Args,
        limit: Option<usize>,
        page_size: Option<usize>,
        /// The fields to request, if the transport can select fields. `None` requests all fields.
        #[serde(default)]
        fields: Option<Vec<String>>,
    },
    /// Runs a query for each input row, to follow a relation backwards. `args` may contain parts of the row.
    #[serde(rename = "each")]
    QueryPerRow {
        input: usize,
        call: CapabilityRef,
        args: Args,
        limit: Option<usize>,
    },
    /// Reads the rows that a field of the input rows refers to.
    Deref {
        input: usize,
        field: SmolStr,
        limit: Option<usize>,
    },
    /// Returns the input rows, each with the row that `field` refers to attached, so that a path such as `owner.name`
    /// can be read. Each distinct reference is read once. Nothing is attached to a row whose field is empty.
    Attach {
        input: usize,
        field: Path,
        entity: EntityRef,
    },
    /// Returns the input rows with more fields. A get operation for each row reads the fields that the list did not
    /// return.
    Hydrate {
        input: usize,
        call: CapabilityRef,
        fields: Vec<String>,
    },
    /// Keeps the input rows that pass all tests.
    Filter {
        input: usize,
        tests: Vec<FilterTest>,
    },
    /// Sorts the input rows by a column. The sort is stable, and `null` is last in both directions.
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
    /// Returns the only input row. The step fails unless there is exactly one row.
    Singleton {
        input: usize,
    },
    /// Keeps the first row of each combination of values at these paths. If `by` is empty, whole rows are compared.
    Distinct {
        input: usize,
        by: Vec<Path>,
    },
    /// Returns one row with aggregations over all input rows.
    Aggregate {
        input: usize,
        specs: Vec<Aggregation>,
    },
    /// Returns one row with aggregations for each combination of values at the paths of `by`.
    GroupBy {
        input: usize,
        by: Vec<NamedPath>,
        specs: Vec<Aggregation>,
    },
    /// Keeps only these columns of the input rows.
    Project {
        input: usize,
        columns: Vec<NamedPath>,
    },
    /// Makes a new row from each input row.
    Derive {
        input: usize,
        object: Vec<(String, Expr)>,
    },
    /// Renders a Jinja template with all input rows and returns one row `{content}`. `names` maps the symbols in the
    /// template to column names.
    Template {
        input: usize,
        source: String,
        names: Vec<(String, String)>,
    },
    /// Makes a row of each literal. The only column is `value`, and `_` means the literal itself.
    Rows {
        items: Vec<Expr>,
    },
    /// Returns a block of text as one row `{content}`.
    Text {
        content: String,
    },
    /// Calls one effect, or one effect for each row of `each`, in the order of the rows.
    Effect {
        call: CapabilityRef,
        args: Args,
        each: Option<usize>,
    },
    /// Reads the rows of a list from the position at which an earlier run stopped.
    Page {
        handle: String,
        limit: Option<usize>,
    },
    /// In a read per row: the rows of a step of the enclosing plan or, if `step` is `None`, the current row as a
    /// single row.
    #[serde(rename = "given")]
    OuterRows {
        step: Option<usize>,
    },
    /// Returns the state of a run that continues in the background or, if `cancel` is true, asks the run to stop.
    Operation {
        handle: String,
        cancel: bool,
    },
}

/// A test `path op value` on rows that have been read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilterTest {
    pub path: Path,
    pub op: ComparisonOp,
    pub value: Expr,
    /// The type of the values at the path. It determines how the values are compared.
    #[serde(rename = "type")]
    pub kind: Type,
}

/// The operator of a filter test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonOp {
    /// The values are equal. A list passes if it contains the value.
    Eq,
    /// The values differ. A list passes if it does not contain the value.
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// The value contains the text, ignoring case.
    Like,
}

impl ComparisonOp {
    /// Returns whether the operator can compare values of this type.
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

/// A result column that is read from a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPath {
    pub name: SmolStr,
    pub path: Path,
}

/// A count, a sum or another aggregate, with the name of its column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggregation {
    pub name: SmolStr,
    pub function: Function,
    /// The path of the aggregated values. A count of rows has none.
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
    /// Returns the step whose rows this step processes, or `None` for a source.
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

    /// Returns every earlier step whose result this step needs: its input, and the sources of its values.
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

    /// Lists the values in a step. The order is the same for equal steps, however the program was written.
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

    /// Returns whether the step calls the API when it runs.
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

/// The arguments of a call, by parameter name.
pub type Args = BTreeMap<SmolStr, Expr>;

/// The names that lead from a row to a value, such as `["owner", "name"]`. If a name is a reference, the next name is
/// a field of the attached row.
pub type Path = Vec<SmolStr>;

/// A value of a step: a known value, or the source from which a run computes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    /// A value that is known at planning time.
    Value(Value),
    /// A part of the only row of an earlier step or, if `many` is true, the list of that part of all its rows.
    Step {
        step: usize,
        take: RowPart,
        many: bool,
    },
    /// A part of the current row, which is the row of the nearest `=>` or the row that a relation starts from.
    Row(RowPart),
    List(Vec<Expr>),
    Object(Vec<(String, Expr)>),
    /// A Jinja template that is rendered to text with the current row, named `_`. `names` maps the symbols in the
    /// template to column names.
    Template {
        source: String,
        names: Vec<(String, String)>,
    },
    /// A read for the current row. Its steps have their own numbers, and the value is taken from the last step. `Row`
    /// in these steps is the current row of the enclosing plan.
    Read {
        steps: Vec<Step>,
        take: RowPart,
    },
}

/// The part of a row that a value is taken from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowPart {
    /// The value at a path. The empty path is the whole row or, for a literal row, the literal.
    Path(Path),
    /// The reference to the row, which is the key of its entity.
    Key(EntityRef),
}

impl Expr {
    /// Adds the steps of the plan that the value is taken from.
    pub fn collect_steps(&self, referenced: &mut Vec<usize>) {
        match self {
            Expr::Step { step, .. } => referenced.push(*step),
            Expr::List(items) => items.iter().for_each(|item| item.collect_steps(referenced)),
            Expr::Object(pairs) => pairs.iter().for_each(|(_, item)| item.collect_steps(referenced)),
            // The steps of an inner read have their own numbers. Only `OuterRows` refers to steps of the enclosing
            // plan.
            Expr::Read { steps, .. } => referenced.extend(steps.iter().filter_map(|inner| match inner.kind {
                StepKind::OuterRows { step } => step,
                _ => None,
            })),
            Expr::Value(_) | Expr::Row(_) | Expr::Template { .. } => {}
        }
    }

    /// Returns whether the API is called to compute the value.
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

    /// Returns the value if it is known at planning time.
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
