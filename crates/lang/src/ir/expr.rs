//! A value of a plan: known already, or a typed hole that is filled from an earlier result or from the row at hand.
//! Invariant: a hole says where its value comes from, never how it would be written: text is not put into text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use super::step::{EntityRef, Step, StepKind};

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
