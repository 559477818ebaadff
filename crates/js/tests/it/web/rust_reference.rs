//! Decoders, base64 and digests on random input, compared with Rust's results.

use std::cell::RefCell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use sha2::Digest as _;

use crate::support::Session;

/// Generates random bytes. Bytes that begin and end characters in an encoding are frequent.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte =
        prop_oneof![any::<u8>(), 0x80_u8..0xc0, 0xc0_u8..=0xff, 0x20_u8..0x7f, Just(0xed), Just(0xf0), Just(0xf4)];
    vec(byte, 0..40)
}

/// Compares the code's result for random bytes with the reference.
fn check(code: &str, reference: impl Fn(&[u8]) -> Value) {
    let mut session = Session::new();
    session.run(&format!("const work = (list) => {{ const bytes = new Uint8Array(list); {code} }}"));
    let heap = session.head;
    let session = RefCell::new(session);
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases: 4, ..Config::default() });
    // Each step tests a hundred lists, because one step for each list would take too long.
    let result = runner.run(&vec(bytes(), 100), |lists| {
        let mut session = session.borrow_mut();
        session.head = heap;
        let results = session.json(&format!("{}.map(work)", json!(lists)));
        for (list, result) in lists.iter().zip(results.as_array().unwrap()) {
            prop_assert_eq!(result, &reference(list), "{:?}", list);
        }
        Ok(())
    });
    result.unwrap();
}

#[test]
fn utf8_is_decoded_as_in_rust() {
    check("return new TextDecoder('utf-8', {ignoreBOM: true}).decode(bytes)", |bytes| {
        json!(String::from_utf8_lossy(bytes))
    });
}

#[test]
fn utf16_is_decoded_as_in_rust() {
    for (label, read_unit) in [("le", u16::from_le_bytes as fn([u8; 2]) -> u16), ("be", u16::from_be_bytes)] {
        check(&format!("return new TextDecoder('utf-16{label}', {{ignoreBOM: true}}).decode(bytes)"), |bytes| {
            let (units, rest) = bytes.as_chunks::<2>();
            let mut text: String = char::decode_utf16(units.iter().map(|unit| read_unit(*unit)))
                .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            // Half a surrogate pair and a single byte at the end together give one replacement character.
            let ends_with_half_pair = units.last().is_some_and(|unit| (0xd800..0xdc00).contains(&read_unit(*unit)));
            if !rest.is_empty() && !ends_with_half_pair {
                text.push(char::REPLACEMENT_CHARACTER);
            }
            json!(text)
        });
    }
}

#[test]
fn base64_equals_rust_and_is_decoded_again() {
    check(
        "const text = String.fromCharCode(...bytes); const coded = btoa(text); return [coded, atob(coded) === text, atob(coded.replaceAll('=', '')) === text]",
        |bytes| json!([base64(bytes), true, true]),
    );
}

#[test]
fn digests_equal_those_of_rust() {
    let mut session = Session::new();
    let code = |name: &str, length: usize| {
        format!(
            "[...new Uint8Array(await crypto.subtle.digest('{name}', new Uint8Array({length}).map((_, i) => i * 7)))].map((b) => b.toString(16).padStart(2, '0')).join('')"
        )
    };
    for length in [0, 1, 55, 56, 63, 64, 65, 111, 112, 127, 128, 129, 1000] {
        let bytes: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
        let hex = |digest: &[u8]| json!(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        for (name, expected) in [
            ("SHA-1", hex(&sha1::Sha1::digest(&bytes))),
            ("SHA-256", hex(&sha2::Sha256::digest(&bytes))),
            ("SHA-384", hex(&sha2::Sha384::digest(&bytes))),
            ("SHA-512", hex(&sha2::Sha512::digest(&bytes))),
        ] {
            assert_eq!(session.json(&code(name, length)), expected, "{name} of {length}");
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let six = bits >> (18 - 6 * at) & 63;
            text.push(if at <= chunk.len() { ALPHABET[six as usize] as char } else { '=' });
        }
    }
    text
}
