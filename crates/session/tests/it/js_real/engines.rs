//! An upgrade of the engine: heaps of an older build keep working, also on other servers, if their engine is stored.
//! The older build is compiled here from the same sources with other options, so its code and memory layout differ.

use std::time::Duration;

use base::{Digest, TenantId};
use ports::store::{Batch, Expect, Key, Table};
use ports::{Blobs, Store};
use session::Error;

use super::*;
use crate::harness;

#[path = "../../../../js/build/guest.rs"]
#[allow(dead_code)] // only `build.rs` needs the rest
mod guest;

/// Another optimization and another size of the stack, so that every address after the stack differs.
const OLD_BUILD: guest::Build = guest::Build { compiler_flags: &["-O1"], stack_bytes: 5 << 20, memory_bytes: 6 << 20 };

/// Compiles an engine that an earlier release could have had. The compiler's own cache makes repeated runs cheap.
fn old_guest_bytes() -> Vec<u8> {
    let crate_js = Path::new(env!("CARGO_MANIFEST_DIR")).join("../js").canonicalize().unwrap();
    let work = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("another-guest");
    guest::build_guest(&guest::BuildPaths::for_crate(&crate_js, work).unwrap(), &OLD_BUILD).unwrap()
}

/// A script that makes state of many kinds: closures, generators, private fields, collections, patterns, promises.
const CREATE_STATE: &str = "
    let n = 0;
    const next = ((step) => () => n += step)(2);
    function* count() { let at = 10; while (true) at += (yield at) ?? 1 }
    const counting = count(); counting.next();
    class Account { #balance = 5; pay(by) { return this.#balance -= by } }
    const account = new Account(), map = new Map([['k', {v: [1, 2]}]]), pattern = /a(.)/g;
    pattern.exec('ab ac');
    let answer; const promised = new Promise((done) => { answer = done }).then((text) => text + '!');
    next()";

/// A script that uses all of that state.
const USE_STATE: &str = "
    answer('later');
    [next(), counting.next(5).value, account.pay(1), map.get('k').v, pattern.exec('ab ac')[1], await promised]";

#[test]
fn heaps_of_an_older_build_run_after_an_upgrade_and_errors_name_a_missing_engine() {
    let harness = RealHarness::new();
    let old_guest = old_guest_bytes();
    let process = harness.process(Engine::start_with(&engine_settings(), &old_guest).unwrap());
    let old_engine = process.engine.engine();
    process.block_on(harness::open_session(&process.service));
    assert_eq!(completed_value(&process.run(&logical_request("s0", CREATE_STATE))), json!(2));
    let early_heap = process.run(&logical_request("s0", "next()")).heap.unwrap();
    let parking_script = "const before = next(); await new Promise((done) => setTimeout(done, 1500)); [before, next(), counting.next().value]";
    let parked = process.run(&RunJsRequest { wait_ms: Some(200), ..logical_request("s0", parking_script) });
    assert_eq!(parked.state, ExecutionState::Running);
    drop(process);

    let process = harness.process(Engine::start(&engine_settings()).unwrap());
    let new_engine = process.engine.engine();
    assert_ne!((old_engine, old_guest.as_slice()), (new_engine, process.engine.guest()));
    assert_eq!(process.block_on(process.service.resume_js(&[TenantId::local()])).unwrap(), 1);
    assert_eq!(completed_value(&process.wait_for_end(&parked.id.to_string())), json!([6, 8, 11]));
    let execution = process.run(&logical_request("s0", USE_STATE));
    assert_eq!(completed_value(&execution), json!([10, 16, 4, [1, 2], "c", "later!"]));
    let head = execution.heap.unwrap();
    assert_eq!(
        completed_value(&process.run(&run_on_heap(early_heap, "[next(), counting.next().value]"))),
        json!([6, 11]),
        "an early heap has its old state"
    );
    check_comparison(&process, early_heap, head, old_engine, new_engine);
    check_export(&process, head, old_engine);
    drop(process);
    check_missing_engine(&harness, head, old_engine, &old_guest);
}

/// Checks that new heaps belong to the new engine, and that heaps of both engines can be shown and compared.
fn check_comparison(process: &RealProcess, early_heap: Digest, head: Digest, old_engine: Digest, new_engine: Digest) {
    let info = |heap: Digest| process.block_on(process.service.heap_info(&local_caller(), &heap.to_string())).unwrap();
    let fresh = process.run(&script_request("let n = 12; const map = 'another'; n")).heap.unwrap();
    assert_eq!((info(early_heap).engine, info(head).engine, info(fresh).engine), (old_engine, old_engine, new_engine));
    assert!(info(head).memory_bytes > info(fresh).memory_bytes, "the old build starts with more memory");
    let diff = |a: Digest, b: Digest| {
        let diff =
            process.block_on(process.service.diff_heaps(&local_caller(), &a.to_string(), &b.to_string())).unwrap();
        let changed = diff.changed.into_iter().map(|changed| changed.name).collect::<Vec<_>>();
        (changed, diff.added.into_iter().map(|added| added.name).collect::<Vec<_>>(), diff.removed.len())
    };
    let (changed, added, removed) = diff(early_heap, head);
    assert!(changed.contains(&"n".to_owned()) && !changed.contains(&"map".to_owned()), "{changed:?}");
    assert_eq!((added, removed), (vec!["before".to_owned()], 0));
    let (changed, added, removed) = diff(early_heap, fresh);
    assert_eq!((changed, added, removed), (vec!["map".to_owned(), "n".to_owned()], Vec::new(), 8));
}

/// Checks that a heap moves as one file to a server that never had its engine.
fn check_export(process: &RealProcess, head: Digest, old_engine: Digest) {
    let file = process.block_on(process.service.export_heap(&local_caller(), &head.to_string())).unwrap();
    let other_server = RealHarness::new();
    let other_process = other_server.process(Engine::start(&engine_settings()).unwrap());
    assert_eq!(
        other_process
            .block_on(other_process.service.import_heap(&local_caller(), &file, &session::Tags::new()))
            .unwrap(),
        head
    );
    drop(other_process);
    let other_process = other_server.process(Engine::start(&engine_settings()).unwrap());
    let execution = other_process.run(&run_on_heap(head, "[next(), counting.next().value, account.pay(1)]"));
    assert_eq!(completed_value(&execution), json!([12, 17, 3]));
    let info = other_process
        .block_on(other_process.service.heap_info(&local_caller(), &execution.heap.unwrap().to_string()))
        .unwrap();
    assert_eq!(info.engine, old_engine);
}

/// Checks that without the engine's bytes or its row every use names the missing engine, and no head moves.
fn check_missing_engine(harness: &RealHarness, head: Digest, old_engine: Digest, old_guest: &[u8]) {
    let assert_names_engine = |error: Error| {
        assert_eq!(error.code(), "no_engine", "{error}");
        assert!(error.to_string().contains(&old_engine.to_string()), "{error}");
    };
    let row = Key::new(&TenantId::local(), Table::Guest, old_engine.to_string());
    for missing in ["its bytes", "its row"] {
        let process = harness.process(Engine::start(&engine_settings()).unwrap());
        let stored_row = process.block_on(process.store.get(&row)).unwrap().unwrap();
        match missing {
            "its bytes" => {
                assert!(process.block_on(process.blobs.delete(&Digest::of(old_guest), Duration::ZERO)).unwrap());
            }
            _ => process.block_on(process.store.commit(Batch::default().delete(row.clone(), Expect::Any))).unwrap(),
        }
        let execution = process.run(&logical_request("s0", "next()"));
        let error = execution.error.unwrap();
        assert_eq!((execution.state, error.name.as_str()), (ExecutionState::Failed, "no_engine"), "{missing}");
        assert!(error.message.contains(&old_engine.to_string()), "{missing}: {}", error.message);
        let key = head.to_string();
        assert_names_engine(process.block_on(process.service.diff_heaps(&local_caller(), &key, &key)).unwrap_err());
        assert_names_engine(process.block_on(process.service.export_heap(&local_caller(), &key)).unwrap_err());
        let lineage = process
            .block_on(process.service.session_lineage(&local_caller(), &SessionTarget::Logical("s0".into())))
            .unwrap();
        assert_eq!(lineage.head, Some(head), "{missing}");
        assert_eq!(completed_value(&process.run(&script_request("1 + 1"))), json!(2), "new heaps need no old engine");
        process.block_on(process.blobs.put(old_guest)).unwrap();
        process
            .block_on(process.store.commit(Batch::default().put(row.clone(), stored_row.value, Expect::Any)))
            .unwrap();
    }
    let process = harness.process(Engine::start(&engine_settings()).unwrap());
    assert_eq!(
        completed_value(&process.run(&logical_request("s0", "next()"))),
        json!(12),
        "the engine is stored again"
    );
}
