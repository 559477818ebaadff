//! Golden cases of whole conversations over the shipped catalogs, as the text a model reads: `discover …`, `context "intent"
//! seeds…` (and `replay`), `plan …` and `run …`, one call a line.

use std::sync::{Arc, LazyLock};

use access::Caller;
use base::{Limits, Timestamp};
use catalog::Catalog;
use serde_json::json;
use server::text;
use session::{DiscoverRequest, OpenRequest, PlanRequest, Ports, RunAnswer, RunRequest, SeedRequest, Service};
use teach::{SlotStyle, Teaching};
use testkit::memory::{CountingEntropy, ManualClock, MemoryBlobs, MemoryStore};
use testkit::upstream::{Rule, ScriptedUpstream};

fn caller() -> Caller {
    Caller::local()
}

fn shipped() -> Vec<Arc<Catalog>> {
    let files = std::fs::read_dir("../../catalogs").unwrap().map(|entry| entry.unwrap().path());
    let yaml = files.filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        Arc::new(catalog::read(&path.display().to_string(), &text).unwrap_or_else(|rejected| panic!("{rejected}")))
    };
    yaml.map(read).collect()
}

static SHIPPED: LazyLock<Vec<Arc<Catalog>>> = LazyLock::new(shipped);

/// The answer of GitHub to the only call that a case makes.
fn github() -> ScriptedUpstream {
    let issue = json!({
        "number": 7, "title": "Crash on start", "state": "open", "comments": 2, "user": {"login": "ada"},
        "repository_url": "https://api.github.com/repos/octocat/hello", "labels": [{"name": "bug"}], "assignees": [],
        "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05Z", "closed_at": null,
        "html_url": "https://github.com/octocat/hello/issues/7", "body": "It crashes."
    });
    ScriptedUpstream::new().with(Rule::get("/repos/octocat/hello/issues").json(200, json!([issue])))
}

fn service(style: SlotStyle) -> Arc<Service> {
    let ports = Ports {
        store: Arc::new(MemoryStore::new()),
        blobs: Arc::new(MemoryBlobs::new()),
        upstream: Arc::new(github()),
        clock: Arc::new(ManualClock::at(Timestamp(0))),
        entropy: Arc::new(CountingEntropy::new()),
    };
    let registry = catalog::Registry::new(SHIPPED.iter().cloned()).unwrap();
    let teaching = Teaching { slots: style, ..Teaching::default() };
    Arc::new(Service::new(ports, registry, Limits::default()).with_teaching(teaching))
}

fn context(line: &str) -> OpenRequest {
    let (_, rest) = line.split_once('"').unwrap();
    let (intent, seeds) = rest.split_once('"').unwrap();
    let mut request = OpenRequest::new(intent, Vec::new());
    for word in seeds.split_whitespace() {
        let Some((api, entity)) = word.split_once(':') else {
            assert_eq!(word, "replay");
            request.replay = true;
            continue;
        };
        let mut parts = entity.split('+');
        let entity = parts.next().unwrap().to_owned();
        let capabilities = parts.map(str::to_owned).collect();
        request.seeds.push(SeedRequest { api: api.to_owned(), entity, capabilities });
    }
    request
}

async fn answer(service: &Arc<Service>, line: &str) -> String {
    let (what, rest) = line.split_once(' ').unwrap();
    let (session, program) = ("s0".to_owned(), rest.to_owned());
    let answered = match what {
        "discover" => {
            let request = DiscoverRequest { intent: program, ..DiscoverRequest::default() };
            service.discover(&caller(), &request).map(|found| text::discovered(&found))
        }
        "context" => service.open(&caller(), &context(rest)).await.map(|opened| text::opened(&opened)),
        "plan" => service.plan(&caller(), &PlanRequest { session, program }).await.map(|p| text::planned(&p, rest)),
        "run" => {
            let request = RunRequest { session, program: Some(program), ..RunRequest::default() };
            service.run(&caller(), &request).await.map(|ran| match ran {
                RunAnswer::Finished(ran) => text::run(&ran, service.limits().shown_chars).text,
                RunAnswer::Running(operation) => text::running(&operation),
            })
        }
        other => panic!("{other}"),
    };
    answered.unwrap_or_else(|error| text::session_error(&error))
}

#[test]
fn golden_context() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    testkit::golden::run("../../tests/context", |case| {
        let style = if case.attribute("slots") == Some("names") { SlotStyle::Names } else { SlotStyle::Symbols };
        let service = service(style);
        let answers = case.input.lines().map(|line| runtime.block_on(answer(&service, line)));
        answers.collect::<Vec<_>>().join("\n\n")
    });
}
