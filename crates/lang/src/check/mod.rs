//! A tree against a scope: names resolved, types and cardinality known, every mistake reported at once.
//! Invariant: `Checked` is made only here, so whoever holds one need not check again; a fix is applied only where it is certain.

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
use crate::syntax::tree::{self, Binding, Name, Node, Primary, Program};
pub use correction::add_corrections;
use node_space::NodeSpace;
pub use outline::outline;
pub use row_type::{RowEntity, RowType, TypedColumn};

/// A program whose every name and type is right: nodes in the order written, each using only earlier ones.
#[derive(Debug, Clone)]
pub struct Checked {
    nodes: Vec<CheckedNode>,
    returns: Vec<CheckedResult>,
    catalogs: BTreeMap<CatalogId, Arc<Catalog>>,
}

/// One result of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedResult {
    pub label: String,
    pub node: NodeId,
}

/// An index into the nodes of one `Checked`, or of one read for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct NodeId(pub usize);

/// A step as written: not yet bounded, pushed down or merged with what stands around it. Steps that it names are nodes.
#[derive(Debug, Clone)]
pub struct CheckedNode {
    pub kind: StepKind,
    pub rows: RowType,
    /// The effect that was written before it and matters to it.
    pub after: Option<NodeId>,
    pub description: Option<StepDescription>,
    /// The name the program gave it.
    pub label: Option<SmolStr>,
}

impl Checked {
    pub fn nodes(&self) -> &[CheckedNode] {
        &self.nodes
    }

    pub fn returns(&self) -> &[CheckedResult] {
        &self.returns
    }

    /// The catalogs that the session pinned.
    pub fn catalogs(&self) -> &BTreeMap<CatalogId, Arc<Catalog>> {
        &self.catalogs
    }
}

impl CheckedNode {
    pub fn shape(&self) -> Shape {
        match (&self.kind, self.rows.many) {
            (StepKind::Effect { .. }, _) => Shape::Effect,
            (_, true) => Shape::List,
            (_, false) => Shape::One,
        }
    }

    /// As a step whose cost is not known yet.
    pub fn step(&self) -> Step {
        Step {
            kind: self.kind.clone(),
            of: self.rows.entity_of(),
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

/// The program and the notes on what was certain enough to mend; or all its mistakes.
pub fn check(scope: &Scope, program: &Program) -> Result<(Checked, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut cx = Checker::new(scope, false);
    let returns = cx.check_program(program);
    if cx.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(cx.diagnostics);
    }
    let nodes = cx.spaces.into_iter().next().map(|space| space.nodes).unwrap_or_default();
    let catalogs = scope.entities.iter().map(|e| (e.catalog.id.clone(), e.catalog.clone())).collect();
    Ok((Checked { nodes, returns, catalogs }, cx.diagnostics))
}

/// A taught line: the same rules, with places to fill read as values of the right type.
pub fn check_taught(scope: &Scope, program: &Program) -> Result<(), Vec<Diagnostic>> {
    TaughtLines::new(scope).check(program)
}

/// Taught lines of one scope, one after another. Each is checked by itself; only what an entity's rows are is worked out once.
pub struct TaughtLines<'s> {
    scope: &'s Scope,
    row_types: EntityRowTypes,
}

impl<'s> TaughtLines<'s> {
    pub fn new(scope: &'s Scope) -> Self {
        Self { scope, row_types: Vec::new() }
    }

    pub fn check(&mut self, program: &Program) -> Result<(), Vec<Diagnostic>> {
        let mut cx = Checker::new(self.scope, true);
        cx.row_types = std::mem::take(&mut self.row_types);
        cx.check_program(program);
        self.row_types = cx.row_types;
        let mut errors = cx.diagnostics;
        errors.retain(Diagnostic::is_error);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// Whole rows of the entities met so far, the last met last.
type EntityRowTypes = Vec<(CatalogId, SmolStr, RowType)>;

/// What checking one program has found so far.
struct Checker<'s> {
    scope: &'s Scope,
    allows_placeholders: bool,
    /// The program's nodes, and above them those of the reads for a row that are being checked.
    spaces: Vec<NodeSpace>,
    /// What `_` is, innermost last.
    row_scopes: Vec<RowScope>,
    /// How many values are being read, one inside the other: no effect stands in one.
    value_depth: usize,
    row_types: EntityRowTypes,
    labels: BTreeMap<SmolStr, Option<NodeId>>,
    last_effect: Option<NodeId>,
    last_effect_of: BTreeMap<CatalogId, NodeId>,
    diagnostics: Vec<Diagnostic>,
}

/// The rows of a `=>`: a node of a space. It moves on when something is attached to the rows.
#[derive(Debug, Clone, Copy)]
struct RowScope {
    space: usize,
    input: NodeId,
}

/// A method call `.name(args)` as the program wrote it.
#[derive(Debug, Clone, Copy)]
struct MethodCall<'a> {
    name: &'a Name,
    args: &'a tree::Args,
    /// From its dot to its closing bracket.
    span: Span,
    /// The text before the dot, which a correction may replace.
    receiver: Span,
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

    fn check_program(&mut self, program: &Program) -> Vec<CheckedResult> {
        for binding in &program.bindings {
            self.binding(binding);
        }
        let named: Vec<Option<String>> = program.roots.iter().map(|root| self.label_of(root)).collect();
        let mut returns: Vec<CheckedResult> = Vec::new();
        for (root, name) in program.roots.iter().zip(&named) {
            match self.node(root) {
                // The same name twice is the same result.
                Some(_) if name.as_ref().is_some_and(|n| returns.iter().any(|r| &r.label == n)) => {}
                Some(node) => {
                    let label = name.clone().unwrap_or_else(|| default_label(&named, &returns));
                    returns.push(CheckedResult { label, node });
                }
                // Whatever cannot be checked has been reported; should a path forget to, the program is refused all the same.
                None if !self.diagnostics.iter().any(Diagnostic::is_error) => {
                    self.error(codes::UNKNOWN_NAME, root.span, "this has no meaning in this session");
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

    fn binding(&mut self, binding: &Binding) {
        let label = &binding.label;
        if looks_like_symbol(&label.text) {
            let message = format!("`{}` looks like a symbol; choose another name", label.text);
            self.report(Diagnostic::error(codes::LABEL_LOOKS_LIKE_SYMBOL, label.span, message));
        }
        if self.labels.contains_key(&label.text) {
            let message = format!("`{}` is bound twice; a name is bound once", label.text);
            self.report(Diagnostic::error(codes::DUPLICATE_LABEL, label.span, message));
        }
        let node = self.node(&binding.node);
        if let Some(named) = node.and_then(|id| self.nodes_mut().get_mut(id.0))
            && named.label.is_none()
        {
            named.label = Some(label.text.clone());
        }
        // A label whose node is wrong is known all the same: using it is no second mistake.
        self.labels.insert(label.text.clone(), node);
    }

    /// The label that a root is nothing but.
    fn label_of(&self, root: &Node) -> Option<String> {
        match &root.primary {
            Primary::Name(name) if root.parts.is_empty() && name.catalog.is_none() => {
                self.labels.contains_key(&name.name.text).then(|| name.name.text.to_string())
            }
            _ => None,
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    /// Says that a name was read in another case than it was written.
    fn note_case_fix(&mut self, written: &Name, read: &str) {
        if written.text != read && written.text.eq_ignore_ascii_case(read) {
            let message = format!("read `{}` as `{read}`", written.text);
            self.report(Diagnostic::note(codes::UNKNOWN_NAME, written.span, message));
        }
    }
}

/// `result`, `result2`, … by its place, passing over names that other results have.
fn default_label(named: &[Option<String>], before: &[CheckedResult]) -> String {
    let taken = |name: &str| named.iter().flatten().any(|n| n == name) || before.iter().any(|r| r.label == name);
    let numbered = (before.len() + 1..).map(|n| if n == 1 { "result".to_owned() } else { format!("result{n}") });
    let mut free = numbered.skip_while(|name| taken(name));
    // The numbers do not end before a free one is found.
    free.next().unwrap_or_default()
}
