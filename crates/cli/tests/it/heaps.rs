//! `tokamak js`, `execution` and `heap` on a data folder of their own.

use std::path::Path;

use crate::program::{Ended, tokamak, write};

const NOWHERE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A data folder.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let data = self.path().join("data").display().to_string();
        let all: Vec<&str> = arguments.iter().copied().chain(["--data", &data]).collect();
        tokamak(&all)
    }
}

/// 2 is a mistake in how it was called, 3 something that is not there; as `--json` says by its code.
#[test]
fn exit_codes_tell_what_is_wrong_from_what_is_missing() {
    let place = Place::new();
    let script = write(place.path(), "a.js", "1");
    let empty = write(place.path(), "empty.js", "  ");
    let long = format!("{}=v", "k".repeat(300));
    let name = "n".repeat(300);
    let cases: [(&[&str], i32, &str); 12] = [
        (&["heap", "show", NOWHERE], 3, "no_heap"),
        (&["heap", "export", NOWHERE, "-o", "/dev/null"], 3, "no_heap"),
        (&["heap", "diff", NOWHERE, NOWHERE], 3, "no_heap"),
        (&["execution", "show", "nothing"], 3, "no_execution"),
        (&["execution", "cancel", "nothing"], 3, "no_execution"),
        (&["js", &script, "--heap", NOWHERE], 3, "no_heap"),
        (&["heap", "show", "nothing"], 2, "bad_heap"),
        (&["heap", "import", &script], 2, "not_a_heap"),
        (&["js", &script, "--tag", &long], 2, "bad_tags"),
        (&["js", &empty], 2, "bad_code"),
        (&["js", &script, "--memory-mb", "100000"], 2, "bad_arguments"),
        (&["js", &script, "--session", &name], 2, "no_session_name"),
    ];
    for (arguments, code, word) in cases {
        let ended = place.run(&[arguments, &["--json"]].concat());
        assert_eq!((ended.code, ended.error()["error"]["code"].as_str()), (code, Some(word)), "{arguments:?}");
    }
    let threw = write(place.path(), "threw.js", "null.f()");
    assert_eq!(place.run(&["js", &threw]).code, 1, "a run that failed is a failure");
}
