//! Checks the postfixes on rows that have been read: filter, sort, distinct, aggregates and page sizes.
//! Invariant: each comparison, order and aggregate is defined for the type of its values.

use base::{Diagnostic, Span};
use catalog::{Capability, Type, Via};
use smol_str::SmolStr;

use super::path::{Attachment, ResolvedPath};
use super::{Checker, NodeId, RowType, TypedColumn};
use crate::codes;
use crate::ir::{Aggregation, ComparisonOp, FilterTest, Function, NamedPath, Path, StepKind};
use crate::syntax::tree::{AggregateFunction, AggregateSpec, DottedName, Operator, Pred, Value, ValueKind};

impl Checker<'_> {
    /// Checks `.filter{…}`. A filter without tests returns its input.
    pub(super) fn check_filter(&mut self, input: NodeId, preds: &[Pred]) -> Option<NodeId> {
        let mut tests = Vec::new();
        let mut attachments = Vec::new();
        let mut is_valid = true;
        for pred in preds {
            let Some(resolved) = self.resolve_node_path(input, &pred.path) else {
                is_valid = false;
                continue;
            };
            match self.check_filter_test(&resolved, pred) {
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
        let input = self.attach_to_rows(input, &attachments);
        let rows = self.rows(input).clone();
        Some(self.add_node(StepKind::Filter { input: input.0, tests }, rows))
    }

    /// Checks one test of a filter.
    fn check_filter_test(&mut self, resolved: &ResolvedPath, pred: &Pred) -> Option<FilterTest> {
        let op = ComparisonOp::from(pred.op);
        let is_null = pred.value.kind == ValueKind::Null;
        if !op.applies_to(&resolved.kind) || (is_null && !matches!(op, ComparisonOp::Eq | ComparisonOp::Ne)) {
            self.report_no_comparison(resolved, op, is_null, pred.op_span);
            return None;
        }
        let is_list = matches!(&pred.value.kind, ValueKind::List(_));
        if matches!(&pred.value.kind, ValueKind::List(items) if items.is_empty()) {
            let message =
                format!("`{}` cannot be compared with an empty list: every list has all of it", resolved.name());
            self.report_error(codes::DOES_NOT_COMPARE, pred.value.span, message);
            return None;
        }
        // A list field is compared with one item or, if the author wrote a list, with several items. `~` on a choice
        // accepts any text.
        let kind = match (&resolved.kind, op) {
            (Type::Array(_) | Type::MultiSelect(_), ComparisonOp::Eq | ComparisonOp::Ne) if is_list => {
                resolved.kind.clone()
            }
            (kind, _) => match (item_type_of(kind), op) {
                (Type::Select(_) | Type::Uuid, ComparisonOp::Like) => Type::String(catalog::TextStyle::Short),
                (item, _) => item,
            },
        };
        let value = match &resolved.ref_catalog {
            Some(ref_catalog) => self.check_value(&ref_catalog.clone(), &kind, &pred.value)?,
            None => self.check_value_without_catalog(&kind, &pred.value)?,
        };
        Some(FilterTest { path: resolved.path.clone(), op, value, kind: resolved.kind.clone() })
    }

    /// Reports an operator that the type does not support, with the operators that it supports.
    fn report_no_comparison(&mut self, resolved: &ResolvedPath, op: ComparisonOp, is_null: bool, span: Span) {
        let all = [
            ComparisonOp::Eq,
            ComparisonOp::Ne,
            ComparisonOp::Lt,
            ComparisonOp::Le,
            ComparisonOp::Gt,
            ComparisonOp::Ge,
            ComparisonOp::Like,
        ];
        let applicable: Vec<String> = all
            .into_iter()
            .filter(|op| {
                op.applies_to(&resolved.kind) && (!is_null || matches!(op, ComparisonOp::Eq | ComparisonOp::Ne))
            })
            .map(|op| op.sign().to_owned())
            .collect();
        let compared_thing =
            if is_null { "null".to_owned() } else { format!("`{}` ({})", resolved.name(), resolved.kind.describe()) };
        let message = format!("{compared_thing} cannot be compared with `{}`", op.sign());
        self.report(Diagnostic::error(codes::DOES_NOT_COMPARE, span, message).with_alternatives(applicable));
    }

    /// Checks `.sort(p4, desc)`.
    pub(super) fn check_sort(&mut self, input: NodeId, field: &DottedName, descending: bool) -> Option<NodeId> {
        let resolved = self.resolve_node_path(input, field)?;
        if matches!(resolved.kind, Type::Array(_) | Type::MultiSelect(_) | Type::Object(_) | Type::Union(_)) {
            let message = format!("`{}` ({}) has no order to sort by", resolved.name(), resolved.kind.describe());
            self.report_error(codes::DOES_NOT_COMPARE, field.span(), message);
            return None;
        }
        let input = self.attach_to_rows(input, &resolved.attachments);
        let rows = self.rows(input).clone();
        Some(self.add_node(StepKind::Sort { input: input.0, by: resolved.path, descending }, rows))
    }

    /// Checks `.distinct(p4)`.
    pub(super) fn check_distinct(&mut self, input: NodeId, fields: &[DottedName]) -> Option<NodeId> {
        let resolved = self.resolve_node_paths(input, fields)?;
        let attachments: Vec<_> = resolved.iter().flat_map(|l| l.attachments.clone()).collect();
        let input = self.attach_to_rows(input, &attachments);
        let rows = self.rows(input).clone();
        let by = resolved.into_iter().map(|l| l.path).collect();
        Some(self.add_node(StepKind::Distinct { input: input.0, by }, rows))
    }

    /// Resolves several paths. Every path that cannot be resolved is reported.
    fn resolve_node_paths(&mut self, input: NodeId, fields: &[DottedName]) -> Option<Vec<ResolvedPath>> {
        let resolved: Vec<Option<ResolvedPath>> =
            fields.iter().map(|field| self.resolve_node_path(input, field)).collect();
        resolved.into_iter().collect()
    }

    /// Checks `.aggregate(n=count)`.
    pub(super) fn check_aggregate(&mut self, input: NodeId, specs: &[AggregateSpec]) -> Option<NodeId> {
        let aggregates = self.check_aggregates(input, specs, Vec::new())?;
        let rows = RowType::computed_rows(aggregates.columns, false);
        let kind = StepKind::Aggregate { input: aggregates.input.0, specs: aggregates.aggregations };
        Some(self.add_node(kind, rows))
    }

    /// Checks `.group_by(p4, n=count)`.
    pub(super) fn check_group_by(
        &mut self,
        input: NodeId,
        fields: &[DottedName],
        specs: &[AggregateSpec],
    ) -> Option<NodeId> {
        let group_paths = self.resolve_node_paths(input, fields);
        let names: Vec<SmolStr> = group_paths.iter().flatten().map(ResolvedPath::name).collect();
        let aggregates = self.check_aggregates(input, specs, names);
        // Paths and aggregates are both checked before the first mistake ends the check, so that all mistakes are
        // reported.
        let group_paths = group_paths?;
        let aggregates = aggregates?;
        let attachments: Vec<_> = group_paths.iter().flat_map(|l| l.attachments.clone()).collect();
        let input = self.attach_to_rows(aggregates.input, &attachments);
        let column = |path: &ResolvedPath| TypedColumn {
            name: path.name(),
            kind: path.kind.clone(),
            ref_catalog: path.ref_catalog.clone(),
        };
        let columns = group_paths.iter().map(column).chain(aggregates.columns).collect();
        let by = group_paths.into_iter().map(|path| NamedPath { name: path.name(), path: path.path }).collect();
        let kind = StepKind::GroupBy { input: input.0, by, specs: aggregates.aggregations };
        Some(self.add_node(kind, RowType::computed_rows(columns, true)))
    }

    /// Checks aggregates. `taken` are the names of the columns that exist already.
    fn check_aggregates(
        &mut self,
        input: NodeId,
        specs: &[AggregateSpec],
        mut taken_names: Vec<SmolStr>,
    ) -> Option<CheckedAggregates> {
        let mut aggregations = Vec::new();
        let mut columns = Vec::new();
        let mut attachments = Vec::new();
        let mut is_valid = true;
        for spec in specs {
            if taken_names.contains(&spec.name.text) {
                let message = format!("`{}` names two columns", spec.name.text);
                self.report_error(codes::DUPLICATE_ARGUMENT, spec.name.span, message);
                is_valid = false;
            }
            taken_names.push(spec.name.text.clone());
            let Some(source) = self.check_aggregate_source(input, spec) else {
                is_valid = false;
                continue;
            };
            attachments.extend(source.attachments);
            columns.push(TypedColumn { name: spec.name.text.clone(), kind: source.kind, ref_catalog: None });
            aggregations.push(Aggregation {
                name: spec.name.text.clone(),
                function: plan_function_of(spec.function),
                path: source.path,
            });
        }
        if !is_valid {
            return None;
        }
        Some(CheckedAggregates { input: self.attach_to_rows(input, &attachments), aggregations, columns })
    }

    /// Resolves the path of one aggregate and determines the type of its result.
    fn check_aggregate_source(&mut self, input: NodeId, spec: &AggregateSpec) -> Option<AggregateSource> {
        let Some(field) = &spec.field else {
            return Some(AggregateSource { path: None, kind: Type::Integer, attachments: Vec::new() });
        };
        let resolved = self.resolve_node_path(input, field)?;
        let kind = match (spec.function, &resolved.kind) {
            (AggregateFunction::Count, _) => Type::Integer,
            (AggregateFunction::Avg, Type::Integer | Type::Number | Type::Json) => Type::Number,
            (AggregateFunction::Sum, kind @ (Type::Integer | Type::Number | Type::Json)) => kind.clone(),
            (AggregateFunction::Min | AggregateFunction::Max, kind)
                if !matches!(kind, Type::Array(_) | Type::MultiSelect(_) | Type::Object(_) | Type::Union(_)) =>
            {
                kind.clone()
            }
            (function, kind) => {
                let word = result_word(function);
                let message = format!("`{}` ({}) has no {word}", resolved.name(), kind.describe());
                self.report_error(codes::DOES_NOT_COMPARE, field.span(), message);
                return None;
            }
        };
        Some(AggregateSource { path: Some(resolved.path), kind, attachments: resolved.attachments })
    }

    /// Checks `.page_size(n)`, which sets the rows per page of the list directly before it.
    pub(super) fn check_page_size(&mut self, input: NodeId, count: &Value, span: Span) -> Option<NodeId> {
        let rows_per_page = self.check_count(count)?;
        let max = match &self.checked_node(input).kind {
            StepKind::Query { call, .. } => self.find_max_page_size(input, &call.capability),
            StepKind::Follow { input: parent, relation, .. } => {
                let of = self.rows(NodeId(*parent)).entity.clone();
                let entity = of.as_ref().and_then(|of| of.catalog.entity(&of.entity));
                match entity.and_then(|e| e.relations.get(relation.as_str())).map(|r| &r.via) {
                    Some(Via::Call { capability, .. }) => self.find_max_page_size(input, capability),
                    _ => None,
                }
            }
            _ => None,
        };
        let message = match max {
            Some(max) if rows_per_page <= max => {
                let rows = self.rows(input).clone();
                let mut kind = self.checked_node(input).kind.clone();
                if let StepKind::Query { page_size, .. } | StepKind::Follow { page_size, .. } = &mut kind {
                    *page_size = Some(rows_per_page);
                }
                return Some(self.add_node(kind, rows));
            }
            Some(max) => format!("this list gives at most {max} rows per page"),
            None => {
                "a page size belongs right after a list whose pages have one; `.limit(n)` bounds any rows".to_owned()
            }
        };
        self.report_error(codes::BAD_PAGE_SIZE, span, message);
        None
    }

    /// Returns the largest page size of a capability, or `None` if its pages have no size.
    fn find_max_page_size(&self, node: NodeId, capability: &str) -> Option<usize> {
        let catalog = self.rows(node).catalog()?;
        let capability: Option<&Capability> = catalog.capability(capability);
        capability?.paging.as_ref()?.size.as_ref().map(|size| size.max)
    }
}

/// The result of checking the aggregates of one postfix.
struct CheckedAggregates {
    /// The rows to aggregate, including the attached rows that the paths read.
    input: NodeId,
    /// The aggregations, in the order written.
    aggregations: Vec<Aggregation>,
    /// The result columns, in the same order.
    columns: Vec<TypedColumn>,
}

/// The values that one aggregate is computed from.
struct AggregateSource {
    /// The path of the values. A count of rows has none.
    path: Option<Path>,
    /// The type of the result.
    kind: Type,
    /// The rows that must be attached before the path can be read.
    attachments: Vec<Attachment>,
}

/// Returns the item type of a list type, or the type itself if it is not a list.
fn item_type_of(kind: &Type) -> Type {
    match kind {
        Type::Array(of) => of.as_ref().clone(),
        Type::MultiSelect(choices) => Type::Select(choices.clone()),
        plain => plain.clone(),
    }
}

impl From<Operator> for ComparisonOp {
    fn from(operator: Operator) -> Self {
        match operator {
            Operator::Eq => ComparisonOp::Eq,
            Operator::Ne => ComparisonOp::Ne,
            Operator::Lt => ComparisonOp::Lt,
            Operator::Le => ComparisonOp::Le,
            Operator::Gt => ComparisonOp::Gt,
            Operator::Ge => ComparisonOp::Ge,
            Operator::Like => ComparisonOp::Like,
        }
    }
}

/// Returns the plan's function for a written aggregate function.
fn plan_function_of(function: AggregateFunction) -> Function {
    match function {
        AggregateFunction::Count => Function::Count,
        AggregateFunction::Sum => Function::Sum,
        AggregateFunction::Avg => Function::Avg,
        AggregateFunction::Min => Function::Min,
        AggregateFunction::Max => Function::Max,
    }
}

/// Returns the noun for the result of an aggregate function in messages.
fn result_word(function: AggregateFunction) -> &'static str {
    match function {
        AggregateFunction::Count => "count",
        AggregateFunction::Sum => "sum",
        AggregateFunction::Avg => "average",
        AggregateFunction::Min => "least",
        AggregateFunction::Max => "greatest",
    }
}
