//! Tests of the pure steps: cases with a subtle result, and a comparison with naive implementations over random small tables.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{DateFormat, Row, TextStyle, Type};
use lang::plan::{Aggregation, Column, ComparisonOp, Expr, FilterTest, Function, NamedPath, Path};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{aggregate, filter, pick, project, sort};
use crate::coverage::{Coverage, PartialReason};
use crate::outcome::{Attached, Rowset};
use crate::value::view::{Catalogs, RowsView};

fn columns() -> Vec<Column> {
    let column = |name: &str, kind: Type| Column { name: name.into(), kind };
    vec![
        column("id", Type::Integer),
        column("n", Type::Number),
        column("s", Type::String(TextStyle::Short)),
        column("t", Type::Date(DateFormat::Rfc3339)),
        column("b", Type::Boolean),
        column("tags", Type::Array(Box::new(Type::String(TextStyle::Short)))),
        column("owner", Type::Json),
    ]
}

/// A row set with the column types that the tests use.
#[derive(Debug)]
struct Table {
    rows: Rowset,
    columns: Vec<Column>,
    catalogs: Catalogs,
}

impl Table {
    fn new(rows: Vec<Row>, coverage: Coverage) -> Self {
        Self { rows: Rowset { coverage, ..Rowset::complete(rows) }, columns: columns(), catalogs: Catalogs::new() }
    }

    fn of(rows: Value) -> Self {
        let rows = rows.as_array().unwrap().iter().map(|row| row.as_object().unwrap().clone()).collect();
        Self::new(rows, Coverage::Complete)
    }

    fn view(&self) -> RowsView<'_> {
        RowsView { rows: &self.rows, columns: &self.columns, of: None, catalogs: &self.catalogs }
    }

    /// Returns the rows that pass one test.
    fn filtered(&self, name: &str, op: ComparisonOp, value: Value) -> Rowset {
        let kind = self.view().kind(&path(name)).unwrap_or(Type::Json);
        let test = FilterTest { path: path(name), op, value: Expr::Value(value.clone()), kind };
        filter::apply(&self.view(), &[test], &[value])
    }
}

fn path(dotted: &str) -> Path {
    dotted.split('.').map(Into::into).collect()
}

fn ids(set: &Rowset) -> Vec<i64> {
    set.rows.iter().map(|row| row["id"].as_i64().unwrap()).collect()
}

fn spec(name: &str, function: Function, of: Option<&str>) -> Aggregation {
    Aggregation { name: name.into(), function, path: of.map(path) }
}

fn json_rows(set: &Rowset) -> Value {
    set.rows.iter().map(|row| Value::Object(Row::clone(row))).collect()
}

#[test]
fn a_null_passes_only_tests_for_null_and_for_difference() {
    let table = Table::of(json!([{"id": 1, "n": 5}, {"id": 2, "n": null}, {"id": 3}, {"id": 4, "n": 7}]));
    assert_eq!(ids(&table.filtered("n", ComparisonOp::Eq, json!(null))), [2, 3]);
    assert_eq!(ids(&table.filtered("n", ComparisonOp::Ne, json!(null))), [1, 4]);
    assert_eq!(ids(&table.filtered("n", ComparisonOp::Ne, json!(5))), [2, 3, 4]);
    assert_eq!(ids(&table.filtered("n", ComparisonOp::Eq, json!(5.0))), [1]);
    for op in [ComparisonOp::Lt, ComparisonOp::Le, ComparisonOp::Gt, ComparisonOp::Ge, ComparisonOp::Like] {
        assert!(!ids(&table.filtered("n", op, json!(6))).contains(&2), "{op:?}");
        assert!(ids(&table.filtered("n", op, json!(null))).is_empty() || op == ComparisonOp::Like, "{op:?}");
    }
    assert_eq!(ids(&table.filtered("n", ComparisonOp::Gt, json!("6"))), Vec::<i64>::new(), "a number is not a text");
    assert_eq!(ids(&table.filtered("n", ComparisonOp::Eq, json!([5, 7]))), [1, 4], "any of several");
}

#[test]
fn a_list_passes_by_its_items_and_a_text_regardless_of_case() {
    let table = Table::of(json!([
        {"id": 1, "tags": ["db", "Cache"], "s": "Straße nach Köln"},
        {"id": 2, "tags": [], "s": "DATABASE"},
        {"id": 3, "tags": null, "s": null},
    ]));
    assert_eq!(ids(&table.filtered("tags", ComparisonOp::Eq, json!("db"))), [1]);
    assert_eq!(ids(&table.filtered("tags", ComparisonOp::Eq, json!(["db", "Cache"]))), [1]);
    assert_eq!(ids(&table.filtered("tags", ComparisonOp::Eq, json!(["db", "web"]))), Vec::<i64>::new());
    assert_eq!(ids(&table.filtered("tags", ComparisonOp::Ne, json!("db"))), [2, 3]);
    assert_eq!(ids(&table.filtered("tags", ComparisonOp::Like, json!("cach"))), [1]);
    assert_eq!(ids(&table.filtered("s", ComparisonOp::Like, json!("KÖLN"))), [1]);
    assert_eq!(ids(&table.filtered("s", ComparisonOp::Like, json!("base"))), [2]);
    assert_eq!(ids(&table.filtered("s", ComparisonOp::Like, json!(""))), [1, 2]);
}

#[test]
fn references_compare_by_key_and_dates_by_instant() {
    let mut table = Table::of(json!([
        {"id": 1, "owner": "ada", "t": "2026-11-15T12:00:00Z"},
        {"id": 2, "owner": {"id": "ada"}, "t": "2026-11-15T14:00:00+02:00"},
        {"id": 3, "owner": "bot", "t": "2026-11-16T00:00:00Z"},
    ]));
    table.columns[6].kind = Type::Ref("Person".into());
    assert_eq!(ids(&table.filtered("owner", ComparisonOp::Eq, json!("ada"))), [1, 2]);
    assert_eq!(ids(&table.filtered("owner", ComparisonOp::Ne, json!({"id": "bot"}))), [1, 2]);
    assert_eq!(ids(&table.filtered("t", ComparisonOp::Eq, json!("2026-11-15T13:00:00+01:00"))), [1, 2]);
    assert_eq!(ids(&table.filtered("t", ComparisonOp::Ge, json!("2026-11-16"))), [3]);
    assert_eq!(ids(&table.filtered("t", ComparisonOp::Lt, json!("2026-11-16"))), [1, 2]);
}

#[test]
fn a_sum_is_whole_while_it_fits_64_bits() {
    let sum = |values: Value| {
        let rows: Vec<Value> = values.as_array().unwrap().iter().map(|n| json!({"id": 0, "n": n})).collect();
        let table = Table::of(json!(rows));
        let specs = [
            spec("count", Function::Count, None),
            spec("some", Function::Count, Some("n")),
            spec("sum", Function::Sum, Some("n")),
            spec("avg", Function::Avg, Some("n")),
            spec("min", Function::Min, Some("n")),
            spec("max", Function::Max, Some("n")),
        ];
        json_rows(&aggregate::aggregate(&table.view(), &specs))[0].clone()
    };
    assert_eq!(sum(json!([])), json!({"count": 0, "some": 0, "sum": 0, "avg": null, "min": null, "max": null}));
    assert_eq!(sum(json!([1, 2, null])), json!({"count": 3, "some": 2, "sum": 3, "avg": 1.5, "min": 1, "max": 2}));
    assert_eq!(sum(json!([1, 0.5]))["sum"], json!(1.5));
    assert_eq!(sum(json!([i64::MAX, 1]))["sum"], json!(9_223_372_036_854_775_808_u64));
    assert_eq!(sum(json!([u64::MAX, u64::MAX]))["sum"], json!(36_893_488_147_419_103_232.0));
}

#[test]
fn groups_come_in_order_of_appearance_and_paths_lead_into_attached_rows() {
    let mut table = Table::of(json!([
        {"id": 1, "owner": "x", "n": 2}, {"id": 2, "owner": "y", "n": 1}, {"id": 3, "owner": "x", "n": 3},
        {"id": 4, "owner": null, "n": 4}, {"id": 5, "owner": "gone", "n": 1},
    ]));
    let mut attached = Attached::new(path("owner"));
    let person = |name: &str| Some(Arc::new(json!({"name": name}).as_object().unwrap().clone()));
    attached.insert(json!("x"), person("Xena"));
    attached.insert(json!("y"), person("Yuri"));
    attached.insert(json!("gone"), None);
    table.rows.attached.push(Arc::new(attached));
    let by = [NamedPath { name: "who".into(), path: path("owner.name") }];
    let grouped = aggregate::group(&table.view(), &by, &[spec("n", Function::Sum, Some("n"))]);
    assert_eq!(json_rows(&grouped), json!([{"who": "Xena", "n": 5}, {"who": "Yuri", "n": 1}, {"who": null, "n": 5}]));
    assert_eq!(ids(&sort::apply(&table.view(), &path("owner.name"), true)), [2, 1, 3, 4, 5]);
    assert_eq!(ids(&pick::distinct(&table.view(), &[path("owner.name")])), [1, 2, 4]);
    let named = [NamedPath { name: "owner.name".into(), path: path("owner.name") }];
    assert_eq!(json_rows(&project::apply(&table.view(), &named))[0], json!({"owner.name": "Xena"}));
}

#[test]
fn a_singleton_is_exactly_one_row() {
    let table = Table::of(json!([{"id": 1}, {"id": 2}]));
    assert_eq!(
        pick::singleton(&table.rows, "`x`").unwrap_err().to_string(),
        "`x` has more than one row where there must be one"
    );
    assert!(pick::singleton(&Rowset::default(), "`x`").is_err());
    assert_eq!(ids(&pick::singleton(&pick::limit(&table.rows, 1), "`x`").unwrap()), [1]);
    assert_eq!(ids(&pick::last(&table.rows)), [2]);
}

#[test]
fn a_reached_limit_of_partial_rows_is_complete_unless_they_were_sorted() {
    let rows = vec![json!({"id": 1, "n": 1}).as_object().unwrap().clone(); 3];
    let part = Table::new(rows, Coverage::partial(PartialReason::RowBudget));
    assert_eq!(pick::limit(&part.rows, 3).coverage, Coverage::Complete);
    assert_eq!(pick::limit(&part.rows, 4).coverage, part.rows.coverage);
    let sorted = sort::apply(&part.view(), &path("n"), false);
    assert_eq!(pick::limit(&sorted, 1).coverage, part.rows.coverage, "a row that was not read might come before");
    assert_eq!(pick::limit(&pick::last(&part.rows), 1).coverage, part.rows.coverage);
    assert_eq!(pick::limit(&part.filtered("n", ComparisonOp::Eq, json!(1)), 2).coverage, Coverage::Complete);
    let count = aggregate::aggregate(&part.view(), &[spec("n", Function::Count, None)]);
    assert_eq!(pick::limit(&count, 1).coverage, part.rows.coverage);
}

fn any_row() -> impl Strategy<Value = Row> {
    let number = prop_oneof![
        Just(Value::Null),
        (-3i64..4).prop_map(Value::from),
        (-4i32..5).prop_map(|n| json!(f64::from(n) / 2.0))
    ];
    let text = prop_oneof![Just(Value::Null), "[abAB]{0,2}".prop_map(Value::from)];
    let time = prop_oneof![
        Just(Value::Null),
        (0u8..4, 0u8..3).prop_map(|(h, offset)| json!(format!("2026-01-01T{h:02}:00:00+{offset:02}:00"))),
        (0u8..4).prop_map(|h| json!(format!("2026-01-01T{h:02}:00:00Z")))
    ];
    let flag = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from)];
    let tags = prop_oneof![Just(Value::Null), prop::collection::vec("[ab]", 0..3).prop_map(Value::from)];
    (number, text, time, flag, tags).prop_map(|(n, s, t, b, tags)| {
        let row = json!({"n": n, "s": s, "t": t, "b": b, "tags": tags});
        row.as_object().cloned().unwrap_or_default()
    })
}

fn any_table() -> impl Strategy<Value = Table> {
    let coverage = prop_oneof![
        Just(Coverage::Complete),
        Just(Coverage::Unknown),
        Just(Coverage::partial(PartialReason::RowBudget)),
        Just(Coverage::partial(PartialReason::Bound)),
    ];
    (prop::collection::vec(any_row(), 0..12), coverage).prop_map(|(rows, coverage)| {
        let numbered = rows.into_iter().enumerate().map(|(id, mut row)| {
            row.insert("id".into(), json!(id));
            row
        });
        Table::new(numbered.collect(), coverage)
    })
}

/// Returns the order of two scalars by a naive implementation; `None` if they are not comparable.
fn naive_order(name: &str, a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) if name == "t" => {
            Some(a.parse::<jiff::Timestamp>().ok()?.cmp(&b.parse::<jiff::Timestamp>().ok()?))
        }
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn naive_passes(name: &str, result: &Value, op: ComparisonOp, want: &Value) -> bool {
    let equal = |result: &Value| naive_order(name, result, want) == Some(Ordering::Equal);
    let order = naive_order(name, result, want);
    match op {
        ComparisonOp::Eq if want.is_null() => result.is_null(),
        ComparisonOp::Ne if want.is_null() => !result.is_null(),
        ComparisonOp::Eq => result.as_array().map_or_else(|| equal(result), |items| items.iter().any(equal)),
        ComparisonOp::Ne => !result.as_array().map_or_else(|| equal(result), |items| items.iter().any(equal)),
        ComparisonOp::Lt => order == Some(Ordering::Less),
        ComparisonOp::Gt => order == Some(Ordering::Greater),
        ComparisonOp::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        ComparisonOp::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        ComparisonOp::Like => {
            let low = |v: &Value| v.as_str().unwrap_or_default().to_lowercase();
            let one = |v: &Value| v.is_string() && low(v).contains(&low(want));
            result.as_array().map_or_else(|| one(result), |items| items.iter().any(one))
        }
    }
}

const NAMES: [&str; 4] = ["n", "s", "t", "b"];

/// A pure step with random parameters.
#[derive(Debug, Clone)]
enum PureStep {
    Filter(i64),
    Sort(bool),
    Limit(usize),
    Distinct,
    Group,
    Count,
    Last,
}

fn any_step() -> impl Strategy<Value = PureStep> {
    prop_oneof![
        (-3i64..4).prop_map(PureStep::Filter),
        any::<bool>().prop_map(PureStep::Sort),
        (0usize..6).prop_map(PureStep::Limit),
        Just(PureStep::Distinct),
        Just(PureStep::Group),
        Just(PureStep::Count),
        Just(PureStep::Last),
    ]
}

/// Applies each step of the chain to the result of the previous step.
fn chained(table: &Table, chain: &[PureStep]) -> Rowset {
    let count = [spec("n", Function::Count, None)];
    let by = [NamedPath { name: "s".into(), path: path("s") }];
    let mut rows = table.rows.clone();
    for step in chain {
        let view = RowsView { rows: &rows, columns: &table.columns, of: None, catalogs: &table.catalogs };
        rows = match step {
            PureStep::Filter(than) => {
                let test =
                    FilterTest { path: path("n"), op: ComparisonOp::Ge, value: json!(than).into(), kind: Type::Number };
                filter::apply(&view, &[test], &[json!(than)])
            }
            PureStep::Sort(descending) => sort::apply(&view, &path("n"), *descending),
            PureStep::Limit(count) => pick::limit(&rows, *count),
            PureStep::Distinct => pick::distinct(&view, &[path("s")]),
            PureStep::Group => aggregate::group(&view, &by, &count),
            PureStep::Count => aggregate::aggregate(&view, &count),
            PureStep::Last => pick::last(&rows),
        };
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_complete_result_of_partial_rows_equals_the_result_of_all_rows(
        world in any_table(), read in 0usize..12, chain in prop::collection::vec(any_step(), 1..6),
    ) {
        let mut whole = world;
        whole.rows.coverage = Coverage::Complete;
        let read = read.min(whole.rows.rows.len());
        let mut part = Table::new(Vec::new(), Coverage::Complete);
        part.rows.rows = whole.rows.rows[..read].to_vec();
        if read < whole.rows.rows.len() {
            part.rows.coverage = Coverage::partial(PartialReason::PageBudget);
        }
        let of_part = chained(&part, &chain);
        let of_whole = chained(&whole, &chain);
        prop_assert_eq!(&of_whole.coverage, &Coverage::Complete);
        if of_part.coverage == Coverage::Complete {
            prop_assert_eq!(json_rows(&of_part), json_rows(&of_whole), "{:?} over {} rows", chain, read);
        }
    }

    #[test]
    fn filters_equal_the_naive_filter(table in any_table(), other in any_row(), at in 0usize..5, op in 0usize..7) {
        let name = ["n", "s", "t", "b", "tags"][at];
        let op = [ComparisonOp::Eq, ComparisonOp::Ne, ComparisonOp::Lt, ComparisonOp::Le, ComparisonOp::Gt, ComparisonOp::Ge, ComparisonOp::Like][op];
        let mut want = other[name].clone();
        if name == "tags" {
            want = want.get(0).cloned().unwrap_or(json!("a"));
        }
        prop_assume!(op != ComparisonOp::Like || want.is_string() && name != "t");
        let expected: Vec<i64> = table.rows.rows.iter().filter(|row| naive_passes(name, &row[name], op, &want))
            .map(|row| row["id"].as_i64().unwrap_or(-1)).collect();
        let result = table.filtered(name, op, want.clone());
        prop_assert_eq!(ids(&result), expected, "{} {:?} {}", name, op, want);
        prop_assert_eq!(&result.coverage, &table.rows.coverage);
    }

    #[test]
    fn sorts_equal_the_naive_sort(table in any_table(), at in 0usize..4, descending: bool) {
        let name = NAMES[at];
        let mut expected: Vec<(i64, Value)> =
            table.rows.rows.iter().map(|row| (row["id"].as_i64().unwrap_or(-1), row[name].clone())).collect();
        // Insertion sort is stable, and it is another algorithm than the sort under test.
        let before = |a: &Value, b: &Value| match (a.is_null(), b.is_null()) {
            (false, true) => true,
            (true, _) => false,
            _ => naive_order(name, a, b) == Some(if descending { Ordering::Greater } else { Ordering::Less }),
        };
        for position in 1..expected.len() {
            let mut to = position;
            while to > 0 && before(&expected[to].1, &expected[to - 1].1) {
                expected.swap(to, to - 1);
                to -= 1;
            }
        }
        let result = sort::apply(&table.view(), &path(name), descending);
        prop_assert_eq!(ids(&result), expected.into_iter().map(|(id, _)| id).collect::<Vec<_>>());
        prop_assert_eq!(result.leading, table.rows.coverage == Coverage::Complete);
    }

    #[test]
    fn groups_equal_the_naive_groups(table in any_table(), at in 0usize..4) {
        let name = NAMES[at];
        // Dates are grouped by their text, because the group's value is copied from the rows.
        let key = |row: &Row| match &row[name] {
            Value::Number(n) => format!("{:?}", n.as_f64()),
            other => other.to_string(),
        };
        let mut order: Vec<String> = Vec::new();
        let mut counts: BTreeMap<String, (u64, f64)> = BTreeMap::new();
        for row in &table.rows.rows {
            if !counts.contains_key(&key(row)) {
                order.push(key(row));
            }
            let entry = counts.entry(key(row)).or_default();
            entry.0 += 1;
            entry.1 += row["n"].as_f64().unwrap_or(0.0);
        }
        let by = [NamedPath { name: "k".into(), path: path(name) }];
        let specs = [spec("count", Function::Count, None), spec("sum", Function::Sum, Some("n"))];
        let result = aggregate::group(&table.view(), &by, &specs);
        let shown: Vec<(u64, f64)> = result.rows.iter()
            .map(|row| (row["count"].as_u64().unwrap_or(0), row["sum"].as_f64().unwrap_or(-99.0))).collect();
        prop_assert_eq!(shown, order.iter().map(|k| counts[k]).collect::<Vec<_>>());
        let firsts = pick::distinct(&table.view(), &[path(name)]);
        prop_assert_eq!(firsts.rows.len(), order.len());
        prop_assert_eq!(&firsts.coverage, &table.rows.coverage);
    }

    #[test]
    fn a_result_of_partial_rows_is_not_complete(table in any_table(), count in 0usize..14) {
        let partial = table.rows.coverage != Coverage::Complete;
        let specs = [spec("n", Function::Count, None)];
        let view = table.view();
        let by = [NamedPath { name: "k".into(), path: path("n") }];
        for result in [
            sort::apply(&view, &path("n"), false),
            table.filtered("n", ComparisonOp::Ne, json!(1)),
            aggregate::aggregate(&view, &specs),
            aggregate::group(&view, &by, &specs),
            pick::distinct(&view, &[path("s")]),
            project::apply(&view, &by),
            pick::last(&table.rows),
        ] {
            prop_assert_eq!(result.coverage != Coverage::Complete, partial);
        }
        let limited = pick::limit(&table.rows, count);
        prop_assert_eq!(limited.rows.len(), count.min(table.rows.rows.len()));
        prop_assert_eq!(limited.coverage == Coverage::Complete, !partial || table.rows.rows.len() >= count);
        let top = pick::limit(&sort::apply(&view, &path("n"), true), count);
        prop_assert_eq!(top.coverage == Coverage::Complete, !partial);
    }
}
