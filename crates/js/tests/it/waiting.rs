//! Tests of scripts that wait: their pending calls, the answers, and the continuation from a stored heap.

use ports::scripts::{Call, Error, Input, Outcome, Thrown};
use serde_json::json;

use crate::support::{Session, pending_calls, programs};

#[test]
fn a_pending_call_is_settled() {
    let mut session = Session::new();
    let calls = session.pending_calls("const rows = await plasm('e1 limit 3'); rows.length");
    assert_eq!(programs(&calls), [(1, "e1 limit 3")]);
    let outcome = session.settle(vec![(1, Ok(json!([1, 2, 3])))]);
    assert!(matches!(outcome, Outcome::Completed(ports::scripts::Completion::Json(value)) if value == json!(3)));
}

#[test]
fn an_answer_may_be_an_error() {
    let mut session = Session::new();
    session.pending_calls(
        "try { await plasm('x') } catch (error) { [error.name, error.message, error instanceof Error] }",
    );
    let thrown = Thrown { name: "Refused".into(), message: "no: \u{1f600} %s".into(), stack: String::new() };
    let Outcome::Completed(value) = session.settle(vec![(1, Err(thrown))]) else { panic!() };
    assert_eq!(value, ports::scripts::Completion::Json(json!(["Refused", "no: \u{1f600} %s", true])));
}

#[test]
fn a_call_id_is_never_used_twice_in_a_lineage() {
    let mut session = Session::new();
    let first = session.pending_calls("await plasm('a')");
    session.settle(vec![(first[0].id, Ok(json!(0)))]);
    let fork = session.head;
    let second = session.pending_calls("await plasm('b')");
    session.head = fork;
    let other = session.pending_calls("await plasm('c')");
    assert!(second[0].id > first[0].id && other[0].id > first[0].id);
}

#[test]
fn an_answer_to_a_call_that_is_not_pending_is_an_error() {
    let mut session = Session::new();
    session.pending_calls("await Promise.all([plasm('a'), plasm('b')])");
    let waiting = session.head;
    for answers in [vec![3], vec![0], vec![u64::MAX], vec![1, 1], vec![1, 2, 2]] {
        let answers: Vec<_> = answers.into_iter().map(|id| (id, Ok(json!(1)))).collect();
        let error = session.attempt(Input::Settle { answers }).unwrap_err();
        assert!(matches!(error, Error::NoCall(_)), "{error}");
        assert_eq!(session.head, waiting);
    }
    pending_calls(session.settle(vec![(2, Ok(json!("b")))]));
    let error = session.attempt(Input::Settle { answers: vec![(2, Ok(json!("again")))] }).unwrap_err();
    assert!(matches!(error, Error::NoCall(2)), "{error}");
    let Outcome::Completed(value) = session.settle(vec![(1, Ok(json!("a")))]) else { panic!() };
    assert_eq!(value, ports::scripts::Completion::Json(json!(["a", "b"])));
}

#[test]
fn a_run_ends_when_only_timers_are_pending() {
    let mut session = Session::new();
    assert_eq!(session.json("setTimeout(() => console.log('never'), 1000); 1"), json!(1));
    assert_eq!(session.json("2"), json!(2));
    let calls = session.pending_calls("plasm('left alone').then(() => console.log('done')); 3");
    assert_eq!(calls.len(), 1);
    session.settle(vec![(calls[0].id, Ok(json!(null)))]);
    assert_eq!(session.console(), "done\n");
    let calls = session.pending_calls("await new Promise((done) => setTimeout(done, 7)); 4");
    assert_eq!(calls[0].call, Call::Timer { ms: 7 });
    assert!(matches!(session.settle(vec![(calls[0].id, Ok(json!(null)))]), Outcome::Completed(_)));
}

#[test]
fn a_promise_that_nothing_settles_fails_at_once() {
    let mut session = Session::new();
    let thrown = session.threw("await new Promise(() => {})");
    assert!(thrown.message.contains("awaits a promise that nothing will settle"), "{}", thrown.message);
    assert!(
        session
            .threw("(async () => { for await (const x of (async function* () { await new Promise(() => 0) })()) x })()")
            .message
            .contains("nothing will settle")
    );
}

#[test]
fn a_new_script_drops_the_pending_calls_of_an_old_one() {
    let mut session = Session::new();
    session.pending_calls("globalThis.x = 1; await plasm('old'); x = 2");
    assert_eq!(session.json("x"), json!(1));
    assert!(matches!(session.attempt(Input::Settle { answers: vec![(1, Ok(json!(1)))] }), Err(Error::NoCall(1))));
}

/// At each await the heap is the complete state of the script, so a new engine can continue from the objects.
#[test]
fn a_script_is_finished_by_engines_that_did_not_start_it() {
    let program = "class Sum { #n = 0; add(m) { this.#n += m; return this } get n() { return this.#n } }
        const sum = new Sum(), seen = [];
        function* steps() { for (let i = 0; i < 4; i++) yield i }
        for (const i of steps()) {
          const batch = await Promise.all([1, 2, 3].map(async (j) => { const r = await plasm(`${i}.${j}`); return r.n * 2 }));
          batch.forEach((n) => sum.add(n)); seen.push(batch.join());
        }
        [sum.n, seen]";
    let expected = json!([4 * (2 + 4 + 6) + 3 * 2 * (10 + 20 + 30), ["2,4,6", "22,24,26", "42,44,46", "62,64,66"]]);
    for with_new_engines in [false, true] {
        let mut session = Session::new();
        let mut outcome = session.run(program);
        let mut parks = 0;
        let value = loop {
            match outcome {
                Outcome::Waiting { owed } => {
                    if with_new_engines {
                        session.move_to_new_engine();
                    }
                    parks += 1;
                    // Answers come one at a time, that of the last call first.
                    let (id, program) = *programs(&owed).last().unwrap();
                    let (i, j) = program.split_once('.').unwrap();
                    let n = i.parse::<u64>().unwrap() * 10 + j.parse::<u64>().unwrap();
                    outcome = session.settle(vec![(id, Ok(json!({ "n": n })))]);
                }
                Outcome::Completed(ports::scripts::Completion::Json(value)) => break value,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((value, parks), (expected.clone(), 12), "with new engines: {with_new_engines}");
    }
}

#[test]
fn too_many_pending_calls_are_refused() {
    let mut session = Session::new();
    let thrown =
        session.threw("const all = []; for (let i = 0; i < 20000; i++) all.push(plasm('x')); await Promise.all(all)");
    assert_eq!(thrown.name, "RangeError");
}
