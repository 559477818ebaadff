//! What is applied to rows: relations, fields, projections, `.limit`.
//! Invariant: a relation is followed only to an entity that the session was taught.

use base::{Diagnostic, near};
use catalog::{Args, Type, Via};

use super::source::rows_of;
use super::{Cx, NodeId, Op, RowType};
use crate::codes;
use crate::scope::{Alphabet, Exposed, looks_like_symbol};
use crate::syntax::tree::{Name, Part, PartKind, Path, Pred, Value, ValueKind};

impl<'s> Cx<'s> {
    pub(super) fn part(&mut self, input: NodeId, part: &Part) -> Option<NodeId> {
        match &part.kind {
            PartKind::Follow { name, preds } => self.follow(input, name, preds.as_deref()),
            PartKind::Project { fields } => self.project(input, fields),
            PartKind::Limit { count } => self.limit(input, count),
            other => {
                self.unsupported_part(other, part.span);
                None
            }
        }
    }

    /// The exposed entity of a node's rows. Rows are only ever of exposed entities.
    fn exposed_of(&self, node: NodeId) -> Option<&'s Exposed> {
        let rows = &self.nodes.get(node.0)?.rows;
        self.scope.exposed(&rows.catalog, &rows.entity)
    }

    fn follow(&mut self, input: NodeId, name: &Name, preds: Option<&[Pred]>) -> Option<NodeId> {
        let exposed = self.exposed_of(input)?;
        let from_many = self.nodes[input.0].rows.many;
        if let Some(relation) = self.scope.relation(exposed, &name.text) {
            let target = self.scope.exposed(&exposed.catalog, &relation.target)?;
            self.mended(name, &relation.name);
            self.needed(input, exposed, relation, name)?;
            let alphabet = if looks_like_symbol(&name.text) { Alphabet::Symbols } else { Alphabet::Names };
            let args = self.relation_args(relation, target, preds, alphabet)?;
            let rows = rows_of(target, relation.many || from_many);
            return Some(self.push(Op::Follow { input, relation: relation.name.clone(), args }, rows));
        }
        let Some(field) = self.scope.field(exposed, &name.text) else {
            self.unknown_step(exposed, name);
            return None;
        };
        if !self.nodes[input.0].rows.columns.contains(&field.name) {
            let message = format!("`{}` was projected away before this", name.text);
            self.error(codes::UNKNOWN_FIELD, name.span, message);
            return None;
        }
        self.mended(name, &field.name);
        match &field.kind {
            Type::Ref(target) => {
                let Some(target) = self.scope.exposed(&exposed.catalog, target) else {
                    let message = format!(
                        "`{}` refers to {target}, which this session was not taught; add it to the seeds",
                        name.text
                    );
                    let copy = format!("{{\"api\": \"{}\", \"entity\": \"{target}\"}}", exposed.catalog.id);
                    self.report(Diagnostic::error(codes::NOT_TAUGHT, name.span, message).with_copy(copy));
                    return None;
                };
                Some(self.push(Op::Deref { input, field: field.name.clone() }, rows_of(target, from_many)))
            }
            // A plain field of rows is those rows with that one column.
            _ => Some(self.project_to(input, vec![field.name.clone()])),
        }
    }

    /// A relation starts from the parent's key or from a field: a projection before it must have kept them.
    fn needed(&mut self, input: NodeId, exposed: &Exposed, relation: &catalog::Relation, name: &Name) -> Option<()> {
        let key = exposed.definition().map(|e| e.key.clone()).unwrap_or_default();
        let needed: Vec<String> = match &relation.via {
            Via::Key { field } => vec![field.clone()],
            // A projection leaves embedded rows out, as it does every column that it does not name.
            Via::Embedded { .. } => vec![relation.name.clone()],
            Via::Call { fill, .. } => {
                let named = fill.values().flatten().cloned();
                let whole = if fill.values().any(Option::is_none) { key } else { Vec::new() };
                named.chain(whole).collect()
            }
        };
        // Embedded rows travel with a row that was not projected, without being a column of it.
        let whole = exposed.definition().is_some_and(|e| e.fields.len() == self.nodes[input.0].rows.columns.len());
        let embedded = matches!(relation.via, Via::Embedded { .. });
        let columns = &self.nodes[input.0].rows.columns;
        let has = |name: &String| columns.contains(name) || (embedded && whole);
        let lost: Vec<String> = needed.into_iter().filter(|n| !has(n)).collect();
        if lost.is_empty() {
            return Some(());
        }
        let message =
            format!("`{}` starts from {}, which the projection before it left out", name.text, lost.join(", "));
        self.error(codes::UNKNOWN_FIELD, name.span, message);
        None
    }

    fn relation_args(
        &mut self,
        relation: &catalog::Relation,
        target: &Exposed,
        preds: Option<&[Pred]>,
        alphabet: Alphabet,
    ) -> Option<Args> {
        let preds = preds.unwrap_or_default();
        let params: Vec<&catalog::Param> = match &relation.via {
            Via::Call { capability, fill } => target
                .catalog
                .capability(capability)
                .map(|c| c.params.values().filter(|p| !fill.contains_key(&p.name)).collect())
                .unwrap_or_default(),
            Via::Key { .. } | Via::Embedded { .. } => Vec::new(),
        };
        self.filters(target, &params, preds, alphabet)
    }

    fn unknown_step(&mut self, exposed: &Exposed, name: &Name) {
        let symbolic = looks_like_symbol(&name.text);
        let hidden = exposed.definition().and_then(|e| e.relations.get(&name.text));
        if let Some(relation) = hidden {
            let message = format!(
                "`{}` leads to {}, which this session was not taught; add it to the seeds",
                name.text, relation.target
            );
            let copy = format!("{{\"api\": \"{}\", \"entity\": \"{}\"}}", exposed.catalog.id, relation.target);
            self.report(Diagnostic::error(codes::NOT_TAUGHT, name.span, message).with_copy(copy));
            return;
        }
        let mut known: Vec<String> =
            exposed.relations.iter().map(|(s, r)| if symbolic { s.clone() } else { r.clone() }).collect();
        if let Some(entity) = exposed.definition() {
            let alphabet = if symbolic { Alphabet::Symbols } else { Alphabet::Names };
            known.extend(entity.fields.keys().map(|f| self.scope.slot_in(&exposed.catalog, f, alphabet)));
        }
        let shown = if symbolic { &exposed.symbol } else { &exposed.entity };
        let message = format!("no relation or field `{}` on {shown}", name.text);
        let alternatives = near(&name.text, known.iter().map(String::as_str));
        self.report(Diagnostic::error(codes::UNKNOWN_RELATION, name.span, message).with_alternatives(alternatives));
    }

    fn project(&mut self, input: NodeId, fields: &[Path]) -> Option<NodeId> {
        let exposed = self.exposed_of(input)?;
        let mut columns: Vec<String> = Vec::new();
        let mut right = true;
        for path in fields {
            let [name] = path.names.as_slice() else {
                let span = path.names.first().map(|n| n.span).unwrap_or_default();
                self.not_in_this_build(span, "a path in a projection");
                right = false;
                continue;
            };
            match self.scope.field(exposed, &name.text).filter(|f| self.nodes[input.0].rows.columns.contains(&f.name)) {
                Some(field) if columns.contains(&field.name) => {}
                Some(field) => {
                    self.mended(name, &field.name);
                    columns.push(field.name.clone());
                }
                None => {
                    self.unknown_field(exposed, input, name);
                    right = false;
                }
            }
        }
        right.then(|| self.project_to(input, columns))
    }

    fn project_to(&mut self, input: NodeId, columns: Vec<String>) -> NodeId {
        let rows = RowType { columns: columns.clone(), ..self.nodes[input.0].rows.clone() };
        // Some columns of some columns are some columns.
        let input = if let Op::Project { input: below, .. } = self.nodes[input.0].op { below } else { input };
        self.push(Op::Project { input, columns }, rows)
    }

    fn unknown_field(&mut self, exposed: &Exposed, input: NodeId, name: &Name) {
        let alphabet = if looks_like_symbol(&name.text) { Alphabet::Symbols } else { Alphabet::Names };
        let columns = &self.nodes[input.0].rows.columns;
        let known: Vec<String> = columns.iter().map(|c| self.scope.slot_in(&exposed.catalog, c, alphabet)).collect();
        let message = format!("no field `{}` on {}", name.text, exposed.name_in(alphabet));
        let alternatives = near(&name.text, known.iter().map(String::as_str));
        self.report(Diagnostic::error(codes::UNKNOWN_FIELD, name.span, message).with_alternatives(alternatives));
    }

    fn limit(&mut self, input: NodeId, count: &Value) -> Option<NodeId> {
        let number = match &count.kind {
            ValueKind::Number(text) => text.parse::<usize>().ok().filter(|n| *n > 0),
            ValueKind::Hole if self.taught => Some(1),
            _ => None,
        };
        let Some(number) = number else {
            let diagnostic = Diagnostic::error(codes::BAD_LIMIT, count.span, "a limit is a whole number from 1");
            self.report(diagnostic.with_copy(".limit(10)"));
            return None;
        };
        let rows = self.nodes[input.0].rows.clone();
        Some(self.push(Op::Limit { input, count: number }, rows))
    }
}
