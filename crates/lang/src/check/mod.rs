//! Checks a syntax tree against a scope: resolves names, infers types and row counts, and reports all mistakes at
//! once.
//! Invariant: only this module makes a `Checked`, so a holder of one need not check it again. A mistake is corrected
//! silently or with a note only where the meaning is certain; otherwise it is an error.

mod backward;
mod correction;
mod handles;
mod key_dots;
mod method;
mod node;
mod node_space;
mod outline;
mod part;
mod path;
mod per_row;
mod postfix;
mod row_type;
mod source;
mod template;
mod value;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{CatalogId, Code, Diagnostic, Span};
use catalog::Catalog;
use serde::Serialize;
use smol_str::SmolStr;

use crate::codes;
use crate::ir::{Shape, Step, StepDescription, StepKind};
use crate::scope::{Scope, looks_like_symbol};
use crate::syntax::tree::{Binding, MethodArgs, Name, Node, Primary, Program};
pub use correction::add_corrections;
use node_space::NodeSpace;
pub use outline::outline;
pub use row_type::{RowEntity, RowType, TypedColumn};

/// A program whose names and types are valid. Its nodes are in the order written, and a node refers only to earlier
/// nodes.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The operations of the program.
    nodes: Vec<CheckedNode>,
    /// The results, in the order written.
    returns: Vec<CheckedResult>,
    /// The catalogs that the session pinned.
    catalogs: BTreeMap<CatalogId, Arc<Catalog>>,
}

/// One result that the program returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedResult {
    /// The name of the result: a label of the program, or `result`.
    pub label: String,
    /// The node whose rows are the result.
    pub node: NodeId,
}

/// The index of a node in one `Checked`, or in the steps of one read per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct NodeId(pub usize);

/// An operation as the program wrote it, before the planner bounds or merges it. The step numbers in its `kind` are
/// node ids.
#[derive(Debug, Clone)]
pub struct CheckedNode {
    /// The operation.
    pub kind: StepKind,
    /// The type of the rows that the operation returns.
    pub rows: RowType,
    /// The last effect before this node, which must finish first.
    pub after: Option<NodeId>,
    /// The description of the operation in words. Only effects have one.
    pub description: Option<StepDescription>,
    /// The label that the program gave to the node.
    pub label: Option<SmolStr>,
}

impl Checked {
    /// Returns the operations of the program. A node id is an index in this list.
    pub fn nodes(&self) -> &[CheckedNode] {
        &self.nodes
    }

    /// Returns the results of the program, in the order written.
    pub fn returns(&self) -> &[CheckedResult] {
        &self.returns
    }

    /// Returns the catalogs that the session pinned.
    pub fn catalogs(&self) -> &BTreeMap<CatalogId, Arc<Catalog>> {
        &self.catalogs
    }
}

impl CheckedNode {
    /// Returns whether the node returns one row, many rows, or the answers of effects.
    pub fn shape(&self) -> Shape {
        match (&self.kind, self.rows.many) {
            (StepKind::Effect { .. }, _) => Shape::Effect,
            (_, true) => Shape::List,
            (_, false) => Shape::One,
        }
    }

    /// Returns the node as a step. The planner fills in the cost later.
    pub fn to_step(&self) -> Step {
        Step {
            kind: self.kind.clone(),
            of: self.rows.entity_ref(),
            columns: self.rows.columns.clone(),
            shape: self.shape(),
            class: catalog::EffectClass::Read,
            calls: 0,
            rows: 0,
            effects: 0,
            after: self.after.map(|node| node.0),
            label: self.label.clone(),
            description: self.description.clone(),
        }
    }
}

/// Checks a program. Returns the checked program and notes on corrected mistakes, or the diagnostics if there is an
/// error.
pub fn check(scope: &Scope, program: &Program) -> Result<(Checked, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut checker = Checker::new(scope, false);
    let returns = checker.check_program(program);
    if checker.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(checker.diagnostics);
    }
    let nodes = checker.spaces.into_iter().next().map(|space| space.nodes).unwrap_or_default();
    let catalogs = scope.entities.iter().map(|e| (e.catalog.id.clone(), e.catalog.clone())).collect();
    Ok((Checked { nodes, returns, catalogs }, checker.diagnostics))
}

/// Checks a taught line with the rules for programs, except that a placeholder is accepted as a value of any type.
pub fn check_taught(scope: &Scope, program: &Program) -> Result<(), Vec<Diagnostic>> {
    TaughtLines::new(scope).check(program)
}

/// Checks taught lines of one scope. Lines do not see each other's labels; only the computed row types are shared.
pub struct TaughtLines<'s> {
    scope: &'s Scope,
    /// The row types of the entities that earlier lines used.
    row_types: Vec<RowType>,
}

impl<'s> TaughtLines<'s> {
    /// Makes a checker for the taught lines of one scope.
    pub fn new(scope: &'s Scope) -> Self {
        Self { scope, row_types: Vec::new() }
    }

    /// Checks one taught line. Returns all its errors.
    pub fn check(&mut self, program: &Program) -> Result<(), Vec<Diagnostic>> {
        let mut checker = Checker::new(self.scope, true);
        checker.row_types = std::mem::take(&mut self.row_types);
        checker.check_program(program);
        self.row_types = checker.row_types;
        let mut errors = checker.diagnostics;
        errors.retain(Diagnostic::is_error);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// The state of checking one program.
struct Checker<'s> {
    scope: &'s Scope,
    /// Whether placeholders (`$` and `<<T`) are accepted as values, as in a taught line.
    allows_placeholders: bool,
    /// The nodes of the program, followed by the nodes of each read per row that is being checked, the innermost last.
    spaces: Vec<NodeSpace>,
    /// The scopes of `_`, one for each enclosing `=>`, the innermost last.
    row_scopes: Vec<RowScope>,
    /// The nesting depth of the value that is being checked. Effects are refused inside a value.
    value_depth: usize,
    /// The row types of entities that were computed so far. They are kept because a large entity has hundreds of
    /// columns.
    row_types: Vec<RowType>,
    /// The labels that were bound. A label is `None` if its node has a mistake, so that its use is not reported again.
    labels: BTreeMap<SmolStr, Option<NodeId>>,
    /// The last effect that the program has written so far.
    last_effect: Option<NodeId>,
    /// The last effect of each catalog so far. A read of that catalog comes after it.
    last_effect_of: BTreeMap<CatalogId, NodeId>,
    /// The errors and notes so far.
    diagnostics: Vec<Diagnostic>,
}

/// The rows that `_` takes its value from inside a `=>`: a node of a space. When rows are attached to them, `input`
/// becomes the node that includes the attached rows.
#[derive(Debug, Clone, Copy)]
struct RowScope {
    space: usize,
    input: NodeId,
}

/// A method call `.name(args)` as the program wrote it.
#[derive(Debug, Clone, Copy)]
struct MethodCall<'a> {
    name: &'a Name,
    args: &'a MethodArgs,
    /// The span from the dot to the closing parenthesis.
    span: Span,
    /// The span of the text before the dot, which a correction may replace.
    receiver_span: Span,
}

impl<'s> Checker<'s> {
    fn new(scope: &'s Scope, allows_placeholders: bool) -> Self {
        Self {
            scope,
            allows_placeholders,
            spaces: vec![NodeSpace::default()],
            row_scopes: Vec::new(),
            value_depth: 0,
            row_types: Vec::new(),
            labels: BTreeMap::new(),
            last_effect: None,
            last_effect_of: BTreeMap::new(),
            diagnostics: Vec::new(),
        }
    }

    /// Checks all statements and returns the results. A program without a final expression returns its last binding.
    fn check_program(&mut self, program: &Program) -> Vec<CheckedResult> {
        for binding in &program.bindings {
            self.check_binding(binding);
        }
        let root_labels: Vec<Option<String>> = program.roots.iter().map(|root| self.label_of_root(root)).collect();
        let mut returns: Vec<CheckedResult> = Vec::new();
        for (root, name) in program.roots.iter().zip(&root_labels) {
            match self.check_node(root) {
                // A label that is returned twice is one result.
                Some(_) if name.as_ref().is_some_and(|n| returns.iter().any(|r| &r.label == n)) => {}
                Some(node) => {
                    let label = name.clone().unwrap_or_else(|| default_label(&root_labels, &returns));
                    returns.push(CheckedResult { label, node });
                }
                // A node without an id was reported before. This branch refuses the program even if a code path forgot
                // its report.
                None if !self.diagnostics.iter().any(Diagnostic::is_error) => {
                    self.report_error(codes::UNKNOWN_NAME, root.span, "this has no meaning in this session");
                }
                None => {}
            }
        }
        if program.roots.is_empty()
            && let Some(last) = program.bindings.last()
        {
            let bound = self.labels.get(&last.label.text).copied().flatten();
            returns.extend(bound.map(|node| CheckedResult { label: last.label.text.to_string(), node }));
        }
        returns
    }

    /// Checks a statement `label = node` and binds the label.
    fn check_binding(&mut self, binding: &Binding) {
        let label = &binding.label;
        if looks_like_symbol(&label.text) {
            let message = format!("`{}` looks like a symbol; choose another name", label.text);
            self.report(Diagnostic::error(codes::LABEL_LOOKS_LIKE_SYMBOL, label.span, message));
        }
        if self.labels.contains_key(&label.text) {
            let message = format!("`{}` is bound twice; a name is bound once", label.text);
            self.report(Diagnostic::error(codes::DUPLICATE_LABEL, label.span, message));
        }
        let node = self.check_node(&binding.node);
        if let Some(bound) = node.and_then(|id| self.nodes_mut().get_mut(id.0))
            && bound.label.is_none()
        {
            bound.label = Some(label.text.clone());
        }
        // A label whose node has a mistake is bound too, so that its use is not reported as a second mistake.
        self.labels.insert(label.text.clone(), node);
    }

    /// Returns the label of a final expression that consists only of a label.
    fn label_of_root(&self, root: &Node) -> Option<String> {
        match &root.primary {
            Primary::Name(name) if root.parts.is_empty() && name.catalog.is_none() => {
                self.labels.contains_key(&name.name.text).then(|| name.name.text.to_string())
            }
            _ => None,
        }
    }

    /// Adds a diagnostic.
    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Adds an error without a correction.
    fn report_error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    /// Adds a note if the program wrote a name in another case than the catalog.
    fn note_case_fix(&mut self, written: &Name, read: &str) {
        if written.text != read && written.text.eq_ignore_ascii_case(read) {
            let message = format!("read `{}` as `{read}`", written.text);
            self.report(Diagnostic::note(codes::UNKNOWN_NAME, written.span, message));
        }
    }
}

/// Returns the name of a result without a label: `result`, `result2` and so on by position. Names of other results are
/// skipped.
fn default_label(root_labels: &[Option<String>], earlier: &[CheckedResult]) -> String {
    let taken = |name: &str| root_labels.iter().flatten().any(|n| n == name) || earlier.iter().any(|r| r.label == name);
    let numbered = (earlier.len() + 1..).map(|n| if n == 1 { "result".to_owned() } else { format!("result{n}") });
    let mut free = numbered.skip_while(|name| taken(name));
    // A free number exists, because the sequence of numbers is infinite.
    free.next().unwrap_or_default()
}
