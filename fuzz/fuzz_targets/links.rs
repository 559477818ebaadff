//! Resolves any link to a next page against any path.
//! Invariant: a link that is followed is a path on the origin, which a URL parser reads as it was written.
#![no_main]

use base::Origin;
use catalog::{PageAddress, PagePosition, resolve_link};
use libfuzzer_sys::fuzz_target;
use url::Url;

const ORIGIN: &str = "https://api.example.com:8443";

fuzz_target!(|text: &str| {
    let (path, link) = text.split_once('\n').unwrap_or(("/v1/items", text));
    let Ok(origin) = Origin::parse(ORIGIN) else { panic!("the origin of the target is valid") };
    let page = PageAddress { origin: &origin, path: path.to_owned(), query: vec![("q".to_owned(), "a b".to_owned())] };
    let Ok(Some(PagePosition::Address { path, query })) = resolve_link(&page, link) else { return };
    assert!(path.starts_with('/') && !path.starts_with("//"), "{path}");
    let Ok(sent) = Url::parse(&format!("{ORIGIN}{path}")) else { panic!("{path}") };
    assert_eq!((sent.host_str(), sent.port(), sent.path()), (Some("api.example.com"), Some(8443), path.as_str()));
    assert!(sent.query().is_none() && sent.fragment().is_none() && sent.username().is_empty(), "{path}");
    // The address that was followed resolves to itself, so a list is not followed in circles.
    let next = PageAddress { origin: &origin, path, query };
    assert_eq!(resolve_link(&next, "#again"), Ok(None));
});
