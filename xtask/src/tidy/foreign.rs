//! Rule `foreign`: only named crates may use certain libraries, so that such a library can be replaced in one place.
//! Invariant: each row of the table has a reason. Every crate may use a library that is not in the table.

use super::Finding;
use crate::metadata::Kind;
use crate::source::Tree;

const RULE: &str = "foreign";

struct Row {
    library: &'static str,
    users: &'static [&'static str],
    /// Whether tests of any crate may use the library too.
    in_tests: bool,
    why: &'static str,
}

const TABLE: &[Row] = &[
    Row { library: "rmcp", users: &["server"], in_tests: false, why: "only the server speaks MCP" },
    Row {
        library: "axum",
        users: &["server", "demo", "testapi"],
        in_tests: false,
        why: "only server and the two APIs listen for HTTP",
    },
    Row {
        library: "async-graphql",
        users: &["testapi"],
        in_tests: false,
        why: "the product calls GraphQL APIs and serves none",
    },
    Row { library: "rusqlite", users: &["store"], in_tests: false, why: "only the store knows that there is SQL" },
    Row {
        library: "reqwest",
        users: &["upstream", "store"],
        in_tests: true,
        why: "requests leave only through upstream, and through store to the S3 of the settings",
    },
    Row { library: "anyhow", users: &["cli", "xtask"], in_tests: true, why: "a library has typed errors" },
    Row { library: "clap", users: &["cli", "xtask"], in_tests: false, why: "only a program has arguments" },
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        for dependency in package.dependencies.iter().filter(|d| !d.local) {
            let Some(row) = TABLE.iter().find(|row| row.library == dependency.name) else {
                continue;
            };
            if row.users.contains(&package.name.as_str()) || row.in_tests && dependency.kind == Kind::Dev {
                continue;
            }
            let place = (package.manifest.as_str(), package.line_of(dependency));
            let wrong = format!("`{}` depends on `{}`: {}", package.name, row.library, row.why);
            let fix = format!("remove it; only {} may use it", row.users.join(" and "));
            findings.push(Finding::new(RULE, place, wrong, fix));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::sample::package;

    fn is_refused(user: &str, library: &str, kind: Kind) -> bool {
        let packages = vec![package(user, &[(&format!("~{library}"), kind)])];
        !check(&Tree { packages, ..Tree::default() }).is_empty()
    }

    #[test]
    fn named_users_and_free_libraries_pass() {
        for (user, library, kind) in [
            ("server", "rmcp", Kind::Normal),
            ("demo", "axum", Kind::Normal),
            ("testapi", "async-graphql", Kind::Normal),
            ("store", "rusqlite", Kind::Normal),
            ("upstream", "reqwest", Kind::Normal),
            ("server", "reqwest", Kind::Dev),
            ("lang", "anyhow", Kind::Dev),
            ("xtask", "anyhow", Kind::Normal),
            ("cli", "clap", Kind::Normal),
            ("base", "serde", Kind::Normal),
        ] {
            assert!(!is_refused(user, library, kind), "{user} {library} {kind:?}");
        }
    }

    #[test]
    fn others_do_not() {
        for (user, library, kind) in [
            ("cli", "rmcp", Kind::Normal),
            ("testkit", "rmcp", Kind::Dev),
            ("cli", "axum", Kind::Normal),
            ("demo", "async-graphql", Kind::Normal),
            ("testkit", "rusqlite", Kind::Dev),
            ("demo", "reqwest", Kind::Normal),
            ("demo", "reqwest", Kind::Build),
            ("session", "anyhow", Kind::Normal),
            ("server", "clap", Kind::Normal),
        ] {
            assert!(is_refused(user, library, kind), "{user} {library} {kind:?}");
        }
    }
}
