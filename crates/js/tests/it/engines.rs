//! Two engines: an old heap goes on with the engine it was made by, after an upgrade too.

use std::sync::Arc;

use js::Engine;
use ports::Scripts;
use ports::scripts::Error;
use serde_json::json;

use crate::support::{Session, engine, settings, wait};

/// This build's guest with one more file in its prelude, as another build would have it.
fn another() -> Vec<u8> {
    let mut guest = engine().guest().to_vec();
    let section = b"\x0ftokamak.prelude99_more.js\0globalThis.generation = 'another'";
    guest.push(0);
    guest.push(section.len() as u8);
    guest.extend_from_slice(section);
    guest
}

#[test]
fn an_engine_has_one_name() {
    let one = Engine::start(&settings()).unwrap();
    let none = js::Settings { code: None, ..settings() };
    let compiled = Engine::start(&none).unwrap();
    assert_eq!(one.engine(), compiled.engine(), "from the cache and compiled now");
    assert_eq!(wait(one.admit_engine(one.guest().to_vec())).unwrap(), one.engine());
    assert_ne!(wait(one.admit_engine(another())).unwrap(), one.engine());
}

#[test]
fn an_old_heap_goes_on_after_an_upgrade() {
    let mut session = Session::on(Arc::new(Engine::start_with(&settings(), &another()).unwrap()));
    session.run("let made = generation + ' engine'");
    let (old, guest, key) = (session.engine.engine(), session.engine.guest().to_vec(), session.head.unwrap());
    let chain = session.chain();

    let upgraded = Arc::new(Engine::start(&settings()).unwrap());
    let error = wait(upgraded.admit(key, chain.clone())).unwrap_err();
    assert!(matches!(error, Error::NoEngine { heap, engine } if heap == key && engine == old), "{error}");
    assert_eq!(wait(upgraded.admit_engine(guest)).unwrap(), old);
    wait(upgraded.admit(key, chain)).unwrap();
    session.engine = upgraded;
    assert_eq!(session.json("made + '!'"), json!("another engine!"));
    assert_eq!(session.last.as_ref().unwrap().heap.engine, old);
    session.head = None;
    assert_eq!(session.json("typeof generation"), json!("undefined"), "new heaps are of the new engine");
}
