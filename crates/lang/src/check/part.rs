//! What is applied to rows: relations, fields, projections, limits; the rest is next door.
//! Invariant: a relation is followed only to an entity that the session was taught.

use base::{Diagnostic, Edit, Span, near};
use catalog::{Relation, Type, Via};
use smol_str::SmolStr;

use super::hint::{Braces, renamed};
use super::method::Written;
use super::path::alphabet_of;
use super::{Col, Cx, NodeId, RowType};
use crate::codes;
use crate::ir::{Args, NamedPath, StepKind};
use crate::scope::{Alphabet, Exposed};
use crate::syntax::tree::{Name, Part, PartKind, Path, Pred, Value, ValueKind};

impl<'s> Cx<'s> {
    /// `start` is where the node begins.
    pub(super) fn part(&mut self, input: NodeId, part: &Part, start: u32) -> Option<NodeId> {
        match &part.kind {
            PartKind::Follow { name, preds } => self.follow(input, (name, preds.as_deref()), part.span),
            PartKind::Back { entity, preds } => self.back(input, entity, preds, part.span),
            PartKind::Method { name, args } => {
                let receiver = Span { start, end: part.span.start };
                self.method_of_rows(input, Written { name, args, span: part.span, receiver })
            }
            PartKind::Braces { .. } => {
                let message = "braces belong to an entity or a relation; rows are filtered with `.filter{…}`";
                let fix = Edit::insert(part.span.start, ".filter");
                self.report(Diagnostic::error(codes::FILTER_ON_ROWS, part.span, message).with_fix([fix]));
                None
            }
            PartKind::Limit { count } => self.limit(input, count),
            PartKind::PageSize { count } => self.page_size(input, count, part.span),
            PartKind::Sort { field, descending } => self.sort(input, field, *descending),
            PartKind::Filter { preds } => self.filter(input, preds),
            PartKind::Aggregate { specs } => self.aggregate(input, specs),
            PartKind::GroupBy { fields, specs } => self.group_by(input, fields, specs),
            PartKind::Distinct { fields } => self.distinct(input, fields),
            PartKind::First => Some(self.one(input, StepKind::First { input: input.0 })),
            PartKind::Last => Some(self.one(input, StepKind::Last { input: input.0 })),
            PartKind::Singleton => Some(self.one(input, StepKind::Singleton { input: input.0 })),
            PartKind::Project { fields } => self.project(input, fields),
            PartKind::Derive { object } => self.derive(input, object),
            PartKind::Each { effect } => self.each_row(input, effect),
            PartKind::Template(block) => self.render(input, block),
        }
    }

    /// The first, the last or the only row; of one row it is that row.
    fn one(&mut self, input: NodeId, kind: StepKind) -> NodeId {
        let rows = self.rows(input).clone();
        if !rows.many && !rows.open {
            return input;
        }
        self.push(kind, rows.one())
    }

    /// The exposed entity of a node's rows.
    pub(super) fn exposed_of(&self, rows: &RowType) -> Option<&'s Exposed> {
        let of = rows.of.as_ref()?;
        self.scope.exposed(&of.catalog, &of.entity)
    }

    fn follow(&mut self, input: NodeId, (name, preds): (&Name, Option<&[Pred]>), part: Span) -> Option<NodeId> {
        let rows = self.rows(input).clone();
        let exposed = self.exposed_of(&rows);
        let relation = exposed.and_then(|e| Some((e, self.scope.relation(e, &name.text)?)));
        if let Some((exposed, relation)) = relation {
            return self.follow_relation(input, exposed, relation, (name, preds, part));
        }
        let leads = match self.lookup(&rows, std::slice::from_ref(name)) {
            Ok(leads) => leads,
            Err(lost) => {
                match exposed.filter(|e| self.scope.field(e, &name.text).is_none()) {
                    Some(exposed) => self.unknown_step(exposed, &rows, (name, preds)),
                    None => self.lost(&rows, std::slice::from_ref(name), &lost),
                }
                return None;
            }
        };
        if preds.is_some() {
            let message =
                format!("`{}` is a field and takes no filters; rows are filtered with `.filter{{…}}`", name.text);
            let fix = Edit::insert(name.span.end, ".filter");
            self.report(Diagnostic::error(codes::FILTER_ON_ROWS, name.span, message).with_fix([fix]));
            return None;
        }
        for wire in &leads.wire {
            self.mended(name, wire);
        }
        let (refers, many) = match &leads.kind {
            // A list of references leads to each of them.
            Type::Array(of) => (of.as_ref(), true),
            kind => (kind, rows.many),
        };
        match (refers, &leads.home) {
            (Type::Ref(target), Some(home)) => {
                if self.scope.exposed(home, target).is_none() {
                    self.untaught(name, "refers to", home, target);
                    return None;
                }
                let target_rows = self.rows_of(home, target, many);
                let kind = StepKind::Deref { input: input.0, field: leads.path.join(".").into(), limit: None };
                Some(self.push(kind, target_rows))
            }
            // A plain field of rows is those rows with that one column.
            _ => Some(self.project_to(input, vec![(leads.name(), leads)])),
        }
    }

    fn follow_relation(
        &mut self,
        input: NodeId,
        exposed: &'s Exposed,
        relation: &Relation,
        (name, preds, part): (&Name, Option<&[Pred]>, Span),
    ) -> Option<NodeId> {
        let target = self.scope.exposed(&exposed.catalog, &relation.target)?;
        self.mended(name, &relation.name);
        self.needed(input, exposed, relation, name)?;
        let written = (preds.unwrap_or_default(), Braces { head: name.span.end, end: part.end });
        let args = self.relation_args(relation, target, written, alphabet_of(&name.text))?;
        let many = relation.many || self.rows(input).many;
        let rows = match &relation.via {
            Via::Call { capability, .. } => match target.catalog.capability(capability) {
                Some(capability) => self.answered(&target.catalog, capability, many),
                None => self.rows_of(&target.catalog, &target.entity, many),
            },
            Via::Key { .. } | Via::Embedded { .. } => self.rows_of(&target.catalog, &target.entity, many),
        };
        let (input, relation) = (input.0, SmolStr::new(&relation.name));
        Some(self.push(StepKind::Follow { input, relation, args, limit: None, page_size: None, fields: None }, rows))
    }

    /// A relation starts from the parent's key or from a field: a projection before it must have kept them.
    fn needed(&mut self, input: NodeId, exposed: &Exposed, relation: &Relation, name: &Name) -> Option<()> {
        let rows = self.rows(input);
        if rows.beyond {
            return Some(());
        }
        let whole = exposed.definition().is_some_and(|e| e.fields.keys().all(|f| rows.has(f)));
        // Embedded rows travel with a row that was not projected, without being a column of it.
        let has = |n: &str| rows.has(n) || (whole && matches!(relation.via, Via::Embedded { .. }));
        let needed = crate::ir::relation_needs(exposed.definition(), relation);
        let lost: Vec<&str> = needed.filter(|n| !has(n)).collect();
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
        relation: &Relation,
        target: &Exposed,
        written: (&[Pred], Braces),
        alphabet: Alphabet,
    ) -> Option<Args> {
        let params: Vec<&catalog::Param> = match &relation.via {
            Via::Call { capability, fill } => target
                .catalog
                .capability(capability)
                .map(|c| c.params.values().filter(|p| !fill.contains_key(&p.name)).collect())
                .unwrap_or_default(),
            Via::Key { .. } | Via::Embedded { .. } => Vec::new(),
        };
        self.filters(target, &params, written, alphabet)
    }

    fn unknown_step(&mut self, exposed: &Exposed, rows: &RowType, (name, preds): (&Name, Option<&[Pred]>)) {
        let hidden = exposed.definition().and_then(|e| e.relations.get(name.text.as_str()));
        if let Some(relation) = hidden {
            self.untaught(name, "leads to", &exposed.catalog, &relation.target);
            return;
        }
        let alphabet = alphabet_of(&name.text);
        if let Some(method) = self.scope.method(exposed, &name.text) {
            self.bare_method(exposed, method, name);
            return;
        }
        if preds.is_none() && self.foreign_field(rows, name) {
            return;
        }
        let mut known: Vec<String> = exposed
            .relations
            .iter()
            .map(|(symbol, wire)| if alphabet == Alphabet::Symbols { symbol.clone() } else { wire.clone() })
            .collect();
        known.extend(rows.names().iter().map(|f| self.scope.slot_in(&exposed.catalog, f, alphabet)));
        let message = format!("no relation or field `{}` on {}", name.text, exposed.name_in(alphabet));
        let alternatives = near(&name.text, known.iter().map(String::as_str));
        let meant = renamed(name, known.iter().map(String::as_str));
        let filters = ["where", "find", "select", "query"].contains(&name.text.as_str()) && preds.is_some();
        let fix = if filters { Some(Edit::replace(name.span, "filter")) } else { meant };
        let diagnostic = Diagnostic::error(codes::UNKNOWN_RELATION, name.span, message);
        self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
    }

    fn project(&mut self, input: NodeId, fields: &[Path]) -> Option<NodeId> {
        let mut columns: Vec<(SmolStr, super::path::Leads)> = Vec::new();
        let mut right = true;
        for path in fields {
            match self.path_of(input, path) {
                Some(leads) if columns.iter().any(|(name, _)| *name == leads.name()) => {}
                Some(leads) => columns.push((leads.name(), leads)),
                None => right = false,
            }
        }
        right.then(|| self.project_to(input, columns))
    }

    pub(super) fn project_to(&mut self, input: NodeId, columns: Vec<(SmolStr, super::path::Leads)>) -> NodeId {
        let before = self.rows(input).clone();
        let made = columns.iter().map(|(name, leads)| Col {
            name: name.clone(),
            kind: leads.kind.clone(),
            home: leads.home.clone(),
        });
        let rows = RowType { of: before.of.clone(), open: before.open, ..RowType::made(made.collect(), before.many) };
        // Some columns of some columns are some columns.
        let whole = |leads: &super::path::Leads| leads.path.len() == 1 && leads.attach.is_empty();
        if let StepKind::Project { input: below, columns: kept } = &self.at(input).kind
            && columns.iter().all(|(_, leads)| whole(leads))
        {
            let below = *below;
            let path = |name: &str| kept.iter().find(|k| k.name == name).map(|k| k.path.clone());
            let picked: Option<Vec<NamedPath>> = columns
                .iter()
                .map(|(name, leads)| Some(NamedPath { name: name.clone(), path: path(leads.path.first()?)? }))
                .collect();
            if let Some(columns) = picked {
                return self.push(StepKind::Project { input: below, columns }, rows);
            }
        }
        let wanted: Vec<_> = columns.iter().flat_map(|(_, leads)| leads.attach.clone()).collect();
        let here = self.here();
        let input = self.attach(here, input, &wanted);
        let columns = columns.into_iter().map(|(name, leads)| NamedPath { name, path: leads.path }).collect();
        self.push(StepKind::Project { input: input.0, columns }, rows)
    }

    fn limit(&mut self, input: NodeId, count: &Value) -> Option<NodeId> {
        let count = self.count(count)?;
        // `page(s0_pg2).limit(50)` is `page(s0_pg2, limit=50)`.
        if let StepKind::Page { handle, limit } = &self.at(input).kind {
            let (handle, limit) = (handle.clone(), *limit);
            let limit = Some(limit.map_or(count, |limit| limit.min(count)));
            let rows = self.rows(input).clone();
            return Some(self.push(StepKind::Page { handle, limit }, rows));
        }
        let rows = self.rows(input).clone();
        Some(self.push(StepKind::Limit { input: input.0, count }, rows))
    }

    /// A whole number from 1.
    pub(super) fn count(&mut self, count: &Value) -> Option<usize> {
        let number = match &count.kind {
            ValueKind::Number(text) => text.parse::<usize>().ok().filter(|n| *n > 0),
            ValueKind::Hole if self.taught => Some(1),
            _ => None,
        };
        if number.is_none() {
            let diagnostic = Diagnostic::error(codes::BAD_LIMIT, count.span, "a limit is a whole number from 1");
            self.report(diagnostic.with_fix([Edit::replace(count.span, "10")]));
        }
        number
    }
}
