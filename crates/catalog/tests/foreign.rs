//! The catalogs of the end-to-end suite's foreign servers are read, and survive their canonical form.

// why: a failed expectation is the test's own failure.
#![allow(clippy::unwrap_used, clippy::panic)]

use catalog::{from_canonical, read};

#[test]
fn every_catalog_of_a_foreign_server_is_read() {
    let all = [
        ("jupyter.yaml", include_str!("../../../tests/e2e/foreign/jupyter.yaml")),
        ("etcd.yaml", include_str!("../../../tests/e2e/foreign/etcd.yaml")),
        ("blog.yaml", include_str!("../../../tests/e2e/foreign/blog.yaml")),
    ];
    let mut rejections = String::new();
    for (name, text) in all {
        // The suite fills the port; any will do here.
        match read(name, &text.replace("PORT", "1024")) {
            Ok(catalog) => {
                let again = from_canonical(catalog.canonical().as_bytes(), catalog.digest()).unwrap();
                assert_eq!(again, catalog, "{name}");
            }
            Err(rejected) => rejections.push_str(&rejected.to_string()),
        }
    }
    assert!(rejections.is_empty(), "{rejections}");
}
