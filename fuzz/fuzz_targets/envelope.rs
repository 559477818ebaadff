//! Reads any bytes as a JSON-RPC message, whole and in pieces of any size.
//! Invariant: nothing panics, a refusal is one line of JSON with the code of a mistake, and the id that is found in pieces does not
//! depend on where the pieces end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use message::{IdScanner, Message};
use serde_json::Value;

#[allow(dead_code, reason = "the check of `server`, whole; the crate around it would bring the web framework and the MCP SDK")]
#[path = "../../crates/server/src/message.rs"]
mod message;

fuzz_target!(|bytes: &[u8]| {
    match message::read(bytes) {
        Ok(Message::Request(id)) => assert!(id.is_string() || id.is_i64() || id.is_u64(), "{id}"),
        Ok(Message::Notification | Message::Answer) => {}
        Err(mistake) => {
            let answer = mistake.answer();
            assert!(!answer.contains(['\n', '\r']), "{answer}");
            let Ok(answer) = serde_json::from_str::<Value>(&answer) else { panic!("not JSON: {answer}") };
            assert_eq!(answer["error"]["code"], mistake.code);
        }
    }
    let whole = scanned(bytes, bytes.len().max(1));
    assert!(whole.is_null() || whole.is_string() || whole.is_i64() || whole.is_u64(), "{whole}");
    for size in [1, 2, 3, 64] {
        assert_eq!(scanned(bytes, size), whole, "in pieces of {size}");
    }
});

fn scanned(bytes: &[u8], size: usize) -> Value {
    let mut scanner = IdScanner::new();
    bytes.chunks(size).for_each(|piece| scanner.feed(piece));
    scanner.id()
}
