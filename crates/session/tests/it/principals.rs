//! Principals of one tenant that bring their own credentials: each has its own sessions, runs, traces, executions and transports.

use access::{Caller, Identity};
use base::{Principal, TenantId};
use serde_json::json;
use session::{CallRecord, Error, ForkRequest, ListRequest, OpenRequest, RunAnswer, SeedRequest, SessionTarget};

use crate::harness::program_request;
use crate::js_harness::{JsHarness, Process, expect_completed, logical_request, named_request};

fn caller(name: &str) -> Caller {
    Identity { tenant: TenantId::local(), principal: Principal::parse(name).unwrap() }.caller(None)
}

fn process() -> (JsHarness, Process) {
    let harness = JsHarness { delegated: true, ..JsHarness::new() };
    let process = harness.process();
    (harness, process)
}

fn open(process: &Process, caller: &Caller, intent: &str) -> session::OpenedSession {
    let request = OpenRequest::new(intent, vec![SeedRequest::all("demo", "Project")]);
    process.block_on(process.service.open(caller, &request)).unwrap()
}

#[test]
fn the_same_intent_is_another_session_for_another_principal() {
    let (_harness, process) = process();
    let (ada, bob) = (caller("ada"), caller("bob"));
    let of_ada = open(&process, &ada, "task");
    let of_bob = open(&process, &bob, "task");
    assert!(of_ada.session != of_bob.session && of_ada.execute != of_bob.execute);
    assert_eq!(open(&process, &ada, "task").session, of_ada.session, "each finds its own again");
    let service = &process.service;
    for reference in [of_ada.session.to_string(), "task".to_owned()] {
        let found = process.block_on(service.session_id(&bob, &reference));
        assert!(found.is_err() || found.unwrap() == of_bob.session, "{reference}");
    }
    let (sessions, omitted) = process.block_on(service.list_sessions(&bob, 100)).unwrap();
    assert_eq!((sessions.len(), omitted), (1, 0));
    assert_eq!(sessions[0].logical_session_id, of_bob.session);
    // The operator sees both.
    assert_eq!(process.block_on(service.list_sessions(&Caller::local(), 100)).unwrap().0.len(), 2);
    // A session is removed with its intent, and the other stays.
    process.block_on(service.remove_session(&ada, "task")).unwrap();
    assert!(open(&process, &ada, "task").session != of_ada.session);
    assert_eq!(open(&process, &bob, "task").session, of_bob.session);
}

#[test]
fn no_handle_of_a_principal_finds_anything_for_another() {
    let (harness, process) = process();
    harness.memory.upstream.add(testkit::upstream::Rule::get("/api/projects").json(200, json!({"items": []})));
    let (ada, bob) = (caller("ada"), caller("bob"));
    let opened = open(&process, &ada, "task");
    open(&process, &bob, "another task");
    let service = process.service.clone();
    let session = opened.session.to_string();
    let ran = process.block_on(service.run(&ada, &program_request("Project"))).unwrap();
    let RunAnswer::Finished(ran) = ran else { panic!("still running") };
    let script = logical_request(&session, json!([{"set": ["a", 1]}]));
    let execution = expect_completed(process.block_on(service.run_js(&ada, &script)));
    let named =
        expect_completed(process.block_on(service.run_js(&ada, &named_request("mine", json!([{"set": ["a", 1]}])))));
    service.record(&ada, &session, CallRecord::default());
    process.block_on(service.write_traces()).unwrap();

    let missing = |what: &str, found: Result<(), Error>| {
        let error = found.expect_err(what);
        assert!(error.is_missing() || error.code() == "no_artifact", "{what}: {error:?}");
    };
    let uris = [
        format!("plasm://session/{session}/r/1"),
        format!("plasm://execute/{}/{}/run/{}", opened.execute.prompt_hash, opened.execute.session_id, ran.run),
        "plasm://r/1".to_owned(),
    ];
    for uri in &uris[..2] {
        process.block_on(service.resource(&ada, uri)).unwrap();
    }
    for uri in &uris {
        missing(uri, process.block_on(service.resource(&bob, uri)).map(drop));
    }
    missing("trace", process.block_on(service.trace(&bob, &session)).map(drop));
    assert_eq!(process.block_on(service.trace(&ada, &session)).unwrap().len(), 1);
    missing("view", process.block_on(service.session_view(&bob, &session)).map(drop));
    missing("removal", process.block_on(service.remove_session(&bob, &session)).map(drop));
    let fork = ForkRequest { session: session.clone(), intent: "a fork".to_owned(), at: None };
    missing("fork", process.block_on(service.fork_session(&bob, &fork)).map(drop));
    missing("rewind", process.block_on(service.rewind_session(&bob, &session, 0)).map(drop));
    let (prompt_hash, execute) = (opened.execute.prompt_hash.to_string(), opened.execute.session_id.to_string());
    let address = service.execute_address(bob.clone(), &prompt_hash, &execute);
    missing("address", process.block_on(address).map(drop));
    for id in [execution.id, named.id] {
        let id = id.to_string();
        assert!(process.block_on(service.execution(&ada, &id)).is_ok());
        missing("execution", process.block_on(service.execution(&bob, &id)).map(drop));
        missing("output", process.block_on(service.execution_output(&bob, &id, &Default::default())).map(drop));
        missing("waiting", process.block_on(service.wait_for_execution(&bob, &id, 0)).map(drop));
        missing("cancelling", process.block_on(service.cancel_execution(&bob, &id)).map(drop));
    }
    assert!(process.block_on(service.executions(&bob, None, 10)).unwrap().is_empty());
    assert_eq!(process.block_on(service.executions(&ada, None, 10)).unwrap().len(), 2);
    let names = |caller: &Caller| process.block_on(service.js_sessions(caller, &ListRequest::default())).unwrap().rows;
    assert_eq!((names(&ada).len(), names(&bob).len()), (2, 0));
    assert!(names(&ada).contains(&"mine".to_owned()), "a principal reads the name that it chose: {:?}", names(&ada));
    let log = |caller: &Caller, target| process.block_on(service.session_log(caller, &target));
    assert!(log(&bob, SessionTarget::Named("mine".to_owned())).unwrap().is_empty());
    assert!(log(&bob, SessionTarget::Named("ada/mine".to_owned())).unwrap().is_empty());
    assert_eq!(log(&ada, SessionTarget::Named("mine".to_owned())).unwrap().len(), 1);
    missing("log", log(&bob, SessionTarget::Logical(session.clone())).map(drop));
    missing(
        "program",
        process
            .block_on(
                service.run(&bob, &session::RunRequest { session: session.clone(), ..program_request("Project") }),
            )
            .map(drop),
    );
    missing("script", process.block_on(service.run_js(&bob, &logical_request(&session, json!([])))).map(drop));
}

#[test]
fn a_transport_session_belongs_to_the_principal_that_opened_it() {
    let (_harness, process) = process();
    let (ada, bob) = (caller("ada"), caller("bob"));
    let service = &process.service;
    process.block_on(service.store_transport(&ada, "id", b"{}".to_vec())).unwrap();
    assert_eq!(process.block_on(service.transport(&bob, "id")).unwrap(), None);
    process.block_on(service.drop_transport(&bob, "id")).unwrap();
    assert_eq!(process.block_on(service.transport(&ada, "id")).unwrap(), Some(b"{}".to_vec()));
    process.block_on(service.drop_transport(&ada, "id")).unwrap();
    assert_eq!(process.block_on(service.transport(&ada, "id")).unwrap(), None);
}
