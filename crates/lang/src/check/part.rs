//! Checks the parts of an expression: relations, fields, projections and limits. `apply_part` lists all kinds of
//! parts; the other kinds have their own files.
//! Invariant: a relation is followed only to an entity that the session was taught.

use base::{Diagnostic, Edit, Span, similar_names};
use catalog::{Relation, Type, Via};
use smol_str::SmolStr;

use super::correction::{WrittenFilters, rename_edit};
use super::path::ResolvedPath;
use super::{Checker, MethodCall, NodeId, RowType, TypedColumn};
use crate::codes;
use crate::ir::{Args, NamedPath, StepKind};
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{DottedName, Name, Part, PartKind, Pred, Value, ValueKind};

impl<'s> Checker<'s> {
    /// Applies a part to the rows of `input`. `start` is the offset at which the whole expression begins.
    pub(super) fn apply_part(&mut self, input: NodeId, part: &Part, start: u32) -> Option<NodeId> {
        match &part.kind {
            PartKind::Follow { name, preds } => self.check_follow(input, name, preds.as_deref(), part.span),
            PartKind::Back { entity, preds } => self.check_backward_step(input, entity, preds, part.span),
            PartKind::Method { name, args } => {
                let receiver_span = Span { start, end: part.span.start };
                self.check_method_of_rows(input, MethodCall { name, args, span: part.span, receiver_span })
            }
            PartKind::Braces { .. } => {
                let message = "braces belong to an entity or a relation; rows are filtered with `.filter{…}`";
                let fix = Edit::insert(part.span.start, ".filter");
                self.report(Diagnostic::error(codes::FILTER_ON_ROWS, part.span, message).with_fix([fix]));
                None
            }
            PartKind::Limit { count } => self.check_limit(input, count),
            PartKind::PageSize { count } => self.check_page_size(input, count, part.span),
            PartKind::Sort { field, descending } => self.check_sort(input, field, *descending),
            PartKind::Filter { preds } => self.check_filter(input, preds),
            PartKind::Aggregate { specs } => self.check_aggregate(input, specs),
            PartKind::GroupBy { fields, specs } => self.check_group_by(input, fields, specs),
            PartKind::Distinct { fields } => self.check_distinct(input, fields),
            PartKind::First => Some(self.check_pick_row(input, StepKind::First { input: input.0 })),
            PartKind::Last => Some(self.check_pick_row(input, StepKind::Last { input: input.0 })),
            PartKind::Singleton => Some(self.check_pick_row(input, StepKind::Singleton { input: input.0 })),
            PartKind::Project { fields } => self.check_projection(input, fields),
            PartKind::Derive { object } => self.check_derive(input, object),
            PartKind::Each { effect } => self.check_each_row(input, effect),
            PartKind::Template(block) => self.check_template_part(input, block),
        }
    }

    /// Checks `.first()`, `.last()` and `.singleton()`. Applied to a single row, each returns that row.
    fn check_pick_row(&mut self, input: NodeId, kind: StepKind) -> NodeId {
        let rows = self.rows(input).clone();
        if !rows.many && !rows.has_unknown_columns {
            return input;
        }
        self.add_node(kind, rows.single_row())
    }

    /// Returns the taught entity that the rows belong to.
    pub(super) fn exposed_entity_of(&self, rows: &RowType) -> Option<&'s ExposedEntity> {
        let of = rows.entity.as_ref()?;
        self.scope.find_exposed(&of.catalog, &of.entity)
    }

    /// Checks `.name` and `.name{…}`, where the name is a relation, a reference or a field. `span` is the span of the
    /// part.
    fn check_follow(&mut self, input: NodeId, name: &Name, preds: Option<&[Pred]>, span: Span) -> Option<NodeId> {
        let rows = self.rows(input).clone();
        let exposed = self.exposed_entity_of(&rows);
        let relation = exposed.and_then(|e| Some((e, self.scope.relation(e, &name.text)?)));
        if let Some((exposed, relation)) = relation {
            let filters = WrittenFilters { preds: preds.unwrap_or_default(), start: name.span.end, end: span.end };
            return self.check_relation(input, exposed, relation, name, filters);
        }
        let resolved = match self.lookup_path(&rows, std::slice::from_ref(name)) {
            Ok(resolved) => resolved,
            Err(error) => {
                match exposed.filter(|e| self.scope.field(e, &name.text).is_none()) {
                    Some(exposed) => self.report_unknown_part(exposed, &rows, name, preds),
                    None => self.report_path_error(&rows, std::slice::from_ref(name), &error),
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
        for wire in &resolved.wire {
            self.note_case_fix(name, wire);
        }
        let (target_kind, many) = match &resolved.kind {
            // A list of references leads to the row of each reference.
            Type::Array(of) => (of.as_ref(), true),
            kind => (kind, rows.many),
        };
        match (target_kind, &resolved.ref_catalog) {
            (Type::Ref(target), Some(ref_catalog)) => {
                if self.scope.find_exposed(ref_catalog, target).is_none() {
                    self.report_untaught(name, "refers to", ref_catalog, target);
                    return None;
                }
                let target_rows = self.row_type_of_entity(ref_catalog, target, many);
                let kind = StepKind::Deref { input: input.0, field: resolved.path.join(".").into(), limit: None };
                Some(self.add_node(kind, target_rows))
            }
            // A plain field becomes a projection to that column.
            _ => Some(self.project_to(input, vec![(resolved.name(), resolved)])),
        }
    }

    /// Checks a step along a relation, with its filters.
    fn check_relation(
        &mut self,
        input: NodeId,
        exposed: &'s ExposedEntity,
        relation: &Relation,
        name: &Name,
        filters: WrittenFilters<'_>,
    ) -> Option<NodeId> {
        let target = self.scope.find_exposed(&exposed.catalog, &relation.target)?;
        self.note_case_fix(name, &relation.name);
        self.check_relation_fields_kept(input, exposed, relation, name)?;
        let args = self.check_relation_args(relation, target, filters, NameStyle::of(&name.text))?;
        let many = relation.many || self.rows(input).many;
        let rows = match &relation.via {
            Via::Call { capability, .. } => match target.catalog.capability(capability) {
                Some(capability) => self.row_type_of_capability(&target.catalog, capability, many),
                None => self.row_type_of_entity(&target.catalog, &target.entity, many),
            },
            Via::Key { .. } | Via::Embedded { .. } => self.row_type_of_entity(&target.catalog, &target.entity, many),
        };
        let relation = SmolStr::new(&relation.name);
        let kind = StepKind::Follow { input: input.0, relation, args, limit: None, page_size: None, fields: None };
        Some(self.add_node(kind, rows))
    }

    /// Reports a relation if an earlier projection removed a field that the relation needs.
    fn check_relation_fields_kept(
        &mut self,
        input: NodeId,
        exposed: &ExposedEntity,
        relation: &Relation,
        name: &Name,
    ) -> Option<()> {
        let rows = self.rows(input);
        if rows.has_unread_fields {
            return Some(());
        }
        let has_all_fields = exposed.definition().is_some_and(|e| e.fields.keys().all(|f| rows.has_column(f)));
        // Embedded rows are not a column. A row contains them as long as it has all its fields, and a projection
        // removes them.
        let is_kept = |n: &str| rows.has_column(n) || (has_all_fields && matches!(relation.via, Via::Embedded { .. }));
        let needed = crate::ir::fields_needed_by_relation(exposed.definition(), relation);
        let missing_fields: Vec<&str> = needed.filter(|n| !is_kept(n)).collect();
        if missing_fields.is_empty() {
            return Some(());
        }
        let message = format!(
            "`{}` starts from {}, which the projection before it left out",
            name.text,
            missing_fields.join(", ")
        );
        self.report_error(codes::UNKNOWN_FIELD, name.span, message);
        None
    }

    /// Checks the filters of a relation. The parameters that the relation fills itself are not available as filters.
    fn check_relation_args(
        &mut self,
        relation: &Relation,
        target: &ExposedEntity,
        filters: WrittenFilters<'_>,
        style: NameStyle,
    ) -> Option<Args> {
        let params: Vec<&catalog::Param> = match &relation.via {
            Via::Call { capability, fill } => target
                .catalog
                .capability(capability)
                .map(|c| c.params.values().filter(|p| !fill.contains_key(&p.name)).collect())
                .unwrap_or_default(),
            Via::Key { .. } | Via::Embedded { .. } => Vec::new(),
        };
        self.check_filters(target, &params, filters, style)
    }

    /// Reports a name after a dot that is neither a relation nor a field, and suggests the name that was probably
    /// meant.
    fn report_unknown_part(&mut self, exposed: &ExposedEntity, rows: &RowType, name: &Name, preds: Option<&[Pred]>) {
        let untaught = exposed.definition().and_then(|e| e.relations.get(name.text.as_str()));
        if let Some(relation) = untaught {
            self.report_untaught(name, "leads to", &exposed.catalog, &relation.target);
            return;
        }
        let style = NameStyle::of(&name.text);
        if let Some(method) = self.scope.method(exposed, &name.text) {
            self.report_bare_method(exposed, method, name);
            return;
        }
        if preds.is_none() && self.report_foreign_field(rows, name) {
            return;
        }
        let mut known_names: Vec<String> = exposed
            .relations
            .iter()
            .map(|(symbol, wire)| if style == NameStyle::Symbols { symbol.clone() } else { wire.clone() })
            .collect();
        known_names.extend(rows.nameable_columns().iter().map(|f| self.scope.styled_slot(&exposed.catalog, f, style)));
        let message = format!("no relation or field `{}` on {}", name.text, exposed.styled_name(style));
        let alternatives = similar_names(&name.text, known_names.iter().map(String::as_str));
        let rename_fix = rename_edit(name, known_names.iter().map(String::as_str));
        let is_foreign_filter = ["where", "find", "select", "query"].contains(&name.text.as_str()) && preds.is_some();
        let fix = if is_foreign_filter { Some(Edit::replace(name.span, "filter")) } else { rename_fix };
        let diagnostic = Diagnostic::error(codes::UNKNOWN_RELATION, name.span, message);
        self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
    }

    /// Checks `[p1, p4]`. A column that is written twice is included once.
    fn check_projection(&mut self, input: NodeId, fields: &[DottedName]) -> Option<NodeId> {
        let mut columns: Vec<(SmolStr, ResolvedPath)> = Vec::new();
        let mut is_valid = true;
        for path in fields {
            match self.resolve_node_path(input, path) {
                Some(resolved) if columns.iter().any(|(name, _)| *name == resolved.name()) => {}
                Some(resolved) => columns.push((resolved.name(), resolved)),
                None => is_valid = false,
            }
        }
        is_valid.then(|| self.project_to(input, columns))
    }

    /// Adds a projection. Each entry of `columns` is the name and the source path of one column.
    pub(super) fn project_to(&mut self, input: NodeId, columns: Vec<(SmolStr, ResolvedPath)>) -> NodeId {
        let before = self.rows(input).clone();
        let typed_columns = columns.iter().map(|(name, resolved)| TypedColumn {
            name: name.clone(),
            kind: resolved.kind.clone(),
            ref_catalog: resolved.ref_catalog.clone(),
        });
        let rows = RowType {
            entity: before.entity.clone(),
            has_unknown_columns: before.has_unknown_columns,
            ..RowType::computed_rows(typed_columns.collect(), before.many)
        };
        // A projection of a projection is merged into one projection of the rows below.
        let is_column = |resolved: &ResolvedPath| resolved.path.len() == 1 && resolved.attachments.is_empty();
        if let StepKind::Project { input: below, columns: kept_columns } = &self.checked_node(input).kind
            && columns.iter().all(|(_, resolved)| is_column(resolved))
        {
            let below = *below;
            let path = |name: &str| kept_columns.iter().find(|k| k.name == name).map(|k| k.path.clone());
            let picked: Option<Vec<NamedPath>> = columns
                .iter()
                .map(|(name, resolved)| Some(NamedPath { name: name.clone(), path: path(resolved.path.first()?)? }))
                .collect();
            if let Some(columns) = picked {
                return self.add_node(StepKind::Project { input: below, columns }, rows);
            }
        }
        let attachments: Vec<_> = columns.iter().flat_map(|(_, resolved)| resolved.attachments.clone()).collect();
        let input = self.attach_to_rows(input, &attachments);
        let columns = columns.into_iter().map(|(name, resolved)| NamedPath { name, path: resolved.path }).collect();
        self.add_node(StepKind::Project { input: input.0, columns }, rows)
    }

    /// Checks `.limit(n)`.
    fn check_limit(&mut self, input: NodeId, count: &Value) -> Option<NodeId> {
        let count = self.check_count(count)?;
        // `page(s0_pg2).limit(50)` has the same meaning as `page(s0_pg2, limit=50)`.
        if let StepKind::Page { handle, limit } = &self.checked_node(input).kind {
            let handle = handle.clone();
            let limit = Some(limit.map_or(count, |limit| limit.min(count)));
            let rows = self.rows(input).clone();
            return Some(self.add_node(StepKind::Page { handle, limit }, rows));
        }
        let rows = self.rows(input).clone();
        Some(self.add_node(StepKind::Limit { input: input.0, count }, rows))
    }

    /// Checks a number of rows, which is a whole number of at least 1.
    pub(super) fn check_count(&mut self, count: &Value) -> Option<usize> {
        let number = match &count.kind {
            ValueKind::Number(text) => text.parse::<usize>().ok().filter(|n| *n > 0),
            ValueKind::Placeholder if self.allows_placeholders => Some(1),
            _ => None,
        };
        if number.is_none() {
            let diagnostic = Diagnostic::error(codes::BAD_LIMIT, count.span, "a limit is a whole number from 1");
            self.report(diagnostic.with_fix([Edit::replace(count.span, "10")]));
        }
        number
    }
}
