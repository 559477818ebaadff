//! An upgrade: heaps of another engine build, with real components only.
//! Invariant: the other engine is compiled here from the same sources by the same code; its code and its memory
//! layout differ.

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

/// Every address after the stack differs.
const OTHER: guest::Build = guest::Build { compiler_flags: &["-O1"], stack_bytes: 5 << 20, memory_bytes: 6 << 20 };

/// An engine that an earlier release could have had. The compiler's own cache makes repeated runs cheap.
fn other_guest() -> Vec<u8> {
    let crate_js = Path::new(env!("CARGO_MANIFEST_DIR")).join("../js").canonicalize().unwrap();
    let work = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("another-guest");
    guest::build_guest(&guest::BuildPaths::for_crate(&crate_js, work).unwrap(), &OTHER).unwrap()
}

const MAKE: &str = "
    let n = 0;
    const next = ((step) => () => n += step)(2);
    function* count() { let at = 10; while (true) at += (yield at) ?? 1 }
    const counting = count(); counting.next();
    class Account { #balance = 5; pay(by) { return this.#balance -= by } }
    const account = new Account(), map = new Map([['k', {v: [1, 2]}]]), pattern = /a(.)/g;
    pattern.exec('ab ac');
    let answer; const promised = new Promise((done) => { answer = done }).then((text) => text + '!');
    next()";

const USE: &str = "
    answer('later');
    [next(), counting.next(5).value, account.pay(1), map.get('k').v, pattern.exec('ab ac')[1], await promised]";

#[test]
fn heaps_of_another_build_go_on_after_an_upgrade_and_without_their_engine_it_is_named() {
    let (house, old_guest) = (RealHarness::new(), other_guest());
    let p = house.process(Engine::start_with(&settings(), &old_guest).unwrap());
    let old = p.engine.engine();
    p.block(harness::open(&p.service));
    assert_eq!(value(&p.run(&logical("s0", MAKE))), json!(2));
    let made = p.run(&logical("s0", "next()")).heap.unwrap();
    let parked = "const before = next(); await new Promise((done) => setTimeout(done, 1500)); [before, next(), counting.next().value]";
    let parked = p.run(&RunJsRequest { wait_ms: Some(200), ..logical("s0", parked) });
    assert_eq!(parked.state, ExecutionState::Running);
    drop(p);

    let p = house.process(Engine::start(&settings()).unwrap());
    let new = p.engine.engine();
    assert_ne!((old, old_guest.as_slice()), (new, p.engine.guest()));
    assert_eq!(p.block(p.service.resume_js(&[TenantId::local()])).unwrap(), 1);
    assert_eq!(value(&p.ended(&parked.id.to_string())), json!([6, 8, 11]));
    let ran = p.run(&logical("s0", USE));
    assert_eq!(value(&ran), json!([10, 16, 4, [1, 2], "c", "later!"]));
    let head = ran.heap.unwrap();
    assert_eq!(value(&p.run(&on(made, "[next(), counting.next().value]"))), json!([6, 11]), "where it was before");
    compared(&p, (made, head), (old, new));
    taken_along(&p, head, old);
    drop(p);
    lost(&house, head, (old, &old_guest));
}

/// New heaps belong to the new engine; heaps of both engines can be shown and compared.
fn compared(p: &RealProcess, (made, head): (Digest, Digest), (old, new): (Digest, Digest)) {
    let info = |heap: Digest| p.block(p.service.heap_info(&me(), &heap.to_string())).unwrap();
    let fresh = p.run(&code("let n = 12; const map = 'another'; n")).heap.unwrap();
    assert_eq!((info(made).engine, info(head).engine, info(fresh).engine), (old, old, new));
    assert!(info(head).memory_bytes > info(fresh).memory_bytes, "its memory begins with more");
    let diff = |a: Digest, b: Digest| {
        let diff = p.block(p.service.diff_heaps(&me(), &a.to_string(), &b.to_string())).unwrap();
        let changed = diff.changed.into_iter().map(|changed| changed.name).collect::<Vec<_>>();
        (changed, diff.added.into_iter().map(|added| added.name).collect::<Vec<_>>(), diff.removed.len())
    };
    let (changed, added, removed) = diff(made, head);
    assert!(changed.contains(&"n".to_owned()) && !changed.contains(&"map".to_owned()), "{changed:?}");
    assert_eq!((added, removed), (vec!["before".to_owned()], 0));
    let (changed, added, removed) = diff(made, fresh);
    assert_eq!((changed, added, removed), (vec!["map".to_owned(), "n".to_owned()], Vec::new(), 8));
}

/// Moves a heap as one file to a server that never had its engine.
fn taken_along(p: &RealProcess, head: Digest, old: Digest) {
    let file = p.block(p.service.export_heap(&me(), &head.to_string())).unwrap();
    let elsewhere = RealHarness::new();
    let there = elsewhere.process(Engine::start(&settings()).unwrap());
    assert_eq!(there.block(there.service.import_heap(&me(), &file, &session::Tags::new())).unwrap(), head);
    drop(there);
    let there = elsewhere.process(Engine::start(&settings()).unwrap());
    let ran = there.run(&on(head, "[next(), counting.next().value, account.pay(1)]"));
    assert_eq!(value(&ran), json!([12, 17, 3]));
    let info = there.block(there.service.heap_info(&me(), &ran.heap.unwrap().to_string())).unwrap();
    assert_eq!(info.engine, old);
}

/// Without the engine's bytes or its row, every use names the missing engine, and no head moves.
fn lost(house: &RealHarness, head: Digest, (old, old_guest): (Digest, &[u8])) {
    let names = |error: Error| {
        assert_eq!(error.code(), "no_engine", "{error}");
        assert!(error.to_string().contains(&old.to_string()), "{error}");
    };
    let row = Key::new(&TenantId::local(), Table::Guest, old.to_string());
    for what in ["its bytes", "its row"] {
        let p = house.process(Engine::start(&settings()).unwrap());
        let kept = p.block(p.store.get(&row)).unwrap().unwrap();
        match what {
            "its bytes" => {
                assert!(p.block(p.blobs.delete(&Digest::of(old_guest), Duration::ZERO)).unwrap());
            }
            _ => p.block(p.store.commit(Batch::default().delete(row.clone(), Expect::Any))).unwrap(),
        }
        let ran = p.run(&logical("s0", "next()"));
        let error = ran.error.unwrap();
        assert_eq!((ran.state, error.name.as_str()), (ExecutionState::Failed, "no_engine"), "{what}");
        assert!(error.message.contains(&old.to_string()), "{what}: {}", error.message);
        let key = head.to_string();
        names(p.block(p.service.diff_heaps(&me(), &key, &key)).unwrap_err());
        names(p.block(p.service.export_heap(&me(), &key)).unwrap_err());
        let lineage = p.block(p.service.session_lineage(&me(), &SessionTarget::Logical("s0".into()))).unwrap();
        assert_eq!(lineage.head, Some(head), "{what}");
        assert_eq!(value(&p.run(&code("1 + 1"))), json!(2), "new heaps need no old engine");
        p.block(p.blobs.put(old_guest)).unwrap();
        p.block(p.store.commit(Batch::default().put(row.clone(), kept.value, Expect::Any))).unwrap();
    }
    let p = house.process(Engine::start(&settings()).unwrap());
    assert_eq!(value(&p.run(&logical("s0", "next()"))), json!(12), "it is there again");
}
