//! Tests of whole programs on the demo API: check, plan and run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base::{Limits, Method, Response};
use exec::{Coverage, Outcome};
use serde_json::{Value, json};
use testkit::memory::MemoryReceipts;

use crate::support::{self, Demo, RunOptions, plan_program, run_with, writes_catalog};

async fn run_program(demo: &Demo, program: &str) -> Outcome {
    let catalog = demo.catalog();
    let receipts = MemoryReceipts::new();
    let with = RunOptions { receipts: Some(&receipts), ..RunOptions::default() };
    run_with(&demo.http, &plan_program(&catalog, program, &Limits::default()), &catalog, with).await
}

/// Returns the rows of the last result.
fn last_rows(outcome: &Outcome) -> Value {
    support::rows(outcome, outcome.returns.len() - 1)
}

#[tokio::test]
async fn a_list_is_filtered_by_one_value_several_values_and_text() {
    let demo = Demo::start(Duration::from_secs(10)).await;
    let all = last_rows(&run_program(&demo, "Ticket{project=\"OPS\"}[number, labels]").await);
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
    let one = two[0].as_str();
    let other = two[1].as_str();
    let has = |labels: &[String], wanted: &str| labels.iter().any(|l| l == wanted);
    let part = &one[1..];
    type Matches<'f> = &'f dyn Fn(&[String]) -> bool;
    let cases: [(String, Matches<'_>); 4] = [
        (format!("labels=\"{one}\""), &|l| has(l, one)),
        (format!("labels=[\"{one}\", \"{other}\"]"), &|l| has(l, one) && has(l, other)),
        (format!("labels!=[\"{one}\", \"{other}\"]"), &|l| !(has(l, one) && has(l, other))),
        (format!("labels~\"{part}\""), &|l| l.iter().any(|label| label.contains(part))),
    ];
    for (filter, matches) in cases {
        let actual =
            last_rows(&run_program(&demo, &format!("Ticket{{project=\"OPS\"}}.filter{{{filter}}}[number]")).await);
        let expected: Vec<Value> =
            labels.iter().filter(|(_, l)| matches(l)).map(|(n, _)| json!({"number": n})).collect();
        assert!(!expected.is_empty(), "{filter}");
        assert_eq!(actual, json!(expected), "{filter}");
    }
}

#[tokio::test]
async fn null_in_an_update_clears_its_field_only() {
    let demo = Demo::start(Duration::from_secs(10)).await;
    let ticket = "Ticket(project=\"OPS\", number=7)";
    let set = format!("{ticket}.set(owner=\"ada\", due=\"2026-03-31\", priority=2)[owner, due, priority]");
    assert_eq!(
        last_rows(&run_program(&demo, &set).await),
        json!([{"owner": "ada", "due": "2026-03-31", "priority": 2}])
    );
    let cleared = last_rows(&run_program(&demo, &format!("{ticket}.set(due=null)[owner, due, priority]")).await);
    assert_eq!(cleared, json!([{"owner": "ada", "due": null, "priority": 2}]));
    // A value of a row that is `null` clears the field too.
    let from = format!("t = {ticket}\n{ticket}.set(owner=t.due, priority=3)[owner, due, priority]");
    assert_eq!(last_rows(&run_program(&demo, &from).await), json!([{"owner": null, "due": null, "priority": 3}]));
    assert_eq!(demo.effects().await.len(), 3);
}

#[tokio::test]
async fn every_kind_of_read_returns_its_rows() {
    let demo = Demo::start(Duration::from_secs(10)).await;
    let all = last_rows(&run_program(&demo, "Ticket{project=\"OPS\"}[number, votes, state, owner]").await);
    let all = all.as_array().unwrap();
    let votes = |row: &Value| row["votes"].as_i64().unwrap();

    let top = last_rows(&run_program(&demo, "Ticket{project=\"OPS\"}.sort(votes, desc).limit(3)[number, votes]").await);
    let mut sorted: Vec<&Value> = all.iter().collect();
    sorted.sort_by_key(|row| -votes(row));
    let expected: Vec<Value> =
        sorted[..3].iter().map(|r| json!({"number": r["number"], "votes": r["votes"]})).collect();
    assert_eq!(top, json!(expected));

    let sums = last_rows(&run_program(&demo, "Ticket{project=\"OPS\"}.aggregate(n=count, v=sum(votes))").await);
    assert_eq!(sums, json!([{"n": all.len(), "v": all.iter().map(votes).sum::<i64>()}]));

    let busy =
        last_rows(&run_program(&demo, "Ticket{project=\"OPS\"}.filter{votes>=10, state!=\"done\"}[number]").await);
    let fits = |row: &&Value| votes(row) >= 10 && row["state"] != json!("done");
    assert_eq!(busy.as_array().unwrap().len(), all.iter().filter(fits).count());

    let groups = last_rows(&run_program(&demo, "Ticket{project=\"OPS\"}.group_by(state, n=count).sort(n, desc)").await);
    let count: u64 = groups.as_array().unwrap().iter().map(|g| g["n"].as_u64().unwrap()).sum();
    assert_eq!(count as usize, all.len());

    let named = last_rows(&run_program(&demo, "Ticket{project=\"OPS\"}.limit(5)[number, owner.name]").await);
    for row in named.as_array().unwrap() {
        let known = all.iter().find(|r| r["number"] == row["number"]).unwrap();
        assert_eq!(row["owner.name"].is_null(), known["owner"].is_null(), "{row} {known}");
    }
    let text = "t = Ticket{project=\"OPS\"}.limit(2)\nr = t <<T\n{% for r in rows %}#{{ r.number }} {% endfor %}\nT\nr";
    let text = last_rows(&run_program(&demo, text).await);
    assert_eq!(text, json!([{"content": format!("#{} #{} ", all[0]["number"], all[1]["number"])}]));
}

#[tokio::test]
async fn derived_rows_can_use_values_of_earlier_results() {
    let demo = Demo::start(Duration::from_secs(10)).await;
    let program = "t = Ticket{project=\"OPS\"}.sort(votes, desc).first()\nt => {number: _.number, line: \"#{{ _.number }} of {{ _.project }}\"}";
    let created = last_rows(&run_program(&demo, program).await);
    assert_eq!(created[0]["line"], json!(format!("#{} of OPS", created[0]["number"])));
    let outcome = run_program(&demo, "t = Ticket(project=\"OPS\", number=1)\nt.comments[id, text]").await;
    assert_eq!(outcome.returns[0].result.as_ref().unwrap().coverage, Coverage::Complete);
}

#[tokio::test]
async fn a_write_per_row_happens_exactly_once() {
    let demo = Demo::start(Duration::from_secs(10)).await;
    demo.set_fault("POST", "status=503;when=after;times=1").await;
    let program = "[\"db\", \"cache\"] => Ticket.keyed(project=\"OPS\", title=\"Chaos day: {{ _ }}\")";
    let outcome = run_program(&demo, program).await;
    let created = last_rows(&outcome);
    let titles: Vec<&Value> = created.as_array().unwrap().iter().map(|row| &row["title"]).collect();
    assert_eq!(titles, [&json!("Chaos day: db"), &json!("Chaos day: cache")]);
    assert_eq!((outcome.receipts.len(), demo.effects().await.len()), (2, 2));
    let program = "new = Ticket.keyed(project=\"OPS\", title=\"first\")\nTicket(project=\"OPS\", number=new.number).edit(title=\"second\")";
    let outcome = run_program(&demo, program).await;
    assert_eq!(last_rows(&outcome)[0]["title"], json!("second"));
}

/// An API with endless data: every list has another page, every page is full of new rows, and every reference is new.
#[derive(Default)]
struct EndlessApi {
    reads: AtomicUsize,
    writes: AtomicUsize,
}

#[async_trait]
impl ports::Upstream for EndlessApi {
    async fn send_checked(
        &self,
        call: ports::upstream::Call,
        check: &dyn ports::upstream::DepartureCheck,
    ) -> Result<Response, ports::upstream::Error> {
        if check.may_leave().await.is_err() {
            return Err(ports::upstream::Error::Withheld { label: call.request.label() });
        }
        let is_write = call.request.method != Method::Get;
        let number = if is_write { &self.writes } else { &self.reads }.fetch_add(1, Ordering::SeqCst);
        let path = call.request.path.as_str();
        let ticket = |n: usize| {
            json!({"project": "OPS", "number": number * 1000 + n, "title": "t", "votes": n, "labels": [],
                "owner": {"id": format!("p{number}-{n}")}, "state": "open"})
        };
        let body = match path.rsplit('/').next() {
            Some("tickets") if !is_write => {
                json!({"data": (0..100).map(ticket).collect::<Vec<_>>(), "total": 1_000_000})
            }
            Some("comments") => {
                let comment = |n: usize| json!({"id": number * 1000 + n, "text": "c"});
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
    let catalog = writes_catalog("http://demo.localhost");
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
        let plan = plan_program(&catalog, program, &Limits::default());
        let upstream = EndlessApi::default();
        let receipts = MemoryReceipts::new();
        let with = RunOptions { receipts: Some(&receipts), ..RunOptions::default() };
        let outcome = run_with(&upstream, &plan, &catalog, with).await;
        let reads = upstream.reads.load(Ordering::SeqCst);
        let writes = upstream.writes.load(Ordering::SeqCst);
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
