//! What is done to rows once they are read: filter, sort, distinct, aggregates, page sizes.
//! Invariant: each test, order and sum is of a type for which it has a meaning.

use base::{Diagnostic, Span};
use catalog::{Capability, Type, Via};
use smol_str::SmolStr;

use super::hint::test_op;
use super::path::Leads;
use super::{Col, Cx, NodeId, RowType};
use crate::codes;
use crate::ir::{self, NamedPath, StepKind, Test, TestOp};
use crate::syntax::tree::{Function, Path, Pred, Spec, Value, ValueKind};

impl Cx<'_> {
    pub(super) fn filter(&mut self, input: NodeId, preds: &[Pred]) -> Option<NodeId> {
        let mut tests = Vec::new();
        let mut wanted = Vec::new();
        let mut right = true;
        for pred in preds {
            let Some(leads) = self.path_of(input, &pred.path) else {
                right = false;
                continue;
            };
            match self.test(&leads, pred) {
                Some(test) => tests.push(test),
                None => right = false,
            }
            wanted.extend(leads.attach);
        }
        if !right {
            return None;
        }
        if tests.is_empty() {
            return Some(input);
        }
        let here = self.here();
        let input = self.attach(here, input, &wanted);
        let rows = self.rows(input).clone();
        Some(self.push(StepKind::Filter { input: input.0, tests }, rows))
    }

    fn test(&mut self, leads: &Leads, pred: &Pred) -> Option<Test> {
        let op = test_op(pred.op);
        let null = pred.value.kind == ValueKind::Null;
        if !fits(op, &leads.kind) || (null && !matches!(op, TestOp::Eq | TestOp::Ne)) {
            self.does_not_compare(leads, op, null, pred.op_span);
            return None;
        }
        let several = matches!(&pred.value.kind, ValueKind::List(_));
        if matches!(&pred.value.kind, ValueKind::List(items) if items.is_empty()) {
            let message = format!("`{}` cannot be compared with an empty list: every list has all of it", leads.name());
            self.error(codes::DOES_NOT_COMPARE, pred.value.span, message);
            return None;
        }
        // A list is compared with one of its items, or with several; a part of a text with any text.
        let kind = match (&leads.kind, op) {
            (Type::Array(_) | Type::MultiSelect(_), TestOp::Eq | TestOp::Ne) if several => leads.kind.clone(),
            (kind, _) => match (item_of(kind), op) {
                (Type::Select(_) | Type::Uuid, TestOp::Like) => Type::String(catalog::TextStyle::Short),
                (item, _) => item,
            },
        };
        let value = match &leads.home {
            Some(home) => self.value(&home.clone(), &kind, &pred.value)?,
            None => self.homeless(&kind, &pred.value)?,
        };
        Some(Test { path: leads.path.clone(), op, value, kind: leads.kind.clone() })
    }

    fn does_not_compare(&mut self, leads: &Leads, op: TestOp, null: bool, span: Span) {
        let all = [TestOp::Eq, TestOp::Ne, TestOp::Lt, TestOp::Le, TestOp::Gt, TestOp::Ge, TestOp::Like];
        let legal: Vec<String> = all
            .into_iter()
            .filter(|op| fits(*op, &leads.kind) && (!null || matches!(op, TestOp::Eq | TestOp::Ne)))
            .map(|op| op.sign().to_owned())
            .collect();
        let what = if null { "null".to_owned() } else { format!("`{}` ({})", leads.name(), leads.kind.describe()) };
        let message = format!("{what} cannot be compared with `{}`", op.sign());
        self.report(Diagnostic::error(codes::DOES_NOT_COMPARE, span, message).with_alternatives(legal));
    }

    pub(super) fn sort(&mut self, input: NodeId, field: &Path, descending: bool) -> Option<NodeId> {
        let leads = self.path_of(input, field)?;
        if matches!(leads.kind, Type::Array(_) | Type::MultiSelect(_) | Type::Object(_) | Type::Union(_)) {
            let message = format!("`{}` ({}) has no order to sort by", leads.name(), leads.kind.describe());
            self.error(codes::DOES_NOT_COMPARE, span_of(field), message);
            return None;
        }
        let here = self.here();
        let input = self.attach(here, input, &leads.attach);
        let rows = self.rows(input).clone();
        Some(self.push(StepKind::Sort { input: input.0, by: leads.path, descending }, rows))
    }

    pub(super) fn distinct(&mut self, input: NodeId, fields: &[Path]) -> Option<NodeId> {
        let leads = self.paths(input, fields)?;
        let wanted: Vec<_> = leads.iter().flat_map(|l| l.attach.clone()).collect();
        let here = self.here();
        let input = self.attach(here, input, &wanted);
        let rows = self.rows(input).clone();
        let by = leads.into_iter().map(|l| l.path).collect();
        Some(self.push(StepKind::Distinct { input: input.0, by }, rows))
    }

    /// All of them, or reports on all that lead nowhere.
    fn paths(&mut self, input: NodeId, fields: &[Path]) -> Option<Vec<Leads>> {
        let found: Vec<Option<Leads>> = fields.iter().map(|f| self.path_of(input, f)).collect();
        found.into_iter().collect()
    }

    pub(super) fn aggregate(&mut self, input: NodeId, specs: &[Spec]) -> Option<NodeId> {
        let (input, made, columns) = self.specs(input, specs, Vec::new())?;
        let rows = RowType::made(columns, false);
        Some(self.push(StepKind::Aggregate { input: input.0, specs: made }, rows))
    }

    pub(super) fn group_by(&mut self, input: NodeId, fields: &[Path], specs: &[Spec]) -> Option<NodeId> {
        let groups = self.paths(input, fields);
        let names: Vec<SmolStr> = groups.iter().flatten().map(Leads::name).collect();
        let counted = self.specs(input, specs, names);
        let (groups, (input, made, aliases)) = (groups?, counted?);
        let wanted: Vec<_> = groups.iter().flat_map(|l| l.attach.clone()).collect();
        let here = self.here();
        let input = self.attach(here, input, &wanted);
        let column = |l: &Leads| Col { name: l.name(), kind: l.kind.clone(), home: l.home.clone() };
        let columns = groups.iter().map(column).chain(aliases).collect();
        let by = groups.into_iter().map(|l| NamedPath { name: l.name(), path: l.path }).collect();
        let kind = StepKind::GroupBy { input: input.0, by, specs: made };
        Some(self.push(kind, RowType::made(columns, true)))
    }

    /// The sums and counts, the columns that they make, and the rows they need. `taken` are names that columns have already.
    fn specs(
        &mut self,
        input: NodeId,
        specs: &[Spec],
        mut taken: Vec<SmolStr>,
    ) -> Option<(NodeId, Vec<ir::Spec>, Vec<Col>)> {
        let (mut made, mut columns, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        let mut right = true;
        for spec in specs {
            if taken.contains(&spec.name.text) {
                let message = format!("`{}` names two columns", spec.name.text);
                self.error(codes::DUPLICATE_ARGUMENT, spec.name.span, message);
                right = false;
            }
            taken.push(spec.name.text.clone());
            let Some((path, kind, attach)) = self.spec(input, spec) else {
                right = false;
                continue;
            };
            wanted.extend(attach);
            columns.push(Col { name: spec.name.text.clone(), kind, home: None });
            made.push(ir::Spec { name: spec.name.text.clone(), function: function(spec.function), path });
        }
        if !right {
            return None;
        }
        let here = self.here();
        Some((self.attach(here, input, &wanted), made, columns))
    }

    #[allow(clippy::type_complexity)] // why: three answers about one thing, taken apart by the only caller.
    fn spec(&mut self, input: NodeId, spec: &Spec) -> Option<(Option<ir::Path>, Type, Vec<(ir::Path, ir::EntityOf)>)> {
        let Some(field) = &spec.field else { return Some((None, Type::Integer, Vec::new())) };
        let leads = self.path_of(input, field)?;
        let kind = match (spec.function, &leads.kind) {
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
                let message = format!("`{}` ({}) has no {word}", leads.name(), kind.describe());
                self.error(codes::DOES_NOT_COMPARE, span_of(field), message);
                return None;
            }
        };
        Some((Some(leads.path), kind, leads.attach))
    }

    /// Rows per page, for the list right before it.
    pub(super) fn page_size(&mut self, input: NodeId, count: &Value, span: Span) -> Option<NodeId> {
        let wanted = self.count(count)?;
        let most = match &self.at(input).kind {
            StepKind::Query { call, .. } => self.most_per_page(input, &call.capability),
            StepKind::Follow { input: parent, relation, .. } => {
                let of = self.rows(NodeId(*parent)).of.clone();
                let entity = of.as_ref().and_then(|of| of.catalog.entity(&of.entity));
                match entity.and_then(|e| e.relations.get(relation.as_str())).map(|r| &r.via) {
                    Some(Via::Call { capability, .. }) => self.most_per_page(input, capability),
                    _ => None,
                }
            }
            _ => None,
        };
        let message = match most {
            Some(most) if wanted <= most => {
                let rows = self.rows(input).clone();
                let mut kind = self.at(input).kind.clone();
                if let StepKind::Query { page_size, .. } | StepKind::Follow { page_size, .. } = &mut kind {
                    *page_size = Some(wanted);
                }
                return Some(self.push(kind, rows));
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
        let home = self.rows(node).home()?;
        let found: Option<&Capability> = home.capability(capability);
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

/// Whether values of this type can be compared so.
pub(super) fn fits(op: TestOp, kind: &Type) -> bool {
    match (op, kind) {
        (TestOp::Eq | TestOp::Ne, Type::Object(_) | Type::Union(_)) => false,
        (TestOp::Eq | TestOp::Ne, _) | (_, Type::Json) => true,
        (TestOp::Like, Type::String(_) | Type::Select(_) | Type::Uuid) => true,
        (TestOp::Like, Type::MultiSelect(_)) => true,
        (TestOp::Like, Type::Array(of)) => fits(op, of),
        (TestOp::Like, _) => false,
        (_, Type::Integer | Type::Number | Type::Date(_) | Type::String(_)) => true,
        _ => false,
    }
}

fn span_of(path: &Path) -> Span {
    match (path.names.first(), path.names.last()) {
        (Some(first), Some(last)) => first.span.to(last.span),
        _ => Span::default(),
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
