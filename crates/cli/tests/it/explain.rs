//! Tests of `tokamak explain`: a page of `docs/errors/` is printed unchanged, and similar codes are printed for an unknown code.

use crate::program::tokamak;

#[test]
fn a_page_is_printed_unchanged() {
    let ended = tokamak(&["explain", "e204"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let page = std::fs::read_to_string("../../docs/errors/E0204.md").unwrap();
    assert_eq!(ended.out, page);
    assert_eq!(tokamak(&["explain", "E0204", "--json"]).json()["page"], page);
}

#[test]
fn an_unknown_code_is_answered_with_similar_codes() {
    let ended = tokamak(&["explain", "E0299"]);
    assert_eq!(ended.code, 3);
    assert!(ended.err.contains("E0299") && ended.err.contains("E0209"), "{}", ended.err);
    assert_eq!(tokamak(&["explain", "E0299", "--json"]).error()["error"]["code"], "no_code");
}
