//! The web-platform tests of URLs, from the crate `url`.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Session, package};

use super::HARNESS;

/// The reasons for known differences: the data of the crate is older than the standard that the prelude follows.
const CARET: &str = "the URL Standard has since put ^ into the set of the path: it is %5E there";
const SPACES: &str =
    "the URL Standard has since kept the spaces at the end of an opaque path, the last one before ? or # as %20";
const KNOWN_PARSE_FAILURES: &[(&str, &str)] = &[
    (r#""foo://host/ !\"$%&'()*+,-./:;<=>@[\\]^_`{|}~" on null"#, CARET),
    (r#""wss://host/ !\"$%&'()*+,-./:;<=>@[\\]^_`{|}~" on null"#, CARET),
];
const KNOWN_SETTER_FAILURES: &[(&str, &str)] = &[
    (
        "pathname of a:/ to \"\\u0000\\u0001\\t\\n\\r\\u001f !\\\"#$%&'()*+,-./09:;<=>?@AZ[\\\\]^_`az{|}~\u{7f}\u{80}\u{81}Éé\"",
        CARET,
    ),
    ("search of data:space ?query to \"\"", SPACES),
    ("search of sc:space ?query to \"\"", SPACES),
    ("search of data:space  ?query#fragment to \"\"", SPACES),
    ("search of sc:space  ?query#fragment to \"\"", SPACES),
    (
        "hash of data:space                                                                                                                                  #fragment to \"\"",
        SPACES,
    ),
    ("hash of sc:space    #fragment to \"\"", SPACES),
    ("hash of data:space  ?query#fragment to \"\"", SPACES),
    ("hash of sc:space  ?query#fragment to \"\"", SPACES),
];

const PARSE_TEST: &str = "
    const wrong = [];
    for (const {input, base, failure, ...wanted} of cases) {
        let url;
        try { url = base == null ? new URL(input) : new URL(input, base) } catch { url = undefined }
        const found = {};
        for (const name of Object.keys(wanted)) if (url && name in url) found[name] = String(url[name]);
        const good = failure ? url === undefined : url !== undefined && Object.keys(found).every((name) => found[name] === wanted[name]);
        if (!good) wrong.push(`${JSON.stringify(input)} on ${base}`);
    }
    wrong";

const SETTER_TEST: &str = "
    const wrong = [];
    for (const [name, cases] of Object.entries(all)) for (const {href, new_value, expected} of cases) {
        const url = new URL(href);
        url[name] = new_value;
        for (const [what, value] of Object.entries(expected)) if (url[what] !== value) { wrong.push(`${name} of ${href} to ${JSON.stringify(new_value)}`); break }
    }
    wrong";

fn test_data(file: &str) -> Value {
    let path = package("url-2.5.8").join("tests").join(file);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Fails if a failure is not in the list of known failures, or if a known failure does not happen.
fn check(failures: &Value, known: &[(&str, &str)], total: usize) {
    let failures: Vec<_> = failures.as_array().unwrap().iter().map(|failure| failure.as_str().unwrap()).collect();
    println!("{} of {total} pass", total - failures.len());
    let unknown: Vec<_> = failures.iter().filter(|failure| known.iter().all(|(name, _)| name != *failure)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    for (name, reason) in known {
        assert!(failures.contains(name), "{name} passes, but is listed: {reason}");
    }
}

#[test]
fn urls_are_parsed_as_the_web_platform_tests_say() {
    let cases: Vec<_> =
        test_data("urltestdata.json").as_array().unwrap().iter().filter(|case| case.is_object()).cloned().collect();
    assert!(cases.len() > 800, "{}", cases.len());
    let mut session = Session::new();
    session.run(HARNESS);
    let failures = session.json(&format!("const cases = {}; {PARSE_TEST}", json!(cases)));
    check(&failures, KNOWN_PARSE_FAILURES, cases.len());
}

#[test]
fn url_setters_work_as_the_web_platform_tests_say() {
    let mut all = test_data("setters_tests.json");
    all.as_object_mut().unwrap().remove("comment");
    let total = all.as_object().unwrap().values().map(|cases| cases.as_array().unwrap().len()).sum();
    assert!(total > 200, "{total}");
    let mut session = Session::new();
    let failures = session.json(&format!("const all = {all}; {SETTER_TEST}"));
    check(&failures, KNOWN_SETTER_FAILURES, total);
}
