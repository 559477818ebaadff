//! A tree against a scope: names resolved, types and cardinality known, every mistake reported at once.
//! Invariant: `Checked` is made only here, so whoever holds one need not check again; a fix is applied only where it is certain.

mod node;
mod outline;
mod part;
mod source;
mod value;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base::{Code, Diagnostic, Span};
use catalog::{Args, Catalog};
use serde::Serialize;

use crate::codes;
use crate::scope::{Scope, looks_like_symbol};
pub use outline::outline;

use crate::syntax::tree::{Binding, Name, Node, Primary, Program};

/// A program whose every name and type is right: steps in the order written, each using only earlier ones.
#[derive(Debug, Clone)]
pub struct Checked {
    nodes: Vec<CheckedNode>,
    returns: Vec<Return>,
}

/// One result of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Return {
    pub label: String,
    pub node: NodeId,
}

/// An index into the nodes of one `Checked`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct NodeId(pub usize);

#[derive(Debug, Clone)]
pub struct CheckedNode {
    pub op: Op,
    pub rows: RowType,
    /// The name the program gave it.
    pub label: Option<String>,
}

/// What rows a node gives.
#[derive(Debug, Clone)]
pub struct RowType {
    pub catalog: Arc<Catalog>,
    pub entity: String,
    /// Columns in order, wire names.
    pub columns: Vec<String>,
    pub many: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// A list that the API filters.
    Query {
        capability: String,
        args: Args,
    },
    /// One row by its key.
    Get {
        capability: String,
        args: Args,
    },
    /// A declared relation from each row of the input; `args` are further filters.
    Follow {
        input: NodeId,
        relation: String,
        args: Args,
    },
    /// The entity that a field of each input row refers to.
    Deref {
        input: NodeId,
        field: String,
    },
    Project {
        input: NodeId,
        columns: Vec<String>,
    },
    Limit {
        input: NodeId,
        count: usize,
    },
}

impl Checked {
    pub fn nodes(&self) -> &[CheckedNode] {
        &self.nodes
    }

    pub fn node(&self, id: NodeId) -> &CheckedNode {
        // Only `check` makes ids, from the length of this very list.
        &self.nodes[id.0]
    }

    pub fn returns(&self) -> &[Return] {
        &self.returns
    }
}

/// The program and the notes on what was certain enough to mend; or all its mistakes.
pub fn check(scope: &Scope, program: &Program) -> Result<(Checked, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut cx = Cx::new(scope, false);
    let returns = cx.program(program);
    if cx.found.iter().any(Diagnostic::is_error) {
        return Err(cx.found);
    }
    Ok((Checked { nodes: cx.nodes, returns }, cx.found))
}

/// A taught line: the same rules, with places to fill read as values of the right type.
pub fn check_taught(scope: &Scope, program: &Program) -> Result<(), Vec<Diagnostic>> {
    let mut cx = Cx::new(scope, true);
    cx.program(program);
    let (errors, _): (Vec<_>, Vec<_>) = cx.found.into_iter().partition(Diagnostic::is_error);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// What checking one program has found so far.
struct Cx<'s> {
    scope: &'s Scope,
    taught: bool,
    nodes: Vec<CheckedNode>,
    known: HashMap<String, NodeId>,
    labels: BTreeMap<String, Option<NodeId>>,
    found: Vec<Diagnostic>,
}

impl<'s> Cx<'s> {
    fn new(scope: &'s Scope, taught: bool) -> Self {
        Self { scope, taught, nodes: Vec::new(), known: HashMap::new(), labels: BTreeMap::new(), found: Vec::new() }
    }

    fn program(&mut self, program: &Program) -> Vec<Return> {
        for binding in &program.bindings {
            self.binding(binding);
        }
        let named: Vec<Option<String>> = program.roots.iter().map(|root| self.label_of(root)).collect();
        let mut returns: Vec<Return> = Vec::new();
        for (root, name) in program.roots.iter().zip(&named) {
            match self.node(root) {
                // The same name twice is the same result.
                Some(_) if name.as_ref().is_some_and(|n| returns.iter().any(|r| &r.label == n)) => {}
                Some(node) => {
                    let label = name.clone().unwrap_or_else(|| unnamed(&named, &returns));
                    returns.push(Return { label, node });
                }
                // Whatever cannot be checked has been reported; should a path forget to, the program is refused all the same.
                None if !self.found.iter().any(Diagnostic::is_error) => {
                    self.error(codes::UNKNOWN_NAME, root.span, "this has no meaning in this session");
                }
                None => {}
            }
        }
        if program.roots.is_empty()
            && let Some(last) = program.bindings.last()
        {
            let bound = self.labels.get(&last.label.text).copied().flatten();
            returns.extend(bound.map(|node| Return { label: last.label.text.clone(), node }));
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
        if let Some(id) = node
            && self.nodes[id.0].label.is_none()
        {
            self.nodes[id.0].label = Some(label.text.clone());
        }
        // A label whose node is wrong is known all the same: using it is no second mistake.
        self.labels.insert(label.text.clone(), node);
    }

    /// The label that a root is nothing but.
    fn label_of(&self, root: &Node) -> Option<String> {
        match &root.primary {
            Primary::Name(name) if root.parts.is_empty() && name.catalog.is_none() => {
                self.labels.contains_key(&name.name.text).then(|| name.name.text.clone())
            }
            _ => None,
        }
    }

    /// Equal reads are one node, so that it does not matter whether a program names a read or writes it twice.
    fn push(&mut self, op: Op, rows: RowType) -> NodeId {
        let meaning = format!("{op:?} {} {} {:?}", rows.catalog.id, rows.entity, rows.columns);
        let next = NodeId(self.nodes.len());
        match self.known.entry(meaning) {
            Entry::Occupied(same) => *same.get(),
            Entry::Vacant(free) => {
                free.insert(next);
                self.nodes.push(CheckedNode { op, rows, label: None });
                next
            }
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    /// Says that a name was read in another case than it was written.
    fn mended(&mut self, written: &Name, read: &str) {
        if written.text != read && written.text.eq_ignore_ascii_case(read) {
            let message = format!("read `{}` as `{read}`", written.text);
            self.report(Diagnostic::note(codes::UNKNOWN_NAME, written.span, message));
        }
    }

    fn not_in_this_build(&mut self, span: Span, what: &str) {
        let message = format!(
            "{what} is not run by this version; it runs lists, gets, queries, relations, [projections] and .limit(n)"
        );
        self.error(codes::NOT_IN_THIS_BUILD, span, message);
    }
}

/// `result`, `result2`, … by its place, passing over names that other results have.
fn unnamed(named: &[Option<String>], before: &[Return]) -> String {
    let taken = |name: &str| named.iter().flatten().any(|n| n == name) || before.iter().any(|r| r.label == name);
    let numbered = (before.len() + 1..).map(|n| if n == 1 { "result".to_owned() } else { format!("result{n}") });
    let mut free = numbered.skip_while(|name| taken(name));
    // The numbers do not end before a free one is found.
    free.next().unwrap_or_default()
}
