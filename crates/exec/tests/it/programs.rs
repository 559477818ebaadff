//! Whole programs on the demo API: what the checker accepts and the planner plans is what the executor runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base::{Limits, Method, Response};
use catalog::Catalog;
use exec::{Coverage, Outcome};
use lang::plan::Plan;
use lang::scope::{ExposedEntity, Scope};
use serde_json::{Value, json};
use testkit::memory::MemoryReceipts;

use crate::support::{self, Demo, With, go_with};

fn plan(catalog: &Arc<Catalog>, program: &str) -> Plan {
    let exposed = |(at, (name, entity)): (usize, (&String, &catalog::Entity))| ExposedEntity {
        symbol: format!("e{}", at + 1),
        catalog: catalog.clone(),
        entity: name.clone(),
        relations: entity.relations.keys().enumerate().map(|(n, r)| (format!("r{at}{n}"), r.clone())).collect(),
        methods: catalog.methods(name).enumerate().map(|(n, c)| (format!("m{at}{n}"), c.name.clone())).collect(),
    };
    let scope = Scope { entities: catalog.entities.iter().enumerate().map(exposed).collect(), ..Scope::default() };
    let limits = Limits::default();
    let parsed = lang::syntax::parse(program, &limits);
    assert!(parsed.diagnostics.is_empty(), "{program}: {:?}", parsed.diagnostics);
    let (checked, _) = lang::check::check(&scope, &parsed.program).unwrap_or_else(|e| panic!("{program}: {e:?}"));
    lang::plan::plan(&checked, &limits)
}

async fn go(demo: &Demo, program: &str) -> Outcome {
    let catalog = demo.catalog();
    let receipts = MemoryReceipts::new();
    let with = With { receipts: Some(&receipts), ..With::default() };
    go_with(&demo.http, &plan(&catalog, program), &catalog, with).await
}

fn last(outcome: &Outcome) -> Value {
    support::rows(outcome, outcome.returns.len() - 1)
}

#[tokio::test]
async fn a_list_is_filtered_by_one_value_several_values_and_text() {
    let demo = Demo::start(Duration::from_secs(10)).await;
    let all = last(&go(&demo, "Ticket{project=\"OPS\"}[number, labels]").await);
    let labels: Vec<(i64, Vec<String>)> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let labels = row["labels"].as_array().unwrap().iter().map(|l| l.as_str().unwrap().to_owned()).collect();
            (row["number"].as_i64().unwrap(), labels)
        })
        .collect();
    let two = labels.iter().find(|(_, labels)| labels.len() > 1).map(|(_, labels)| labels.clone()).unwrap();
    let (one, other) = (two[0].as_str(), two[1].as_str());
    let has = |labels: &[String], wanted: &str| labels.iter().any(|l| l == wanted);
    let part = &one[1..];
    type Fits<'f> = &'f dyn Fn(&[String]) -> bool;
    let cases: [(String, Fits<'_>); 4] = [
        (format!("labels=\"{one}\""), &|l| has(l, one)),
        (format!("labels=[\"{one}\", \"{other}\"]"), &|l| has(l, one) && has(l, other)),
        (format!("labels!=[\"{one}\", \"{other}\"]"), &|l| !(has(l, one) && has(l, other))),
        (format!("labels~\"{part}\""), &|l| l.iter().any(|label| label.contains(part))),
    ];
    for (filter, fits) in cases {
        let found = last(&go(&demo, &format!("Ticket{{project=\"OPS\"}}.filter{{{filter}}}[number]")).await);
        let expected: Vec<Value> = labels.iter().filter(|(_, l)| fits(l)).map(|(n, _)| json!({"number": n})).collect();
        assert!(!expected.is_empty(), "{filter}");
        assert_eq!(found, json!(expected), "{filter}");
    }
}

#[tokio::test]
async fn null_in_an_update_clears_its_field_only() {
    let demo = Demo::start(Duration::from_secs(10)).await;
    let ticket = "Ticket(project=\"OPS\", number=7)";
    let set = format!("{ticket}.set(owner=\"ada\", due=\"2026-03-31\", priority=2)[owner, due, priority]");
    assert_eq!(last(&go(&demo, &set).await), json!([{"owner": "ada", "due": "2026-03-31", "priority": 2}]));
    let emptied = last(&go(&demo, &format!("{ticket}.set(due=null)[owner, due, priority]")).await);
    assert_eq!(emptied, json!([{"owner": "ada", "due": null, "priority": 2}]));
    // The same from a row without a value there.
    let from = format!("t = {ticket}\n{ticket}.set(owner=t.due, priority=3)[owner, due, priority]");
    assert_eq!(last(&go(&demo, &from).await), json!([{"owner": null, "due": null, "priority": 3}]));
    assert_eq!(demo.effects().await.len(), 3);
}

#[tokio::test]
async fn every_kind_of_read_returns_its_rows() {
    let demo = Demo::start(Duration::from_secs(10)).await;
    let all = last(&go(&demo, "Ticket{project=\"OPS\"}[number, votes, state, owner]").await);
    let all = all.as_array().unwrap();
    let votes = |row: &Value| row["votes"].as_i64().unwrap();

    let top = last(&go(&demo, "Ticket{project=\"OPS\"}.sort(votes, desc).limit(3)[number, votes]").await);
    let mut sorted: Vec<&Value> = all.iter().collect();
    sorted.sort_by_key(|row| -votes(row));
    let expected: Vec<Value> =
        sorted[..3].iter().map(|r| json!({"number": r["number"], "votes": r["votes"]})).collect();
    assert_eq!(top, json!(expected));

    let sums = last(&go(&demo, "Ticket{project=\"OPS\"}.aggregate(n=count, v=sum(votes))").await);
    assert_eq!(sums, json!([{"n": all.len(), "v": all.iter().map(votes).sum::<i64>()}]));

    let busy = last(&go(&demo, "Ticket{project=\"OPS\"}.filter{votes>=10, state!=\"done\"}[number]").await);
    let fits = |row: &&Value| votes(row) >= 10 && row["state"] != json!("done");
    assert_eq!(busy.as_array().unwrap().len(), all.iter().filter(fits).count());

    let groups = last(&go(&demo, "Ticket{project=\"OPS\"}.group_by(state, n=count).sort(n, desc)").await);
    let count: u64 = groups.as_array().unwrap().iter().map(|g| g["n"].as_u64().unwrap()).sum();
    assert_eq!(count as usize, all.len());

    let named = last(&go(&demo, "Ticket{project=\"OPS\"}.limit(5)[number, owner.name]").await);
    for row in named.as_array().unwrap() {
        let known = all.iter().find(|r| r["number"] == row["number"]).unwrap();
        assert_eq!(row["owner.name"].is_null(), known["owner"].is_null(), "{row} {known}");
    }
    let text = "t = Ticket{project=\"OPS\"}.limit(2)\nr = t <<T\n{% for r in rows %}#{{ r.number }} {% endfor %}\nT\nr";
    let text = last(&go(&demo, text).await);
    assert_eq!(text, json!([{"content": format!("#{} #{} ", all[0]["number"], all[1]["number"])}]));
}

#[tokio::test]
async fn derived_rows_can_use_values_of_earlier_results() {
    let demo = Demo::start(Duration::from_secs(10)).await;
    let program = "t = Ticket{project=\"OPS\"}.sort(votes, desc).first()\nt => {number: _.number, line: \"#{{ _.number }} of {{ _.project }}\"}";
    let made = last(&go(&demo, program).await);
    assert_eq!(made[0]["line"], json!(format!("#{} of OPS", made[0]["number"])));
    let outcome = go(&demo, "t = Ticket(project=\"OPS\", number=1)\nt.comments[id, text]").await;
    assert_eq!(outcome.returns[0].result.as_ref().unwrap().coverage, Coverage::Complete);
}

#[tokio::test]
async fn a_write_per_row_happens_exactly_once() {
    let demo = Demo::start(Duration::from_secs(10)).await;
    demo.fault("POST", "status=503;when=after;times=1").await;
    let program = "[\"db\", \"cache\"] => Ticket.keyed(project=\"OPS\", title=\"Chaos day: {{ _ }}\")";
    let outcome = go(&demo, program).await;
    let made = last(&outcome);
    let titles: Vec<&Value> = made.as_array().unwrap().iter().map(|row| &row["title"]).collect();
    assert_eq!(titles, [&json!("Chaos day: db"), &json!("Chaos day: cache")]);
    assert_eq!((outcome.receipts.len(), demo.effects().await.len()), (2, 2));
    let program = "new = Ticket.keyed(project=\"OPS\", title=\"first\")\nTicket(project=\"OPS\", number=new.number).edit(title=\"second\")";
    let outcome = go(&demo, program).await;
    assert_eq!(last(&outcome)[0]["title"], json!("second"));
}

/// An API without end: every list has another page, every page is full of new rows, every reference is new.
#[derive(Default)]
struct Endless {
    reads: AtomicUsize,
    writes: AtomicUsize,
}

#[async_trait]
impl ports::Upstream for Endless {
    async fn send(&self, call: ports::upstream::Call) -> Result<Response, ports::upstream::Error> {
        let write = call.request.method != Method::Get;
        let at = if write { &self.writes } else { &self.reads }.fetch_add(1, Ordering::SeqCst);
        let path = call.request.path.as_str();
        let ticket = |n: usize| {
            json!({"project": "OPS", "number": at * 1000 + n, "title": "t", "votes": n, "labels": [],
                "owner": {"id": format!("p{at}-{n}")}, "state": "open"})
        };
        let body = match path.rsplit('/').next() {
            Some("tickets") if !write => json!({"data": (0..100).map(ticket).collect::<Vec<_>>(), "total": 1_000_000}),
            Some("comments") => {
                let comment = |n: usize| json!({"id": at * 1000 + n, "text": "c"});
                json!({"data": (0..100).map(comment).collect::<Vec<_>>(), "total": 1_000_000})
            }
            Some(last) if path.contains("/people/") => json!({"id": last, "name": last}),
            _ => ticket(1),
        };
        Ok(Response { status: 200, headers: vec![], body: body.to_string().into_bytes() })
    }
}

#[tokio::test]
async fn no_program_makes_more_calls_than_its_plan_allows() {
    let text = include_str!("support/writes.yaml").replace("ORIGIN", "http://demo.localhost");
    let catalog = Arc::new(catalog::read("writes.yaml", &text).unwrap());
    for program in [
        "Ticket",
        "Ticket.limit(7)",
        "Ticket.page_size(3).limit(50)",
        "Ticket.sort(votes, desc).limit(3)[number, owner.name]",
        "Ticket.limit(30).comments[id]",
        "Ticket.limit(30).comments.limit(500)",
        "Ticket.limit(12).owner[name]",
        "Ticket[number, owner.name]",
        "Ticket.group_by(owner.name, n=count)",
        "Ticket.filter{owner.name~\"p1\"}.limit(5)",
        "t = Ticket.limit(4)\nt => {n: _.number, said: Comment{ticket=_}.aggregate(n=count).n}",
        "t = Ticket.limit(9)\nt => _.edit(title=\"x {{ _.owner.name }}\")",
        "Ticket => _.delete()",
        "[\"a\", \"b\"] => Ticket.keyed(project=\"OPS\", title=\"{{ _ }}\")",
        "a = Ticket.limit(5)\nb = a.comments\nc = a.owner\na[number], b[id], c[name]",
    ] {
        let (plan, upstream, receipts) = (plan(&catalog, program), Endless::default(), MemoryReceipts::new());
        let with = With { receipts: Some(&receipts), ..With::default() };
        let outcome = go_with(&upstream, &plan, &catalog, with).await;
        let (reads, writes) = (upstream.reads.load(Ordering::SeqCst), upstream.writes.load(Ordering::SeqCst));
        let calls: usize = plan.bounds.calls.values().sum();
        let effects: usize = plan.bounds.effects.values().sum();
        assert!(reads + writes <= calls, "{program}: {reads} + {writes} of {calls}");
        assert!(writes <= effects && outcome.receipts.len() == writes, "{program}: {writes} of {effects}");
        for (returned, finished) in plan.returns.iter().zip(&outcome.returns) {
            let rows = finished.result.as_ref().map_or_else(|e| panic!("{program}: {e}"), |set| set.rows.len());
            assert!(rows <= plan.steps[returned.step].rows, "{program}: {rows} rows");
        }
        assert!(reads + writes > 0, "{program}");
    }
}
