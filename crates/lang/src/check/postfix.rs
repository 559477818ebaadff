//! What is done to rows once they are read: filter, sort, distinct, aggregates, page sizes.
//! Invariant: each test, order and sum is of a type for which it has a meaning.

use base::{Diagnostic, Span};
use catalog::{Capability, Type, Via};
use smol_str::SmolStr;

use super::path::ResolvedPath;
use super::{Checker, NodeId, RowType, TypedColumn};
use crate::codes;
use crate::ir::{self, ComparisonOp, FilterTest, NamedPath, StepKind};
use crate::syntax::tree::{AggregateSpec, Function, Op, Path, Pred, Value, ValueKind};

impl Checker<'_> {
    pub(super) fn filter(&mut self, input: NodeId, preds: &[Pred]) -> Option<NodeId> {
        let mut tests = Vec::new();
        let mut attachments = Vec::new();
        let mut is_valid = true;
        for pred in preds {
            let Some(resolved) = self.resolve_node_path(input, &pred.path) else {
                is_valid = false;
                continue;
            };
            match self.test(&resolved, pred) {
                Some(test) => tests.push(test),
                None => is_valid = false,
            }
            attachments.extend(resolved.attachments);
        }
        if !is_valid {
            return None;
        }
        if tests.is_empty() {
            return Some(input);
        }
        let here = self.current_space();
        let input = self.attach(here, input, &attachments);
        let rows = self.rows(input).clone();
        Some(self.add_node(StepKind::Filter { input: input.0, tests }, rows))
    }

    fn test(&mut self, resolved: &ResolvedPath, pred: &Pred) -> Option<FilterTest> {
        let op = ComparisonOp::from(pred.op);
        let null = pred.value.kind == ValueKind::Null;
        if !op.applies_to(&resolved.kind) || (null && !matches!(op, ComparisonOp::Eq | ComparisonOp::Ne)) {
            self.report_no_comparison(resolved, op, null, pred.op_span);
            return None;
        }
        let several = matches!(&pred.value.kind, ValueKind::List(_));
        if matches!(&pred.value.kind, ValueKind::List(items) if items.is_empty()) {
            let message =
                format!("`{}` cannot be compared with an empty list: every list has all of it", resolved.name());
            self.error(codes::DOES_NOT_COMPARE, pred.value.span, message);
            return None;
        }
        // A list is compared with one of its items, or with several; a part of a text with any text.
        let kind = match (&resolved.kind, op) {
            (Type::Array(_) | Type::MultiSelect(_), ComparisonOp::Eq | ComparisonOp::Ne) if several => {
                resolved.kind.clone()
            }
            (kind, _) => match (item_of(kind), op) {
                (Type::Select(_) | Type::Uuid, ComparisonOp::Like) => Type::String(catalog::TextStyle::Short),
                (item, _) => item,
            },
        };
        let value = match &resolved.ref_catalog {
            Some(ref_catalog) => self.value(&ref_catalog.clone(), &kind, &pred.value)?,
            None => self.untyped_value(&kind, &pred.value)?,
        };
        Some(FilterTest { path: resolved.path.clone(), op, value, kind: resolved.kind.clone() })
    }

    fn report_no_comparison(&mut self, resolved: &ResolvedPath, op: ComparisonOp, null: bool, span: Span) {
        let all = [
            ComparisonOp::Eq,
            ComparisonOp::Ne,
            ComparisonOp::Lt,
            ComparisonOp::Le,
            ComparisonOp::Gt,
            ComparisonOp::Ge,
            ComparisonOp::Like,
        ];
        let legal: Vec<String> = all
            .into_iter()
            .filter(|op| op.applies_to(&resolved.kind) && (!null || matches!(op, ComparisonOp::Eq | ComparisonOp::Ne)))
            .map(|op| op.sign().to_owned())
            .collect();
        let what =
            if null { "null".to_owned() } else { format!("`{}` ({})", resolved.name(), resolved.kind.describe()) };
        let message = format!("{what} cannot be compared with `{}`", op.sign());
        self.report(Diagnostic::error(codes::DOES_NOT_COMPARE, span, message).with_alternatives(legal));
    }

    pub(super) fn sort(&mut self, input: NodeId, field: &Path, descending: bool) -> Option<NodeId> {
        let resolved = self.resolve_node_path(input, field)?;
        if matches!(resolved.kind, Type::Array(_) | Type::MultiSelect(_) | Type::Object(_) | Type::Union(_)) {
            let message = format!("`{}` ({}) has no order to sort by", resolved.name(), resolved.kind.describe());
            self.error(codes::DOES_NOT_COMPARE, field.span(), message);
            return None;
        }
        let here = self.current_space();
        let input = self.attach(here, input, &resolved.attachments);
        let rows = self.rows(input).clone();
        Some(self.add_node(StepKind::Sort { input: input.0, by: resolved.path, descending }, rows))
    }

    pub(super) fn distinct(&mut self, input: NodeId, fields: &[Path]) -> Option<NodeId> {
        let resolved = self.paths(input, fields)?;
        let attachments: Vec<_> = resolved.iter().flat_map(|l| l.attachments.clone()).collect();
        let here = self.current_space();
        let input = self.attach(here, input, &attachments);
        let rows = self.rows(input).clone();
        let by = resolved.into_iter().map(|l| l.path).collect();
        Some(self.add_node(StepKind::Distinct { input: input.0, by }, rows))
    }

    /// All of them, or reports on all that lead nowhere.
    fn paths(&mut self, input: NodeId, fields: &[Path]) -> Option<Vec<ResolvedPath>> {
        let found: Vec<Option<ResolvedPath>> = fields.iter().map(|f| self.resolve_node_path(input, f)).collect();
        found.into_iter().collect()
    }

    pub(super) fn aggregate(&mut self, input: NodeId, specs: &[AggregateSpec]) -> Option<NodeId> {
        let (input, aggregations, columns) = self.specs(input, specs, Vec::new())?;
        let rows = RowType::computed(columns, false);
        Some(self.add_node(StepKind::Aggregate { input: input.0, specs: aggregations }, rows))
    }

    pub(super) fn group_by(&mut self, input: NodeId, fields: &[Path], specs: &[AggregateSpec]) -> Option<NodeId> {
        let group_paths = self.paths(input, fields);
        let names: Vec<SmolStr> = group_paths.iter().flatten().map(ResolvedPath::name).collect();
        let aggregated = self.specs(input, specs, names);
        let (group_paths, (input, aggregations, aliases)) = (group_paths?, aggregated?);
        let attachments: Vec<_> = group_paths.iter().flat_map(|l| l.attachments.clone()).collect();
        let here = self.current_space();
        let input = self.attach(here, input, &attachments);
        let column =
            |l: &ResolvedPath| TypedColumn { name: l.name(), kind: l.kind.clone(), ref_catalog: l.ref_catalog.clone() };
        let columns = group_paths.iter().map(column).chain(aliases).collect();
        let by = group_paths.into_iter().map(|l| NamedPath { name: l.name(), path: l.path }).collect();
        let kind = StepKind::GroupBy { input: input.0, by, specs: aggregations };
        Some(self.add_node(kind, RowType::computed(columns, true)))
    }

    /// The sums and counts, the columns that they make, and the rows they need. `taken` are names that columns have already.
    fn specs(
        &mut self,
        input: NodeId,
        specs: &[AggregateSpec],
        mut taken: Vec<SmolStr>,
    ) -> Option<(NodeId, Vec<ir::Aggregation>, Vec<TypedColumn>)> {
        let (mut aggregations, mut columns, mut attachments) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_valid = true;
        for spec in specs {
            if taken.contains(&spec.name.text) {
                let message = format!("`{}` names two columns", spec.name.text);
                self.error(codes::DUPLICATE_ARGUMENT, spec.name.span, message);
                is_valid = false;
            }
            taken.push(spec.name.text.clone());
            let Some((path, kind, attach)) = self.spec(input, spec) else {
                is_valid = false;
                continue;
            };
            attachments.extend(attach);
            columns.push(TypedColumn { name: spec.name.text.clone(), kind, ref_catalog: None });
            aggregations.push(ir::Aggregation {
                name: spec.name.text.clone(),
                function: function(spec.function),
                path,
            });
        }
        if !is_valid {
            return None;
        }
        let here = self.current_space();
        Some((self.attach(here, input, &attachments), aggregations, columns))
    }

    #[allow(clippy::type_complexity)] // why: three answers about one thing, taken apart by the only caller.
    fn spec(
        &mut self,
        input: NodeId,
        spec: &AggregateSpec,
    ) -> Option<(Option<ir::Path>, Type, Vec<(ir::Path, ir::EntityRef)>)> {
        let Some(field) = &spec.field else { return Some((None, Type::Integer, Vec::new())) };
        let resolved = self.resolve_node_path(input, field)?;
        let kind = match (spec.function, &resolved.kind) {
            (Function::Count, _) => Type::Integer,
            (Function::Avg, Type::Integer | Type::Number | Type::Json) => Type::Number,
            (Function::Sum, kind @ (Type::Integer | Type::Number | Type::Json)) => kind.clone(),
            (Function::Min | Function::Max, kind)
                if !matches!(kind, Type::Array(_) | Type::MultiSelect(_) | Type::Object(_) | Type::Union(_)) =>
            {
                kind.clone()
            }
            (function, kind) => {
                let word = word(function);
                let message = format!("`{}` ({}) has no {word}", resolved.name(), kind.describe());
                self.error(codes::DOES_NOT_COMPARE, field.span(), message);
                return None;
            }
        };
        Some((Some(resolved.path), kind, resolved.attachments))
    }

    /// Rows per page, for the list right before it.
    pub(super) fn page_size(&mut self, input: NodeId, count: &Value, span: Span) -> Option<NodeId> {
        let attachments = self.count(count)?;
        let most = match &self.checked_node(input).kind {
            StepKind::Query { call, .. } => self.most_per_page(input, &call.capability),
            StepKind::Follow { input: parent, relation, .. } => {
                let of = self.rows(NodeId(*parent)).entity.clone();
                let entity = of.as_ref().and_then(|of| of.catalog.entity(&of.entity));
                match entity.and_then(|e| e.relations.get(relation.as_str())).map(|r| &r.via) {
                    Some(Via::Call { capability, .. }) => self.most_per_page(input, capability),
                    _ => None,
                }
            }
            _ => None,
        };
        let message = match most {
            Some(most) if attachments <= most => {
                let rows = self.rows(input).clone();
                let mut kind = self.checked_node(input).kind.clone();
                if let StepKind::Query { page_size, .. } | StepKind::Follow { page_size, .. } = &mut kind {
                    *page_size = Some(attachments);
                }
                return Some(self.add_node(kind, rows));
            }
            Some(most) => format!("this list gives at most {most} rows per page"),
            None => {
                "a page size belongs right after a list whose pages have one; `.limit(n)` bounds any rows".to_owned()
            }
        };
        self.error(codes::BAD_PAGE_SIZE, span, message);
        None
    }

    fn most_per_page(&self, node: NodeId, capability: &str) -> Option<usize> {
        let ref_catalog = self.rows(node).catalog()?;
        let found: Option<&Capability> = ref_catalog.capability(capability);
        found?.paging.as_ref()?.size.as_ref().map(|size| size.max)
    }
}

/// What a list holds; anything else is itself.
fn item_of(kind: &Type) -> Type {
    match kind {
        Type::Array(of) => of.as_ref().clone(),
        Type::MultiSelect(choices) => Type::Select(choices.clone()),
        plain => plain.clone(),
    }
}

impl From<Op> for ComparisonOp {
    fn from(op: Op) -> Self {
        match op {
            Op::Eq => ComparisonOp::Eq,
            Op::Ne => ComparisonOp::Ne,
            Op::Lt => ComparisonOp::Lt,
            Op::Le => ComparisonOp::Le,
            Op::Gt => ComparisonOp::Gt,
            Op::Ge => ComparisonOp::Ge,
            Op::Like => ComparisonOp::Like,
        }
    }
}

fn function(function: Function) -> ir::Function {
    match function {
        Function::Count => ir::Function::Count,
        Function::Sum => ir::Function::Sum,
        Function::Avg => ir::Function::Avg,
        Function::Min => ir::Function::Min,
        Function::Max => ir::Function::Max,
    }
}

fn word(function: Function) -> &'static str {
    match function {
        Function::Count => "count",
        Function::Sum => "sum",
        Function::Avg => "average",
        Function::Min => "least",
        Function::Max => "greatest",
    }
}
