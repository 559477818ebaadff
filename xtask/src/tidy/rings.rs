//! Rule `rings`: modules with the same parent must not use each other in a ring (a uses b and b uses a), at every depth of a crate.
//! Invariant: only the modules that a path names count, so the use of an item that lib.rs or mod.rs re-exports makes no ring.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proc_macro2::Delimiter;

use super::Finding;
use crate::source::tokens::{self, Kind, Token};
use crate::source::{SourceFile, Tree};

/// The rule about rings between the top-level modules of a crate.
const TOP_RULE: &str = "rings";

/// The rule about rings between modules with a common parent below the root of the crate.
const NESTED_RULE: &str = "nested-rings";

/// The modules whose rings are not reported, because the crate `durable` of the design will replace them.
const TO_BE_REPLACED: &[&str] = &["session::run", "session::js::run"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Uses> = BTreeMap::new();
    let code = tree.files.iter().filter(|file| file.in_src && !file.is_test && !is_binary(file));
    for file in code {
        crates.entry(file.owner.as_deref().unwrap_or_default()).or_default().add(file);
    }
    crates.iter().flat_map(|(name, uses)| uses.findings(name)).collect()
}

/// Returns whether a file is the root of another binary: `src/bin/x.rs`.
fn is_binary(file: &SourceFile) -> bool {
    file.path.contains("/src/bin/")
}

/// The modules of a crate, and the paths that each of them names.
#[derive(Default)]
struct Uses<'a> {
    modules: BTreeSet<Vec<String>>,
    /// The paths in the code. They are stored whole, because the names of all modules are known only after all files are read.
    paths: Vec<Use<'a>>,
}

struct Use<'a> {
    from: Vec<String>,
    to: Vec<String>,
    path: &'a str,
    line: usize,
}

impl<'a> Uses<'a> {
    fn add(&mut self, file: &'a SourceFile) {
        let module = module_of(file);
        self.declare(&module);
        self.walk(file, file.tokens(), &module);
    }

    /// Adds a module, and all modules that contain it.
    fn declare(&mut self, module: &[String]) {
        self.modules.extend((1..=module.len()).map(|length| module[..length].to_vec()));
    }

    fn walk(&mut self, file: &'a SourceFile, level: &[Token], module: &[String]) {
        for (at, token) in level.iter().enumerate() {
            if file.is_test_line(token.line) {
                continue;
            }
            let before = at.checked_sub(1).map(|index| &level[index]);
            match &token.kind {
                Kind::Group(Delimiter::Brace, inner) if opens_module(level, at).is_some() => {
                    let name = opens_module(level, at).map(String::from);
                    let inside: Vec<String> = module.iter().cloned().chain(name).collect();
                    self.declare(&inside);
                    self.walk(file, inner, &inside);
                }
                // The path before the braces of `use a::{…}` has been read together with the braces.
                Kind::Group(Delimiter::Brace, _) if before.is_some_and(Token::is_path_mark) => {}
                Kind::Group(_, inner) => self.walk(file, inner, module),
                // The path of `pub(in crate::a)` is no use of that module.
                Kind::Word(_) if at == 1 && level[0].is_word("in") => {}
                Kind::Word(_) if before.is_some_and(Token::is_path_mark) => {}
                Kind::Word(_) => self.start(file, &level[at..], module),
                _ => {}
            }
        }
    }

    /// Reads a path that starts with `crate`, `self` or `super`.
    fn start(&mut self, file: &'a SourceFile, path: &[Token], module: &[String]) {
        let base = match path[0].word() {
            Some("crate") => &[],
            Some("self") => module,
            Some("super") => &module[..module.len().saturating_sub(1)],
            _ => return,
        };
        if path.get(1).is_some_and(Token::is_path_mark) {
            self.follow(file, &path[2..], module, base.to_vec());
        }
    }

    /// Follows the remaining parts of a path from the module `reached`, and adds the module at its end. A path with braces has several ends.
    fn follow(&mut self, file: &'a SourceFile, rest: &[Token], module: &[String], mut reached: Vec<String>) {
        let Some(first) = rest.first() else { return };
        if let Some(group) = first.group(Delimiter::Brace) {
            for branch in tokens::parts(group) {
                self.follow(file, branch, module, reached.clone());
            }
            return;
        }
        match first.word() {
            Some("super") => {
                reached.pop();
            }
            Some("self") | None => {}
            Some(name) => reached.push(name.to_owned()),
        }
        if rest.get(1).is_some_and(Token::is_path_mark) {
            self.follow(file, &rest[2..], module, reached);
        } else {
            self.paths.push(Use { from: module.to_vec(), to: reached, path: &file.path, line: first.line });
        }
    }

    fn findings(&self, crate_name: &str) -> Vec<Finding> {
        // For each parent there is one graph: the modules of this parent and the uses between them.
        let mut graphs: BTreeMap<&[String], Graph> = BTreeMap::new();
        for used in &self.paths {
            let known =
                (0..=used.to.len()).rev().find(|length| *length == 0 || self.modules.contains(&used.to[..*length]));
            let to = &used.to[..known.unwrap_or(0)];
            let common = used.from.iter().zip(to).take_while(|(from, to)| from == to).count();
            if let (Some(from), Some(to)) = (used.from.get(common), to.get(common)) {
                let graph = graphs.entry(&used.from[..common]).or_default();
                graph.uses.entry(from).or_default().entry(to).or_insert((used.path, used.line));
            }
        }
        let mut findings = Vec::new();
        for (parent, graph) in &graphs {
            let rule = if parent.is_empty() { TOP_RULE } else { NESTED_RULE };
            let name = [&[crate_name.to_owned()], *parent].concat().join("::");
            if TO_BE_REPLACED.contains(&name.as_str()) {
                continue;
            }
            let rings: BTreeSet<Vec<&str>> = graph.uses.keys().filter_map(|module| graph.ring(module)).collect();
            findings.extend(rings.iter().map(|ring| graph.finding(rule, &name, ring)));
        }
        findings
    }
}

/// The uses between the modules of one parent: for each module the modules that it uses, each with the first place of a use.
#[derive(Default)]
struct Graph<'a> {
    uses: BTreeMap<&'a str, BTreeMap<&'a str, (&'a str, usize)>>,
}

impl<'a> Graph<'a> {
    /// Finds the shortest ring through a module. The ring begins with the module whose name is first in the alphabet.
    fn ring(&self, module: &'a str) -> Option<Vec<&'a str>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = VecDeque::from([module]);
        while let Some(from) = queue.pop_front() {
            for to in self.uses.get(from).into_iter().flat_map(BTreeMap::keys).copied() {
                if !came_from.contains_key(to) {
                    came_from.insert(to, from);
                    queue.push_back(to);
                }
            }
        }
        let mut ring = vec![*came_from.get(module)?];
        while let Some(&last) = ring.last().filter(|last| **last != module) {
            ring.push(came_from.get(last)?);
        }
        ring.reverse();
        let least = ring.iter().enumerate().min_by_key(|(_, name)| **name).map_or(0, |(index, _)| index);
        ring.rotate_left(least);
        Some(ring)
    }

    fn finding(&self, rule: &'static str, name: &str, ring: &[&str]) -> Finding {
        let place =
            |from: &str, to: &str| self.uses.get(from).and_then(|uses| uses.get(to)).copied().unwrap_or_default();
        let next = |index: usize| ring[(index + 1) % ring.len()];
        let steps: Vec<String> = ring
            .iter()
            .enumerate()
            .map(|(index, from)| {
                let (path, line) = place(from, next(index));
                format!("{from} -> {} ({path}:{line})", next(index))
            })
            .collect();
        let wrong = format!("modules of `{name}` use each other in a ring: {}", steps.join(", "));
        Finding::new(rule, place(ring[0], next(0)), wrong, "move the shared part to a module that both use")
    }
}

/// Returns the name of the module whose block `{ … }` is at this index.
fn opens_module(level: &[Token], at: usize) -> Option<&str> {
    let keyword = level.get(at.checked_sub(2)?)?;
    level[at - 1].word().filter(|_| keyword.is_word("mod"))
}

/// Returns the module path of a file. For `src/a/b.rs` and `src/a/b/mod.rs` it is `a::b`, and for lib.rs and main.rs it is empty.
fn module_of(file: &SourceFile) -> Vec<String> {
    let inside = file.path.split_once("/src/").map_or("", |(_, inside)| inside);
    let mut module: Vec<String> = inside.trim_end_matches(".rs").split('/').map(String::from).collect();
    if file.is_root() || file.name() == "mod.rs" {
        module.pop();
    }
    module
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample::tree;

    fn rings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/k/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        check(&tree(&files)).into_iter().map(|finding| finding.wrong).collect()
    }

    const B_USES_A: (&str, &str) = ("b.rs", "use crate::a::Thing;\n");

    #[test]
    fn two_modules_that_use_each_other_are_a_ring() {
        let findings = rings(&[("a/mod.rs", "\nuse crate::b::Thing;\n"), B_USES_A]);
        let drawn = "a -> b (crates/k/src/a/mod.rs:2), b -> a (crates/k/src/b.rs:1)";
        assert_eq!(findings, [format!("modules of `k` use each other in a ring: {drawn}")]);
    }

    #[test]
    fn every_way_to_write_a_use_is_found() {
        for a in [
            "fn f() -> crate::b::Thing { todo() }",
            "use crate::{c, b::{self, Thing}};",
            "use super::b;",
            "use super::{c, b};",
            "fn f() { println!(\"{}\", crate::b::X); }",
            "mod inner { use super::super::b; }",
            "mod inner { use super::super::{c, b::X}; }",
            "pub(crate) use crate::b::X;",
            "fn f() { for x in crate::b::all() {} }",
        ] {
            assert_eq!(rings(&[("a.rs", a), B_USES_A]).len(), 1, "{a}");
        }
        assert_eq!(rings(&[("a/deep.rs", "use super::super::b;"), B_USES_A]).len(), 1);
        assert_eq!(rings(&[("lib.rs", "mod a { use super::b; }"), B_USES_A]).len(), 1);
    }

    #[test]
    fn other_paths_make_no_ring() {
        for a in [
            "use crate::Thing;",
            "use crate::{Thing, Other};",
            "pub(in crate::b) struct X;",
            "// use crate::b;\nconst X: &str = \"crate::b::X\";",
            "#[cfg(test)]\nmod tests { use crate::b; }",
            "mod b { }\nuse self::b::X;",
            "mod inner { use super::b; }",
            "use other::b;",
            "use crate::*;",
        ] {
            assert_eq!(rings(&[("a.rs", a), B_USES_A]), [""; 0], "{a}");
        }
        assert_eq!(rings(&[("lib.rs", "mod a;\nmod b;\npub use crate::b::X;\npub use a::Y;"), B_USES_A]), [""; 0]);
        assert_eq!(rings(&[("a/tests.rs", "use crate::b;"), B_USES_A]), [""; 0]);
    }

    #[test]
    fn rings_below_the_root_are_found_under_their_parent() {
        let files =
            [("a/x.rs", "use crate::a::y;"), ("a/y.rs", "\nuse super::x::{self, X};"), ("a/mod.rs", "pub use x::X;")];
        let drawn = "x -> y (crates/k/src/a/x.rs:1), y -> x (crates/k/src/a/y.rs:2)";
        assert_eq!(rings(&files), [format!("modules of `k::a` use each other in a ring: {drawn}")]);
        let deep = [("a/b/x.rs", "use crate::a::c::Thing;"), ("a/c.rs", "use super::b::x::f;")];
        assert_eq!(rings(&deep).len(), 1);
        let files: Vec<(String, &str)> =
            deep.iter().map(|(path, text)| (format!("crates/k/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        assert_eq!(check(&tree(&files))[0].rule, NESTED_RULE);
    }

    #[test]
    fn a_child_may_use_its_parent() {
        let child = ("a/x.rs", "use super::{Shared, y::Y};");
        assert_eq!(
            rings(&[
                ("a/mod.rs", "mod x;\nuse self::x::X;\nuse crate::a::y;"),
                child,
                ("a/y.rs", "use super::Shared;")
            ]),
            [""; 0]
        );
    }

    #[test]
    fn a_long_ring_is_drawn_once_from_its_least_module() {
        let findings = rings(&[("c.rs", "use crate::a;"), ("a.rs", "use crate::b;"), ("b.rs", "use crate::c;")]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(
            findings[0].contains("a -> b (") && findings[0].contains("b -> c (") && findings[0].contains("c -> a (")
        );
    }

    #[test]
    fn crates_do_not_share_modules() {
        let tree = tree(&[("crates/x/src/a.rs", "use crate::b::T;"), ("crates/y/src/b.rs", "use crate::a::T;")]);
        assert_eq!(check(&tree), []);
    }
}
